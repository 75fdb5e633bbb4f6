"""Sums over all rows if only one statistic has a coefficient: sorted columns, read by binary search."""

import math
from typing import Any

import numpy as np

from dpmc.common.compiling import njit

WELL_CONDITIONED = 4096.0  #: rounding of a sum of n such terms is below n · 1e-12 of the bound
LARGEST_TERM = 1e150  #: its square is finite

#: Sums may be reassociated, for vector instructions; NaN and infinity keep their meaning.
ROW_SUMS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
#: If exactness depends on the order of operations, only fused multiply-add is allowed.
EXACT_ORDER: dict[str, Any] = {**ROW_SUMS, "fastmath": {"contract"}}


@njit(**ROW_SUMS)
def sorted_ratio_sums(ordered, prefix, median, alpha, gamma, bound):
    """Sum clip(α·t + γ, ±bound) for chains whose α (chains, k) has at most one nonzero coefficient.

    `ordered` (k, n): each statistic ascending; `prefix` (k, n + 1): `sorted_prefix`; `median` (k,). Returns
    sums and numbers clipped (chains,); −1 clipped if another kernel must compute the sum.
    """
    chains, k = alpha.shape
    sums, counts = np.zeros(chains), np.full(chains, -1)
    for c in range(chains):
        only, active = 0, 0
        for q in range(k):
            if alpha[c, q] != 0.0:
                only = q
                active += 1
        if active <= 1 and sorting_serves(ordered, median, only, alpha[c, only], gamma[c], bound[c]):
            sums[c], counts[c] = sorted_sum(ordered, prefix, median, only, alpha[c, only], gamma[c], bound[c])
    return sums, counts


@njit(**ROW_SUMS)
def sorted_gradient_sums(ordered, prefix, median, linear, constant, bound):
    """Sum clipped G t + h of one statistic, for chains whose h is parallel to G: (slope t + offset) G/‖G‖.

    G (chains, d, 1), h (chains, d). Returns sums (chains, d) and numbers clipped (chains,), −1 if another
    kernel must compute the sum. Parallel up to rounding: the part of h across G is at most 1e-12 of h.
    """
    chains, d = constant.shape
    sums, counts = np.zeros((chains, d)), np.full(chains, -1)
    for c in range(chains):
        square, product, size = 0.0, 0.0, 0.0
        for i in range(d):
            square += linear[c, i, 0] * linear[c, i, 0]
            product += linear[c, i, 0] * constant[c, i]
            size += constant[c, i] * constant[c, i]
        if square == 0.0:
            if size == 0.0:
                counts[c] = 0
            continue
        slope = math.sqrt(square)
        offset = product / slope
        across = 0.0
        for i in range(d):
            across += (constant[c, i] - linear[c, i, 0] * (offset / slope)) ** 2
        if across <= 1e-24 * size and sorting_serves(ordered, median, 0, slope, offset, bound):
            total, counts[c] = sorted_sum(ordered, prefix, median, 0, slope, offset, bound)
            for i in range(d):
                sums[c, i] = linear[c, i, 0] * (total / slope)
    return sums, counts


@njit(**ROW_SUMS)
def sorting_serves(ordered, median, q, alpha, gamma, bound):
    """Return whether prefix sums are as accurate as reading rows: little cancels, and no term overflows."""
    n = ordered.shape[1]
    middle = abs(alpha * median[q]) + abs(gamma)
    largest = abs(alpha) * max(abs(ordered[q, 0]), abs(ordered[q, n - 1])) + abs(gamma)
    return middle <= WELL_CONDITIONED * bound and largest <= LARGEST_TERM


@njit(**EXACT_ORDER)
def sorted_sum(ordered, prefix, median, q, alpha, gamma, bound):
    """Sum clip(α t + γ, ±bound) of the q-th statistic t and count the clipped, by two binary searches.

    The unclipped rows are those from the first with α t + γ ≥ −bound to the last with α t + γ ≤ bound
    (mirrored for α < 0). Rounding is monotone in t, so the searches agree with a pass over all rows.
    """
    n, sign = ordered.shape[1], 1.0
    if alpha < 0.0:
        sign, alpha, gamma = -1.0, -alpha, -gamma
    low, high, left = 0, 0, n
    while left > 0:
        half = (left + 1) // 2
        if alpha * ordered[q, low + half - 1] + gamma < -bound:
            low += half
        if alpha * ordered[q, high + half - 1] + gamma <= bound:
            high += half
        left -= half
    total = alpha * (prefix[q, high] - prefix[q, low]) + (alpha * median[q] + gamma) * (high - low)
    clipped = n - (high - low)
    if clipped > 0:
        total += bound * ((n - high) - low)
    return sign * total, clipped


def sorted_prefix(ordered: np.ndarray, median: np.ndarray) -> np.ndarray:
    """Return sums (k, n + 1) of ordered (k, n) − median from the middle outwards, negative below it.

    The sum of a range then has no rounding errors of rows outside it, such as one huge row that is always
    clipped. Extended precision keeps errors from growing with n.
    """
    k, n = ordered.shape
    middle = n // 2
    prefix = np.zeros((k, n + 1))
    for q in range(k):
        centred = (ordered[q] - median[q]).astype(np.longdouble)
        prefix[q, middle + 1 :] = np.cumsum(centred[middle:])
        prefix[q, :middle] = -np.cumsum(centred[:middle][::-1])[::-1]
    return prefix
