"""The Gaussian model with known covariance and a conjugate prior (Section 5.1 of the thesis)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmc.base import NoisySum

#: Seed of the covariance of the DP-HMC paper's 10-dimensional Gaussian.
DP_HMC_COVARIANCE_SEED = 43235667

# Gamma(1/2, 1) draws of the DP-HMC paper. They are kept as data: later versions of the library have another
# gamma sampler, and the paper's hyperparameters fit only these values.
DP_HMC_EIGENVALUES = (
    0.04956748534656635, 0.03469380737585259, 0.5275016758927326, 0.884533451103745,
    4.774418675230966, 0.3718942298343162, 0.01267115375564109, 0.3266497163171083,
    0.10533087960103933, 0.8348154098439382,
)  # fmt: skip


@dataclass(frozen=True)
class Gaussian:
    """Likelihood x ~ N(θ, Σ), prior θ ~ N(0, prior_variance I).

    The sufficient statistic is t(x) = Σ⁻¹x, with natural parameter θ: in a one-component move only one
    statistic has a coefficient.

    The thesis's code has prior sd 100 in the sampler and prior variance 100 in the exact posterior. The two
    fields reproduce both (the difference shrinks the mean by less than 1e-7).
    """

    precision: np.ndarray  # (d, d) Σ⁻¹
    prior_variance: float
    exact_prior_variance: float  # in the exact posterior with which draws are compared

    @property
    def dimension(self) -> int:
        return len(self.precision)

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        return -0.5 * (theta**2).sum(axis=-1) / self.prior_variance

    def log_prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        return -theta / self.prior_variance

    def ratio_form(self, theta: np.ndarray, proposal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return α = θ' − θ (chains, d) and γ (chains,) of ln p(x|θ') − ln p(x|θ) = α·t(x) + γ."""
        alpha = proposal - theta
        return alpha, -0.5 * (alpha * self._times_precision(proposal + theta)).sum(axis=1)

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G = I (chains, d, d) and h = −Σ⁻¹θ (chains, d) of ∇ ln p(x|θ) = t − Σ⁻¹θ."""
        linear = np.zeros((len(theta), self.dimension, self.dimension))
        linear[:, range(self.dimension), range(self.dimension)] = 1.0
        return linear, -self._times_precision(theta)

    def _times_precision(self, vectors: np.ndarray) -> np.ndarray:
        """Return Σ⁻¹v (chains, d) of v (chains, d); without BLAS, so that chains do not affect each other."""
        return (vectors[:, None, :] * self.precision).sum(axis=2)

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return t(x) = Σ⁻¹x (n, d) of rows (n, d); without BLAS, so that results are bit-identical."""
        return np.stack([(rows * weights).sum(axis=1) for weights in self.precision], axis=1)

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        centred = rows - theta
        return -0.5 * ((centred @ self.precision) * centred).sum(axis=1)

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        """Return Λᵀx (n, d) with ΛΛᵀ = Σ⁻¹, of unit covariance."""
        root = np.linalg.cholesky(self.precision)
        return np.stack([(rows * column).sum(axis=1) for column in root.T], axis=1)

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        root = np.linalg.cholesky(np.linalg.inv(self.precision))
        return theta + generator.standard_normal((n, self.dimension)) @ root.T

    def posterior(self, rows: np.ndarray, temperature: float) -> "GaussianPosterior":
        """Return the exact posterior of rows (n, d), likelihood tempered by T."""
        return self._posterior(rows.mean(axis=0), temperature * len(rows))

    @property
    def summary_count(self) -> int:
        return self.dimension

    def posterior_given(self, noisy: NoisySum) -> "GaussianPosterior":
        """Return the posterior given a noisy sum of summaries: that of its mean, of fewer rows."""
        mean = np.linalg.solve(np.linalg.cholesky(self.precision).T, noisy.total / noisy.n)
        return self._posterior(mean, noisy.rows_worth)

    def _posterior(self, mean: np.ndarray, n: float) -> "GaussianPosterior":
        weight = n * self.precision
        covariance = np.linalg.inv(weight + np.eye(self.dimension) / self.exact_prior_variance)
        return GaussianPosterior(covariance @ weight @ mean, covariance)


class GaussianPosterior(NamedTuple):
    """N(centre, spread), centre (d,), spread (d, d)."""

    centre: np.ndarray
    spread: np.ndarray

    def draws(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return self.at(generator.standard_normal((size, len(self.centre))), np.empty((size, 0)))

    def at(self, normal: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        return self.centre + normal @ np.linalg.cholesky(self.spread).T

    def mean(self) -> np.ndarray:
        return self.centre

    def covariance(self) -> np.ndarray:
        return self.spread


def dp_hmc_covariance() -> np.ndarray:
    """Return the (10, 10) covariance of the DP-HMC paper's Gaussian, Q diag(eigenvalues) Q^T.

    Q has the orthonormalised columns of a matrix of uniforms.
    """
    from dpmc.common import threefry  # loads SciPy, which other models do not need at import

    size = len(DP_HMC_EIGENVALUES)
    # The second of the three keys drew the eigenvalues.
    matrix_key = threefry.split(threefry.key_of_seed(DP_HMC_COVARIANCE_SEED), 3)[2]
    orthonormal = np.linalg.qr(threefry.uniform(matrix_key, (size, size))).Q
    covariance = (orthonormal * np.array(DP_HMC_EIGENVALUES)) @ orthonormal.T
    return (covariance + covariance.T) / 2  # symmetric to the last bit
