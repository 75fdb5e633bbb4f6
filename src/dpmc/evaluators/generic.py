"""Clipped sums for any model that has a log-likelihood: NumPy, in chunks of rows."""

from typing import Any

import numpy as np

from dpmc.evaluators.batch import draw_batch, sum_batches
from dpmc.models.results import log_likelihood, log_likelihood_gradient

CHUNK = 16384  #: rows per chunk; bounds the memory of a model's intermediate arrays


class GenericEvaluator:
    """Clipped sums over rows (n, d_x) by the model's own `log_likelihood` and `log_likelihood_gradient`."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows.view()
        self.rows.flags.writeable = False  # no model can change them
        self.taken = np.zeros(len(rows), np.bool_)  # False between calls

    def _chunks(self) -> list[np.ndarray]:
        return [self.rows[i : i + CHUNK] for i in range(0, len(self.rows), CHUNK)]

    def ratio_sums(
        self,
        model: Any,
        theta: np.ndarray,
        proposal: np.ndarray,
        bound: np.ndarray,
        sums: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        """See `dpmc.evaluators`."""
        for c in range(len(theta)):
            sums[c], counts[c] = 0.0, 0
            for rows in self._chunks():
                ratio = log_likelihood(model, proposal[c], rows) - log_likelihood(model, theta[c], rows)
                inside = np.abs(ratio) <= bound[c]
                clipped = np.where(ratio > bound[c], bound[c], -bound[c])  # NaN: against it
                sums[c] += np.where(inside, ratio, clipped).sum()
                counts[c] += len(rows) - np.count_nonzero(inside)

    def batch_sums(
        self,
        model: Any,
        theta: np.ndarray,
        proposal: np.ndarray,
        bound: np.ndarray,
        words: np.ndarray,
        i: int,
        sums: np.ndarray,
        squares: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        """See `dpmc.evaluators.batch`."""
        sum_batches(self, model, theta, proposal, bound, words, i, sums, squares, counts)

    def rows_ratio(
        self, model: Any, theta: np.ndarray, proposal: np.ndarray, chosen: np.ndarray, ratios: np.ndarray
    ) -> None:
        """See `dpmc.evaluators.batch`."""
        rows = self.rows[chosen]
        ratios[:] = log_likelihood(model, proposal, rows) - log_likelihood(model, theta, rows)

    def gradient_sums(
        self, model: Any, theta: np.ndarray, bound: float, sums: np.ndarray, counts: np.ndarray
    ) -> None:
        """See `dpmc.evaluators`."""
        for c in range(len(theta)):
            sums[c], counts[c] = 0.0, 0
            for rows in self._chunks():
                part, clipped = _clipped_sum(log_likelihood_gradient(model, theta[c], rows), bound)
                sums[c] += part
                counts[c] += clipped

    def batch_gradient_sums(
        self,
        model: Any,
        theta: np.ndarray,
        bound: float,
        words: np.ndarray,
        i: int,
        sums: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        """See `dpmc.evaluators.batch`."""
        chosen = np.empty(words.shape[2], np.int64)
        for c in range(len(theta)):
            draw_batch(words[c, i], self.taken, chosen)
            gradient = log_likelihood_gradient(model, theta[c], self.rows[chosen])
            sums[c], counts[c] = _clipped_sum(gradient, bound)


def _clipped_sum(gradient: np.ndarray, bound: float) -> tuple[np.ndarray, int]:
    """Sum of gradients (m, d), each clipped to the norm `bound`, and how many were; NaN counts as 0."""
    norm = np.sqrt((gradient**2).sum(axis=1))
    inside = norm <= bound
    scale = np.where(inside, 1.0, bound / np.where(inside, 1.0, norm))
    usable = np.isfinite(norm)[:, None]
    total = np.where(usable, gradient * scale[:, None], 0.0).sum(axis=0)
    return total, len(gradient) - int(np.count_nonzero(inside))
