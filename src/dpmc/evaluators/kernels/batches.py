"""Batches: rows drawn without replacement, and sums over them."""

import math
from typing import Any

import numpy as np

from dpmc.common.compiling import njit

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
def draw_batch(words, taken, chosen):
    """Draw len(chosen) different rows of len(taken), all batches equally likely (Floyd's method).

    `words` (b,) are uniform 64-bit numbers. The bias is n / 2⁶⁴ per row, below 1e-13 for n < 10⁶. `taken`
    (n,) is False before and after. Needs n < 2³².
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


@njit(**ROW_SUMS)
def below(word, m):
    """Return ⌊word · m / 2⁶⁴⌋ for a 64-bit word and m < 2³², by two products of 32 bits."""
    half = np.uint64(32)
    factor = np.uint64(m)
    high = (word >> half) * factor
    low = ((word & np.uint64(0xFFFFFFFF)) * factor) >> half
    return np.int64((high + low) >> half)


@njit(**ROW_SUMS)
def draw_batches(words, n):
    """Draw a batch of rows for each chain, (chains, b), from words (chains, b)."""
    chosen, taken = np.empty(words.shape, np.int64), np.zeros(n, np.bool_)
    for c in range(words.shape[0]):
        draw_batch(words[c], taken, chosen[c])
    return chosen


@njit(**ROW_SUMS)
def affine_row_ratios(table, chosen, alpha, gamma):
    """Return α·t + γ (chains, b) of rows `chosen` (chains, b) of a table (n, k); 0 if a row is not finite."""
    ratios = np.empty(chosen.shape)
    for c in range(chosen.shape[0]):
        for j in range(chosen.shape[1]):
            row, ratio = chosen[c, j], gamma[c]
            for q in range(alpha.shape[1]):
                ratio += alpha[c, q] * table[row, q]
            ratios[c, j] = 0.0 if np.isnan(table[row, 0]) else ratio
    return ratios


@njit(**ROW_SUMS)
def batch_gradient_sums(table, chosen, linear, constant, bound):
    """Sum clipped G t + h over rows `chosen` (chains, b) of a table (n, k); also count the clipped.

    A gradient whose square is not finite counts as 0, and as clipped.
    """
    chains, d, k = linear.shape
    sums, counts = np.zeros((chains, d)), np.zeros(chains, np.int64)
    gradient = np.empty(d)
    for c in range(chains):
        for j in range(chosen.shape[1]):
            row, square = chosen[c, j], 0.0
            for i in range(d):
                value = constant[c, i]
                for q in range(k):
                    value += linear[c, i, q] * table[row, q]
                gradient[i] = value
                square += value * value
            counts[c] += not square <= bound * bound
            if square < np.inf:
                factor = bound / math.sqrt(square) if square > bound * bound else 1.0
                for i in range(d):
                    sums[c, i] += factor * gradient[i]
    return sums, counts


@njit(**ROW_SUMS)
def clipped_moments(ratios, bound):
    """Return Σ clip(r), Σ (clip(r) − mean)² and the number clipped (chains,) of r (chains, b)."""
    chains, b = ratios.shape
    sums, squares, counts = np.zeros(chains), np.zeros(chains), np.zeros(chains, np.int64)
    for c in range(chains):
        total, square = 0.0, 0.0
        for j in range(b):
            kept = clip(ratios[c, j], bound[c])
            total += kept
            counts[c] += kept != ratios[c, j]
        mean = total / b
        for j in range(b):
            square += (clip(ratios[c, j], bound[c]) - mean) ** 2
        sums[c], squares[c] = total, square
    return sums, squares, counts
