"""Clipped sums of models with two statistics: one pass over the rows that must be read, proxies for others.

‖G t + h‖ of a (d, 2) matrix G is the norm of three numbers, two of them affine in t, whatever d
(`triangular`). So a row costs one pass without intermediate results, short blocks cost no more than long
ones, and a border of clipping crosses fewer rows. Gradients of a node that are all clipped, and far from
where they vanish, are summed over the node's proxies: what is read of n rows are those along a border, √n.
"""

import numpy as np

from dpmc.compiler import ROW_SUMS, UNCOUNTED, compilable
from dpmc.evaluators.dense import LARGEST_SQUARE, SMALLEST_SQUARE, clip, inverse_root
from dpmc.evaluators.proxies import REACH, gradient_at, proxy_sums
from dpmc.evaluators.tree import MARGIN, WELL_CONDITIONED, push_children


@compilable(**UNCOUNTED)
def triangular(linear, constant, basis):
    """Six numbers a, b, c, p, q, r with ‖G t + h‖² = (a t_1 + b t_2 + p)² + (c t_2 + q)² + r².

    The rows of `basis` (3, d) become what the first two of these belong to, and a remainder of norm r:
    G t + h = (a t_1 + b t_2 + p) basis_1 + (c t_2 + q) basis_2 + basis_3. G (d, 2) and h (d,) by Gram and
    Schmidt, modified, which is as exact as Householder (Björck 1967).
    """
    d = constant.shape[0]
    b, p, q = 0.0, 0.0, 0.0
    for i in range(d):
        basis[0, i] = linear[i, 0]
    a = normalise(basis[0])
    for i in range(d):
        b += basis[0, i] * linear[i, 1]
        p += basis[0, i] * constant[i]
    for i in range(d):
        basis[1, i] = linear[i, 1] - b * basis[0, i]
        basis[2, i] = constant[i] - p * basis[0, i]
    c = normalise(basis[1])
    for i in range(d):
        q += basis[1, i] * basis[2, i]
    for i in range(d):
        basis[2, i] -= q * basis[1, i]
    return a, b, c, p, q, length(basis[2])


@compilable(**UNCOUNTED)
def normalise(vector):
    """Divide a vector (d,) by its length, in place, unless that is 0; return the length."""
    size = length(vector)
    if size > 0.0:
        for i in range(vector.shape[0]):
            vector[i] /= size
    return size


@compilable(**UNCOUNTED)
def length(vector):
    """The Euclidean norm of a vector (d,), though its squares may be beyond all numbers, or 0."""
    largest, total = 0.0, 0.0
    for i in range(vector.shape[0]):
        largest = max(largest, abs(vector[i]))
    if largest > 0.0:
        for i in range(vector.shape[0]):
            total += (vector[i] / largest) ** 2
    return largest * np.sqrt(total)


@compilable(**ROW_SUMS)
def clipped_plane(block, rows, plane, bound):
    """Σ f, Σ f g_1, Σ f g_2 and the number clipped over the first `rows` of a block, f = min(1, bound / ‖g‖).

    `plane`: of g = (a t_1 + b t_2 + p, c t_2 + q, r), see `triangular`.
    """
    x, y = block[0], block[1]
    limit = bound * bound
    clipped, outside = 0, 0
    total = one = other = 0.0
    for j in range(rows):
        first, second, square = gradient_at(plane, x[j], y[j])
        clipped += square > limit
        outside += not square < LARGEST_SQUARE
        root = inverse_root(max(square, limit))
        total += root
        one += root * first
        other += root * second
    if outside == 0 and SMALLEST_SQUARE < limit < LARGEST_SQUARE:
        return bound * total, bound * one, bound * other, clipped
    total = one = other = 0.0
    clipped = 0
    for j in range(rows):
        first, second, square = gradient_at(plane, x[j], y[j])
        clipped += not square <= limit
        if square < np.inf:  # a gradient whose square is no number counts as 0
            factor = bound / np.sqrt(max(square, limit))
            total += factor
            one += factor * first
            other += factor * second
    return total, one, other, clipped


@compilable(**ROW_SUMS)
def clipped_line(block, rows, a, b, gamma, bound):
    """Σ clip(r_j, ±bound) and the number clipped over the first `rows` of a block, r = a t_1 + b t_2 + γ."""
    x, y = block[0], block[1]
    total, clipped = 0.0, 0
    for j in range(rows):
        ratio = gamma + (a * x[j] + b * y[j])
        kept = clip(ratio, bound)
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
    total, clipped = 0.0, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, number
    depth = 1
    while depth > 0:
        depth -= 1
        v, first, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        one, other = a * tree.middle[v, 0], b * tree.middle[v, 1]
        middle = gamma + (one + other)
        reach = abs(a) * tree.half[v, 0] + abs(b) * tree.half[v, 1]
        largest = abs(gamma) + abs(one) + abs(other)
        margin = MARGIN * (largest + reach)
        if abs(middle) + reach <= bound - margin and largest <= WELL_CONDITIONED * bound:
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
def plane_sums(rows, tree, proxies, plane, bound, stack):
    """What `clipped_plane` returns, over all rows; for the other arguments see `line_sum`."""
    blocks, n = rows
    a, b, c, p, q, rest = plane
    size, proxied = blocks.shape[2], proxies.weights.shape[0]
    slant = np.sqrt(b * b + c * c)
    weight, one, other, clipped = 0.0, 0.0, 0.0, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, blocks.shape[0]
    depth = 1
    while depth > 0:
        depth -= 1
        v, begin, end = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        x, y = tree.middle[v, 0], tree.middle[v, 1]
        wide, high, skew = a * tree.half[v, 0], c * tree.half[v, 1], b * tree.half[v, 1]
        first, second = p + (a * x + b * y), q + c * y
        least, most, longest = box_squares(first, second, rest, wide + abs(skew), high)
        largest = abs(p) + abs(q) + abs(a * x) + slant * abs(y)
        margin = MARGIN * (largest + longest)
        cancels_little = largest <= WELL_CONDITIONED * bound
        if cancels_little and margin < bound and most <= (bound - margin) ** 2:
            weight += tree.size[v]
            one += p * tree.size[v] + (a * tree.sums[v, 0] + b * tree.sums[v, 1])
            other += q * tree.size[v] + c * tree.sums[v, 1]
            continue
        surely_clipped = least > (bound + margin) ** 2
        in_range = SMALLEST_SQUARE < least and most < LARGEST_SQUARE
        if surely_clipped and v < proxied and in_range and cancels_little:
            tall = slant * tree.half[v, 1]
            away = max(REACH * wide + tall, REACH * tall + wide)
            if first * first + second * second + rest * rest >= away * away:
                inside = wide, skew, high, first, second, rest
                total, some, others = proxy_sums(proxies.points, proxies.weights[v], inside, bound)
                weight, one, other = weight + total, one + some, other + others
                clipped += tree.size[v]
                continue
        if end - begin > 1 and not (surely_clipped and 2 * v + 1 >= proxied):
            depth = push_children(stack, depth, v, begin, end)
            continue
        for i in range(begin, end):  # no range of these has proxies or is surely unclipped
            total, some, others, beyond = clipped_plane(blocks[i], min(n - i * size, size), plane, bound)
            weight, one, other = weight + total, one + some, other + others
            clipped += beyond
    return weight, one, other, clipped


@compilable(**UNCOUNTED)
def box_squares(first, second, rest, wide, high):
    """Bounds of the squared norm of three numbers, two of them within `wide` and `high` of those given.

    From below, from above, and the sum of what the three are at most, which is no less than their norm.
    """
    one, two = abs(first), abs(second)
    least = max(one - wide, 0.0) ** 2 + max(two - high, 0.0) ** 2 + rest * rest
    most = (one + wide) ** 2 + (two + high) ** 2 + rest * rest
    return least, most, one + wide + two + high + rest
