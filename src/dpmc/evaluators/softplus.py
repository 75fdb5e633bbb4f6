"""Clipped sums for softplus models: a two-component mixture, logistic regression.

ln p(x|θ) = α·t(x) + γ + s softplus(β·t(x) + η) up to a term of x alone, softplus(z) = ln(1 + e^z), s = ±1.
Every row is read once for both positions. Gradients are affine in w t, w and t, w the derivative of
s softplus, so the kernels of affine models sum them.
"""

import functools

import numpy as np
from scipy.special import expit

from dpmc.base import SoftplusModel
from dpmc.evaluators import kernels
from dpmc.evaluators.generic import StatisticsEvaluator, Sums, in_blocks, plain


class SoftplusEvaluator(StatisticsEvaluator):
    """Clipped sums over rows (n, d_x) of a model with `statistics`, `line`, `link` and `sign`."""

    name = "softplus"

    _model: SoftplusModel

    @functools.cached_property
    def _blocks(self) -> tuple[np.ndarray, int]:
        return in_blocks(self._finite), len(self._finite)

    def _move(self, theta: np.ndarray, proposal: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the change of (α, γ), then (β, η) before and after: (chains, 3, k), (chains, 3); and s."""
        old, new = self._model.line(theta), self._model.line(proposal)
        before, after = self._model.link(theta), self._model.link(proposal)
        lines = np.stack([new[0] - old[0], before[0], after[0]], axis=1)
        offsets = np.stack([new[1] - old[1], before[1], after[1]], axis=1)
        return lines, offsets, float(self._model.sign)

    def ratio_sums(self, theta: np.ndarray, proposal: np.ndarray, bound: np.ndarray) -> Sums:
        form = self._move(theta, proposal)
        return kernels.softplus_ratio_sums(*self._blocks, *form, bound)

    def gradient_sums(self, theta: np.ndarray, bound: float) -> Sums:
        blocks, n = self._blocks
        link = *plain(self._model.link(theta)), float(self._model.sign)
        form = plain(self._model.sigmoid_form(theta))
        return kernels.block_gradient_sums(blocks, n, np.zeros(len(theta), np.int64), *form, bound, link)

    def batch_gradient_sums(self, theta: np.ndarray, bound: float, words: np.ndarray) -> Sums:
        t, (slopes, offsets) = self._table[kernels.draw_batches(words, self.n)], self._model.link(theta)
        z = (t * slopes[:, None, :]).sum(axis=2) + offsets[:, None]
        weight = float(self._model.sign) * expit(z)[:, :, None]
        linear, constant = plain(self._model.sigmoid_form(theta))
        terms = np.concatenate([weight * t, weight, t], axis=2)[:, :, : linear.shape[2]]
        places = np.arange(words.size).reshape(words.shape)
        table = np.ascontiguousarray(terms.reshape(words.size, -1))
        return kernels.batch_gradient_sums(table, places, linear, constant, bound)

    def _chosen_ratios(self, theta: np.ndarray, proposal: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        lines, offsets, sign = self._move(theta, proposal)
        forms = (plain((lines[:, i], offsets[:, i])) for i in range(3))
        change, old, new = (kernels.affine_row_ratios(self._table, chosen, *form) for form in forms)
        kernels.add_softplus_change(old.ravel(), new.ravel(), sign, change.ravel())
        return change
