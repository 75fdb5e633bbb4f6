"""Predictions of a regression for new rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.common.draws import (
    diagnostics,
    for_all_rows,
    loaded,
    second_half_draws,
    warning_of_unmoved,
)
from dpmc.common.errors import DpmcError
from dpmc.common.logs import LOGGER
from dpmc.common.values import checked, count

if TYPE_CHECKING:
    import xarray


def predict(
    model: Any, rows: Any, tree: "xarray.DataTree | str | Path", *, seed: int = 0
) -> "xarray.DataTree":
    """Return `tree` with a group `posterior_predictive` for new rows, as ArviZ has it.

    Parameters
    ----------
    rows
        New rows (m), as for `design`; the outcome is not needed. No ε covers them: predictions for private
        rows are as private as these. Rows longer than `norm` are shortened, as in the likelihood; a warning
        counts them.
    tree
        A result of `dpmc.sample` or `dpmc.release` with this model, or its file. Draws of its second half are
        used; a warning names parameters that never moved there. Tempering is taken out of each parameter as
        in `dpmc.summary`, by a normal approximation.
    seed
        Seed of the outcomes.

    Returns
    -------
    xarray.DataTree
        With two variables (chain, draw, row) in the new group: the outcome, drawn by the model, and
        "<outcome>_mean", its expectation at each draw of θ.

    Raises
    ------
    DpmcError
        For chains of other parameters or with too few draws, and rows that lack a column or have a value that
        is missing or infinite.
    """
    import xarray

    seed, tree = checked("predict: seed", count, seed, 0), loaded(tree)
    theta = second_half_draws(tree)
    if tuple(theta["parameter"].values.tolist()) != tuple(model.parameters):
        raise DpmcError(f"predict: the chains have parameters {theta['parameter'].values.tolist()}")
    draws, temperature = theta.values, float(tree.attrs.get("temperature", 1.0))
    if temperature < 1.0:
        draws = for_all_rows(draws, temperature, checked("predict", diagnostics, draws).mcse)
    if warning := warning_of_unmoved(theta.values, model.parameters):
        LOGGER.warning("predict: %s", warning)
    rows = model.design.new_rows(rows, type(model).__name__)
    beyond = model.design.beyond_norm(rows)
    if beyond is not None and beyond.any():
        text = "predict: %s rows are longer than norm %g and are shortened"
        LOGGER.warning(text, beyond.sum(), model.design.norm)
    z, generator, flat = model.design(rows), np.random.default_rng(seed), draws.reshape(-1, model.dimension)
    offset = model.design.offset(rows)
    drawn = np.stack([model.outcomes(generator, each, z, offset) for each in flat])
    expected = model.mean(flat[:, : z.shape[1]] @ z.T + offset)
    shape, dims = (*draws.shape[:2], len(z)), ("chain", "draw", "row")
    outcome = model.columns[0]
    found = {outcome: (dims, drawn.reshape(shape)), f"{outcome}_mean": (dims, expected.reshape(shape))}
    coordinates = {name: theta[name].values for name in ("chain", "draw")} | {"row": np.arange(len(z))}
    result = tree.copy()
    result["posterior_predictive"] = xarray.DataTree(xarray.Dataset(found, coordinates))
    return result
