"""Poisson minibatches of TunaMH and DP-Fast MH: rows drawn with replacement, and their log ratio."""

import math
from typing import Any

import numpy as np

from dpmc.common.compiling import njit

#: Exactness may depend on the order of operations: only fused multiply-add is allowed.
EXACT_ORDER: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": {"contract"}}

#: The odd number nearest to 2⁶⁴ over the golden ratio, and the constants of SplitMix64's mixing function.
WEYL = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
#: First index of an iteration's uniform numbers, by purpose; each purpose uses far fewer than 2⁴⁰ numbers.
ARRIVALS, ROWS, THINNING, NOISE = 0, 1 << 40, 2 << 40, 3 << 40
#: A row's ratio beyond its bound by less than this, relatively, is rounding and does not count as clipped.
ROUNDING = 1e-9


@njit(**EXACT_ORDER)
def uniform(word, k):
    """Return the k-th uniform number of a 64-bit word, strictly between 0 and 1.

    Counter-based (SplitMix64; Steele, Lea and Flood 2014): all numbers of a chain's iteration follow from one
    word, so that the number of values used does not shift other draws.
    """
    z = word + np.uint64(k + 1) * WEYL
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(12)) + 0.5) * 2.0**-52


@njit(**EXACT_ORDER)
def uniforms(words, k):
    """Return the k-th uniform number of each word (chains,)."""
    found = np.empty(words.shape[0])
    for c in range(words.shape[0]):
        found[c] = uniform(words[c], k)
    return found


@njit(**EXACT_ORDER)
def poisson_counts(words, mean, most):
    """Draw Poisson(mean) numbers (chains,), truncated at `most`: arrivals of a process until time `mean`."""
    counts = np.zeros(words.shape[0], np.int64)
    for c in range(words.shape[0]):
        time = 0.0
        while counts[c] < most:
            time -= math.log(uniform(words[c], ARRIVALS + counts[c]))
            if not time <= mean[c]:
                break
            counts[c] += 1
    return counts


@njit(**EXACT_ORDER)
def draw_with_replacement(word, count, threshold, alias):
    """Draw rows (count,) by Walker's alias method: column i gives i up to threshold_i, alias_i beyond."""
    n, chosen = threshold.shape[0], np.empty(count, np.int64)
    for j in range(count):
        place = uniform(word, ROWS + j) * n
        column = int(place)
        chosen[j] = column if place - column < threshold[column] else alias[column]
    return chosen


@njit(**EXACT_ORDER)
def thinned_log_ratio(word, ratios, reach, h):
    """Return Σ 2 artanh(hv) over the rows kept, and the number clipped; v = r/reach clipped to [−1, 1].

    `ratios` r (m,), tempered, and `reach` (m,) are those of the rows drawn. A row is kept with probability
    (1 − hv)/(1 + h). NaN counts as −1, against the proposal.
    """
    total, clipped = 0.0, 0
    for j in range(ratios.shape[0]):
        v = ratios[j] / reach[j] if reach[j] > 0.0 else 0.0
        clipped += not abs(v) <= 1.0 + ROUNDING
        v = v if v > -1.0 else -1.0
        v = v if v < 1.0 else 1.0
        if uniform(word, THINNING + j) * (1.0 + h) < 1.0 - h * v:
            total += math.log((1.0 + h * v) / (1.0 - h * v))
    return total, clipped
