"""Sums over all rows of two statistics: strips, of which few rows are read."""

import math
from typing import Any

import numpy as np

from dpmc.common.compiling import njit

WELL_CONDITIONED = 4096.0  #: rounding of a sum of n such terms is below n · 1e-12 of the bound
STRIP = 2048  #: rows per strip

#: Sums may be reassociated, for vector instructions; NaN and infinity keep their meaning.
ROW_SUMS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}


@njit(**ROW_SUMS)
def strip_ratio_sums(rows, alpha, gamma, bound):
    """Sum clip(α·t + γ, ±bound) of two statistics (x, y); returns sums and numbers clipped (chains,).

    `rows` are strips (strips, 2, STRIP), their `strip_prefix`, `low` and `high` (strips,), the median of y
    and n. Each strip has x in [low, high] and is sorted by y. Its rows are surely unclipped between two
    values of y and surely clipped beyond two other values; the rows in between are read.
    """
    strips, prefix, low, high, middle, n = rows
    chains = alpha.shape[0]
    sums, counts = np.zeros(chains), np.zeros(chains, np.int64)
    for c in range(chains):
        sign = -1.0 if alpha[c, 1] < 0.0 else 1.0
        a, b, g, limit = sign * alpha[c, 0], sign * alpha[c, 1], sign * gamma[c], bound[c]
        total, clipped = 0.0, 0
        for s in range(strips.shape[0]):
            size = min(STRIP, n - s * STRIP)
            ends = (a * low[s] + g, a * high[s] + g)
            least, most = min(ends[0], ends[1]), max(ends[0], ends[1])
            reach = abs(a) * max(abs(low[s]), abs(high[s])) + abs(b * middle) + abs(g)
            if not reach <= WELL_CONDITIONED * limit:
                part, beyond = read_ratios(strips, s, 0, size, alpha[c], gamma[c], limit)
                total += sign * part
                clipped += beyond
                continue
            first, last = b * strips[s, 1, 0], b * strips[s, 1, size - 1]
            if least + first >= -limit and most + last <= limit:
                inner, outer, below, above = 0, size, 0, size
            elif most + last < -limit:
                inner, outer, below, above = size, size, size, size
            elif least + first > limit:
                inner, outer, below, above = 0, 0, 0, 0
            else:
                inner = first_at_least(strips, s, size, b, -limit - least)
                outer = first_above(strips, s, size, b, limit - most)
                below = first_at_least(strips, s, size, b, -limit - most)
                above = first_above(strips, s, size, b, limit - least)
                if inner >= outer:  # no row is surely unclipped
                    inner = outer = above
            if inner < outer:
                total += a * (prefix[s, 0, outer] - prefix[s, 0, inner])
                total += b * (prefix[s, 1, outer] - prefix[s, 1, inner]) + (b * middle + g) * (outer - inner)
            total += limit * ((size - above) - below)
            clipped += (size - above) + below
            part, beyond = read_ratios(strips, s, below, inner, alpha[c], gamma[c], limit)
            more, further = read_ratios(strips, s, outer, above, alpha[c], gamma[c], limit)
            total += sign * (part + more)
            clipped += beyond + further
        sums[c], counts[c] = sign * total, clipped
    return sums, counts


@njit(**ROW_SUMS)
def read_ratios(strips, s, first, end, alpha, gamma, bound):
    """Sum clip(α·(x, y) + γ, ±bound) over rows `first` to `end` − 1 of a strip, and count the clipped.

    The sign of α is not normalised, because NaN must count against the proposal.
    """
    total, clipped = 0.0, 0
    a, b, g = alpha[0], alpha[1], gamma
    for j in range(first, end):
        ratio = a * strips[s, 0, j] + b * strips[s, 1, j] + g
        kept = ratio if ratio > -bound else -bound  # NaN counts as −bound
        kept = kept if kept < bound else bound
        total += kept
        clipped += kept != ratio
    return total, clipped


@njit(**ROW_SUMS)
def first_at_least(strips, s, size, slope, limit):
    """Return the first of `size` rows of a strip with slope · y ≥ limit, slope ≥ 0; `size` if none has."""
    first, left = 0, size
    while left > 0:
        half = (left + 1) // 2
        if slope * strips[s, 1, first + half - 1] < limit:
            first += half
        left -= half
    return first


@njit(**ROW_SUMS)
def first_above(strips, s, size, slope, limit):
    """Return the first of `size` rows of a strip with slope · y > limit, slope ≥ 0; `size` if none has."""
    first, left = 0, size
    while left > 0:
        half = (left + 1) // 2
        if slope * strips[s, 1, first + half - 1] <= limit:
            first += half
        left -= half
    return first


@njit(**ROW_SUMS)
def strip_gradient_sums(rows, triangular, bound):
    """Sum clipped u = R (x, y, 1), R (chains, 3, 3) upper triangular, ‖u‖ the norm of the gradient.

    Returns sums of u (chains, 3) and numbers clipped (chains,). In a strip, the rows within the bound for
    both ends of x are an interval of y, summed by prefix sums. The other rows are read, because a clipped row
    contributes its direction. `rows`: see `strip_ratio_sums`.
    """
    strips, prefix, low, high, middle, n = rows
    chains = triangular.shape[0]
    sums, counts = np.zeros((chains, 3)), np.zeros(chains, np.int64)
    for c in range(chains):
        r = (
            triangular[c, 0, 0],
            triangular[c, 0, 1],
            triangular[c, 0, 2],
            triangular[c, 1, 1],
            triangular[c, 1, 2],
            triangular[c, 2, 2],
        )
        one, two, three, clipped = 0.0, 0.0, 0.0, 0
        for s in range(strips.shape[0]):
            size = min(STRIP, n - s * STRIP)
            first, end = unclipped_range(strips, s, size, (low[s], high[s]), middle, r, bound)
            if first < end:
                x = prefix[s, 0, end] - prefix[s, 0, first]
                y = prefix[s, 1, end] - prefix[s, 1, first]
                count = end - first
                one += r[0] * x + r[1] * y + (r[1] * middle + r[2]) * count
                two += r[3] * y + (r[3] * middle + r[4]) * count
                three += r[5] * count
            for part in range(2):
                begin, stop = (0, first) if part == 0 else (end, size)
                for j in range(begin, stop):
                    x, y = strips[s, 0, j], strips[s, 1, j]
                    u = r[0] * x + r[1] * y + r[2]
                    v = r[3] * y + r[4]
                    square = u * u + v * v + r[5] * r[5]
                    clipped += not square <= bound * bound
                    usable = square < np.inf
                    factor = bound / math.sqrt(square)
                    factor = factor if square > bound * bound else 1.0
                    one += factor * u if usable else 0.0
                    two += factor * v if usable else 0.0
                    three += factor * r[5] if usable else 0.0
        sums[c, 0], sums[c, 1], sums[c, 2], counts[c] = one, two, three, clipped
    return sums, counts


@njit(**ROW_SUMS)
def unclipped_range(strips, s, size, ends, middle, r, bound):
    """Return (first, end) of a strip's rows surely within the bound; (0, 0) if none or too much cancels.

    ‖R (x, y, 1)‖ is convex: it is within the bound in a rectangle if it is at the four corners.
    """
    reach = abs(r[0]) * max(abs(ends[0]), abs(ends[1])) + abs(r[1] * middle) + abs(r[2])
    if not (reach <= WELL_CONDITIONED * bound and abs(r[3] * middle) + abs(r[4]) <= WELL_CONDITIONED * bound):
        return 0, 0
    square = bound * bound - r[5] * r[5]
    a = r[1] * r[1] + r[3] * r[3]
    least, most = -np.inf, np.inf
    for x in ends:  # a y² + 2 b y + c ≤ 0
        shift = r[0] * x + r[2]
        b, c = r[1] * shift + r[3] * r[4], shift * shift + r[4] * r[4] - square
        if a == 0.0:
            if c > 0.0:
                return 0, 0
            continue
        root = b * b - a * c
        if not root >= 0.0:
            return 0, 0
        root = math.sqrt(root)
        least, most = max(least, (-b - root) / a), min(most, (-b + root) / a)
    first = first_at_least(strips, s, size, 1.0, least)
    end = first_above(strips, s, size, 1.0, most)
    while first < end and not within(ends, strips[s, 1, first], r, bound):
        first += 1
    while first < end and not within(ends, strips[s, 1, end - 1], r, bound):
        end -= 1
    return (first, end) if first < end else (0, 0)


@njit(**ROW_SUMS)
def within(ends, y, r, bound):
    """Return whether ‖R (x, y, 1)‖ is within the bound for both ends of x."""
    v = r[3] * y + r[4]
    u, w = r[0] * ends[0] + r[1] * y + r[2], r[0] * ends[1] + r[1] * y + r[2]
    rest = v * v + r[5] * r[5]
    return u * u + rest <= bound * bound and w * w + rest <= bound * bound


def strip_prefix(strips: np.ndarray, n: int, middle: float) -> np.ndarray:
    """Return prefix sums (strips, 2, STRIP + 1) of x and of y − middle within each strip.

    Sums of y start where y − middle changes its sign and go outwards, so that a range within the bound has no
    rounding errors of rows farther out.
    """
    prefix = np.zeros((len(strips), 2, STRIP + 1))
    for s, (x, y) in enumerate(strips):
        size = min(STRIP, n - s * STRIP)
        start = int(np.searchsorted(y[:size], middle))
        prefix[s, 0, 1 : size + 1] = np.cumsum(x[:size])
        prefix[s, 1, start + 1 : size + 1] = np.cumsum(y[start:size] - middle)
        prefix[s, 1, :start] = -np.cumsum((y[:start] - middle)[::-1])[::-1]
    return prefix
