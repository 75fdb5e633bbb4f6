"""Rows drawn with replacement, a Poisson number of them: the minibatches of TunaMH."""

import functools

import numpy as np

from dpmc.base import Model
from dpmc.common.errors import DpmcError
from dpmc.evaluators import kernels
from dpmc.evaluators.calls import name_of, real_array


class BoundedRows:
    """Bounds c_i of the rows, |T ln p(x_i|θ') − T ln p(x_i|θ)| ≤ c_i ‖θ' − θ‖, and draws in proportion."""

    def __init__(self, bounds: np.ndarray) -> None:
        self.bounds = np.ascontiguousarray(bounds, dtype=float)  # (n,), tempered
        self.total = float(self.bounds.sum())  # C
        self.largest = float(self.bounds.max())  # max c_i

    @functools.cached_property
    def _alias_table(self) -> tuple[np.ndarray, np.ndarray]:
        return alias_table(self.bounds)  # only if rows are drawn: making it takes a while

    def draw(self, word: np.uint64, count: int) -> np.ndarray:
        """Draw `count` rows (count,) from a word of 64 random bits, row i with probability c_i / C."""
        return kernels.draw_with_replacement(word, count, *self._alias_table)


def bounded_rows(model: Model, rows: np.ndarray, temperature: float, clip: float) -> BoundedRows:
    """Return rows (n, d_x) bounded by T · clip, or by T times the model's `row_bounds` if clip is ∞.

    Raises DpmcError if the model has no `row_bounds`, or if one of them is not a finite number ≥ 0.
    """
    if clip < np.inf:
        return BoundedRows(np.full(len(rows), temperature * clip))
    if not hasattr(model, "row_bounds"):
        raise DpmcError(
            f"model: {name_of(model)}: row_bounds: missing, and this algorithm needs it: "
            "bounds of the rows' log-likelihood ratios per unit distance"
        )
    where = f"model: {name_of(model)}: row_bounds"
    bounds = temperature * real_array(model.row_bounds(rows), (len(rows),), where)
    if not (np.isfinite(bounds) & (bounds >= 0.0)).all() or not bounds.any():
        raise DpmcError(f"{where}: must be finite, at least 0 and not 0 for all rows")
    return BoundedRows(bounds)


def alias_table(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Walker's tables for weights (n,), by Vose's method: i up to threshold_i, alias_i beyond."""
    n = len(weights)
    threshold = weights * (n / weights.sum())
    alias = np.arange(n)
    small = [i for i in range(n) if threshold[i] < 1.0]
    large = [i for i in range(n) if threshold[i] >= 1.0]
    while small and large:
        low, high = small.pop(), large[-1]
        alias[low] = high
        threshold[high] -= 1.0 - threshold[low]
        if threshold[high] < 1.0:
            small.append(large.pop())
    threshold[small + large] = 1.0  # these differ from 1 only by rounding
    return threshold, alias
