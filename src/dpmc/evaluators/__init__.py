"""How clipped sums over all rows are computed; one interface, chosen by what the model offers.

An evaluator is asked for several chains at once (leading axis `chains`) and writes into given arrays:

- `ratio_sums(model, theta, proposal, bound, sums, counts)`: for each chain c, Σ_j clip(r_j, ±bound_c) of
  r_j = ln p(x_j|θ'_c) − ln p(x_j|θ_c), and the number of rows with |r_j| > bound_c;
- `gradient_sums(model, theta, bound, sums, counts)`: for each chain, Σ_j clip(∇ ln p(x_j|θ_c)) to Euclidean
  norm `bound`, and the number of rows clipped.

Algorithms that look at a batch of rows get an evaluator with `batch_sums` and `batch_gradient_sums` in their
place, see `dpmc.evaluators.batch`.

One row moves a sum by twice its bound and by rounding, whatever the rows are. So a log ratio that cannot be
compared with the bound (NaN) counts as −bound: no chain is drawn to where the likelihood is not a number. A
gradient whose squared norm is not finite counts as 0, and so does, in every sum, a row whose statistics are
not finite. Sums of statistics stand for sums of rows only where little cancels in them (`WELL_CONDITIONED`).
One chain's arithmetic is the same whichever chains are computed beside it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.evaluators.affine import AffineEvaluator
from dpmc.evaluators.batch import BatchEvaluator
from dpmc.evaluators.generic import GenericEvaluator
from dpmc.evaluators.poisson import PoissonEvaluator
from dpmc.evaluators.softplus import SoftplusBatchEvaluator, SoftplusEvaluator
from dpmc.evaluators.tree import WELL_CONDITIONED as WELL_CONDITIONED
from dpmc.models.results import name_of, real_array, statistics


def has_affine_form(model: Any) -> bool:
    """Whether a model declares r_j = α·t(x_j) + γ and ∇ ln p(x_j|θ) = G t(x_j) + h."""
    return isinstance(model, tuple) and hasattr(model, "statistics") and hasattr(model, "ratio")


def has_softplus_form(model: Any) -> bool:
    """Whether a model declares ln p(x|θ) = α·t(x) + γ ± softplus(β·t(x) + η)."""
    return isinstance(model, tuple) and hasattr(model, "line") and hasattr(model, "link")


def build(
    model: Any,
    rows: np.ndarray,
    one_component: bool = False,
    batches: bool = False,
    gradients: bool = False,
    like: Sequence[Any] = (),
) -> Any:
    """Return the evaluator for a model and its rows (n, d_x).

    `one_component`: the algorithm moves one parameter at a time, so sorted columns pay. `batches`: it looks
    at small batches of rows. `gradients`: it asks for gradients, which take laying something out, and which
    softplus models have in NumPy only. `like`: evaluators for the same model and rows, whose parts may serve
    again.
    """
    if has_affine_form(model):
        if batches:
            return _first(like, BatchEvaluator) or BatchEvaluator.build(statistics(model, rows))
        known = [one for one in like if isinstance(one, AffineEvaluator)]
        return AffineEvaluator.build(statistics(model, rows), one_component, gradients, known)
    if has_softplus_form(model) and not gradients:
        kind = SoftplusBatchEvaluator if batches else SoftplusEvaluator
        return _first(like, kind) or kind.build(statistics(model, rows))
    return GenericEvaluator(rows)


def _first(evaluators: Sequence[Any], kind: type) -> Any:
    """The first of a kind; None if there is none."""
    return next((one for one in evaluators if isinstance(one, kind)), None)


def build_poisson(model: Any, rows: np.ndarray, temperature: float, clip: float = np.inf) -> PoissonEvaluator:
    """Return the evaluator for algorithms that draw a random number of rows (n, d_x) with replacement.

    Rows are bounded by T · clip, or by T times the model's own `row_bounds` where clip is ∞. Raises DpmcError
    where there are none, or one of them is no number ≥ 0.
    """
    full, table = build(model, rows), build(model, rows, batches=True)
    if clip < np.inf:
        return PoissonEvaluator.build(full, table, np.full(len(rows), temperature * clip))
    if not hasattr(model, "row_bounds"):
        raise DpmcError(
            f"model: {name_of(model)}: row_bounds: missing, and this algorithm needs it: "
            "bounds of the rows' log-likelihood ratios per unit distance"
        )
    where = f"model: {name_of(model)}: row_bounds"
    bounds = temperature * real_array(model.row_bounds(rows), (len(rows),), where)
    if not (np.isfinite(bounds) & (bounds >= 0.0)).all() or not bounds.any():
        raise DpmcError(
            f"model: {name_of(model)}: row_bounds: must be finite, at least 0 and not 0 for all rows"
        )
    return PoissonEvaluator.build(full, table, bounds)


def compiles(evaluator: Any) -> bool:
    """Whether compiled iterations can use an evaluator."""
    parts = (evaluator.full, evaluator.table) if isinstance(evaluator, PoissonEvaluator) else (evaluator,)
    return all(isinstance(part, tuple) for part in parts)


def describe(evaluator: Any) -> str:
    """A word for provenance: "tree", "sorted" (tree where a move needs it), "softplus", "batch"…"""
    if isinstance(evaluator, PoissonEvaluator):
        return f"poisson and {describe(evaluator.full)}"
    if isinstance(evaluator, BatchEvaluator | SoftplusBatchEvaluator):
        return "batch"
    if isinstance(evaluator, SoftplusEvaluator):
        return "softplus"
    if not isinstance(evaluator, AffineEvaluator):
        return "generic"
    return "sorted" if evaluator.sorted_columns.ordered.shape[0] else "tree"
