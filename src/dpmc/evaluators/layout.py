"""Memory layouts of the rows' statistics for the kernels."""

import numpy as np

from dpmc.evaluators.kernels import BLOCK


def plain(form: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes (chains, k) and offsets (chains,) of a form as contiguous arrays.

    A view of one chain is contiguous and a view of many is not. numba compiles different code for the two, so
    that a chain's bits would depend on the number of chains.
    """
    slopes, offsets = form
    return np.ascontiguousarray(slopes, dtype=float), np.ascontiguousarray(offsets, dtype=float)


def blocks(statistics: np.ndarray) -> np.ndarray:
    """Return statistics (n, k) as (blocks, k, BLOCK), padded with zeros."""
    n, k = statistics.shape
    padded = np.zeros((-(-n // BLOCK) * BLOCK, k))
    padded[:n] = statistics
    # Rows along the last axis: a kernel's inner loop over rows then reads neighbouring numbers.
    return np.ascontiguousarray(padded.reshape(-1, BLOCK, k).transpose(0, 2, 1))


def spread(statistics: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return a robust scale (k,) of each statistic: its median distance from the centre.

    Scales are at least half of their median, so that a statistic that varies little counts little in a
    distance. Scales within a tenth of the median are set to it, since the largest of scales that differ only
    by chance would loosen bounds.
    """
    scale = np.array([np.median(np.abs(t - c)) for t, c in zip(statistics.T, centre, strict=True)])
    middle = np.median(scale)
    scale = np.maximum(scale, 0.5 * middle)
    scale = np.where(np.abs(scale - middle) <= 0.1 * middle, middle, scale)
    return np.where((scale > 0.0) & np.isfinite(scale), scale, 1.0)


def scaled_distances(statistics: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return ‖(t − centre)/scale‖ of each row (n,); infinite if it overflows."""
    squares = np.zeros(len(statistics))
    with np.errstate(over="ignore"):
        # Column by column, which needs no intermediate array (n, k).
        for t, c, s in zip(statistics.T, centre, scale, strict=True):
            squares += ((t - c) / s) ** 2
    return np.sqrt(squares)
