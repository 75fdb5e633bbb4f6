"""Clipped sums for softplus models: a two-component mixture, logistic regression.

ln p(x|θ) = α·t(x) + γ + s softplus(β·t(x) + η) up to a term of x alone, softplus(z) = ln(1 + e^z), s = ±1.
Every row is read once for both positions. Gradients are computed by the model in NumPy (`generic`).
"""

import functools

import numpy as np

from dpmc.base import SoftplusModel
from dpmc.evaluators import kernels, layout
from dpmc.evaluators.generic import StatisticsEvaluator, Sums


class SoftplusEvaluator(StatisticsEvaluator):
    """Clipped sums over rows (n, d_x) of a model with `statistics`, `line`, `link` and `sign`."""

    name = "softplus"

    _model: SoftplusModel

    @functools.cached_property
    def _blocks(self) -> tuple[np.ndarray, int]:
        return layout.blocks(self._finite), len(self._finite)

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

    def _chosen_ratios(self, theta: np.ndarray, proposal: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        return kernels.softplus_row_ratios(self._table, chosen, *self._move(theta, proposal))
