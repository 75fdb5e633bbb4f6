"""How clipped sums over all rows are computed; one interface, chosen by what the model offers.

An evaluator is asked for several chains at once (leading axis `chains`) and writes into given arrays:

- `ratio_sums(model, theta, proposal, bound, sums, counts)`: for each chain c, Σ_j clip(r_j, ±bound_c) of
  r_j = ln p(x_j|θ'_c) − ln p(x_j|θ_c), and the number of rows with |r_j| > bound_c;
- `gradient_sums(model, theta, bound, sums, counts)`: for each chain, Σ_j clip(∇ ln p(x_j|θ_c)) to Euclidean
  norm `bound`, and the number of rows clipped.

Algorithms that look at a batch of rows get an evaluator with `batch_sums` and `batch_gradient_sums` in their
place, see `dpmc.evaluators.batch`.

What cannot be compared with the bound (NaN) counts as −bound, so the sensitivity of a sum never depends on
the rows and no chain is drawn to where the likelihood is not a number. One chain's arithmetic is the same
whichever chains are computed beside it.
"""

from typing import Any

import numpy as np

from dpmc.evaluators.affine import AffineEvaluator
from dpmc.evaluators.batch import BatchEvaluator
from dpmc.evaluators.generic import GenericEvaluator


def has_affine_form(model: Any) -> bool:
    """Whether a model declares r_j = α·t(x_j) + γ and ∇ ln p(x_j|θ) = G t(x_j) + h."""
    return isinstance(model, tuple) and hasattr(model, "statistics") and hasattr(model, "ratio")


def build(model: Any, rows: np.ndarray, one_component: bool = False, batches: bool = False) -> Any:
    """Return the evaluator for a model and its rows (n, d_x).

    `one_component`: the algorithm moves one parameter at a time, so sorted columns pay. `batches`: it looks
    at small batches of rows.
    """
    if has_affine_form(model):
        if batches:
            return BatchEvaluator.build(model.statistics(rows))
        return AffineEvaluator.build(model.statistics(rows), one_component)
    return GenericEvaluator(rows)


def describe(evaluator: Any) -> str:
    """One word for provenance: "tree", "sorted" (tree where a move needs it), "batch" or "generic"."""
    if isinstance(evaluator, BatchEvaluator):
        return "batch"
    if not isinstance(evaluator, AffineEvaluator):
        return "generic"
    return "sorted" if evaluator.sorted_columns.ordered.shape[0] else "tree"
