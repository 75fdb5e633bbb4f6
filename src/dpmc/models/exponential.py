"""Bases of models: a flat prior, and exponential families."""

from collections.abc import Callable

import numpy as np

from dpmc.base import DIFFERENCE_STEP, NoisySum
from dpmc.models.summaries import log_normal


class FlatPrior:
    """A prior whose logarithm is 0 at every θ (..., d)."""

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p(θ) = 0 (...)."""
        return np.zeros(theta.shape[:-1])

    def log_prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return ∇ ln p(θ) = 0 (..., d)."""
        return np.zeros(theta.shape)


def solved(matrices: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the solutions (chains, d, m) of linear equations (chains, d, d); NaN where one is singular."""
    try:
        return np.linalg.solve(matrices, right)
    except np.linalg.LinAlgError:  # of some chain, which must not end the others
        if len(matrices) == 1:
            return np.full(right.shape, np.nan)
        return np.concatenate([solved(matrices[c : c + 1], right[c : c + 1]) for c in range(len(matrices))])


class ExponentialFamily:
    """ln p(x|θ) = slopes(θ)·t(x) + offset(θ), up to a term of x alone: affine in statistics of a row.

    A subclass defines `dimension`, `statistics(rows)` (n, k), and for positions (chains, d) `slopes(theta)`
    (chains, k), `offset(theta)` (chains,) and `gradient_form(theta)`, their derivatives: (chains, d, k) and
    (chains, d). Compute chains elementwise, so that none depends on the others. The other methods follow, and
    fast kernels compute the sums over rows.
    """

    dimension: int
    statistics: Callable[[np.ndarray], np.ndarray]
    slopes: Callable[[np.ndarray], np.ndarray]
    offset: Callable[[np.ndarray], np.ndarray]
    gradient_form: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

    def ratio_form(self, theta: np.ndarray, proposal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return α (chains, k), γ (chains,) of ln p(x|θ') − ln p(x|θ) = α·t(x) + γ."""
        return self.slopes(proposal) - self.slopes(theta), self.offset(proposal) - self.offset(theta)

    @property
    def summary_count(self) -> int:
        """Return the number of statistics; a model with another number of parameters has no law of a sum."""
        linear, _ = self.gradient_form(np.zeros((1, self.dimension)))
        d, k = linear.shape[1:]
        if d != k:
            raise AttributeError(f"summary_count: the model has {k} statistics and {d} parameters")
        return int(k)

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        """Return t(x_j) of each row, (n, k)."""
        return self.statistics(rows)

    def moments(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (chains, d) and covariance (chains, d, d) of a row's statistics.

        E ∇ ln p = G μ + h = 0 gives the mean, and (∂μ/∂θ)ᵀ = G Σ the covariance, the derivative by central
        differences. This supposes that p(x|θ) is normalised. NaN where G is singular.
        """

        def mean_at(at: np.ndarray) -> np.ndarray:
            linear, constant = self.gradient_form(at)
            return -solved(linear, constant[:, :, None])[:, :, 0]

        slopes = []
        for i in range(theta.shape[1]):
            step = np.zeros_like(theta)
            step[:, i] = DIFFERENCE_STEP * np.maximum(1.0, np.abs(theta[:, i]))
            slopes.append((mean_at(theta + step) - mean_at(theta - step)) / (2.0 * step[:, i : i + 1]))
        covariance = solved(self.gradient_form(theta)[0], np.stack(slopes, axis=1))
        return mean_at(theta), 0.5 * (covariance + covariance.transpose(0, 2, 1))

    def summary_log_likelihood(self, theta: np.ndarray, noisy: NoisySum) -> np.ndarray:
        """Return ln p(noisy sum|θ) (chains,): normal, with n times the moments of a row.

        The covariance is divided by the temperature.
        """
        mean, covariance = self.moments(theta)
        own, noise = noisy.n / noisy.temperature * covariance, noisy.noise_sd**2 * np.eye(mean.shape[1])
        return log_normal(noisy.total - noisy.n * mean, own + noise)

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return ln p(x_j|θ) of each row (n,), up to a term of the row alone."""
        return self.statistics(rows) @ self.slopes(theta[None])[0] + self.offset(theta[None])[0]

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        linear, constant = self.gradient_form(theta[None])
        return self.statistics(rows) @ linear[0].T + constant[0]
