"""Maximum mean discrepancy between two samples, as in the thesis's figures (Section 5.3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc.common.compiling import njit

Floats = npt.NDArray[np.float64]

BANDWIDTH_PAIRS = 500  # the public code's number; the thesis's text says 50 (spec.md 5)
MAXIMUM_DRAWS = 5000  # of a chain: more draws cost time and change little
BLOCK = 512  # columns summed together: 4 KiB of squared distances, 4 KiB of sums

#: Products and sums may be fused but not reordered. Vector instructions work on neighbouring columns, so the
#: order of a sum does not depend on their width.
KERNEL: dict[str, Any] = {"cache": True, "fastmath": {"contract"}, "error_model": "numpy"}

LOWEST = -746.0  # its exp rounds to 0
TO_BINARY = 1.0 / math.log(2.0)
# log 2 in two pieces; the first has 21 zero bits at its end, so that a multiple up to 1077 is exact.
LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
ROUNDING = 1.5 * 2.0**52  # adding it rounds to a whole number, which is in the last bits of the sum
# Taylor series of exp at 0: the terms after r^13 / 13! are below 5e-18 for |r| <= log(2) / 2.
(C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13) = (1.0 / math.factorial(k) for k in range(2, 14))


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


@njit(**KERNEL)
def exponential(argument: Any) -> Any:
    """Return exp(argument) for an argument of at most 0, -inf included, to within one unit in the last place.

    It has no branch or call, so that a loop over it is vectorised (a loop over `math.exp` needs Intel's
    vector library for that). exp(a) = 2^n exp(r), with n the whole number nearest a / log 2 and |r| <= log(2)
    / 2.
    """
    bounded = LOWEST if argument < LOWEST else argument
    shifted = bounded * TO_BINARY + ROUNDING
    n = shifted - ROUNDING
    r = (bounded - n * LOG_2_HIGH) - n * LOG_2_LOW
    series = C11 + r * (C12 + r * C13)
    series = C8 + r * (C9 + r * (C10 + r * series))
    series = C5 + r * (C6 + r * (C7 + r * series))
    series = 1.0 + r * (1.0 + r * (C2 + r * (C3 + r * (C4 + r * series))))
    # n + 128 is added to the exponent's bits, so that the number is normal even if exp is subnormal; the last
    # product removes the factor 2^128 and rounds.
    bits = np.float64(series).view(np.int64) + ((np.float64(shifted).view(np.int64) + 128) << 52)
    return np.int64(bits).view(np.float64) * 2.0**-128


@njit(**KERNEL)
def pair_sum(rows: Any, row_weights: Any, columns: Any, column_weights: Any, scale: Any, later: Any) -> Any:
    """Return the sum of v_i w_j exp(scale ||x_i - y_j||^2) over all pairs, or those with j > i if `later`.

    `rows` is (n, d) and holds the x_i, `row_weights` (n,) the v_i, `columns` is (d, m) and holds the y_j,
    `column_weights` (m,) the w_j, scale < 0. Each column has a sum of its own, over i, and the columns' sums
    are added in order.
    """
    # Direct differences: ||x||^2 + ||y||^2 - 2xy loses all digits for tight posteriors far from the origin.
    squares, sums = np.empty(BLOCK), np.empty(BLOCK)
    total = 0.0
    for begin in range(0, columns.shape[1], BLOCK):
        end = min(begin + BLOCK, columns.shape[1])
        sums[:] = 0.0
        for i in range(rows.shape[0]):
            first = max(begin, i + 1) if later else begin
            if first >= end:
                break
            weight, here, its_sums = row_weights[i], squares[: end - first], sums[first - begin : end - begin]
            here[:] = 0.0
            for k in range(rows.shape[1]):
                value, column = rows[i, k], columns[k, first:end]
                for j in range(end - first):
                    difference = value - column[j]
                    here[j] += difference * difference
            for j in range(end - first):
                its_sums[j] += weight * exponential(scale * here[j])
        for j in range(end - begin):
            total += column_weights[begin + j] * sums[j]
    return total


def _without_repeats(draws: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (n, d) draws as the compiled sum needs them: rows (u, d), columns (d, u), weights (u,).

    A draw equal to the previous one adds to its weight.
    """
    new = np.ones(len(draws), bool)
    new[1:] = (draws[1:] != draws[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    rows = np.ascontiguousarray(draws[starts], np.float64)
    weights = np.diff(starts, append=len(draws)).astype(np.float64)
    return rows, np.ascontiguousarray(rows.T), weights


def _mean_within(sample: tuple[Floats, Floats, Floats], scale: float) -> float:
    """Return the mean of exp(scale ||x_i - x_j||^2) over the pairs i != j of draws."""
    rows, columns, weights = sample
    count, repeats = float(weights.sum()), float(np.sum(weights * (weights - 1.0)))  # of distance 0
    pairs = float(pair_sum(rows, weights, columns, weights, scale, True))
    return (2.0 * pairs + repeats) / (count * (count - 1.0))


def warm() -> None:
    """Compile the kernel sum or load it from the cache, before evaluations need it."""
    squared_mmd(np.zeros((2, 1)), np.ones((2, 1)), 1.0)


def squared_mmd(x: Floats, y: Floats, width: float) -> float:
    """Return the unbiased estimate of MMD^2 (it can be negative if the distributions agree).

    Gaussian kernel k(x, y) = exp(-||x - y||^2 / (2 width^2)); the formula in Section 5.3 lacks the minus
    sign. `x` is (n, d), `y` is (m, d), n and m at least 2.

    Raises ValueError for samples of fewer than 2 draws, and a width that is not in (0, inf) or whose square
    is not.
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


def published_mmd(x: Floats, y: Floats, generator: np.random.Generator) -> float:
    """Return the MMD as published: sqrt(|unbiased estimate|), bandwidth from 500 random pairs.

    `x` (n, d) is the chain, `y` (m, d) the exact sample. The absolute value is as in the public code; it
    makes negative estimates of agreeing samples positive.

    Raises ValueError as `squared_mmd` does; a width of 0 means that most pairs coincide.
    """
    return float(np.sqrt(abs(squared_mmd(x, y, bandwidth(x, y, generator)))))
