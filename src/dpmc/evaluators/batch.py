"""Clipped sums over a small batch of rows, drawn uniformly without replacement.

`batch_sums(model, theta, proposal, bound, words, i, sums, squares, counts)` draws a batch for each chain c
from the random words (chains, m, b) of iteration i and writes, of r_j clipped to ±bound_c over the batch,
Σ r_j, Σ (r_j − mean)² and the number of rows clipped.

`batch_gradient_sums(model, theta, bound, words, i, sums, counts)`: likewise Σ clip(∇ ln p(x_j|θ_c)) over the
batch, clipped to Euclidean norm `bound`, and the number of rows clipped.

`rows_ratio(model, theta, proposal, chosen, ratios)` writes, for one chain (θ is (d,)) and rows chosen (b,),
which may repeat, r_j = ln p(x_j|θ') − ln p(x_j|θ) as it is into `ratios` (b,).
"""

from typing import NamedTuple

import numpy as np

from dpmc.compiler import UNCOUNTED, compilable
from dpmc.evaluators.affine import BLOCK, compress
from dpmc.evaluators.dense import aligned, clip, clip_factors, squares_of_gradients, weighted_sums


@compilable(apart=True)
class BatchEvaluator(NamedTuple):
    """Statistics row by row, so that a row is one or two cache lines, and a scratch mark for each row."""

    table: np.ndarray  # (n, k) statistics
    taken: np.ndarray  # (n,) False between calls

    @classmethod
    def build(cls, statistics: np.ndarray) -> "BatchEvaluator":
        """Lay out statistics (n, k)."""
        table = whole_rows(statistics)
        return cls(table, np.zeros(len(table), np.bool_))

    def batch_sums(self, model, theta, proposal, bound, words, i, sums, squares, counts):
        """See the module's text."""
        sum_batches(self, model, theta, proposal, bound, words, i, sums, squares, counts)

    def rows_ratio(self, model, theta, proposal, chosen, ratios):
        """See the module's text."""
        alpha = np.zeros(self.table.shape[1])
        gamma = model.ratio(theta, proposal, alpha)
        affine_ratios(self.table, chosen, alpha, gamma, ratios)

    def batch_gradient_sums(self, model, theta, bound, words, i, sums, counts):
        """See the module's text; ∇ ln p(x|θ) = G t + h."""
        d, k = theta.shape[1], self.table.shape[1]
        b = words.shape[2]
        chosen = np.empty(b, np.int64)
        linear, slopes, columns = np.empty((d, k)), np.empty((d, k)), np.empty((d, k), np.int64)
        constant, active = np.empty(d), np.empty(d, np.int64)
        block, work, factors = aligned((k, BLOCK)), aligned((d, BLOCK)), aligned((BLOCK,))
        for c in range(theta.shape[0]):
            linear[:] = 0.0
            model.gradient(theta[c], linear, constant)
            for p in range(d):
                active[p] = compress(linear[p], columns[p], slopes[p])
            draw_batch(words[c, i], self.taken, chosen)
            sums[c], counts[c] = 0.0, 0
            for first in range(0, b, BLOCK):
                rows = min(BLOCK, b - first)
                lay_out(self.table, chosen, first, rows, block)
                squares_of_gradients(block, columns, slopes, active, constant, work, factors)
                counts[c] += clip_factors(work, factors, rows, bound)
                weighted_sums(work, factors, sums[c])


def whole_rows(statistics: np.ndarray) -> np.ndarray:
    """Statistics (n, k), all of a row NaN where one is not finite: such a row contributes 0 to every sum."""
    table = np.array(statistics, dtype=float, order="C")
    table[~np.isfinite(table).all(axis=1)] = np.nan
    return table


@compilable
def sum_batches(evaluator, model, theta, proposal, bound, words, i, sums, squares, counts):
    """`batch_sums` of the module's text for an evaluator with `taken` and `rows_ratio`."""
    chosen, ratios = np.empty(words.shape[2], np.int64), np.empty(words.shape[2])
    for c in range(theta.shape[0]):
        draw_batch(words[c, i], evaluator.taken, chosen)
        evaluator.rows_ratio(model, theta[c], proposal[c], chosen, ratios)
        sums[c], squares[c], counts[c] = clipped_moments(ratios, bound[c])


@compilable(**UNCOUNTED)
def affine_ratios(table, chosen, alpha, gamma, ratios):
    """Write α·t + γ of rows `chosen` (b,) of a table (n, k) into `ratios` (b,); 0 for a row of NaN."""
    for j in range(chosen.shape[0]):
        ratio = gamma
        for q in range(alpha.shape[0]):
            ratio += alpha[q] * table[chosen[j], q]
        ratios[j] = 0.0 if np.isnan(table[chosen[j], 0]) else ratio


@compilable(**UNCOUNTED)
def lay_out(table, chosen, first, rows, block):
    """Write rows chosen[first : first + rows] of a table (n, k) as columns into a block (k, BLOCK).

    The block is filled up with zeros, so that nothing of a batch before stays in it.
    """
    for j in range(rows):
        row = chosen[first + j]
        for q in range(block.shape[0]):
            block[q, j] = table[row, q]
    for j in range(rows, block.shape[1]):
        for q in range(block.shape[0]):
            block[q, j] = 0.0


@compilable(**UNCOUNTED)
def draw_batch(words, taken, chosen):
    """Draw len(chosen) different rows of len(taken), all batches equally likely (Floyd's method).

    `words` (b,): uniform 64-bit numbers; the bias, n / 2⁶⁴ a row, is below 1e-13 for n < 10⁶. `taken` (n,) is
    False before and after. Needs n < 2³².
    """
    n, b = taken.shape[0], chosen.shape[0]
    for q in range(b):
        last = n - b + q
        pick = below(words[q], last + 1)
        if taken[pick]:
            pick = last  # no earlier step could take it
        taken[pick] = True
        chosen[q] = pick
    for q in range(b):
        taken[chosen[q]] = False


@compilable(**UNCOUNTED)
def below(word, m):
    """⌊word · m / 2⁶⁴⌋ for a 64-bit word and m < 2³², by two products of 32 bits."""
    half = np.uint64(32)
    factor = np.uint64(m)
    high = (word >> half) * factor
    low = ((word & np.uint64(0xFFFFFFFF)) * factor) >> half
    return np.int64((high + low) >> half)


@compilable(**UNCOUNTED)
def clipped_moments(ratios, bound):
    """Clip r (b,) to ±bound in place; return Σ r, Σ (r − mean)² and the number clipped."""
    total, clipped = 0.0, 0
    for j in range(ratios.shape[0]):
        ratio = ratios[j]
        kept = clip(ratio, bound)
        total += kept
        clipped += kept != ratio
        ratios[j] = kept
    mean, squares = total / ratios.shape[0], 0.0
    for j in range(ratios.shape[0]):
        squares += (ratios[j] - mean) ** 2
    return total, squares, clipped
