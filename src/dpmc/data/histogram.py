"""Symmetric KL divergence by histogram, and test accuracy: the measures of the DP-Fast MH paper.

A histogram has 100 edges per axis, equally spaced between the extremes of 200,000 exact draws, hence 99 bins.
A bin's probability is its share of the draws on the grid; draws outside are dropped and counted.
"""

import numpy as np

from dpmc.common.errors import DpmcError

EDGES = 100  # an axis
FLOOR = 1e-13  # least probability of a bin


def equal_edges(draws: np.ndarray, number: int = EDGES) -> np.ndarray:
    """Return equally spaced edges (d, number) from least to greatest of draws (k, d); DpmcError if equal."""
    if len(draws) == 0 or not (draws.min(axis=0) < draws.max(axis=0)).all():
        raise DpmcError("histogram: exact draws must differ on every axis, there is no grid between them")
    return np.linspace(draws.min(axis=0), draws.max(axis=0), number, axis=1)


def bin_counts(draws: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, int]:
    """Return how many of the draws (k, d) fall into each bin, (e−1, …, e−1), and how many outside.

    `edges` is (d, e). A bin includes its lower edge, the last bin of an axis both edges. NaN is outside.
    """
    counts = np.histogramdd(draws, list(edges))[0].astype(np.int64)
    return counts, len(draws) - int(counts.sum())


def symmetric_kl_of_counts(counts: np.ndarray, truth: np.ndarray) -> float:
    """Return ½ KL(p‖q) + ½ KL(q‖p) of two histograms of equal shape, in nats; an empty bin has `FLOOR`."""
    p, q = _probabilities(counts), _probabilities(truth)
    return float(0.5 * np.sum((p - q) * np.log(p / q)))


def symmetric_kl(draws: np.ndarray, edges: np.ndarray, truth: np.ndarray) -> tuple[float, int]:
    """Return the symmetric KL divergence of draws (k, d) from a histogram, and how many were dropped."""
    counts, dropped = bin_counts(draws, edges)
    return symmetric_kl_of_counts(counts, truth), dropped


def accuracy(theta: np.ndarray, rows: np.ndarray) -> float:
    """Return the share of rows (label 0 or 1, x), (m, 1 + d), with θ·x > 0 if and only if the label is 1."""
    return float(np.mean((rows[:, 1:] @ theta > 0) == (rows[:, 0] > 0.5)))


def _probabilities(counts: np.ndarray) -> np.ndarray:
    flat = counts.reshape(-1).astype(float)
    return np.maximum(flat / max(flat.sum(), 1.0), FLOOR)
