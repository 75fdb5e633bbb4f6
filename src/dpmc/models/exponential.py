"""Bases of models: a flat prior, and exponential families."""

from collections.abc import Callable

import numpy as np


class FlatPrior:
    """A prior whose logarithm is 0 at every θ (..., d)."""

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p(θ) = 0 (...)."""
        return np.zeros(theta.shape[:-1])

    def log_prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return ∇ ln p(θ) = 0 (..., d)."""
        return np.zeros(theta.shape)


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

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return ln p(x_j|θ) of each row (n,), up to a term of the row alone."""
        return self.statistics(rows) @ self.slopes(theta[None])[0] + self.offset(theta[None])[0]

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        linear, constant = self.gradient_form(theta[None])
        return self.statistics(rows) @ linear[0].T + constant[0]
