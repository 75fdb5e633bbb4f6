"""The Gaussian model with known covariance and a conjugate prior (Section 5.1 of the thesis)."""

from typing import NamedTuple

import numpy as np

from dpmc.compiler import compilable


@compilable
class Gaussian(NamedTuple):
    """Likelihood x ~ N(θ, Σ), prior θ ~ N(0, prior_variance I). Sufficient statistic: t(x) = Σ⁻¹x,
    whose natural parameter is θ itself: a move of one component gives one statistic a coefficient.

    The thesis's code has prior sd 100 in the sampler and prior variance 100 in the exact posterior; the
    two fields keep both readings apart (their difference shrinks the mean by less than 1e-7).
    """

    precision: np.ndarray  # (d, d) Σ⁻¹
    prior_variance: float
    exact_prior_variance: float  # of the exact posterior that draws are compared with

    @property
    def dimension(self) -> int:
        """Number of parameters d."""
        return len(self.precision)

    def log_prior(self, theta):
        """ln p(θ) up to a constant."""
        square = 0.0
        for i in range(theta.shape[0]):
            square += theta[i] * theta[i]
        return -0.5 * square / self.prior_variance

    def log_prior_gradient(self, theta, out):
        """Write ∇ ln p(θ) into `out` (d,)."""
        for i in range(theta.shape[0]):
            out[i] = -theta[i] / self.prior_variance

    def ratio(self, theta, proposal, alpha):
        """Affine form of ln p(x|θ') − ln p(x|θ): write α = θ' − θ, return γ."""
        gamma = 0.0
        for i in range(theta.shape[0]):
            alpha[i] = proposal[i] - theta[i]
            for k in range(theta.shape[0]):
                gamma -= 0.5 * alpha[i] * self.precision[i, k] * (proposal[k] + theta[k])
        return gamma

    def gradient(self, theta, linear, constant):
        """Affine form of ∇ ln p(x|θ) = t − Σ⁻¹θ: write G = I (d, d; zero on entry) and h (d,)."""
        for i in range(theta.shape[0]):
            linear[i, i] = 1.0
            constant[i] = 0.0
            for k in range(theta.shape[0]):
                constant[i] -= self.precision[i, k] * theta[k]

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Sufficient statistics t(x) = Σ⁻¹x (n, d) of rows (n, d), without BLAS: the same bits everywhere."""
        return np.stack([(rows * weights).sum(axis=1) for weights in self.precision], axis=1)

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """ln p(x_j|θ) of each row (n,), up to a constant."""
        centred = rows - theta
        return -0.5 * ((centred @ self.precision) * centred).sum(axis=1)

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        """Draw n rows (n, d) at parameter θ."""
        root = np.linalg.cholesky(np.linalg.inv(self.precision))
        return theta + generator.standard_normal((n, self.dimension)) @ root.T

    def posterior(self, rows: np.ndarray, temperature: float) -> "GaussianPosterior":
        """The exact posterior, likelihood tempered by T."""
        weight = temperature * len(rows) * self.precision
        covariance = np.linalg.inv(weight + np.eye(self.dimension) / self.exact_prior_variance)
        return GaussianPosterior(covariance @ weight @ rows.mean(axis=0), covariance)


class GaussianPosterior(NamedTuple):
    """N(centre, spread)."""

    centre: np.ndarray
    spread: np.ndarray

    def draws(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Exact draws (size, d)."""
        normal = generator.standard_normal((size, len(self.centre)))
        return self.centre + normal @ np.linalg.cholesky(self.spread).T

    def mean(self) -> np.ndarray:
        """E θ (d,)."""
        return self.centre

    def covariance(self) -> np.ndarray:
        """Cov θ (d, d)."""
        return self.spread
