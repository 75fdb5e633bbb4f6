"""Clipped sums where one statistic alone has a coefficient: sorted columns with prefix sums, O(log n).

The prefix sums start at the median and go outwards. So the sum of a range holds no rounding error of rows
outside it: one huge row, which is always clipped, cannot change a sum by more than its clip bound.
"""

from typing import Any, NamedTuple

import numpy as np

from dpmc.compiler import UNCOUNTED, compilable
from dpmc.evaluators.tree import WELL_CONDITIONED

#: One in so many rows is in the list that a search begins with: the list stays in the caches, and of the rows
#: themselves a search sees neighbours only.
STRIDE = 64
#: A term of a sum whose square, as a part of a gradient, is still a number.
LARGEST_TERM = 1e150


class SortedColumns(NamedTuple):
    """Columns of statistics (k, n), each ascending, and prefix sums; (0, n) where no move needs them."""

    ordered: np.ndarray  # (k, n)
    sparse: np.ndarray  # (k, ⌊n / STRIDE⌋) every STRIDE-th of them
    prefix: np.ndarray  # (k, n + 1) sums of ordered − median from the middle outwards, negative below it
    median: np.ndarray  # (k,)

    @classmethod
    def build(cls, columns: np.ndarray) -> "SortedColumns":
        """Sort columns of statistics (k, n)."""
        k, n = columns.shape
        ordered = np.sort(columns, axis=1)
        middle = n // 2
        median = ordered[:, middle].copy() if n else np.zeros(k)
        prefix = np.zeros((k, n + 1))
        for i in range(k):
            centred = ordered[i] - median[i]
            prefix[i, middle + 1 :] = _prefix_sums(centred[middle:])
            prefix[i, :middle] = -_prefix_sums(centred[:middle][::-1])[::-1]
        return cls(ordered, np.ascontiguousarray(ordered[:, STRIDE - 1 :: STRIDE]), prefix, median)


@compilable(**UNCOUNTED)
def sorted_sum(columns, i, alpha, gamma, bound):
    """Σ_j clip(α t_j + γ, ±bound) and the number clipped, t the i-th of sorted columns: two binary searches.

    The rows left unclipped are those between the first with α t + γ ≥ −bound and the last with
    α t + γ ≤ bound (mirrored for α < 0); rounding is monotone in t, so the searches see the very
    comparisons that a pass over the rows would make. Both searches go in step, for then a core waits for
    two rows at a time when memory is far.
    """
    n, sign = columns.ordered.shape[1], 1.0
    if alpha < 0.0:
        sign, alpha, gamma = -1.0, -alpha, -gamma
    sparse, prefix = columns.sparse[i], columns.prefix[i]
    low, high = limits(sparse, 0, 0, sparse.shape[0], alpha, gamma, bound)
    rows = min(STRIDE, n)
    low, high = min(low * STRIDE, n - rows), min(high * STRIDE, n - rows)
    low, high = limits(columns.ordered[i], low, high, rows, alpha, gamma, bound)
    total = alpha * (prefix[high] - prefix[low]) + (alpha * columns.median[i] + gamma) * (high - low)
    clipped = n - (high - low)
    if clipped > 0:
        total += bound * ((n - high) - low)
    return sign * total, clipped


@compilable(**UNCOUNTED)
def sorting_serves(columns, i, alpha, gamma, bound):
    """Whether `sorted_sum` is as good as reading the rows: little cancels, and no square overflows."""
    n = columns.ordered.shape[1]
    if n == 0:
        return False
    middle = abs(alpha * columns.median[i]) + abs(gamma)
    largest = abs(alpha) * max(abs(columns.ordered[i, 0]), abs(columns.ordered[i, n - 1])) + abs(gamma)
    return middle <= WELL_CONDITIONED * bound and largest <= LARGEST_TERM


@compilable(**UNCOUNTED)
def limits(ordered, low, high, left, alpha, gamma, bound):
    """Places of the first value with α t + γ ≥ −bound and the first with α t + γ > bound.

    The one is `low` or at most `left` further, the other `high` or at most `left` further.
    """
    while left > 0:
        half = (left + 1) // 2
        if alpha * ordered[low + half - 1] + gamma < -bound:
            low += half
        if alpha * ordered[high + half - 1] + gamma <= bound:
            high += half
        left -= half
    return low, high


@compilable(**UNCOUNTED)
def along(linear, constant):
    """Write G t + h of one statistic, G (d, 1), as (slope t + offset) G/‖G‖, if h is parallel to G.

    Returns (slope, offset, whether it is parallel); slope = ‖G‖. Parallel up to rounding: what is left of h
    across G is below 1e-12 of it. A zero G needs a zero h.
    """
    square, product, size = 0.0, 0.0, 0.0
    for i in range(constant.shape[0]):
        square += linear[i, 0] * linear[i, 0]
        product += linear[i, 0] * constant[i]
        size += constant[i] * constant[i]
    if square == 0.0:
        return 0.0, 0.0, size == 0.0
    slope = np.sqrt(square)
    offset = product / slope
    across = 0.0
    for i in range(constant.shape[0]):
        across += (constant[i] - linear[i, 0] * (offset / slope)) ** 2
    return slope, offset, across <= 1e-24 * size


def _prefix_sums(values: np.ndarray) -> np.ndarray:
    """Prefix sums (n,) of values (n,), each with a relative error near one rounding.

    Blocks of 64 are totalled, all at once, and totals added up with what rounding loses of them, so that
    errors do not grow with n.
    """
    n = len(values)
    padded = np.zeros(-(-n // 64) * 64)
    padded[:n] = values
    blocks = padded.reshape(-1, 64)
    totals, lost = np.zeros(len(blocks)), np.zeros(len(blocks))
    for column in np.ascontiguousarray(blocks.T):
        totals, error = two_sum(totals, column)
        lost += error
    before = [0.0]
    rest = 0.0
    for total in (totals + lost).tolist():
        running, rest = two_sum(before[-1], total + rest)
        before.append(running)
    return (np.cumsum(blocks, axis=1) + np.array(before[:-1])[:, None]).ravel()[:n]


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b rounded, and what rounding lost, exactly (Knuth); numbers, or arrays of them."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
