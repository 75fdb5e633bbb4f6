"""Sums over all rows of any number of statistics: blocks ordered by distance."""

import math
from typing import Any

import numpy as np

from dpmc.common.compiling import njit

BLOCK = 512  #: rows per block: loops of one length, intermediate results in the first-level cache
TILE = 8  #: chains per matrix product: a fixed shape, so that its rounding does not depend on their number

#: Sums may be reassociated, for vector instructions; NaN and infinity keep their meaning.
ROW_SUMS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}


@njit(**ROW_SUMS)
def clip(ratio, bound):
    """Return a log ratio clipped to ±bound; NaN counts as −bound, against the proposal."""
    kept = ratio if ratio > -bound else -bound
    return kept if kept < bound else bound


@njit(**ROW_SUMS)
def clip_factor(square, bound):
    """Return min(1, bound/‖g‖) for ‖g‖² = `square`; the bound may be infinite."""
    factor = bound / math.sqrt(square)
    return factor if square > bound * bound else 1.0


@njit(**ROW_SUMS)
def block_ratio_sums(blocks, n, first, alpha, gamma, bound):
    """Sum clip(α·t + γ, ±bound) over the rows from block `first` (chains,) on; also count the clipped.

    `blocks` (blocks, k, BLOCK), padded with zeros; α (chains, k). Each matrix product is for TILE chains and
    one block, always of the same shape, so that rounding does not depend on the number of chains.
    """
    chains, k = alpha.shape
    sums, counts = np.zeros(chains), np.zeros(chains, np.int64)
    tiles = (chains + TILE - 1) // TILE
    slopes, ratios = np.zeros((tiles, TILE, k)), np.empty((TILE, BLOCK))
    start = np.full(tiles, blocks.shape[0])
    for c in range(chains):
        slopes[c // TILE, c % TILE] = alpha[c]
        start[c // TILE] = min(start[c // TILE], first[c])
    for b in range(first.min(), blocks.shape[0]):
        rows = min(BLOCK, n - b * BLOCK)
        for tile in range(tiles):
            if b < start[tile]:
                continue
            np.dot(slopes[tile], blocks[b], ratios)
            for c in range(tile * TILE, min(chains, (tile + 1) * TILE)):
                if b < first[c]:
                    continue
                total, clipped = 0.0, 0
                for j in range(rows):
                    ratio = ratios[c - tile * TILE, j] + gamma[c]
                    kept = clip(ratio, bound[c])
                    total += kept
                    clipped += kept != ratio
                sums[c] += total
                counts[c] += clipped
    return sums, counts


@njit(**ROW_SUMS)
def block_gradient_sums(blocks, n, first, linear, constant, bound):
    """Sum clipped G t + h over the rows from block `first` (chains,) on; also count the clipped.

    G (chains, d, k), h (chains, d); zeros of G are skipped. Returns sums (chains, d) and counts (chains,).
    Components with one coefficient, the usual case, are computed in pairs and twice, for the norms and for
    the sums, which is cheaper than storing them. A block is read for all chains while it is in the cache.
    """
    chains, d, k = linear.shape
    sums, counts = np.zeros((chains, d)), np.zeros(chains, np.int64)
    factors, values = np.empty(BLOCK), np.empty((d, BLOCK))
    columns, active = nonzero_columns(linear)
    for b in range(first.min(), blocks.shape[0]):
        for c in range(chains):
            if b < first[c]:
                continue
            for j in range(BLOCK):
                factors[j] = 0.0
            i = 0
            while i < d:
                if paired(active, c, i):
                    q, r = columns[c, i, 0], columns[c, i + 1, 0]
                    u, g, v, h = linear[c, i, q], constant[c, i], linear[c, i + 1, r], constant[c, i + 1]
                    for j in range(BLOCK):
                        one, two = u * blocks[b, q, j] + g, v * blocks[b, r, j] + h
                        factors[j] += one * one + two * two
                    i += 2
                    continue
                for j in range(BLOCK):
                    values[i, j] = constant[c, i]
                for m in range(active[c, i]):
                    q = columns[c, i, m]
                    u = linear[c, i, q]
                    for j in range(BLOCK):
                        values[i, j] += u * blocks[b, q, j]
                for j in range(BLOCK):
                    factors[j] += values[i, j] * values[i, j]
                i += 1
            counts[c] += turn_into_factors(factors, min(BLOCK, n - b * BLOCK), bound)
            i = 0
            while i < d:
                one, two = 0.0, 0.0
                if paired(active, c, i):
                    q, r = columns[c, i, 0], columns[c, i + 1, 0]
                    u, g, v, h = linear[c, i, q], constant[c, i], linear[c, i + 1, r], constant[c, i + 1]
                    for j in range(BLOCK):
                        usable = factors[j] > 0.0
                        one += factors[j] * (u * blocks[b, q, j] + g) if usable else 0.0
                        two += factors[j] * (v * blocks[b, r, j] + h) if usable else 0.0
                    sums[c, i] += one
                    sums[c, i + 1] += two
                    i += 2
                    continue
                for j in range(BLOCK):
                    one += factors[j] * values[i, j] if factors[j] > 0.0 else 0.0
                sums[c, i] += one
                i += 1
    return sums, counts


@njit(**ROW_SUMS)
def paired(active, c, i):
    """Return whether components i and i + 1 of chain c's gradients have one coefficient each."""
    return i + 1 < active.shape[1] and active[c, i] == 1 and active[c, i + 1] == 1


@njit(**ROW_SUMS)
def nonzero_columns(linear):
    """Return nonzero columns (chains, d, k) of each row of G (chains, d, k), and their number (chains, d)."""
    columns, active = np.zeros(linear.shape, np.int64), np.zeros(linear.shape[:2], np.int64)
    for c in range(linear.shape[0]):
        for i in range(linear.shape[1]):
            for q in range(linear.shape[2]):
                if linear[c, i, q] != 0.0:
                    columns[c, i, active[c, i]] = q
                    active[c, i] += 1
    return columns, active


@njit(**ROW_SUMS)
def turn_into_factors(squares, rows, bound):
    """Replace squared norms (BLOCK,) by clip factors; return how many of the first `rows` are clipped.

    Factors of the padding, and of gradients whose square is not finite, become 0.
    """
    clipped = 0
    for j in range(rows):
        clipped += not squares[j] <= bound * bound
        squares[j] = clip_factor(squares[j], bound) if squares[j] < np.inf else 0.0
    for j in range(rows, squares.shape[0]):
        squares[j] = 0.0
    return clipped
