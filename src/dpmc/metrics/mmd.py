"""Maximum mean discrepancy between two samples, as in the thesis's figures (Section 5.3)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpmc.evaluators.kernels import pair_sum

Floats = npt.NDArray[np.float64]

BANDWIDTH_PAIRS = 500  # the public code's number; the thesis's text says 50 (spec.md 5)
MAXIMUM_DRAWS = 5000  # of a chain: more draws cost time and change little


def equally_spaced(draws: Floats, most: int = MAXIMUM_DRAWS) -> Floats:
    """Return at most `most` of the draws (rows), equally spaced and including the last."""
    count = len(draws)
    if count <= most:
        return draws
    return draws[(np.arange(1, most + 1) * count) // most - 1]


def bandwidth(x: Floats, y: Floats, generator: np.random.Generator, pairs: int = BANDWIDTH_PAIRS) -> float:
    """Return the median of ||x_i - y_i|| over random pairs drawn with replacement.

    The pairs cross the two samples, so the bandwidth grows with their distance and the MMD of
    two tight, distant samples saturates at sqrt(2 - 2 exp(-1/2)) = 0.887, as in the figures.
    """
    first = x[generator.integers(len(x), size=pairs)]
    second = y[generator.integers(len(y), size=pairs)]
    with np.errstate(over="ignore"):  # `squared_mmd` refuses an infinite width
        return float(np.median(np.sqrt(np.sum((first - second) ** 2, axis=1))))


class _Sample(NamedTuple):
    """A sample without repeats, with weights, in the layout of the compiled sum."""

    rows: Floats  # (u, d), contiguous
    columns: Floats  # (d, u), contiguous
    weights: Floats  # (u,), how often each was drawn

    @classmethod
    def of(cls, draws: Floats) -> _Sample:
        """Return the sample of (n, d) draws; a draw equal to the previous one adds to its weight."""
        new = np.ones(len(draws), bool)
        new[1:] = (draws[1:] != draws[:-1]).any(axis=1)
        starts = np.flatnonzero(new)
        weights = np.diff(starts, append=len(draws)).astype(np.float64)
        rows = np.ascontiguousarray(draws[starts], np.float64)
        return cls(rows, np.ascontiguousarray(rows.T), weights)

    def mean_within(self, scale: float) -> float:
        """Return the mean of exp(scale ||x_i - x_j||^2) over the pairs i != j of draws."""
        count = float(self.weights.sum())
        pairs = pair_sum(self.rows, self.weights, self.columns, self.weights, scale, True)
        repeats = float(np.sum(self.weights * (self.weights - 1.0)))  # their distance is 0
        return (2.0 * float(pairs) + repeats) / (count * (count - 1.0))

    def mean_across(self, other: _Sample, scale: float) -> float:
        """Return the mean of exp(scale ||x_i - y_j||^2) over all pairs of a draw here and one of `other`."""
        pairs = pair_sum(self.rows, self.weights, other.columns, other.weights, scale, False)
        return float(pairs) / float(self.weights.sum() * other.weights.sum())


def warm() -> None:
    """Compile the kernel sum or load it from the cache, before evaluations need it."""
    squared_mmd(np.zeros((2, 1)), np.ones((2, 1)), 1.0)


def squared_mmd(x: Floats, y: Floats, width: float) -> float:
    """Return the unbiased estimate of MMD^2 (it can be negative if the distributions agree).

    Gaussian kernel k(x, y) = exp(-||x - y||^2 / (2 width^2)); the formula in Section 5.3 lacks the minus
    sign. `x` is (n, d), `y` is (m, d), n and m at least 2.

    Raises
    ------
    ValueError
        For samples of fewer than 2 draws, of different dimension, with draws that are not finite, or a
        width that is not in (0, inf) or whose square is not.
    """
    n, m = len(x), len(y)
    if n < 2 or m < 2:
        raise ValueError(f"needs at least 2 draws in each sample, got {n} and {m}")
    if x.ndim != 2 or x.shape[1:] != y.shape[1:]:
        raise ValueError(f"samples differ in dimension: {x.shape[1:]} and {y.shape[1:]}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("some draws are not finite")
    if not (0.0 < width < math.inf and 0.0 < width * width < math.inf):
        raise ValueError(f"the kernel's bandwidth is {width}, must be positive and finite, its square too")
    scale = -0.5 / (width * width)
    first, second = _Sample.of(x), _Sample.of(y)
    within = first.mean_within(scale) + second.mean_within(scale)
    return within - 2.0 * first.mean_across(second, scale)


def published_mmd(x: Floats, y: Floats, generator: np.random.Generator) -> float:
    """Return the MMD as published: sqrt(|unbiased estimate|), bandwidth from 500 random pairs.

    `x` (n, d) is the chain, `y` (m, d) the exact sample. The absolute value is as in the public code; it
    makes negative estimates of agreeing samples positive.

    Raises
    ------
    ValueError
        As `squared_mmd`; a width of 0 means that most pairs coincide.
    """
    if len(x) < 1 or len(y) < 1:
        raise ValueError(f"needs at least 2 draws in each sample, got {len(x)} and {len(y)}")
    return float(np.sqrt(abs(squared_mmd(x, y, bandwidth(x, y, generator)))))
