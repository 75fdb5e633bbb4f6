"""Rows drawn with replacement, as many as a Poisson variable says: what TunaMH looks at.

One 64-bit word per chain and iteration decides everything: its uniform numbers come from a counter-based
generator (SplitMix64: a Weyl sequence through a mixing function; Steele, Lea and Flood 2014), so the k-th of
them needs no state, and how many are used changes nothing else. Needs n < 2³².
"""

from typing import Any, NamedTuple

import numpy as np

from dpmc.compiler import compilable

WEYL = np.uint64(0x9E3779B97F4A7C15)  #: the odd number nearest to 2⁶⁴ over the golden ratio
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

#: Where the uniforms of one iteration begin, by purpose: none of them comes near 2⁴⁰ numbers.
ARRIVALS, ROWS, THINNING, NOISE = 0, 1 << 40, 2 << 40, 3 << 40

CHUNK = 256  #: rows whose ratios are held at a time


@compilable(apart=True)
class PoissonEvaluator(NamedTuple):
    """All rows and single rows, each with a bound: |T ln p(x_i|θ') − T ln p(x_i|θ)| ≤ bounds_i ‖θ' − θ‖."""

    full: Any  # an evaluator with `ratio_sums`
    table: Any  # an evaluator with `rows_ratio`
    bounds: np.ndarray  # (n,) c_i, tempered
    threshold: np.ndarray  # (n,) Walker's alias method: column i is row i up to here,
    alias: np.ndarray  # (n,) and this row beyond
    total: float  # C = Σ c_i
    largest: float  # max c_i

    @classmethod
    def build(cls, full: Any, table: Any, bounds: np.ndarray) -> "PoissonEvaluator":
        """For rows with these bounds (n,), none negative and not all 0."""
        bounds = np.ascontiguousarray(bounds, dtype=float)
        threshold, alias = alias_table(bounds)
        return cls(full, table, bounds, threshold, alias, float(bounds.sum()), float(bounds.max()))

    def draw_row(self, word, j):
        """Row of the j-th draw: i with probability bounds_i / total."""
        place = uniform(word, ROWS + j) * self.bounds.shape[0]
        column = int(place)
        return column if place - column < self.threshold[column] else self.alias[column]


def alias_table(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walker's tables for weights (n,), by Vose's method: column i is i up to threshold_i, alias_i beyond."""
    n = len(weights)
    threshold = weights * (n / weights.sum())
    alias = np.arange(n)
    small = [i for i in range(n) if threshold[i] < 1.0]
    large = [i for i in range(n) if threshold[i] >= 1.0]
    while small and large:
        low, high = small.pop(), large[-1]
        alias[low] = high
        threshold[high] -= 1.0 - threshold[low]
        if threshold[high] < 1.0:
            small.append(large.pop())
    threshold[small + large] = 1.0  # what is left differs from 1 by rounding
    return threshold, alias


@compilable
def uniform(word, k):
    """The k-th uniform number of a 64-bit word, strictly between 0 and 1; in Python with overflow ignored."""
    z = word + np.uint64(k + 1) * WEYL
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(12)) + 0.5) * 2.0**-52


@compilable
def poisson_count(word, mean, most):
    """A Poisson(mean) variable, or `most` if that is less: arrivals of a process until time `mean`."""
    time, count = 0.0, 0
    while count < most:
        time -= np.log(uniform(word, ARRIVALS + count))
        if not time <= mean:
            break
        count += 1
    return count
