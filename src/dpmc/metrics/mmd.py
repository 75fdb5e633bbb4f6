"""Maximum mean discrepancy between two samples, as in the thesis's figures (Section 5.3)."""

import math

import numpy as np

from dpmc.evaluators.kernels import pair_sum

BANDWIDTH_PAIRS = 500  # the public code's number; the thesis's text says 50
MAXIMUM_DRAWS = 5000  # of a chain: more draws cost time and change little


def equally_spaced(draws: np.ndarray, most: int = MAXIMUM_DRAWS) -> np.ndarray:
    """Return at most `most` of the draws (count, d), equally spaced and including the last."""
    count = len(draws)
    if count <= most:
        return draws
    return draws[(np.arange(1, most + 1) * count) // most - 1]


def bandwidth(x: np.ndarray, y: np.ndarray, generator: np.random.Generator) -> float:
    """Return the median of ||x_i - y_i|| over random pairs of x (n, d) and y (m, d), with replacement.

    It grows with the samples' distance: the MMD of two narrow, distant ones saturates at
    sqrt(2 - 2 exp(-1/2)) = 0.887, as in the figures.
    """
    first = x[generator.integers(len(x), size=BANDWIDTH_PAIRS)]
    second = y[generator.integers(len(y), size=BANDWIDTH_PAIRS)]
    with np.errstate(over="ignore"):  # `squared_mmd` refuses an infinite width
        return float(np.median(np.sqrt(np.sum((first - second) ** 2, axis=1))))


def fixed_width(exact: np.ndarray) -> float:
    """Return the median distance of pairs of exact draws (m, d), each draw in one pair."""
    half = len(exact) // 2
    return float(np.median(np.linalg.norm(exact[:half] - exact[half : 2 * half], axis=1)))


def _without_repeats(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return draws (n, d) as rows (u, d), columns (d, u), weights (u,): equal neighbours are one."""
    # A chain stays where it is after a rejection, so its repeats are neighbours: no search is needed.
    new = np.ones(len(draws), bool)
    new[1:] = (draws[1:] != draws[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    rows = np.ascontiguousarray(draws[starts], np.float64)
    weights = np.diff(starts, append=len(draws)).astype(np.float64)
    return rows, np.ascontiguousarray(rows.T), weights


def _mean_within(sample: tuple[np.ndarray, np.ndarray, np.ndarray], scale: float) -> float:
    """Return the mean of exp(scale ||x_i - x_j||^2) over the pairs i != j of draws."""
    rows, columns, weights = sample
    count, repeats = float(weights.sum()), float(np.sum(weights * (weights - 1.0)))  # of distance 0
    # Each pair once (j > i), which is half the work; the sum below doubles it.
    pairs = float(pair_sum(rows, weights, columns, weights, scale, True))
    return (2.0 * pairs + repeats) / (count * (count - 1.0))


def squared_mmd(x: np.ndarray, y: np.ndarray, width: float) -> float:
    """Return the unbiased estimate of MMD^2 of x (n, d) and y (m, d), which can be negative.

    Gaussian kernel k(x, y) = exp(-||x - y||^2 / (2 width^2)); the formula in Section 5.3 lacks the minus
    sign. Raises ValueError for fewer than 2 draws, and a width not in (0, inf) or whose square is not.
    """
    n, m = len(x), len(y)
    if n < 2 or m < 2:
        raise ValueError(f"needs at least 2 draws in each sample, got {n} and {m}")
    if not (0.0 < width < math.inf and 0.0 < width * width < math.inf):
        raise ValueError(f"the kernel's bandwidth is {width}, must be positive and finite, its square too")
    scale = -0.5 / (width * width)
    first, second = _without_repeats(x), _without_repeats(y)
    (rows, _, v), (_, columns, w) = first, second
    across = float(pair_sum(rows, v, columns, w, scale, False)) / float(v.sum() * w.sum())
    return _mean_within(first, scale) + _mean_within(second, scale) - 2.0 * across


def published_mmd(x: np.ndarray, y: np.ndarray, generator: np.random.Generator) -> float:
    """Return the MMD of a chain x (n, d) from exact draws y (m, d) as the public code does.

    sqrt(|unbiased estimate|), bandwidth from 500 random pairs. Raises ValueError as `squared_mmd` does.
    """
    return float(np.sqrt(abs(squared_mmd(x, y, bandwidth(x, y, generator)))))


def fixed_mmd(x: np.ndarray, exact: np.ndarray) -> float:
    """Return the MMD of draws (n, d) from exact ones (m, d), with a kernel that a far chain cannot widen.

    Raises ValueError as `squared_mmd` does.
    """
    return float(np.sqrt(abs(squared_mmd(x, exact, fixed_width(exact)))))
