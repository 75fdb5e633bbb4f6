"""A tree over blocks of rows whose nodes know their sums: what is clipped nowhere costs no look at its rows.

Every node is a range of consecutive blocks. Of one or two statistics, rows are ordered by halving along
the wider of the two, and a node knows its bounding box: a half-plane's border crosses about √n of n boxes.
Of more, rows are ordered by their distance from a centre, and a node knows how near and far its rows are:
what is surely unclipped is then a prefix of the rows.

Rows are taken for unclipped or clipped unseen only where rounding cannot change the verdict (`MARGIN`).
"""

from typing import NamedTuple

import numpy as np

from dpmc.compiler import compilable

MOST_BOXED = 2  #: statistics with which boxes pay
MARGIN = 1e-12  #: of the magnitudes that enter a comparison; rounding leaves 1e-15 of them


class Tree(NamedTuple):
    """Nodes in heap order: the children of node v are 2v + 1 and 2v + 2; node 0 holds all blocks."""

    size: np.ndarray  # (nodes,) rows
    sums: np.ndarray  # (nodes, k) of the statistics
    middle: np.ndarray  # (nodes, k) of the bounding box; (0, k) with more than MOST_BOXED statistics
    half: np.ndarray  # (nodes, k) half its widths
    centre: np.ndarray  # (k,) of all rows
    near: np.ndarray  # (nodes,) least distance from the centre
    far: np.ndarray  # (nodes,) greatest

    @classmethod
    def build(cls, statistics: np.ndarray, rows_per_block: int) -> "Tree":
        """Build over statistics (n, k) in the order of `order_rows`."""
        n, k = statistics.shape
        blocks = -(-n // rows_per_block)
        depth = max(1, int(np.ceil(np.log2(max(blocks, 1)))))
        nodes = 2 ** (depth + 1) - 1
        boxed = nodes if k <= MOST_BOXED else 0
        centre = np.median(statistics, axis=0)
        with np.errstate(over="ignore"):
            distance = np.sqrt(((statistics - centre) ** 2).sum(axis=1))
        tree = cls(
            np.zeros(nodes, np.int64),
            np.zeros((nodes, k)),
            np.zeros((boxed, k)),
            np.zeros((boxed, k)),
            centre,
            np.zeros(nodes),
            np.zeros(nodes),
        )
        tree._fill(statistics, distance, rows_per_block, 0, 0, blocks)
        return tree

    def _fill(
        self, statistics: np.ndarray, distance: np.ndarray, per_block: int, v: int, first: int, end: int
    ) -> None:
        """Fill in node v, which holds the blocks first…end−1, and everything below it."""
        rows = slice(first * per_block, min(end * per_block, len(statistics)))
        self.size[v] = rows.stop - rows.start
        self.near[v], self.far[v] = distance[rows].min(), distance[rows].max()
        if len(self.middle):
            low, high = statistics[rows].min(axis=0), statistics[rows].max(axis=0)
            self.middle[v], self.half[v] = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        if end - first == 1:
            self.sums[v] = np.ascontiguousarray(statistics[rows].T).sum(axis=1)  # pairwise
            return
        half = (first + end) // 2
        self._fill(statistics, distance, per_block, 2 * v + 1, first, half)
        self._fill(statistics, distance, per_block, 2 * v + 2, half, end)
        self.sums[v] = self.sums[2 * v + 1] + self.sums[2 * v + 2]


def order_rows(statistics: np.ndarray, rows_per_block: int) -> np.ndarray:
    """The order (n,) in which rows (n, k) of statistics go into blocks."""
    n, k = statistics.shape
    if k > MOST_BOXED:
        with np.errstate(over="ignore"):
            distance = ((statistics - np.median(statistics, axis=0)) ** 2).sum(axis=1)
        return np.argsort(distance, kind="stable")
    order = np.arange(n)
    spread = np.maximum(np.abs(statistics - np.median(statistics, axis=0)).mean(axis=0), 1e-300)
    ranges = [(0, -(-n // rows_per_block))]
    while ranges:
        first, end = ranges.pop()
        if end - first < 2:
            continue
        half = (first + end) // 2
        chosen = order[first * rows_per_block : end * rows_per_block]
        values = statistics[chosen]
        wider = int(np.argmax((values.max(axis=0) - values.min(axis=0)) / spread))
        cut = (half - first) * rows_per_block
        chosen[:] = chosen[np.argpartition(values[:, wider], cut)]
        ranges += [(first, half), (half, end)]
    return order


@compilable
def certain_ratios(tree, alpha, gamma, bound, todo):
    """Clipped sum and clip count of α·t + γ over all rows that need no look; mark the other blocks in `todo`.

    `todo` is (blocks,), False on entry.
    """
    k = alpha.shape[0]
    offset, length, largest = gamma, 0.0, abs(gamma)
    for i in range(k):
        offset += alpha[i] * tree.centre[i]
        length += alpha[i] * alpha[i]
        largest += abs(alpha[i] * tree.centre[i])
    length = np.sqrt(length)
    total, clipped = 0.0, 0
    stack = np.empty((64, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, todo.shape[0]
    depth = 1
    while depth > 0:
        depth -= 1
        v, first, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        middle, reach = offset, length * tree.far[v]
        if tree.middle.shape[0] > 0:
            middle, reach = gamma, 0.0
            for i in range(k):
                middle += alpha[i] * tree.middle[v, i]
                reach += abs(alpha[i]) * tree.half[v, i]
        margin = MARGIN * (largest + reach + abs(middle))
        if abs(middle) + reach <= bound - margin:
            total += gamma * tree.size[v]
            for i in range(k):
                total += alpha[i] * tree.sums[v, i]
        elif tree.middle.shape[0] > 0 and abs(middle) - reach > bound + margin:
            clipped += tree.size[v]
            total += bound * tree.size[v] if middle > 0.0 else -bound * tree.size[v]
        elif end - first == 1 or (tree.middle.shape[0] == 0 and abs(offset) + length * tree.near[v] > bound):
            for b in range(first, end):  # no range of these is surely unclipped
                todo[b] = True
        else:
            depth = push_children(stack, depth, v, first, end)
    return total, clipped


@compilable
def certain_gradients(tree, linear, constant, bound, todo, sums):
    """Add Σ t(x_j) of rows with ‖G t + h‖ ≤ bound that need no look to `sums` (k,); return how many they are.

    The other blocks are marked in `todo` (blocks,), False on entry.
    """
    d, k = linear.shape
    spread = spectral_bound(linear) if tree.middle.shape[0] == 0 else 0.0
    offset, largest = 0.0, 0.0
    for i in range(d):
        component, size = constant[i], abs(constant[i])
        for j in range(k):
            component += linear[i, j] * tree.centre[j]
            size += abs(linear[i, j] * tree.centre[j])
        offset += component * component
        largest += size
    offset = np.sqrt(offset)
    unclipped = 0
    stack = np.empty((64, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, todo.shape[0]
    depth = 1
    while depth > 0:
        depth -= 1
        v, first, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        least, most = offset + spread * tree.near[v], offset + spread * tree.far[v]
        if tree.middle.shape[0] > 0:
            least, most = box_norms(tree.middle[v], tree.half[v], linear, constant)
        margin = MARGIN * (largest + most)
        if most <= bound - margin:
            unclipped += tree.size[v]
            for j in range(k):
                sums[j] += tree.sums[v, j]
        elif end - first == 1 or least > bound:
            for b in range(first, end):  # no range of these is surely unclipped
                todo[b] = True
        else:
            depth = push_children(stack, depth, v, first, end)
    return unclipped


@compilable
def box_norms(middle, half, linear, constant):
    """Bounds from below and above of ‖G t + h‖ over t in a box."""
    least, most = 0.0, 0.0
    for i in range(constant.shape[0]):
        component, reach = constant[i], 0.0
        for j in range(middle.shape[0]):
            component += linear[i, j] * middle[j]
            reach += abs(linear[i, j]) * half[j]
        component = abs(component)
        most += (component + reach) ** 2
        if component > reach:
            least += (component - reach) ** 2
    return np.sqrt(least), np.sqrt(most)


@compilable
def push_children(stack, depth, v, first, end):
    """Put both halves of node v on the stack, the first on top; return the new depth."""
    half = (first + end) // 2
    stack[depth, 0], stack[depth, 1], stack[depth, 2] = 2 * v + 2, half, end
    stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = 2 * v + 1, first, half
    return depth + 2


@compilable
def spectral_bound(linear):
    """An upper bound of the largest singular value of G (d, k): Gershgorin's circles of GᵀG."""
    d, k = linear.shape
    largest = 0.0
    for a in range(k):
        circle = 0.0
        for b in range(k):
            product = 0.0
            for i in range(d):
                product += linear[i, a] * linear[i, b]
            circle += abs(product)
        largest = max(largest, circle)
    return np.sqrt(largest)
