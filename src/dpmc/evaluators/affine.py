"""Clipped sums for models with an affine form: every row as few times as mathematics allows.

r_j = α·t(x_j) + γ and ∇ ln p(x_j|θ) = G t(x_j) + h (spec: every exponential family). By move:

- one statistic has a coefficient (one-component moves of models in natural statistics; the circle always):
  sorted columns, `dpmc.evaluators.columns`, O(log n);
- otherwise a tree settles ranges of rows that are surely unclipped or clipped, `dpmc.evaluators.tree`,
- and what is left is read block by block, all chains at each block, `dpmc.evaluators.dense`;
- two statistics have a walk down the tree of their own, which reads what it cannot settle, chain by chain:
  `dpmc.evaluators.plane`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpmc.compiler import UNCOUNTED, compilable
from dpmc.errors import DpmcError
from dpmc.evaluators.columns import SortedColumns, along, sorted_sum, sorting_serves
from dpmc.evaluators.dense import (
    affine_block,
    affine_block_of_four,
    aligned,
    clip_factors,
    clip_ratios,
    squares_of_gradients,
    weighted_sums,
)
from dpmc.evaluators.plane import line_sum, plane_sums, triangular
from dpmc.evaluators.proxies import Proxies
from dpmc.evaluators.tree import (
    BOXED,
    Tree,
    certain_gradients,
    certain_ratios,
    medians,
    new_stack,
    order_rows,
)

#: Rows per block: long enough for vector loops, short enough for a block to stay in the first cache levels.
BLOCK = 256
#: With more statistics than this a border of clipping crosses most blocks, however short they are; then loops
#: of twice the length cost less. Where passes have no intermediate results, of two statistics, half the
#: length costs no more, and a border crosses fewer rows.
FEW_STATISTICS = 4


@compilable(apart=True)
class AffineEvaluator(NamedTuple):
    """Rows in blocks of columns of statistics, a tree over them, and sorted columns where moves use them."""

    blocks: np.ndarray  # (blocks, k, rows per block), padded with zeros
    tree: Any  # Tree over the blocks
    proxies: Any  # Proxies of the tree's nodes
    sorted_columns: Any  # SortedColumns

    @classmethod
    def build(
        cls,
        statistics: np.ndarray,
        one_component: bool,
        gradients: bool = True,
        like: Sequence["AffineEvaluator"] = (),
    ) -> "AffineEvaluator":
        """Lay out statistics (n, k); sort them if moves will have one active statistic.

        Rows whose statistics are not finite are left out: they contribute 0 to every sum. Without `gradients`
        nothing is made that only these use; they may be asked for all the same. `like`: evaluators of the
        same statistics, whose parts are taken where they have them.
        """
        columns = np.ascontiguousarray(finite_rows(statistics).T)
        needed = columns if one_component or len(columns) == 1 else columns[:0]
        blocks, tree = like[0][:2] if like else _in_blocks(columns)
        proxies = [one.proxies for one in like if len(one.proxies.weights)]
        sorted_columns = [
            one.sorted_columns for one in like if one.sorted_columns.ordered.shape == needed.shape
        ]
        return cls(
            blocks,
            tree,
            proxies[0] if proxies else Proxies.build(blocks, tree, gradients),
            sorted_columns[0] if sorted_columns else SortedColumns.build(needed),
        )

    def ratio_sums(self, model, theta, proposal, bound, sums, counts):
        """See `dpmc.evaluators`."""
        chains, k = theta.shape[0], self.blocks.shape[1]
        alpha, gamma = np.zeros((chains, k)), np.zeros(chains)
        slopes = np.zeros((chains, k))
        columns = np.zeros((chains, k), np.int64)
        active = np.zeros(chains, np.int64)
        lines = columns, slopes, active, gamma
        if begin_ratios(self, model, theta, proposal, bound, alpha, lines, sums, counts) < chains:
            self.ratios_by_rows(alpha, lines, bound, sums, counts)

    def ratios_by_rows(self, alpha, lines, bound, sums, counts):
        """Write clipped sums of α·t + γ, and numbers clipped where they are -1; `lines` as in `read_ratios`.

        Not in `ratio_sums`, for it is long and sees no model: one copy of it serves all.
        """
        columns, slopes, active, gamma = lines
        chains, k, n = alpha.shape[0], self.blocks.shape[1], self.tree.size[0]
        rows, stack = (self.blocks, n), new_stack()
        if k == BOXED:
            for c in range(chains):
                if counts[c] < 0:
                    a, b = alpha[c, 0], alpha[c, 1]
                    sums[c], counts[c] = line_sum(rows, self.tree, a, b, gamma[c], bound[c], stack)
            return
        todo = np.zeros((chains, self.blocks.shape[0]), np.bool_)
        for c in range(chains):
            if counts[c] < 0:
                sums[c] = certain_ratios(self.tree, alpha[c], gamma[c], bound[c], todo[c], stack)
                counts[c] = 0
        work = aligned((4, self.blocks.shape[2]))
        read_ratios(self.blocks, n, todo, lines, bound, work, sums, counts)

    def gradient_sums(self, model, theta, bound, sums, counts):
        """See `dpmc.evaluators`."""
        chains, d = theta.shape
        k, n = self.blocks.shape[1], self.tree.size[0]
        linear = np.zeros((chains, d, k))
        constant = np.zeros((chains, d))
        for c in range(chains):
            model.gradient(theta[c], linear[c], constant[c])
            counts[c] = 0
        if k == BOXED:
            self.gradients_by_plane(linear, constant, bound, sums, counts)
            return
        if bound == np.inf:
            for c in range(chains):
                for i in range(d):
                    sums[c, i] = constant[c, i] * n
                    for j in range(k):
                        sums[c, i] += linear[c, i, j] * self.tree.sums[0, j]
            return
        sums[:] = 0.0
        self.gradients_by_distance(linear, constant, bound, sums, counts)

    def gradients_by_plane(self, linear, constant, bound, sums, counts):
        """Write clipped sums and numbers clipped of G t + h of two statistics, G (chains, d, 2)."""
        chains, d = constant.shape
        rows, basis, stack = (self.blocks, self.tree.size[0]), np.zeros((3, d)), new_stack()
        for c in range(chains):
            plane = triangular(linear[c], constant[c], basis)
            weight, one, other, counts[c] = plane_sums(rows, self.tree, self.proxies, plane, bound, stack)
            for i in range(d):
                sums[c, i] = (one * basis[0, i] + other * basis[1, i]) + weight * basis[2, i]

    def gradients_by_distance(self, linear, constant, bound, sums, counts):
        """Add clipped sums and numbers clipped of G t + h, G (chains, d, k).

        Of one statistic by sorted rows, if the gradient has one direction.
        """
        chains, d, k = linear.shape
        slopes = np.zeros((chains, d, k))
        columns = np.zeros((chains, d, k), np.int64)
        active = np.zeros((chains, d), np.int64)
        todo, stack = np.zeros((0, 0), np.bool_), np.zeros((0, 0), np.int64)
        for c in range(chains):
            slope, offset, parallel = along(linear[c], constant[c])
            if k == 1 and parallel and sorting_serves(self.sorted_columns, 0, slope, offset, bound):
                if slope > 0.0:
                    total, counts[c] = sorted_sum(self.sorted_columns, 0, slope, offset, bound)
                    for i in range(d):
                        sums[c, i] = linear[c, i, 0] * (total / slope)
                continue
            if todo.shape[0] == 0:  # so that a sorted evaluation does nothing for each block
                todo, stack = np.zeros((chains, self.blocks.shape[0]), np.bool_), new_stack()
            for i in range(d):
                active[c, i] = compress(linear[c, i], columns[c, i], slopes[c, i])
            certain_gradients(self.tree, linear[c], constant[c], bound, todo[c], sums[c], stack)
        if todo.shape[0] > 0:
            lines = columns, slopes, active, constant
            work, factors = aligned((d, self.blocks.shape[2])), aligned((self.blocks.shape[2],))
            read_gradients(self.blocks, self.tree.size[0], todo, lines, bound, work, factors, sums, counts)


def finite_rows(statistics: np.ndarray) -> np.ndarray:
    """The rows (m, k) of statistics (n, k) that are finite.

    Raises DpmcError if there are none.
    """
    statistics = np.asarray(statistics, dtype=float)
    finite = np.isfinite(statistics).all(axis=1)
    if not finite.any():
        raise DpmcError("statistics: those of every row are not finite")
    return statistics if finite.all() else statistics[finite]


def _in_blocks(columns: np.ndarray) -> tuple[np.ndarray, Tree]:
    """Columns of statistics (k, n) in blocks of rows, and the tree over them."""
    k, n = columns.shape
    rows = BLOCK // 2 if k == BOXED else BLOCK if k <= FEW_STATISTICS else 2 * BLOCK
    centre = medians(columns)
    order = order_rows(columns, centre, rows)
    blocks = aligned((-(-n // rows), k, rows))
    padded = np.zeros(len(blocks) * rows)
    for i, column in enumerate(columns):
        padded[:n] = column[order]
        blocks[:, i] = padded.reshape(-1, rows)
    return blocks, Tree.build(blocks, n, centre)


@compilable(**UNCOUNTED)
def begin_ratios(evaluator, model, theta, proposal, bound, alpha, lines, sums, counts):
    """Write each chain's log ratio, its coefficients into `alpha` (chains, k) and what `read_ratios` wants.

    Sums and counts that no rows have to be read for are written too; the other counts are -1. Returns how
    many chains are done.
    """
    columns, slopes, active, gamma = lines
    tree, by_column = evaluator.tree, evaluator.sorted_columns
    n, done = tree.size[0], 0
    for c in range(theta.shape[0]):
        gamma[c] = model.ratio(theta[c], proposal[c], alpha[c])
        active[c] = compress(alpha[c], columns[c], slopes[c])
        only = columns[c, 0]
        counts[c] = -1
        if bound[c] == np.inf:
            sums[c], counts[c] = gamma[c] * n, 0
            for i in range(alpha.shape[1]):
                sums[c] += alpha[c, i] * tree.sums[0, i]
        elif (
            active[c] <= 1
            and by_column.ordered.shape[0] > 0
            and sorting_serves(by_column, only, alpha[c, only], gamma[c], bound[c])
        ):
            sums[c], counts[c] = sorted_sum(by_column, only, alpha[c, only], gamma[c], bound[c])
        done += counts[c] >= 0
    return done


@compilable(**UNCOUNTED)
def read_ratios(blocks, n, todo, lines, bound, work, sums, counts):
    """Add the clipped sums and the numbers clipped in the blocks that `todo` (chains, blocks) marks.

    `lines`: columns, slopes, how many of them, and constant of each chain's log ratio; `work` (4, rows) is
    scratch. Three or four chains that look at the same columns share a pass.
    """
    columns, slopes, active, gamma = lines
    chains, size = todo.shape[0], work.shape[1]
    for b in range(blocks.shape[0]):
        block, rows = blocks[b], min(n - b * size, size)
        c = next_unread(todo, 0, b)
        while c < chains:
            d = next_alike(todo, columns, active, c, b)
            e = next_alike(todo, columns, active, d, b)
            f = next_alike(todo, columns, active, e, b)
            if e < chains:
                last = f if f < chains else e  # three share it with one of them once more
                affine_block_of_four(
                    block,
                    columns[c],
                    (slopes[c], slopes[d], slopes[e], slopes[last]),
                    active[c],
                    (gamma[c], gamma[d], gamma[e], gamma[last]),
                    work,
                )
                add_clipped(work[0], rows, bound[c], sums, counts, c)
                add_clipped(work[1], rows, bound[d], sums, counts, d)
                add_clipped(work[2], rows, bound[e], sums, counts, e)
                if f < chains:
                    add_clipped(work[3], rows, bound[f], sums, counts, f)
                c = next_unread(todo, last + 1, b)
            else:
                affine_block(block, columns[c], slopes[c], active[c], gamma[c], work[0])
                add_clipped(work[0], rows, bound[c], sums, counts, c)
                c = next_unread(todo, c + 1, b)


@compilable(**UNCOUNTED)
def read_gradients(blocks, n, todo, lines, bound, work, factors, sums, counts):
    """Add clipped sums and the numbers clipped in the blocks that `todo` (chains, blocks) marks.

    `lines`: columns, slopes, how many of them, and constant of each component of each chain's gradients;
    `work` (d, rows) and `factors` (rows,) are scratch.
    """
    columns, slopes, active, constant = lines
    size = blocks.shape[2]
    for b in range(blocks.shape[0]):
        rows = min(n - b * size, size)
        for c in range(todo.shape[0]):
            if todo[c, b]:
                squares_of_gradients(blocks[b], columns[c], slopes[c], active[c], constant[c], work, factors)
                counts[c] += clip_factors(work, factors, rows, bound)
                weighted_sums(work, factors, sums[c])


@compilable(**UNCOUNTED)
def next_unread(todo, first, b):
    """The first chain from `first` on that must read block `b`; the number of chains if none must."""
    c = first
    while c < todo.shape[0] and not todo[c, b]:
        c += 1
    return c


@compilable(**UNCOUNTED)
def next_alike(todo, columns, active, c, b):
    """The first chain after `c` that must read block `b`, if it looks at the same statistics as chain `c`.

    The number of chains otherwise, and after that number.
    """
    chains = todo.shape[0]
    other = next_unread(todo, c + 1, b)
    if other >= chains or active[other] != active[c]:
        return chains
    for q in range(active[c]):
        if columns[c, q] != columns[other, q]:
            return chains
    return other


@compilable(**UNCOUNTED)
def add_clipped(ratios, rows, bound, sums, counts, c):
    """Add the clipped sum of a block's ratios and the number clipped to those of chain `c`."""
    part, clipped = clip_ratios(ratios, rows, bound)
    sums[c] += part
    counts[c] += clipped


@compilable(**UNCOUNTED)
def compress(row, columns, slopes):
    """Write where a row (k,) is not zero, and the values there; return how many they are."""
    active = 0
    for i in range(row.shape[0]):
        if row[i] != 0.0:
            columns[active] = i
            slopes[active] = row[i]
            active += 1
    return active
