"""Clipped sums for models with an affine form: a dense pass over blocks of rows, or sorted columns.

r_j = α·t(x_j) + γ and ∇ ln p(x_j|θ) = G t(x_j) + h (spec: every exponential family). When only one
statistic has a non-zero coefficient (a one-component move; the circle always), Σ clip(r_j) needs two
binary searches and prefix sums of the sorted statistic: O(log n) in place of O(n).

The prefix sums start at the median and go outwards. So the sum of a range holds no rounding error of rows
outside it: one huge row, which is always clipped, cannot change a sum by more than its clip bound.
"""

import math
from typing import NamedTuple

import numpy as np

from dpmc.compiler import ROW_SUMS, compilable

#: Rows per block: a block of all columns stays in the first cache level for small d.
BLOCK = 512


@compilable
class AffineEvaluator(NamedTuple):
    """Rows as columns of statistics (k, n), and the same sorted with prefix sums where they are used."""

    columns: np.ndarray  # (k, n)
    ordered: np.ndarray  # (k, n) each column ascending; (0, n) where no move uses it
    prefix: np.ndarray  # (k, n + 1) sums of ordered − centre from the middle outwards, negative below it
    centre: np.ndarray  # (k,) medians
    totals: np.ndarray  # (k,) sums of the columns: all that an unclipped sum needs

    @classmethod
    def build(cls, statistics: np.ndarray, one_component: bool) -> "AffineEvaluator":
        """Lay out statistics (n, k); sort them if moves will have one active statistic."""
        columns = np.ascontiguousarray(statistics.T, dtype=float)
        k, n = columns.shape
        used = k if one_component or k == 1 else 0
        ordered = np.sort(columns[:used], axis=1)
        middle = n // 2
        centre = ordered[:, middle].copy()
        prefix = np.zeros((used, n + 1))
        for i in range(used):
            centred = ordered[i] - centre[i]
            prefix[i, middle + 1 :] = _prefix_sums(centred[middle:])
            prefix[i, :middle] = -_prefix_sums(centred[:middle][::-1])[::-1]
        return cls(columns, ordered, prefix, centre, np.array([math.fsum(c) for c in columns]))

    def ratio_sums(self, model, theta, proposal, bound, sums, counts):
        """See `dpmc.evaluators`."""
        chains, k = theta.shape[0], self.columns.shape[0]
        alpha = np.zeros((chains, k))
        gamma = np.zeros(chains)
        dense = np.zeros(chains, np.bool_)
        for c in range(chains):
            gamma[c] = model.ratio(theta[c], proposal[c], alpha[c])
            active, last = 0, 0
            for i in range(k):
                if alpha[c, i] != 0.0:
                    active, last = active + 1, i
            if bound[c] == np.inf:
                sums[c], counts[c] = gamma[c] * self.columns.shape[1], 0
                for i in range(k):
                    sums[c] += alpha[c, i] * self.totals[i]
            elif active <= 1 and self.ordered.shape[0] > 0:
                sums[c], counts[c] = sorted_sum(
                    self.ordered[last],
                    self.prefix[last],
                    self.centre[last],
                    alpha[c, last],
                    gamma[c],
                    bound[c],
                )
            else:
                dense[c] = True
                sums[c], counts[c] = 0.0, 0
        if dense.any():
            n = self.columns.shape[1]
            work = np.empty(BLOCK)
            for start in range(0, n, BLOCK):
                stop = min(start + BLOCK, n)
                for c in range(chains):
                    if dense[c]:
                        part, clipped = ratio_block(
                            self.columns, start, stop, alpha[c], gamma[c], bound[c], work
                        )
                        sums[c] += part
                        counts[c] += clipped

    def gradient_sums(self, model, theta, bound, sums, counts):
        """See `dpmc.evaluators`."""
        chains, d = theta.shape
        k, n = self.columns.shape
        linear = np.zeros((chains, d, k))
        constant = np.zeros((chains, d))
        dense = np.zeros(chains, np.bool_)
        for c in range(chains):
            model.gradient(theta[c], linear[c], constant[c])
            sums[c] = 0.0
            counts[c] = 0
            dense[c] = bound != np.inf
            if not dense[c]:
                sums[c] = n * constant[c]
                for i in range(k):
                    sums[c] += linear[c, :, i] * self.totals[i]
            elif k == 1:
                slope, offset, parallel = along(linear[c, :, 0], constant[c])
                if parallel:
                    dense[c] = False
                    if slope > 0.0:
                        total, counts[c] = sorted_sum(
                            self.ordered[0], self.prefix[0], self.centre[0], slope, offset, bound
                        )
                        sums[c] = linear[c, :, 0] * (total / slope)
        if dense.any():
            work = np.empty((d, BLOCK))
            scale = np.empty(BLOCK)
            for start in range(0, n, BLOCK):
                stop = min(start + BLOCK, n)
                for c in range(chains):
                    if dense[c]:
                        counts[c] += gradient_block(
                            self.columns,
                            start,
                            stop,
                            linear[c],
                            constant[c],
                            bound,
                            work,
                            scale,
                            sums[c],
                        )


@compilable
def sorted_sum(ordered, prefix, centre, alpha, gamma, bound):
    """Σ_j clip(α t_j + γ, ±bound) and the number clipped, t sorted ascending: two binary searches.

    The rows left unclipped are those between the first with α t + γ ≥ −bound and the last with
    α t + γ ≤ bound (mirrored for α < 0); rounding is monotone in t, so the searches see the very
    comparisons that a pass over the rows would make.
    """
    n = ordered.shape[0]
    sign = 1.0
    if alpha < 0.0:
        sign, alpha, gamma = -1.0, -alpha, -gamma
    low, end = 0, n
    while low < end:
        middle = (low + end) // 2
        if alpha * ordered[middle] + gamma < -bound:
            low = middle + 1
        else:
            end = middle
    high, end = low, n
    while high < end:
        middle = (high + end) // 2
        if alpha * ordered[middle] + gamma <= bound:
            high = middle + 1
        else:
            end = middle
    total = alpha * (prefix[high] - prefix[low]) + (alpha * centre + gamma) * (high - low)
    clipped = n - (high - low)
    if clipped > 0:
        total += bound * ((n - high) - low)
    return sign * total, clipped


@compilable
def along(linear, constant):
    """Write G t + h of one statistic as (slope t + offset) G/‖G‖, if h is parallel to G.

    Returns (slope, offset, whether it is parallel); slope = ‖G‖. Parallel up to rounding: what is left of h
    across G is below 1e-12 of it. A zero G needs a zero h.
    """
    square = (linear * linear).sum()
    if square == 0.0:
        return 0.0, 0.0, not constant.any()
    slope = np.sqrt(square)
    offset = (linear * constant).sum() / slope
    across = constant - linear * (offset / slope)
    return slope, offset, (across * across).sum() <= 1e-24 * (constant * constant).sum()


@compilable(**ROW_SUMS)
def ratio_block(columns, start, stop, alpha, gamma, bound, work):
    """Clipped sum and clip count of α·t + γ over rows start…stop−1; `work` (BLOCK,) is scratch."""
    size = stop - start
    for j in range(size):
        work[j] = gamma
    for i in range(columns.shape[0]):
        slope = alpha[i]
        if slope != 0.0:
            column = columns[i, start:stop]
            for j in range(size):
                work[j] += slope * column[j]
    total, clipped = 0.0, 0
    for j in range(size):
        ratio = work[j]
        kept = ratio if ratio > -bound else -bound  # NaN, too, speaks against the proposal
        kept = kept if kept < bound else bound
        total += kept
        clipped += kept != ratio
    return total, clipped


@compilable(**ROW_SUMS)
def gradient_block(columns, start, stop, linear, constant, bound, work, scale, sums):
    """Add the clipped gradients G t + h of rows start…stop−1 to `sums` (d,); return how many were clipped.

    `work` (d, BLOCK) and `scale` (BLOCK,) are scratch. Dividing by the root of the larger of ‖g‖² and
    bound² leaves an unclipped gradient exactly as it is, without a branch.
    """
    size = stop - start
    for j in range(size):
        scale[j] = 0.0
    for i in range(constant.shape[0]):
        component = work[i]
        for j in range(size):
            component[j] = constant[i]
        for k in range(columns.shape[0]):
            slope = linear[i, k]
            if slope != 0.0:
                column = columns[k, start:stop]
                for j in range(size):
                    component[j] += slope * column[j]
        for j in range(size):
            scale[j] += component[j] * component[j]
    clipped = 0
    square = bound * bound
    for j in range(size):
        clipped += scale[j] > square
        scale[j] = bound / np.sqrt(max(scale[j], square))
    for i in range(constant.shape[0]):
        component = work[i]
        total = 0.0
        for j in range(size):
            total += scale[j] * component[j]
        sums[i] += total
    return clipped


def _prefix_sums(values: np.ndarray) -> np.ndarray:
    """Prefix sums (n,) of values (n,), each with a relative error near one rounding.

    Sums in blocks of 64 by `math.fsum` of block totals, so that errors do not grow with n.
    """
    n = len(values)
    padded = np.zeros(-(-n // 64) * 64)
    padded[:n] = values
    blocks = padded.reshape(-1, 64)
    exact_totals = [math.fsum(block) for block in blocks]
    before = np.zeros(len(blocks))
    error = 0.0
    for i in range(1, len(blocks)):
        # two-sum keeps what rounding loses of the running total
        a, b = before[i - 1], exact_totals[i - 1] + error
        total = a + b
        error = b - (total - a) if abs(a) >= abs(b) else a - (total - b)
        before[i] = total
    return (np.cumsum(blocks, axis=1) + before[:, None]).ravel()[:n]
