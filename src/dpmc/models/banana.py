"""The banana model (Theorem 5.2 of the thesis); with a = 0 a Gaussian with independent components."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmc.base import NoisySum


@dataclass(frozen=True)
class Banana:
    """Likelihood x_2 ~ N(θ_2 + a(θ_1 − m)² + b, σ_2²), x_i ~ N(θ_i, σ_i²); prior Ban(0, σ_0² I, a, b, m).

    With φ(θ) = (θ_1, θ_2 + a(θ_1 − m)² + b, θ_3, …) the rows are normal around φ(θ), and φ(θ) is normal under
    the prior and under the posterior. The sufficient statistic is t(x)_i = x_i/σ_i², with natural parameter
    φ(θ).
    """

    a: float
    b: float
    m: float
    variance: np.ndarray  # (d,) σ_i², of the likelihood
    prior_variance: float  # σ_0²

    @property
    def dimension(self) -> int:
        return len(self.variance)

    def bend(self, theta: np.ndarray) -> np.ndarray:
        """Return φ_2(θ) (...), the mean of x_2, of θ (..., d)."""
        return theta[..., 1] + self.a * (theta[..., 0] - self.m) ** 2 + self.b

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return φ(θ) (..., d), the mean of a row."""
        # A copy: θ is the caller's.
        phi = np.array(theta, dtype=float)
        phi[..., 1] = self.bend(theta)
        return phi

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        return -0.5 * (self.natural(theta) ** 2).sum(axis=-1) / self.prior_variance

    def log_prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        gradient = -self.natural(theta) / self.prior_variance
        gradient[..., 0] += 2.0 * self.a * (theta[..., 0] - self.m) * gradient[..., 1]
        return gradient

    def ratio_form(self, theta: np.ndarray, proposal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return α (chains, d) and γ (chains,) of ln p(x|θ') − ln p(x|θ) = α·t(x) + γ."""
        old, new = self.natural(theta), self.natural(proposal)
        alpha = new - old
        return alpha, -0.5 * ((new + old) * alpha / self.variance).sum(axis=1)

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G (chains, d, d) and h (chains, d) of ∇ ln p(x|θ) = G t(x) + h; G is I except for G_12."""
        chains, d = theta.shape
        linear = np.zeros((chains, d, d))
        linear[:, range(d), range(d)] = 1.0
        slope = 2.0 * self.a * (theta[:, 0] - self.m)
        linear[:, 0, 1] = slope
        constant = -self.natural(theta) / self.variance
        constant[:, 0] += slope * constant[:, 1]
        return linear, constant

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return the sufficient statistics t(x)_i = x_i/σ_i² (n, d) of rows (n, d)."""
        return rows / self.variance

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return -0.5 * ((rows - self.natural(theta)) ** 2 / self.variance).sum(axis=1)

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        """Return x_i/σ_i (n, d), of variance 1."""
        return rows / np.sqrt(self.variance)

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        return self.natural(theta) + np.sqrt(self.variance) * generator.standard_normal((n, self.dimension))

    def posterior(self, rows: np.ndarray, temperature: float) -> "BananaPosterior":
        """Return the exact posterior Ban(μ, Σ, a, b, m), likelihood tempered by T (Theorem 5.2)."""
        return self._posterior(rows.mean(axis=0), temperature * len(rows))

    @property
    def summary_count(self) -> int:
        return self.dimension

    def posterior_given(self, noisy: NoisySum) -> "BananaPosterior":
        """Return the posterior given a noisy sum of summaries: that of its mean, of fewer rows."""
        return self._posterior(np.sqrt(self.variance) * noisy.total / noisy.n, noisy.rows_worth)

    def _posterior(self, mean: np.ndarray, n: float) -> "BananaPosterior":
        precision = n / self.variance
        variance = 1.0 / (precision + 1.0 / self.prior_variance)
        return BananaPosterior(variance * precision * mean, variance, self)


class BananaPosterior(NamedTuple):
    """Ban(μ, diag(variance), a, b, m): φ(θ) is normal with mean μ and independent components."""

    mu: np.ndarray
    variance: np.ndarray
    model: Banana

    def draws(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return self.at(generator.standard_normal((size, len(self.mu))), np.empty((size, 0)))

    def at(self, normal: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        theta = self.mu + np.sqrt(self.variance) * normal
        theta[:, 1] -= self.model.a * (theta[:, 0] - self.model.m) ** 2 + self.model.b
        return theta

    def mean(self) -> np.ndarray:
        mean = np.array(self.mu)
        offset = self.mu[0] - self.model.m
        mean[1] -= self.model.a * (self.variance[0] + offset**2) + self.model.b
        return mean

    def covariance(self) -> np.ndarray:
        """Return Cov θ (d, d), from the moments of a squared normal variable."""
        covariance = np.diag(self.variance)
        v, offset = self.variance[0], self.mu[0] - self.model.m
        covariance[0, 1] = covariance[1, 0] = -2.0 * self.model.a * offset * v
        covariance[1, 1] += self.model.a**2 * (2.0 * v**2 + 4.0 * v * offset**2)
        return covariance
