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
def line_sum(rows, tree, a, b, gamma, bound, stack):
    """Σ clip(r_j, ±bound) and the number clipped, r_j = a t_1 + b t_2 + γ; `rows`: blocks and how many rows.

    `stack`, of `dpmc.evaluators.tree.new_stack`, is scratch.
    """
    blocks, n = rows
    number, size = blocks.shape[0], blocks.shape[2]
    largest = abs(gamma) + abs(a * tree.centre[0]) + abs(b * tree.centre[1])
    total, clipped = 0.0, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, number
    depth = 1
    while depth > 0:
        depth -= 1
        v, first, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        middle = gamma + (a * tree.middle[v, 0] + b * tree.middle[v, 1])
        reach = abs(a) * tree.half[v, 0] + abs(b) * tree.half[v, 1]
        margin = MARGIN * (largest + reach + abs(middle))
        if abs(middle) + reach <= bound - margin:
            total += gamma * tree.size[v] + (a * tree.sums[v, 0] + b * tree.sums[v, 1])
        elif abs(middle) - reach > bound + margin:
            clipped += tree.size[v]
            total += bound * tree.size[v] if middle > 0.0 else -bound * tree.size[v]
        elif end - first == 1:
            part, beyond = clipped_line(blocks[first], min(n - first * size, size), a, b, gamma, bound)
            total += part
            clipped += beyond
        else:
            depth = push_children(stack, depth, v, first, end)
    return total, clipped


@compilable(**UNCOUNTED)
def plane_sums(rows, tree, proxies, plane, bound, sums, stack):
    """Add Σ f t to `sums` (2,); return Σ f and the number clipped, f = min(1, bound / ‖g‖).

    `rows`: blocks and how many rows; `plane`: of g, see `triangular`; `stack`: see `line_sum`.
    """
    blocks, n = rows
    a, b, c, p, q, rest = plane
    size, proxied = blocks.shape[2], proxies.weights.shape[0]
    height = np.sqrt(b * b + c * c)
    largest = abs(p) + abs(q) + rest + abs(a * tree.centre[0]) + height * abs(tree.centre[1])
    weight, clipped = 0.0, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, blocks.shape[0]
    depth = 1
    while depth > 0:
        depth -= 1
        v, begin, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        x, y, wide, high = tree.middle[v, 0], tree.middle[v, 1], tree.half[v, 0], tree.half[v, 1]
        first, second = p + (a * x + b * y), q + c * y
        least, most, longest = box_squares(first, second, rest, a * wide + abs(b) * high, c * high)
        margin = MARGIN * (largest + longest)
        if margin < bound and most <= (bound - margin) ** 2:
            weight += tree.size[v]
            sums[0] += tree.sums[v, 0]
            sums[1] += tree.sums[v, 1]
            continue
        surely_clipped = least > (bound + margin) ** 2
        if surely_clipped and v < proxied and SMALLEST_SQUARE < least and most < LARGEST_SQUARE:
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
        if end - begin > 1 and not (surely_clipped and 2 * v + 1 >= proxied):
            depth = push_children(stack, depth, v, begin, end)
            continue
        for i in range(begin, end):  # no range of these has proxies or is surely unclipped
            total, one, other, beyond = clipped_plane(blocks[i], min(n - i * size, size), plane, bound)
            weight += total
            sums[0] += one
            sums[1] += other
            clipped += beyond
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
