"""The law of a noisy sum over the rows (docs/reference/algorithms/noisy-statistics.md).

A summary t(x) of a row is a vector; the sum over n rows is approximately normal. Noise added to it is normal
too, so the likelihood of the noisy sum has a closed form in which the hidden sum is integrated. Bernstein and
Sheldon (2018, 2019) sample the hidden sum instead.
"""

from collections.abc import Callable

import numpy as np

from dpmc.base import Model, NoisySum


def log_normal(residual: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return ln N(residual; 0, covariance) (chains,) up to a constant.

    `residual` is (chains, k), `covariance` (chains, k, k). −∞ for a covariance that is not positive definite,
    and where one of them is not finite.
    """
    usable = np.isfinite(residual).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2))
    safe = np.where(usable[:, None, None], covariance, np.eye(residual.shape[1]))
    values, vectors = np.linalg.eigh(safe)
    usable &= values[:, 0] > 0.0
    values = np.where(usable[:, None], values, 1.0)
    along = (np.where(usable[:, None], residual, 0.0)[:, :, None] * vectors).sum(axis=1)
    density: np.ndarray = -0.5 * (along**2 / values + np.log(values)).sum(axis=1)
    return np.where(usable, density, -np.inf)


class WhiteSummaries:
    """The law of a noisy sum of summaries that have unit covariance, by the mean `natural(θ)` of a row."""

    natural: Callable[[np.ndarray], np.ndarray]
    summaries: Callable[[np.ndarray], np.ndarray]

    @property
    def summary_count(self: Model) -> int:
        return self.dimension

    def summary_log_likelihood(self, theta: np.ndarray, noisy: NoisySum) -> np.ndarray:
        """Return ln p(noisy sum|θ) (chains,): normal, its mean n times the summaries of a row's mean."""
        variance = noisy.n / noisy.temperature + noisy.noise_sd**2
        mean = self.summaries(self.natural(theta))
        return -0.5 * ((noisy.total - noisy.n * mean) ** 2).sum(axis=1) / variance
