"""Clipped sums of models with two statistics: one pass over the rows that must be read, proxies for others.

‖G t + h‖ of a (d, 2) matrix G is the norm of three numbers, two of them affine in t, whatever d
(`triangular`). So a row costs one pass without intermediate results, short blocks cost no more than long
ones, and a border of clipping crosses fewer rows. Gradients of a node that are all clipped, and far from
where they vanish, are summed over the node's proxies: what is read of n rows are those along a border, √n.
"""

import numpy as np

from dpmc.compiler import ROW_SUMS, UNCOUNTED, compilable
from dpmc.evaluators.dense import LARGEST_SQUARE, SMALLEST_SQUARE
from dpmc.evaluators.proxies import REACH, proxy_sums
from dpmc.evaluators.tree import MARGIN, push_children


@compilable(**UNCOUNTED)
def triangular(linear, constant):
    """Six numbers a, b, c, p, q, r with ‖G t + h‖² = (a t_1 + b t_2 + p)² + (c t_2 + q)² + r².

    G (d, 2) and h (d,) by Gram and Schmidt, modified, whose R is as exact as Householder's (Björck 1967).
    """
    a = c = b = p = q = rest = 0.0
    for i in range(constant.shape[0]):
        a += linear[i, 0] * linear[i, 0]
        b += linear[i, 0] * linear[i, 1]
        p += linear[i, 0] * constant[i]
    a = np.sqrt(a)
    b, p = (b / a, p / a) if a > 0.0 else (0.0, 0.0)
    for i in range(constant.shape[0]):
        second, third = _without_first(linear, constant, i, a, b, p)
        c += second * second
        q += second * third
    c = np.sqrt(c)
    if c > 0.0:
        q /= c
    for i in range(constant.shape[0]):
        second, third = _without_first(linear, constant, i, a, b, p)
        third -= q * second / c if c > 0.0 else 0.0
        rest += third * third
    return a, b, c, p, q, np.sqrt(rest)


@compilable(**UNCOUNTED)
def _without_first(linear, constant, i, a, b, p):
    """What is left of G_i2 and h_i without their parts along the first column of G."""
    direction = linear[i, 0] / a if a > 0.0 else 0.0
    return linear[i, 1] - b * direction, constant[i] - p * direction


@compilable(**ROW_SUMS)
def clipped_plane(block, rows, plane, bound):
    """Σ f, Σ f t_1, Σ f t_2 and the number clipped over the first `rows` of a block, f = min(1, bound / ‖g‖).

    `plane`: of g, see `triangular`. The inverse root is that of `dpmc.evaluators.dense.clip_factors`.
    """
    a, b, c, p, q, rest = plane
    x, y = block[0], block[1]
    limit = bound * bound
    clipped, outside = 0, 0
    total = one = other = 0.0
    for j in range(rows):
        first, second = p + (a * x[j] + b * y[j]), q + c * y[j]
        square = (first * first + second * second) + rest * rest
        clipped += square > limit
        outside += not square < LARGEST_SQUARE
        square = max(square, limit)
        root = np.float64(np.float32(1.0) / np.sqrt(np.float32(square)))
        root *= 1.5 - 0.5 * square * root * root
        root *= 1.5 - 0.5 * square * root * root
        total += root
        one += root * x[j]
        other += root * y[j]
    if limit > SMALLEST_SQUARE and outside == 0:
        return bound * total, bound * one, bound * other, clipped
    total = one = other = 0.0
    for j in range(rows):
        first, second = p + (a * x[j] + b * y[j]), q + c * y[j]
        square = (first * first + second * second) + rest * rest
        factor = bound / np.sqrt(max(square, limit))
        total += factor
        one += factor * x[j]
        other += factor * y[j]
    return total, one, other, clipped


@compilable(**ROW_SUMS)
def clipped_line(block, rows, a, b, gamma, bound):
    """Σ clip(r_j, ±bound) and the number clipped over the first `rows` of a block, r = a t_1 + b t_2 + γ."""
    x, y = block[0], block[1]
    total, clipped = 0.0, 0
    for j in range(rows):
        ratio = gamma + (a * x[j] + b * y[j])
        kept = ratio if ratio > -bound else -bound  # NaN, too, speaks against the proposal
        kept = kept if kept < bound else bound
        total += kept
        clipped += kept != ratio
    return total, clipped


@compilable(**UNCOUNTED)
def read_lines(blocks, n, todo, alpha, gamma, bound, sums, counts):
    """Add clipped sums of α·t + γ and numbers clipped in the blocks that `todo` (chains, blocks) marks."""
    size = blocks.shape[2]
    for b in range(blocks.shape[0]):
        block, rows = blocks[b], min(n - b * size, size)
        for c in range(todo.shape[0]):
            if todo[c, b]:
                total, clipped = clipped_line(block, rows, alpha[c, 0], alpha[c, 1], gamma[c], bound[c])
                sums[c] += total
                counts[c] += clipped


@compilable(**UNCOUNTED)
def read_planes(blocks, n, todo, planes, bound, weighted, weights, counts):
    """Add Σ f t, Σ f and the numbers clipped in the blocks that `todo` (chains, blocks) marks.

    `planes` (chains, 6): of each chain's gradients, see `triangular`.
    """
    size = blocks.shape[2]
    for b in range(blocks.shape[0]):
        block, rows = blocks[b], min(n - b * size, size)
        for c in range(todo.shape[0]):
            if todo[c, b]:
                weight, one, other, clipped = clipped_plane(block, rows, numbers(planes[c]), bound)
                weights[c] += weight
                weighted[c, 0] += one
                weighted[c, 1] += other
                counts[c] += clipped


@compilable(**UNCOUNTED)
def numbers(plane):
    """The six numbers of a plane, from an array of them."""
    return plane[0], plane[1], plane[2], plane[3], plane[4], plane[5]


@compilable(**UNCOUNTED)
def certain_planes(tree, proxies, plane, bound, todo, sums, stack):
    """Add Σ f t over all rows that need no look to `sums` (2,); return Σ f and the number clipped of them.

    f = min(1, bound / ‖g‖); `plane`: of g, see `triangular`. Other blocks are marked in `todo` (blocks,),
    False on entry; `stack`, of `dpmc.evaluators.tree.new_stack`, is scratch.
    """
    a, b, c, p, q, rest = plane
    height = np.sqrt(b * b + c * c)
    largest = abs(p) + abs(q) + rest + abs(a * tree.centre[0]) + height * abs(tree.centre[1])
    single = bound * bound > SMALLEST_SQUARE
    weight, clipped = 0.0, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, todo.shape[0]
    depth = 1
    while depth > 0:
        depth -= 1
        v, begin, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        x, y, wide, high = tree.middle[v, 0], tree.middle[v, 1], tree.half[v, 0], tree.half[v, 1]
        first, second = p + (a * x + b * y), q + c * y
        least, most, size = box_squares(first, second, rest, a * wide + abs(b) * high, c * high)
        margin = MARGIN * (largest + size)
        if margin < bound and most <= (bound - margin) ** 2:
            weight += tree.size[v]
            sums[0] += tree.sums[v, 0]
            sums[1] += tree.sums[v, 1]
            continue
        surely_clipped, proxied = least > (bound + margin) ** 2, proxies.weights.shape[0]
        if surely_clipped and v < proxied and single and most < LARGEST_SQUARE:
            width, tall = a * wide, height * high
            away = max(REACH * width + tall, REACH * tall + width)
            if first * first + second * second + rest * rest >= away * away:
                inside = a * wide, b * high, c * high, first, second, rest
                total, one, other = proxy_sums(proxies.points, proxies.weights[v], inside, bound)
                weight += total
                sums[0] += x * total + wide * one
                sums[1] += y * total + high * other
                clipped += tree.size[v]
                continue
        if end - begin == 1 or (surely_clipped and 2 * v + 1 >= proxied):
            for block in range(begin, end):  # no range of these has proxies or is surely unclipped
                todo[block] = True
        else:
            depth = push_children(stack, depth, v, begin, end)
    return weight, clipped


@compilable(**UNCOUNTED)
def box_squares(first, second, rest, wide, high):
    """Bounds of the squared norm of three numbers, two of them within `wide` and `high` of those given.

    From below, from above, and the sum of what the three are at most, which is no less than their norm.
    """
    one, two = abs(first), abs(second)
    least = max(one - wide, 0.0) ** 2 + max(two - high, 0.0) ** 2 + rest * rest
    most = (one + wide) ** 2 + (two + high) ** 2 + rest * rest
    return least, most, one + wide + two + high + rest
