"""Clipped sums over one block of rows, each statistic a contiguous column: the passes that read rows.

Columns are taken eight or four at a time: a pass over one column alone would wait for the first cache
level, where it reads and writes its intermediate result. Blocks are padded with rows of zeros, so that
loops have one length; what the padding gives is left out of every sum.
"""

import numpy as np

from dpmc.compiler import ROW_SUMS, compilable

#: Between these squares single precision can begin an inverse root.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-36, 1e36


@compilable
def aligned(shape):
    """An uninitialised array that begins at a cache line: loads and stores of vectors do not cross lines.

    Of scratch that begins elsewhere, passes over rows take a tenth to a sixth longer.
    """
    size = 1
    for length in shape:
        size *= length
    buffer = np.empty(size + 8)
    first = (-buffer.ctypes.data // 8) % 8
    return buffer[first : first + size].reshape(shape)


@compilable(**ROW_SUMS)
def affine_block(block, columns, slopes, active, constant, out):
    """Write constant + Σ_q slopes_q block[columns_q] over q < active into `out` (rows,)."""
    size = out.shape[0]
    q = active % 4
    if q == 0:
        for j in range(size):
            out[j] = constant
    elif q == 1:
        a, t = slopes[0], block[columns[0]]
        for j in range(size):
            out[j] = constant + a * t[j]
    elif q == 2:
        a, b = slopes[0], slopes[1]
        t, u = block[columns[0]], block[columns[1]]
        for j in range(size):
            out[j] = constant + (a * t[j] + b * u[j])
    else:
        a, b, c = slopes[0], slopes[1], slopes[2]
        t, u, v = block[columns[0]], block[columns[1]], block[columns[2]]
        for j in range(size):
            out[j] = (constant + a * t[j]) + (b * u[j] + c * v[j])
    if active % 8 >= 4:
        a, b, c, d = slopes[q], slopes[q + 1], slopes[q + 2], slopes[q + 3]
        t, u = block[columns[q]], block[columns[q + 1]]
        v, w = block[columns[q + 2]], block[columns[q + 3]]
        for j in range(size):
            out[j] += (a * t[j] + b * u[j]) + (c * v[j] + d * w[j])
        q += 4
    while q < active:
        a, b, c, d = slopes[q], slopes[q + 1], slopes[q + 2], slopes[q + 3]
        e, f, g, h = slopes[q + 4], slopes[q + 5], slopes[q + 6], slopes[q + 7]
        t, u = block[columns[q]], block[columns[q + 1]]
        v, w = block[columns[q + 2]], block[columns[q + 3]]
        tt, uu = block[columns[q + 4]], block[columns[q + 5]]
        vv, ww = block[columns[q + 6]], block[columns[q + 7]]
        for j in range(size):
            first = (a * t[j] + b * u[j]) + (c * v[j] + d * w[j])
            out[j] += first + ((e * tt[j] + f * uu[j]) + (g * vv[j] + h * ww[j]))
        q += 8


@compilable(**ROW_SUMS)
def affine_block_of_four(block, columns, slopes, active, constants, out):
    """`affine_block` for four chains that look at the same columns; slopes, constants, `out`: four each.

    A number is loaded once for all. What is added is what a chain alone would add, in its order.
    """
    one, two, three, four = out[0], out[1], out[2], out[3]
    a, b, c, d = slopes
    q = active % 4
    for i in range(4):
        affine_block(block, columns, slopes[i], q, constants[i], out[i])
    if active % 8 >= 4:
        e, f, g, h = take_four(a, q), take_four(b, q), take_four(c, q), take_four(d, q)
        t, u = block[columns[q]], block[columns[q + 1]]
        v, w = block[columns[q + 2]], block[columns[q + 3]]
        for j in range(one.shape[0]):
            row = t[j], u[j], v[j], w[j]
            one[j] += product_of_four(e, row)
            two[j] += product_of_four(f, row)
            three[j] += product_of_four(g, row)
            four[j] += product_of_four(h, row)
        q += 4
    while q < active:
        e, f, g, h = take_four(a, q), take_four(b, q), take_four(c, q), take_four(d, q)
        k, m, n, r = take_four(a, q + 4), take_four(b, q + 4), take_four(c, q + 4), take_four(d, q + 4)
        t, u = block[columns[q]], block[columns[q + 1]]
        v, w = block[columns[q + 2]], block[columns[q + 3]]
        tt, uu = block[columns[q + 4]], block[columns[q + 5]]
        vv, ww = block[columns[q + 6]], block[columns[q + 7]]
        for j in range(one.shape[0]):
            first, second = (t[j], u[j], v[j], w[j]), (tt[j], uu[j], vv[j], ww[j])
            one[j] += product_of_four(e, first) + product_of_four(k, second)
            two[j] += product_of_four(f, first) + product_of_four(m, second)
            three[j] += product_of_four(g, first) + product_of_four(n, second)
            four[j] += product_of_four(h, first) + product_of_four(r, second)
        q += 8


@compilable(**ROW_SUMS)
def take_four(values, q):
    """values[q : q + 4] as numbers."""
    return values[q], values[q + 1], values[q + 2], values[q + 3]


@compilable(**ROW_SUMS)
def product_of_four(one, other):
    """The inner product of four numbers and four others, in `affine_block`'s order."""
    return (one[0] * other[0] + one[1] * other[1]) + (one[2] * other[2] + one[3] * other[3])


@compilable(**ROW_SUMS)
def clip(ratio, bound):
    """A log ratio clipped to ±bound; NaN, too, speaks against the proposal."""
    kept = ratio if ratio > -bound else -bound
    return kept if kept < bound else bound


@compilable(**ROW_SUMS)
def inverse_root(square):
    """1/√square to rounding, for squares between SMALLEST_SQUARE and LARGEST_SQUARE.

    It begins in single precision, where it is four times cheaper, and makes two of Newton's steps.
    """
    root = np.float64(np.float32(1.0) / np.sqrt(np.float32(square)))
    root *= 1.5 - 0.5 * square * root * root
    return root * (1.5 - 0.5 * square * root * root)


@compilable(**ROW_SUMS)
def clip_ratios(ratios, rows, bound):
    """Σ clip(r_j, ±bound) and the number with |r_j| > bound over the first `rows` of `ratios`."""
    total, clipped = 0.0, 0
    for j in range(rows):
        ratio = ratios[j]
        kept = clip(ratio, bound)
        total += kept
        clipped += kept != ratio
    return total, clipped


@compilable(**ROW_SUMS)
def squares_of_gradients(block, columns, slopes, active, constants, gradients, squares):
    """Write g = G t + h of every row into `gradients` (d, rows) and ‖g‖² into `squares` (rows,).

    G is row-compressed, h = constants.
    """
    size, d = squares.shape[0], constants.shape[0]
    for i in range(d):
        affine_block(block, columns[i], slopes[i], active[i], constants[i], gradients[i])
    for j in range(size):
        squares[j] = 0.0
    i = 0
    while i + 4 <= d:
        one, two, three, four = gradients[i], gradients[i + 1], gradients[i + 2], gradients[i + 3]
        for j in range(size):
            squares[j] += (one[j] ** 2 + two[j] ** 2) + (three[j] ** 2 + four[j] ** 2)
        i += 4
    while i < d:
        only = gradients[i]
        for j in range(size):
            squares[j] += only[j] ** 2
        i += 1


@compilable(**ROW_SUMS)
def clip_factors(gradients, squares, rows, bound):
    """Turn squared norms into factors min(1, bound/norm), in place; return how many are below 1.

    Only the first `rows` count; the factors of the rest are 0. Dividing by the root of the larger of the
    square and bound² leaves an unclipped gradient as it is, without a branch. A gradient whose square is not
    finite becomes 0 in `gradients` (d, rows), and counts as clipped.
    """
    size = squares.shape[0]
    limit = bound * bound
    clipped, outside = 0, 0
    for j in range(rows):
        clipped += not squares[j] <= limit
        outside += not squares[j] < LARGEST_SQUARE
    if outside == 0 and SMALLEST_SQUARE < limit < LARGEST_SQUARE:
        for j in range(rows):
            squares[j] = bound * inverse_root(max(squares[j], limit))
    else:
        for j in range(size):
            if squares[j] < np.inf:
                squares[j] = bound / np.sqrt(max(squares[j], limit))
            else:
                squares[j] = 0.0
                for i in range(gradients.shape[0]):
                    gradients[i, j] = 0.0
    for j in range(rows, size):
        squares[j] = 0.0
    return clipped


@compilable(**ROW_SUMS)
def weighted_sums(block, weights, sums):
    """Add Σ_j weights_j block_ij over the rows of a block (k, rows) to `sums` (k,)."""
    size, k = weights.shape[0], sums.shape[0]
    i = 0
    while i + 8 <= k:
        p, q, r, s = block[i], block[i + 1], block[i + 2], block[i + 3]
        t, u, v, w = block[i + 4], block[i + 5], block[i + 6], block[i + 7]
        a = b = c = d = e = f = g = h = 0.0
        for j in range(size):
            weight = weights[j]
            a += weight * p[j]
            b += weight * q[j]
            c += weight * r[j]
            d += weight * s[j]
            e += weight * t[j]
            f += weight * u[j]
            g += weight * v[j]
            h += weight * w[j]
        sums[i] += a
        sums[i + 1] += b
        sums[i + 2] += c
        sums[i + 3] += d
        sums[i + 4] += e
        sums[i + 5] += f
        sums[i + 6] += g
        sums[i + 7] += h
        i += 8
    if i + 4 <= k:
        t, u, v, w = block[i], block[i + 1], block[i + 2], block[i + 3]
        a = b = c = d = 0.0
        for j in range(size):
            weight = weights[j]
            a += weight * t[j]
            b += weight * u[j]
            c += weight * v[j]
            d += weight * w[j]
        sums[i] += a
        sums[i + 1] += b
        sums[i + 2] += c
        sums[i + 3] += d
        i += 4
    if i + 2 <= k:
        t, u = block[i], block[i + 1]
        a = b = 0.0
        for j in range(size):
            a += weights[j] * t[j]
            b += weights[j] * u[j]
        sums[i] += a
        sums[i + 1] += b
        i += 2
    if i < k:
        t, a = block[i], 0.0
        for j in range(size):
            a += weights[j] * t[j]
        sums[i] += a
