"""Clipped sums over one block of rows, each statistic a contiguous column: the passes that read rows.

Columns are taken four, two or one at a time: a pass over one column alone would wait for the first cache
level, where it reads and writes its intermediate result. Blocks are padded with rows of zeros, so that
loops have one length; what the padding gives is left out of every sum.
"""

import numpy as np

from dpmc.compiler import ROW_SUMS, compilable

#: Between these squares single precision can begin an inverse root.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-36, 1e36


@compilable(**ROW_SUMS)
def affine_block(block, columns, slopes, active, constant, out):
    """Write constant + Σ_q slopes_q block[columns_q] over q < active into `out` (rows,)."""
    size = out.shape[0]
    for j in range(size):
        out[j] = constant
    q = 0
    while q + 4 <= active:
        a, b, c, d = slopes[q], slopes[q + 1], slopes[q + 2], slopes[q + 3]
        t, u = block[columns[q]], block[columns[q + 1]]
        v, w = block[columns[q + 2]], block[columns[q + 3]]
        for j in range(size):
            out[j] += (a * t[j] + b * u[j]) + (c * v[j] + d * w[j])
        q += 4
    if q + 2 <= active:
        a, b = slopes[q], slopes[q + 1]
        t, u = block[columns[q]], block[columns[q + 1]]
        for j in range(size):
            out[j] += a * t[j] + b * u[j]
        q += 2
    if q < active:
        a, t = slopes[q], block[columns[q]]
        for j in range(size):
            out[j] += a * t[j]


@compilable(**ROW_SUMS)
def clip_ratios(ratios, rows, bound):
    """Σ clip(r_j, ±bound) and the number with |r_j| > bound over the first `rows` of `ratios`."""
    total, clipped = 0.0, 0
    for j in range(rows):
        ratio = ratios[j]
        kept = ratio if ratio > -bound else -bound  # NaN, too, speaks against the proposal
        kept = kept if kept < bound else bound
        total += kept
        clipped += kept != ratio
    return total, clipped


@compilable(**ROW_SUMS)
def squared_norms(block, columns, slopes, active, constants, work, out):
    """Write ‖G t + h‖² of every row into `out` (rows,): G row-compressed, h = constants; `work` scratch.

    Components with one statistic each, nearly all in the models at hand, are squared four at a time.
    """
    size = out.shape[0]
    for j in range(size):
        out[j] = 0.0
    i, d = 0, constants.shape[0]
    while i < d:
        if i + 4 <= d and active[i] == active[i + 1] == active[i + 2] == active[i + 3] == 1:
            a, b, c, e = slopes[i, 0], slopes[i + 1, 0], slopes[i + 2, 0], slopes[i + 3, 0]
            p, q, r, s = constants[i], constants[i + 1], constants[i + 2], constants[i + 3]
            t, u = block[columns[i, 0]], block[columns[i + 1, 0]]
            v, w = block[columns[i + 2, 0]], block[columns[i + 3, 0]]
            for j in range(size):
                first = (p + a * t[j]) ** 2 + (q + b * u[j]) ** 2
                second = (r + c * v[j]) ** 2 + (s + e * w[j]) ** 2
                out[j] += first + second
            i += 4
        else:
            affine_block(block, columns[i], slopes[i], active[i], constants[i], work)
            for j in range(size):
                out[j] += work[j] * work[j]
            i += 1


@compilable(**ROW_SUMS)
def clip_factors(squares, rows, bound):
    """Turn squared norms into factors min(1, bound/norm), in place; return (Σ factors, number clipped).

    Only the first `rows` count; the padding's factors meet statistics of 0. Dividing by the root of the
    larger of the square and bound² leaves an unclipped gradient as it is, without a branch. The inverse
    root begins in single precision, where it is four times cheaper; two of Newton's steps make it exact to
    rounding.
    """
    size = squares.shape[0]
    limit = bound * bound
    largest, clipped = 0.0, 0
    for j in range(rows):
        clipped += squares[j] > limit
        largest = max(largest, squares[j])
    if limit > SMALLEST_SQUARE and largest < LARGEST_SQUARE:
        for j in range(size):
            square = max(squares[j], limit)
            root = np.float64(np.float32(1.0) / np.sqrt(np.float32(square)))
            root *= 1.5 - 0.5 * square * root * root
            squares[j] = bound * root * (1.5 - 0.5 * square * root * root)
    else:
        for j in range(size):
            squares[j] = bound / np.sqrt(max(squares[j], limit))
    total = 0.0
    for j in range(rows):
        total += squares[j]
    return total, clipped


@compilable(**ROW_SUMS)
def weighted_sums(block, weights, sums):
    """Add Σ_j weights_j t(x_j) over the rows of a block (k, rows) to `sums` (k,)."""
    size, k = weights.shape[0], sums.shape[0]
    i = 0
    while i + 4 <= k:
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
