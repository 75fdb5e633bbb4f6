"""Evaluators, and the one for any model with a log-likelihood: NumPy, in chunks of rows, chain by chain."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np

from dpmc.base import AffineModel, GradientModel, Model, Question, SoftplusModel
from dpmc.common.errors import DpmcError
from dpmc.evaluators import kernels
from dpmc.evaluators.calls import MOST_ROWS, log_likelihood, log_likelihood_gradient, statistics

Sums = tuple[np.ndarray, np.ndarray]  #: sums over rows, and numbers of rows clipped


class Evaluator:
    """Clipped sums over the rows (n, d_x) of one model, for mechanisms, and a mixture's exact posterior.

    Log ratios r_j = ln p(x_j|θ') − ln p(x_j|θ) are clipped to ±bound (chains,), gradients to Euclidean norm
    `bound`, one number. Counts (chains,) are the numbers of rows clipped. `words` (chains, b) are 64 random
    bits for each row of a batch, which is drawn without replacement.

    This one calls the model's own `log_likelihood` and `log_likelihood_gradient`. Subclasses are faster for
    models of a certain form.
    """

    name = "generic"  # for provenance

    def __init__(self, model: Model, rows: np.ndarray) -> None:
        self._model = model
        self.n = len(rows)
        self._rows = rows.view()
        self._rows.flags.writeable = False  # a model must not change them

    def _chunks(self) -> Iterator[np.ndarray]:
        """Yield the rows in parts, which bound the memory of a model's intermediate arrays."""
        return (self._rows[i : i + MOST_ROWS] for i in range(0, self.n, MOST_ROWS))

    def _drawn(self, chosen: np.ndarray) -> np.ndarray:
        rows = self._rows[chosen]
        rows.flags.writeable = False  # the same are used at two positions
        return rows

    def _ratios(self, theta: np.ndarray, proposal: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return log_likelihood(self._model, proposal, rows) - log_likelihood(self._model, theta, rows)

    def _clipped_gradients(self, theta: np.ndarray, rows: np.ndarray, bound: float) -> tuple[np.ndarray, int]:
        gradient = log_likelihood_gradient(cast(GradientModel, self._model), theta, rows)
        return kernels.clipped_vector_sum(np.ascontiguousarray(gradient), bound)

    def unit_of_ratios(self, bound: np.ndarray) -> float | np.ndarray:
        """Return the unit in which sums of log ratios clipped to ±bound (chains,) count: 1, or (chains,)."""
        return 1.0

    def unit_of_gradients(self, bound: float) -> float:
        """Return the unit in which sums of gradients clipped to norm `bound` count."""
        return 1.0

    def ratio_sums(self, theta: np.ndarray, proposal: np.ndarray, bound: np.ndarray) -> Sums:
        """Return Σ_j clip(r_j) (chains,) over all rows, and counts."""
        sums, counts = np.zeros(len(theta)), np.zeros(len(theta), np.int64)
        for c in range(len(theta)):
            for rows in self._chunks():
                ratio = self._ratios(theta[c], proposal[c], rows)
                inside = np.abs(ratio) <= bound[c]
                clipped = np.where(ratio > bound[c], bound[c], -bound[c])  # NaN counts as −bound
                sums[c] += np.where(inside, ratio, clipped).sum()
                counts[c] += len(rows) - np.count_nonzero(inside)
        return sums, counts

    def gradient_sums(self, theta: np.ndarray, bound: float) -> Sums:
        """Return Σ_j clip(∇ ln p(x_j|θ)) (chains, d) over all rows, and counts."""
        sums, counts = np.zeros(theta.shape), np.zeros(len(theta), np.int64)
        for c in range(len(theta)):
            for rows in self._chunks():
                part, clipped = self._clipped_gradients(theta[c], rows, bound)
                sums[c] += part
                counts[c] += clipped
        return sums, counts

    def total(self, of_rows: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the sum of what a function returns of rows (n, columns), of floats: none of a release."""
        return np.asarray(sum(map(of_rows, self._chunks())))

    def answer_sums(self, questions: Sequence[Question]) -> tuple[np.ndarray, float, float]:
        """Return the sums of all rows' numbers (runs, N), one question a run, their unit, and 0.

        The last is by how much rounding to units adds to a question's sensitivity.
        """
        sums = [sum(question.total(rows) for rows in self._chunks()) for question in questions]
        return np.array(sums), 1.0, 0.0

    def batch_ratio_sums(
        self, theta: np.ndarray, proposal: np.ndarray, bound: np.ndarray, words: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Σ clip(r_j), Σ (clip(r_j) − mean)² (chains,) over a batch, and counts."""
        ratios = self._chosen_ratios(theta, proposal, kernels.draw_batches(words, self.n))
        return kernels.clipped_moments(ratios, bound)

    def batch_gradient_sums(self, theta: np.ndarray, bound: float, words: np.ndarray) -> Sums:
        """Return Σ clip(∇ ln p(x_j|θ)) (chains, d) over a batch, and counts."""
        sums, counts = np.zeros(theta.shape), np.zeros(len(theta), np.int64)
        for c, chosen in enumerate(kernels.draw_batches(words, self.n)):
            sums[c], counts[c] = self._clipped_gradients(theta[c], self._drawn(chosen), bound)
        return sums, counts

    def row_ratios(self, theta: np.ndarray, proposal: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return r_j (b,), not clipped, of one chain, θ (d,), for rows `chosen` (b,), which may repeat."""
        return self._chosen_ratios(theta[None], proposal[None], chosen[None])[0]

    def _chosen_ratios(self, theta: np.ndarray, proposal: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Return r_j (chains, b) of rows `chosen` (chains, b), not clipped."""
        rows = [self._drawn(its) for its in chosen]
        return np.array([self._ratios(*move) for move in zip(theta, proposal, rows, strict=True)])


def plain(form: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes (chains, k) and offsets (chains,) of a form as contiguous arrays.

    A view of one chain is contiguous and a view of many is not. numba compiles different code for the two, so
    that a chain's bits would depend on the number of chains.
    """
    slopes, offsets = form
    return np.ascontiguousarray(slopes, dtype=float), np.ascontiguousarray(offsets, dtype=float)


def in_blocks(statistics: np.ndarray) -> np.ndarray:
    """Return statistics (n, k) for kernels, (blocks, k, BLOCK), padded with zeros."""
    n, k = statistics.shape
    padded = np.zeros((-(-n // kernels.BLOCK) * kernels.BLOCK, k))
    padded[:n] = statistics
    # Rows along the last axis: a kernel's inner loop over rows then reads neighbouring numbers.
    return np.ascontiguousarray(padded.reshape(-1, kernels.BLOCK, k).transpose(0, 2, 1))


class StatisticsEvaluator(Evaluator):
    """Base of evaluators that read statistics of the rows in place of the rows."""

    @functools.cached_property
    def _statistics(self) -> np.ndarray:
        """The statistics (n, k), many times as large as the rows: answers to questions need none."""
        with np.errstate(all="ignore"):  # of rows that are not finite, which count as 0
            return statistics(cast(AffineModel | SoftplusModel, self._model), self._rows)

    @functools.cached_property
    def _finite(self) -> np.ndarray:
        """The statistics (m, k) of rows for which all are finite; the others contribute 0 to every sum."""
        finite = np.isfinite(self._statistics).all(axis=1)
        if not finite.any():
            raise DpmcError("statistics: not finite for any row")
        return self._statistics if finite.all() else self._statistics[finite]

    @functools.cached_property
    def _table(self) -> np.ndarray:
        """The statistics (n, k) in C order; a row with a value that is not finite is all NaN."""
        rows = np.array(self._statistics, order="C")
        rows[~np.isfinite(rows).all(axis=1)] = np.nan
        return rows
