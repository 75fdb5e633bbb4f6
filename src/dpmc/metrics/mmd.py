"""Maximum mean discrepancy between two samples, as in the thesis's figures (Section 5.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

Floats = npt.NDArray[np.float64]

BANDWIDTH_PAIRS = 500  # the public code's number; the thesis's text says 50 (spec.md 5)
MAXIMUM_DRAWS = 5000  # of a chain: more cost time and change little
CHUNK_ROWS = 500  # rows of a kernel matrix held at once: 500 x 5,000 doubles are 20 MB


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
    with np.errstate(over="ignore"):  # an infinite width is refused by name in `squared_mmd`
        return float(np.median(np.sqrt(np.sum((first - second) ** 2, axis=1))))


def _kernel_sum(x: Floats, y: Floats, width: float) -> float:
    """Return the sum of k(x_i, y_j) over all pairs, a block of rows at a time, in fixed order."""
    total = 0.0
    for begin in range(0, len(x), CHUNK_ROWS):
        # Direct differences, not the ||x||^2 + ||y||^2 - 2xy trick: tight posteriors far from
        # the origin would lose all their digits in it.
        kernel = cdist(x[begin : begin + CHUNK_ROWS], y, "sqeuclidean")
        kernel *= -0.5 / width**2
        np.exp(kernel, out=kernel)
        total += float(kernel.sum())
    return total


def _within_sum(x: Floats, width: float) -> float:
    """Return the sum of k(x_i, x_j) over i != j, computing each unordered pair once."""
    total = 0.0
    for begin in range(0, len(x), CHUNK_ROWS):
        block = x[begin : begin + CHUNK_ROWS]
        total += _kernel_sum(block, block, width) - len(block)  # k(x_i, x_i) = 1 exactly
        total += 2.0 * _kernel_sum(block, x[begin + CHUNK_ROWS :], width)
    return total


def squared_mmd(x: Floats, y: Floats, width: float) -> float:
    """Return the unbiased estimate of MMD^2 (negative values occur when the laws agree).

    Gaussian kernel k(x, y) = exp(-||x - y||^2 / (2 width^2)); the formula in Section 5.3 has
    lost the minus sign. `x` is (n, d), `y` is (m, d), n and m at least 2.

    Raises
    ------
    ValueError
        For samples of fewer than 2 draws, of different dimension, or a width not in (0, inf).
    """
    n, m = len(x), len(y)
    if n < 2 or m < 2:
        raise ValueError(f"needs at least 2 draws in each sample, got {n} and {m}")
    if x.shape[1:] != y.shape[1:]:
        raise ValueError(f"samples differ in dimension: {x.shape[1:]} and {y.shape[1:]}")
    if not 0.0 < width < np.inf:
        raise ValueError(f"the kernel's bandwidth is {width}, must be positive and finite")
    within = _within_sum(x, width) / (n * (n - 1.0)) + _within_sum(y, width) / (m * (m - 1.0))
    return within - 2.0 * _kernel_sum(x, y, width) / (n * float(m))


def published_mmd(x: Floats, y: Floats, generator: np.random.Generator) -> float:
    """Return the MMD as published: sqrt(|unbiased estimate|), bandwidth from 500 random pairs.

    `x` (n, d) is the chain, `y` (m, d) the exact sample. The absolute value is the public
    code's: it turns the negative estimates of agreeing samples into a floor of noise.

    Raises
    ------
    ValueError
        As `squared_mmd`; a width of 0 means that most pairs coincide.
    """
    if len(x) < 1 or len(y) < 1:
        raise ValueError(f"needs at least 2 draws in each sample, got {len(x)} and {len(y)}")
    return float(np.sqrt(abs(squared_mmd(x, y, bandwidth(x, y, generator)))))
