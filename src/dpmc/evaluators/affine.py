"""Clipped sums for models with an affine form: r = α·t(x) + γ and ∇ ln p(x|θ) = G t(x) + h.

Every exponential family has such a form. There are two ways:

- log ratios in which only one statistic has a coefficient (one-component moves of models in natural
  statistics; of one statistic all moves): sorted columns with prefix sums, O(log n);
- else: blocks of rows ordered by distance. A prefix of surely unclipped blocks is summed by prefix sums, the
  other blocks are read.

Layouts are made when first needed.
"""

import functools
from typing import NamedTuple

import numpy as np

from dpmc.base import AffineModel
from dpmc.evaluators import kernels
from dpmc.evaluators.generic import StatisticsEvaluator, Sums, in_blocks, plain


class Blocks(NamedTuple):
    """Rows ordered by their scaled distance from the centre, in blocks."""

    blocks: np.ndarray  # (blocks, k, BLOCK)
    n: int
    far: np.ndarray  # (blocks,) largest scaled distance
    sums: np.ndarray  # (blocks + 1, k) of t − centre over all blocks before
    centre: np.ndarray  # (k,) medians
    scale: np.ndarray  # (k,)


class AffineEvaluator(StatisticsEvaluator):
    """Clipped sums over rows (n, d_x) of a model with `statistics`, `ratio_form` and `gradient_form`."""

    name = "affine"

    _model: AffineModel

    @functools.cached_property
    def _totals(self) -> np.ndarray:
        return self._finite.sum(axis=0)

    @functools.cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each statistic in ascending order (k, n), with prefix sums and medians (k,)."""
        ordered = np.sort(np.ascontiguousarray(self._finite.T), axis=1)
        median = ordered[:, ordered.shape[1] // 2].copy()
        return ordered, kernels.sorted_prefix(ordered, median), median

    @functools.cached_property
    def _blocks(self) -> Blocks:
        rows = self._finite
        centre = np.median(rows, axis=0)
        scale = spread(rows, centre)
        distance = np.zeros(len(rows))
        with np.errstate(over="ignore"):
            # Column by column, which needs no intermediate array (n, k).
            for t, c, s in zip(rows.T, centre, scale, strict=True):
                distance += ((t - c) / s) ** 2
        distance = np.sqrt(distance)
        # Stable: rows at equal distances keep their order, whatever sorting algorithm NumPy chooses.
        order = np.argsort(distance, kind="stable")
        starts = np.arange(0, len(rows), kernels.BLOCK)
        far = np.maximum.reduceat(distance[order], starts)
        sums = np.zeros((len(starts) + 1, rows.shape[1]))
        # Less the centre, so that sums of unclipped rows stay small and keep their digits.
        np.cumsum(np.add.reduceat(rows[order] - centre, starts, axis=0), axis=0, out=sums[1:])
        return Blocks(in_blocks(rows[order]), len(rows), far, sums, centre, scale)

    def ratio_sums(self, theta: np.ndarray, proposal: np.ndarray, bound: np.ndarray) -> Sums:
        alpha, gamma = plain(self._model.ratio_form(theta, proposal))
        k = alpha.shape[1]
        if k == 1 or (np.count_nonzero(alpha, axis=1) < 2).any():
            # For the chains that the kernel leaves out, the count is −1.
            sums, counts = kernels.sorted_ratio_sums(*self._sorted, alpha, gamma, bound)
            left = counts < 0
        else:
            sums, counts = np.zeros(len(alpha)), np.zeros(len(alpha), np.int64)
            left = np.ones(len(alpha), np.bool_)
        unbounded = np.isinf(bound)
        if unbounded.any():  # not clipped at all
            whole = (alpha * self._totals).sum(axis=1) + gamma * len(self._finite)
            sums, counts = np.where(unbounded, whole, sums), np.where(unbounded, 0, counts)
            left &= ~unbounded
        if left.any():
            sums[left], counts[left] = self._by_blocks(alpha[left], gamma[left], bound[left])
        return sums, counts

    def _by_blocks(self, alpha: np.ndarray, gamma: np.ndarray, bound: np.ndarray) -> Sums:
        by = self._blocks
        offset = gamma + (alpha * by.centre).sum(axis=1)
        largest = np.abs(gamma) + np.abs(alpha * by.centre).sum(axis=1)
        reach = np.sqrt(((alpha * by.scale) ** 2).sum(axis=1))
        first = self._first_read(np.abs(offset), reach, largest, bound)
        sums, counts = kernels.block_ratio_sums(by.blocks, by.n, first, alpha, gamma, bound)
        unread = np.minimum(first * kernels.BLOCK, by.n)
        settled = (alpha * by.sums[first]).sum(axis=1) + offset * unread
        return sums + np.where(unread > 0, settled, 0.0), counts  # `settled` may be NaN where all is read

    def _first_read(
        self, offset: np.ndarray, reach: np.ndarray, largest: np.ndarray, bound: np.ndarray | float
    ) -> np.ndarray:
        """Return the first block (chains,) that must be read: the blocks before it are surely unclipped.

        Values are at most `offset` + `reach` · distance. All blocks are read if the terms that cancel,
        `largest`, exceed WELL_CONDITIONED times the bound.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            limit = (bound - offset) / reach
        # NaN is not trusted, and −1 is before all distances: every block is read. The margin is for rounding,
        # because an unread row must be surely unclipped.
        trusted = (largest <= kernels.WELL_CONDITIONED * bound) & (limit > 0.0)
        return np.searchsorted(self._blocks.far, np.where(trusted, limit * (1.0 - 1e-12), -1.0), side="right")

    def gradient_sums(self, theta: np.ndarray, bound: float) -> Sums:
        linear, constant = plain(self._model.gradient_form(theta))
        if bound == np.inf:
            whole = (linear * self._totals).sum(axis=2) + constant * len(self._finite)
            return whole, np.zeros(len(theta), np.int64)
        by = self._blocks
        middle = (linear * by.centre).sum(axis=2) + constant
        largest = (np.abs(linear * by.centre).sum(axis=2) + np.abs(constant)).sum(axis=1)
        reach = _largest_singular_value(linear * by.scale)
        first = self._first_read(np.sqrt((middle**2).sum(axis=1)), reach, largest, bound)
        sums, counts = kernels.block_gradient_sums(by.blocks, by.n, first, linear, constant, bound)
        unread = np.minimum(first * kernels.BLOCK, by.n)[:, None]
        settled = (linear * by.sums[first][:, None, :]).sum(axis=2) + middle * unread
        return sums + np.where(unread > 0, settled, 0.0), counts  # `settled` may be NaN where all is read

    def batch_gradient_sums(self, theta: np.ndarray, bound: float, words: np.ndarray) -> Sums:
        chosen, form = kernels.draw_batches(words, self.n), plain(self._model.gradient_form(theta))
        return kernels.batch_gradient_sums(self._table, chosen, *form, bound)

    def _chosen_ratios(self, theta: np.ndarray, proposal: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        form = plain(self._model.ratio_form(theta, proposal))
        return kernels.affine_row_ratios(self._table, chosen, *form)


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


def _largest_singular_value(linear: np.ndarray) -> np.ndarray:
    """Return an upper bound (chains,) of the largest singular value of G (chains, d, k); NaN for G = 0.

    For weights w > 0 no eigenvalue of A = |GᵀG| exceeds the largest (Aw)_q/w_q (Collatz, Wielandt). w = 1
    gives Gershgorin's bound, and each w ← Aw makes it tighter. Each matrix product is that of one chain, so
    that its rounding does not depend on the number of chains.
    """
    products = np.abs(linear.transpose(0, 2, 1) @ linear)
    image = products.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(2):
            # The theorem needs weights above 0.
            weights = np.maximum(image / image.max(axis=1, keepdims=True), 1e-6)
            image = (products * weights[:, None, :]).sum(axis=2)
        largest: np.ndarray = np.sqrt((image / weights).max(axis=1))
    return largest
