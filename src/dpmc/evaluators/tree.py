"""A tree over blocks of rows whose nodes know their sums: what is clipped nowhere costs no look at its rows.

Every node is a range of consecutive blocks. Of two statistics, rows are ordered by halving along
the wider of the two, and a node knows its bounding box: a half-plane's border crosses about √n of n boxes
(`dpmc.evaluators.plane` walks these). Of others, rows are ordered by their distance from a centre, and a
node knows how near and far its rows are: what is surely unclipped is then a prefix of the rows.

Rows are taken for unclipped or clipped unseen only where rounding cannot change the verdict (`MARGIN`).
"""

from typing import Any, NamedTuple

import numpy as np

from dpmc.compiler import UNCOUNTED, compilable

BOXED = 2  #: statistics with which boxes pay
MARGIN = 1e-12  #: of the magnitudes that enter a comparison; rounding leaves 1e-15 of them
#: Sums of statistics stand for sums of rows only where all that cancels in them is at most so many times the
#: bound: then rounding is below 1e-12 of the bound a row. Farther from the origin, rows are read one by one:
#: a clipped term keeps its bound however large the statistics are.
WELL_CONDITIONED = 4096.0


class Tree(NamedTuple):
    """Nodes in heap order: the children of node v are 2v + 1 and 2v + 2; node 0 holds all blocks."""

    size: np.ndarray  # (nodes,) rows
    sums: np.ndarray  # (nodes, k) of the statistics
    middle: np.ndarray  # (nodes, 2) of the bounding box; (0, k) but of BOXED statistics
    half: np.ndarray  # (nodes, 2) half its widths
    centre: np.ndarray  # (k,) of all rows
    near: np.ndarray  # (nodes,) least distance from the centre; (0,) of BOXED statistics
    far: np.ndarray  # (nodes,) greatest

    @classmethod
    def build(cls, blocks: np.ndarray, n: int, centre: np.ndarray) -> "Tree":
        """Build over n rows in blocks (blocks, k, rows per block), the last padded; `centre`: `medians`."""
        number, k, rows = blocks.shape
        left = n - (number - 1) * rows  # rows in the last block
        ranges, parents = halving(number)
        leaves = np.flatnonzero(ranges[:, 1] - ranges[:, 0] == 1)

        def over_nodes(values: np.ndarray, join: Any) -> np.ndarray:
            """Values of all nodes (nodes, …) from those of blocks (blocks, …)."""
            nodes = np.zeros((len(ranges), *values.shape[1:]), values.dtype)
            nodes[leaves] = values[ranges[leaves, 0]]
            for parent in reversed(parents):
                nodes[parent] = join(nodes[2 * parent + 1], nodes[2 * parent + 2])
            return nodes

        def extremes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """Least and greatest of all nodes' values, given (blocks, …, rows)."""
            least, most = (_over_rows(of, values, left) for of in (np.min, np.max))
            return over_nodes(least, np.minimum), over_nodes(most, np.maximum)

        size = np.full(number, rows)
        size[-1] = left
        low, high, near, far = np.zeros((0, k)), np.zeros((0, k)), np.zeros(0), np.zeros(0)
        if k == BOXED:
            low, high = extremes(blocks)
        else:
            square = np.zeros((number, rows))
            with np.errstate(over="ignore"):
                for i in range(k):
                    square += (blocks[:, i] - centre[i]) ** 2
            near, far = extremes(np.sqrt(square))
        return cls(
            over_nodes(size, np.add),
            over_nodes(_over_rows(np.sum, blocks, left), np.add),
            0.5 * low + 0.5 * high,
            0.5 * high - 0.5 * low,
            centre,
            near,
            far,
        )


def halving(number: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """How a tree halves so many blocks, again and again.

    Returns the blocks of each node, (nodes, 2) first and end, (0, 0) where there is no node; and level by
    level from the top, those nodes that have children.
    """
    depth = max(1, int(np.ceil(np.log2(number))))
    ranges = np.zeros((2 ** (depth + 1) - 1, 2), np.int64)
    ranges[0, 1] = number
    parents = []
    for level in range(depth):
        nodes = np.arange(2**level - 1, 2 ** (level + 1) - 1)
        nodes = nodes[ranges[nodes, 1] - ranges[nodes, 0] > 1]
        first, end = ranges[nodes].T
        half = (first + end) // 2
        ranges[2 * nodes + 1] = np.stack([first, half], axis=1)
        ranges[2 * nodes + 2] = np.stack([half, end], axis=1)
        parents.append(nodes)
    return ranges, parents


def _over_rows(function: Any, blocks: np.ndarray, left: int) -> np.ndarray:
    """A function (NumPy's sum, …) of each block's rows, the last axis; the last block has `left`."""
    values: np.ndarray = function(blocks, axis=-1)
    values[-1] = function(blocks[-1, ..., :left], axis=-1)
    return values


def medians(columns: np.ndarray) -> np.ndarray:
    """Medians (k,) of columns (k, n): `np.median`, whose search for NaN takes ten times as long."""
    middle, odd = divmod(columns.shape[1], 2)
    halves = [np.partition(column, middle) for column in columns]
    return np.array([half[middle] if odd else (half[:middle].max() + half[middle]) / 2 for half in halves])


def order_rows(columns: np.ndarray, centre: np.ndarray, rows_per_block: int) -> np.ndarray:
    """The order (n,) in which rows, given as columns (k, n) with their `medians`, go into blocks."""
    k, n = columns.shape
    if k != BOXED:
        return np.argsort(_squared_distances(columns, centre), kind="stable")
    order, columns = np.arange(n), columns.copy()
    spread = np.maximum(np.abs(columns - centre[:, None]).mean(axis=1), 1e-300)
    ranges = [(0, -(-n // rows_per_block))]
    while ranges:
        first, end = ranges.pop()
        if end - first < 2:
            continue
        half = (first + end) // 2
        chosen = slice(first * rows_per_block, end * rows_per_block)
        values = columns[:, chosen]
        wider = int(np.argmax((values.max(axis=1) - values.min(axis=1)) / spread))
        parts = np.argpartition(values[wider], (half - first) * rows_per_block)
        columns[:, chosen], order[chosen] = values.take(parts, axis=1), order[chosen][parts]
        ranges += [(first, half), (half, end)]
    return order


def _squared_distances(columns: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Squared distances (n,) of rows, given as columns (k, n), from a centre; few at a time, in cache."""
    n, together = columns.shape[1], 2048
    squares = np.empty(n)
    with np.errstate(over="ignore"):
        for first in range(0, n, together):
            rows = np.ascontiguousarray(columns[:, first : first + together].T)
            squares[first : first + together] = ((rows - centre) ** 2).sum(axis=1)
    return squares


@compilable
def new_stack():
    """Scratch for a walk down a tree: of each node that is still to be visited, its number and its blocks."""
    return np.empty((64, 3), np.int64)


@compilable(**UNCOUNTED)
def certain_ratios(tree, alpha, gamma, bound, todo, stack):
    """Sum of α·t + γ over all rows that are surely unclipped; mark the other blocks in `todo`.

    By distances from the centre; for two statistics there is `dpmc.evaluators.plane.line_sum`. `todo` is
    (blocks,), False on entry; `stack`, of `new_stack`, is scratch.
    """
    k = alpha.shape[0]
    offset, length, largest = gamma, 0.0, abs(gamma)
    for i in range(k):
        offset += alpha[i] * tree.centre[i]
        length += alpha[i] * alpha[i]
        largest += abs(alpha[i] * tree.centre[i])
    length = np.sqrt(length)
    total = 0.0
    if not largest <= WELL_CONDITIONED * bound:
        todo[:] = True
        return total
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, todo.shape[0]
    depth = 1
    while depth > 0:
        depth -= 1
        v, first, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        reach = length * tree.far[v]
        margin = MARGIN * (largest + reach + abs(offset))
        if abs(offset) + reach <= bound - margin:
            total += gamma * tree.size[v]
            for i in range(k):
                total += alpha[i] * tree.sums[v, i]
        elif end - first == 1 or abs(offset) + length * tree.near[v] > bound:
            for b in range(first, end):  # no range of these is surely unclipped
                todo[b] = True
        else:
            depth = push_children(stack, depth, v, first, end)
    return total


@compilable(**UNCOUNTED)
def certain_gradients(tree, linear, constant, bound, todo, sums, stack):
    """Add Σ (G t(x_j) + h) of rows whose norm is surely within the bound to `sums` (d,).

    By distances from the centre, one statistic among them; two have `dpmc.evaluators.plane.plane_sums`. Other
    blocks are marked in `todo` (blocks,), False on entry; `stack`, of `new_stack`, is scratch.
    """
    d, k = linear.shape
    spread = spectral_bound(linear)
    offset, largest = 0.0, 0.0
    for i in range(d):
        component, size = constant[i], abs(constant[i])
        for j in range(k):
            component += linear[i, j] * tree.centre[j]
            size += abs(linear[i, j] * tree.centre[j])
        offset += component * component
        largest += size
    offset = np.sqrt(offset)
    if not largest <= WELL_CONDITIONED * bound:
        todo[:] = True
        return
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, todo.shape[0]
    depth = 1
    while depth > 0:
        depth -= 1
        v, first, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        least, most = offset + spread * tree.near[v], offset + spread * tree.far[v]
        margin = MARGIN * (largest + most)
        if most <= bound - margin:
            for i in range(d):
                part = constant[i] * tree.size[v]
                for j in range(k):
                    part += linear[i, j] * tree.sums[v, j]
                sums[i] += part
        elif end - first == 1 or least > bound:
            for b in range(first, end):  # no range of these is surely unclipped
                todo[b] = True
        else:
            depth = push_children(stack, depth, v, first, end)


@compilable(**UNCOUNTED)
def push_children(stack, depth, v, first, end):
    """Put both halves of node v on the stack, the first on top; return the new depth."""
    half = (first + end) // 2
    stack[depth, 0], stack[depth, 1], stack[depth, 2] = 2 * v + 2, half, end
    stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = 2 * v + 1, first, half
    return depth + 2


@compilable(**UNCOUNTED)
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
