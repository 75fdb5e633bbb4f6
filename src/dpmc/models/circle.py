"""The circle model (Section 5.1 of the thesis): a thin ring-shaped posterior around the origin."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dpmc.base import NoisySum
from dpmc.models.exponential import FlatPrior


@dataclass(frozen=True)
class Circle(FlatPrior):
    """ln p(r|θ) = −a(θ_1² + θ_2² − r²)², flat prior. Sufficient statistic: t(r) = r²."""

    a: float
    dimension = 2
    has_true_theta = False  # rows are not drawn at a θ, so that no interval can hold it

    def ratio_form(self, theta: np.ndarray, proposal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return α (chains, 1) and γ (chains,) of ln p(r|θ') − ln p(r|θ) = α t + γ."""
        old, new = (theta**2).sum(axis=1), (proposal**2).sum(axis=1)
        alpha = 2.0 * self.a * (new - old)
        return alpha[:, None], -0.5 * alpha * (new + old)

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G (chains, 2, 1) and h (chains, 2) of ∇ ln p(r|θ) = 4a(t − ‖θ‖²)θ = G t + h."""
        linear = 4.0 * self.a * theta
        return linear[:, :, None], -(theta**2).sum(axis=1, keepdims=True) * linear

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return the sufficient statistics t(r) = r² (n, 1) of rows r (n, 1)."""
        return rows**2

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return -self.a * (theta[0] ** 2 + theta[1] ** 2 - rows[:, 0] ** 2) ** 2

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        """Draw n rows r ~ N(3, 1) (n, 1); the model has no sampling distribution of its own."""
        return 3.0 + generator.standard_normal((n, 1))

    def posterior(self, rows: np.ndarray, temperature: float) -> "CirclePosterior":
        """Return the posterior of rows (n, 1): u = ‖θ‖² ~ N(mean r², 1/(2anT)) on u ≥ 0, uniform angle."""
        squares = rows[:, 0] ** 2
        return CirclePosterior(squares.mean(), 0.5 / (self.a * len(rows) * temperature))

    summary_count = 1

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        """Return r² (n, 1)."""
        return rows**2

    def posterior_given(self, noisy: NoisySum) -> "CirclePosterior":
        """Return the generalised posterior, averaged over Σr² given the noisy sum with a flat prior on it."""
        n, sd = noisy.n, noisy.noise_sd
        variance = 0.5 / (self.a * n * noisy.temperature) + (sd / n) ** 2
        return CirclePosterior(float(noisy.total[0]) / n, variance)


class CirclePosterior(NamedTuple):
    """The distribution of (√u cos v, √u sin v), u ~ N(mean, variance) truncated to u ≥ 0, v uniform."""

    square_mean: float
    square_variance: float

    def draws(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return self.at(np.empty((size, 0)), generator.random((2, size)).T)

    def at(self, normal: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Return exact draws (m, 2): θ has density f(‖θ‖²), so ‖θ‖² has density ∝ f."""
        sd = np.sqrt(self.square_variance)
        # Quantiles of the normal distribution truncated to positive values, from its upper tail.
        tail = ndtr(self.square_mean / sd)
        squares = np.maximum(self.square_mean - sd * ndtri(tail * (1.0 - uniform[:, 0])), 0.0)
        radius, angle = np.sqrt(squares), 2.0 * np.pi * uniform[:, 1]
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    def mean(self) -> np.ndarray:
        """Return E θ = (0, 0), by symmetry."""
        return np.zeros(2)

    def covariance(self) -> np.ndarray:
        """Return Cov θ = ½ E‖θ‖² I (2, 2); E‖θ‖² is the mean of the truncated normal distribution."""
        sd = np.sqrt(self.square_variance)
        z = self.square_mean / sd
        hazard = np.exp(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(z))
        return 0.5 * (self.square_mean + sd * hazard) * np.eye(2)
