"""Clipped sums over the rows; one evaluator for each form that a model may have.

In every evaluator, replacing one row changes a sum by at most twice its bound plus rounding, for any rows. A
log ratio that is NaN counts as −bound, so that no chain moves to where the likelihood is not a number. A
gradient whose squared norm is not finite counts as 0. In every sum, a row with statistics that are not finite
counts as 0.
"""

from typing import TYPE_CHECKING, cast

import numpy as np

from dpmc.base import AffineModel, Model, SoftplusModel

if TYPE_CHECKING:
    from dpmc.evaluators.generic import Evaluator


def evaluator_of(model: Model, rows: np.ndarray) -> "Evaluator":
    """Return the evaluator for a model and its rows (n, d_x), by the form that the model offers."""
    from dpmc.evaluators import affine, generic, softplus  # with numba, which is slow to import

    if hasattr(model, "statistics") and hasattr(model, "ratio_form") and hasattr(model, "gradient_form"):
        return affine.AffineEvaluator(cast(AffineModel, model), rows)
    if hasattr(model, "statistics") and hasattr(model, "line") and hasattr(model, "link"):
        return softplus.SoftplusEvaluator(cast(SoftplusModel, model), rows)
    return generic.Evaluator(model, rows)
