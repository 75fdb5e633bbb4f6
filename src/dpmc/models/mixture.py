"""Mixture of two normals with a flat prior on a square (DP-Fast MH paper, Section 6.1, Appendix E.1)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dpmc.models.exponential import FlatPrior

GRID_POINTS = 121  # points per axis at which the likelihood is computed
SQUARES = 1200  # per axis, on which the posterior is tabulated
NEGLIGIBLE_DEPTH = 40.0  # densities below e^−40 of the largest are ignored


@dataclass(frozen=True)
class Mixture(FlatPrior):
    """x ~ ½ N(θ_1, σ²) + ½ N(θ_1 + θ_2, σ²); the prior is flat on |θ_j| ≤ limit, 0 outside.

    A softplus model (`dpmc.evaluators.softplus`) in t(x) = x: the ratio of the second component to the first
    is exp(β x + η).
    """

    variance: float  # σ²
    limit: float
    dimension = 2
    sign = 1.0  # s
    start = (0.0, 0.0)
    histogram_truth = True  # the paper compares draws with a histogram of exact draws

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p(θ) (...) of θ (..., 2) up to a constant: 0 on the square, −∞ outside and for NaN."""
        inside = (np.abs(theta) <= self.limit).all(axis=-1)
        return np.where(inside, 0.0, -np.inf)

    def line(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return α (chains, 1), γ (chains,) of ln N(x; θ_1, σ²) = α x + γ, up to a term of x alone."""
        alpha = theta[:, 0] / self.variance
        return alpha[:, None], -0.5 * theta[:, 0] * alpha

    def link(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return β (chains, 1), η (chains,) of ln N(x; θ_1 + θ_2, σ²) − ln N(x; θ_1, σ²) = β x + η."""
        beta = theta[:, 1] / self.variance
        return beta[:, None], -(theta[:, 0] + 0.5 * theta[:, 1]) * beta

    def sigmoid_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G (chains, 2, 3), h (chains, 2): σ²∇ is (x − θ_1 − wθ_2, w(x − θ_1 − θ_2))."""
        linear, constant = np.zeros((len(theta), 2, 3)), np.zeros(theta.shape)
        linear[:, 0, 2] = linear[:, 1, 0] = 1.0 / self.variance
        linear[:, 0, 1], linear[:, 1, 1] = -theta[:, 1] / self.variance, -theta.sum(axis=1) / self.variance
        constant[:, 0] = -theta[:, 0] / self.variance
        return linear, constant

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return t(x) = x (n, 1) of rows (n, 1)."""
        return rows

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        centred = rows[:, 0] - theta[0]
        ends = -0.5 * centred**2, -0.5 * (centred - theta[1]) ** 2
        return np.logaddexp(ends[0] / self.variance, ends[1] / self.variance)

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        first = (rows[:, 0] - theta[0]) / self.variance
        second = first - theta[1] / self.variance
        weight = expit(0.5 * self.variance * (first**2 - second**2))  # of the second component
        return np.stack([(1.0 - weight) * first + weight * second, weight * second], axis=1)

    def row_bounds(self, rows: np.ndarray) -> np.ndarray:
        """Return c_i (n,): |ln p(x_i|θ') − ln p(x_i|θ)| ≤ c_i ‖θ' − θ‖ on the square (Appendix E.1)."""
        size, limit = np.abs(rows[:, 0]), self.limit
        return np.hypot(2.0 * size + 3.0 * limit, size + 2.0 * limit) / self.variance

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        mean = theta[0] + theta[1] * generator.integers(0, 2, n)
        return (mean + np.sqrt(self.variance) * generator.standard_normal(n))[:, None]

    def posterior(self, rows: np.ndarray, temperature: float) -> "GridPosterior":
        """Return the posterior of rows (n, 1), likelihood tempered by T, on a grid.

        The log-likelihood, relative to that at 0, is summed over all rows at GRID² points, interpolated by a
        cubic spline, and tabulated on SQUARES² squares of the rectangle outside of which the density is
        negligible. If the tempered likelihood counts as 100 rows, as in the paper, a grid twice as fine
        changes every marginal probability by less than 1e-5.
        """
        from scipy.interpolate import RectBivariateSpline

        from dpmc.evaluators.softplus import SoftplusEvaluator  # numba is slow to import, and rarely needed

        axis = np.linspace(-self.limit, self.limit, GRID_POINTS)
        theta = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        unbounded = np.full(len(theta), np.inf)
        sums, _ = SoftplusEvaluator(self, rows).ratio_sums(np.zeros_like(theta), theta, unbounded)
        surface = temperature * sums.reshape(GRID_POINTS, GRID_POINTS)

        edges, step = [], axis[1] - axis[0]
        for side in (0, 1):  # where the density is not negligible along an axis
            inside = axis[surface.max(axis=1 - side) - surface.max() > -NEGLIGIBLE_DEPTH]
            ends = max(inside[0] - step, -self.limit), min(inside[-1] + step, self.limit)
            edges.append(np.linspace(*ends, SQUARES + 1))
        centres = [0.5 * (e[1:] + e[:-1]) for e in edges]
        log_density = RectBivariateSpline(axis, axis, surface)(*centres)
        weight = np.exp(log_density - log_density.max())
        return GridPosterior(edges, weight / weight.sum())


class GridPosterior(NamedTuple):
    """A two-dimensional distribution that is uniform on each square of a grid."""

    edges: list[np.ndarray]  # (squares + 1,) along each axis
    weight: np.ndarray  # (squares, squares) probabilities

    def draws(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """Return draws (size, 2): a square by inverting the cumulated weights, then a uniform point in it."""
        uniform = generator.random((3, size))
        cumulated = np.cumsum(self.weight)
        last = np.searchsorted(cumulated, cumulated[-1])
        # By rounding it may be past the last square that has weight.
        squares = np.searchsorted(cumulated, uniform[0] * cumulated[-1], side="right")
        i, j = np.divmod(np.minimum(squares, last), self.weight.shape[1])
        places = zip(self.edges, (i, j), uniform[1:], strict=True)
        return np.stack([e[k] + (e[k + 1] - e[k]) * u for e, k, u in places], axis=1)

    def mean(self) -> np.ndarray:
        first, second = self._centres()
        return np.array([self.weight.sum(axis=1) @ first, self.weight.sum(axis=0) @ second])

    def covariance(self) -> np.ndarray:
        """Return Cov θ (2, 2), including the variance within a square."""
        centres = [c - m for c, m in zip(self._centres(), self.mean(), strict=True)]
        within = [(edges[1] - edges[0]) ** 2 / 12.0 for edges in self.edges]
        covariance = np.diag(within)
        covariance[0, 0] += self.weight.sum(axis=1) @ centres[0] ** 2
        covariance[1, 1] += self.weight.sum(axis=0) @ centres[1] ** 2
        covariance[0, 1] = covariance[1, 0] = centres[0] @ self.weight @ centres[1]
        return covariance

    def _centres(self) -> list[np.ndarray]:
        return [0.5 * (edges[1:] + edges[:-1]) for edges in self.edges]
