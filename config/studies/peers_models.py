"""Models of the studies `peers-coverage` and `peers-papers`."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

import dpmc
from dpmc.base import NoisySum
from dpmc.models.mixture import Mixture


def names(d: int) -> dict[str, tuple[float, float]]:
    """Return d − 1 predictors with their centre and scale; the intercept is the d-th coefficient."""
    return {f"x{i}": (0.0, 1.0) for i in range(1, d)}


def theta(d: int) -> list[float]:
    """Return coefficients of both signs whose norm is 1 for any d."""
    return [(-1.0) ** i / d**0.5 for i in range(d)]


def logistic(d: int) -> dpmc.LogisticRegression:
    """Return a logistic regression of d coefficients on normal predictors of variance 1."""
    return dpmc.LogisticRegression("y", names(d), prior_sd=2.5, true_theta=theta(d))


logistic_2, logistic_5, logistic_10, logistic_20, logistic_50 = map(logistic, (2, 5, 10, 20, 50))
linear_5 = dpmc.LinearRegression("y", names(5), sd=1.0, prior_sd=2.5, true_theta=theta(5))
poisson_5 = dpmc.PoissonRegression("y", names(5), prior_sd=2.5, true_theta=theta(5))

#: The catalogue's regression on pictures, with a normal prior in place of a flat one.
logistic_fashion = dpmc.LogisticRegression("y", names(51), intercept=False, prior_sd=1.0)


class Squares(NamedTuple):
    """A distribution on equal squares, with draws made of given numbers."""

    edges: np.ndarray  # of squares, along both axes
    cumulated: np.ndarray  # probabilities of the squares

    def at(self, normal: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Return draws (m, 2): squares by uniform numbers (m, 2), places in them by normal ones (m, 2)."""
        found = np.searchsorted(self.cumulated, uniform[:, 0] * self.cumulated[-1], side="right")
        corner = np.divmod(np.minimum(found, self.cumulated.size - 1), len(self.edges) - 1)
        return self.edges[np.transpose(corner)] + (self.edges[1] - self.edges[0]) * ndtr(normal)


class CountedMixture(Mixture):
    """The mixture of the DP-Fast MH paper, whose summaries say in which of 20 cells a row is.

    The posterior given noisy counts takes them for counts: noise is left out.
    """

    tempering, true_theta, summary_count = 100.0, (0.0, 1.0), 20
    cells = np.linspace(-4.0, 5.0, 19)  # between them; the outer ones have no end

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        """Return 1 in the cell of a row and 0 in the others (n, 20)."""
        return np.eye(20)[np.searchsorted(self.cells, rows[:, 0])]

    def posterior_given(self, noisy: NoisySum) -> Squares:
        """Return the posterior on squares, by the probabilities of the cells in the middle of each."""
        edges = np.linspace(-self.limit, self.limit, 301)
        middle = 0.5 * (edges[1:] + edges[:-1])
        first, second = np.meshgrid(middle, middle, indexing="ij")
        sd = np.sqrt(self.variance)

        def below(cell: float) -> np.ndarray:
            both = ndtr((cell - first) / sd) + ndtr((cell - first - second) / sd)
            return np.asarray(0.5 * both)

        parts = np.diff([np.zeros_like(first), *map(below, self.cells), np.ones_like(first)], axis=0)
        surface = np.tensordot(noisy.total, np.log(np.maximum(parts, 1e-12)), axes=1) * noisy.temperature
        return Squares(edges, np.cumsum(np.exp(surface - surface.max())))


counted_mixture = CountedMixture(2.0, 3.0)
