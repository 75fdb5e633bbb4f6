"""Symmetric KL divergence by histogram, and test accuracy: the measures of the DP-fast MH paper.

A histogram has 100 edges an axis, equally spaced between the extremes of 200,000 exact draws, so 99 bins. A
bin's probability is its share of the draws that fall on the grid; draws outside are dropped, and their number
is told. Empty bins count as `FLOOR`. For a trace along a chain, number the draws once with
`bin_indices`, add up `numpy.bincount` piece by piece, and compare with `symmetric_kl_of_counts`.
"""

import numpy as np
import numpy.typing as npt

from dpmc.errors import DpmcError

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

EDGES = 100  # an axis
FLOOR = 1e-13  # least probability of a bin


def equal_edges(draws: Floats, number: int = EDGES) -> Floats:
    """Return `number` equally spaced edges an axis, (d, number), from least to greatest of the draws (k, d).

    Raises DpmcError where there are no draws, or none that differ on some axis.
    """
    if len(draws) == 0 or not (draws.min(axis=0) < draws.max(axis=0)).all():
        raise DpmcError("histogram: exact draws must differ on every axis, there is no grid between them")
    return np.linspace(draws.min(axis=0), draws.max(axis=0), number, axis=1)


def bin_indices(draws: Floats, edges: Floats) -> Counts:
    """Return the flat bin number of each of the draws (k, d) on the grid of edges (d, e); −1 outside it.

    Bins are numbered with the last axis fastest, from 0 to (e−1)^d − 1. A bin holds its lower edge, the
    last one of an axis both. NaN is outside.
    """
    bins = edges.shape[1] - 1
    numbers, inside = np.zeros(len(draws), dtype=np.int64), np.ones(len(draws), dtype=bool)
    for values, axis in zip(draws.T, edges, strict=True):
        inside &= (values >= axis[0]) & (values <= axis[-1])
        numbers = numbers * bins + np.minimum(np.searchsorted(axis, values, side="right") - 1, bins - 1)
    return np.where(inside, numbers, -1)


def bin_counts(draws: Floats, edges: Floats) -> tuple[Counts, int]:
    """Return how many of the draws (k, d) fall into each bin, (e−1, …, e−1), and how many outside."""
    dimension, bins = len(edges), edges.shape[1] - 1
    numbers = bin_indices(draws, edges)
    kept = numbers[numbers >= 0]
    counts = np.bincount(kept, minlength=bins**dimension).reshape((bins,) * dimension)
    return counts, len(draws) - len(kept)


def symmetric_kl_of_counts(counts: Counts, truth: Counts) -> float:
    """Return ½ KL(p‖q) + ½ KL(q‖p) of two histograms of equal bins, in nats.

    No draw on the grid leaves every bin at the floor: a value near the greatest possible, not an error.
    """
    p, q = _probabilities(counts), _probabilities(truth)
    return float(0.5 * np.sum((p - q) * np.log(p / q)))


def symmetric_kl(draws: Floats, edges: Floats, truth: Counts) -> tuple[float, int]:
    """Return the symmetric KL divergence of draws (k, d) from a histogram, and how many were dropped."""
    counts, dropped = bin_counts(draws, edges)
    return symmetric_kl_of_counts(counts, truth), dropped


def accuracy(theta: Floats, rows: Floats) -> float:
    """Return the share of rows (label 0 or 1, x), (m, 1 + d), with θ·x > 0 just where the label is 1."""
    return float(np.mean((rows[:, 1:] @ theta > 0) == (rows[:, 0] > 0.5)))


def _probabilities(counts: Counts) -> Floats:
    flat = counts.reshape(-1).astype(float)
    floored: Floats = np.maximum(flat / max(flat.sum(), 1.0), FLOOR)
    return floored
