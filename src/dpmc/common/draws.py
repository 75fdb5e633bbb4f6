"""Draws of chains: diagnostics of each parameter, and the posterior of all rows behind a tempered one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.files import reading
from dpmc.common.values import shown

if TYPE_CHECKING:
    import xarray

MINIMUM_DRAWS = 4  # of a split R-hat, which needs a variance in each half of a chain
NEEDED = ("ledger", "iterations", "model")  #: attributes of every run
MOST_NAMED = 5  #: parameters that a message names, at most


class Diagnostics(NamedTuple):
    """Diagnostics of each parameter, (d,), by arviz-stats."""

    rhat: np.ndarray
    ess: np.ndarray  # bulk
    mcse: np.ndarray  # of the mean


def loaded(run: object) -> xarray.DataTree:
    """Return a run in memory: a tree, or a file read whole; raise DpmcError for what is no run."""
    import xarray

    where = shown(type(run).__name__)
    if isinstance(run, str | Path):
        where = str(run)
        with reading(run) as file:
            run = file.load()
    if not isinstance(run, xarray.DataTree):
        raise DpmcError(
            f"{where} must be a chain file, a release, or a result of dpmc.sample or dpmc.release"
        )
    if missing := [name for name in NEEDED if name not in run.attrs]:
        raise DpmcError(
            f"{where}: has no attribute {missing[0]!r}, must be a result of dpmc.sample or dpmc.release; "
            "runs that were joined need the `attrs` of one of them"
        )
    theta = run["posterior"].dataset.get("theta") if "posterior" in run.children else None
    if theta is None or set(theta.dims) - {"chain"} != {"draw", "parameter"} or "draw" not in theta.coords:
        raise DpmcError(f"{where}: has no posterior/theta of chains, draws and parameters")
    return run


def second_half_draws(tree: xarray.DataTree) -> xarray.DataArray:
    """Return θ (chain, draw, parameter) of the iterations (k + 1) // 2 ... k of a run (`loaded`)."""
    theta = tree["posterior"].dataset["theta"]
    if "chain" not in theta.dims:  # of one that was selected
        theta = theta.expand_dims("chain")
    late = theta["draw"].values >= (int(tree.attrs["iterations"]) + 1) // 2
    return theta.transpose("chain", "draw", "parameter")[:, late]


def unmoved(draws: np.ndarray) -> np.ndarray:
    """Return which parameters (chains, d) have one value in all draws (chains, draws, d) of a chain."""
    still: np.ndarray = (draws == draws[:, :1]).all(axis=1) & (draws.shape[1] > 1)
    return still


def warning_of_unmoved(draws: np.ndarray, names: Iterable[object]) -> str:
    """Return a sentence on the parameters of draws (chains, draws, d) that a chain never moved, or ""."""
    still, every = unmoved(draws), list(map(str, names))
    found = [every[i] for i in np.flatnonzero(still.any(axis=0))]
    if not found:
        return ""
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    chains = "the chain" if len(draws) == 1 else f"{still.any(axis=1).sum()} of {len(draws)} chains"
    return f"{', '.join(found[:MOST_NAMED])}{more}: never moved in the second half of {chains}"


def diagnostics(draws: np.ndarray) -> Diagnostics:
    """Return R-hat, bulk ESS and MCSE of the mean of draws (chains, draws, parameters).

    R-hat of one chain is that of its two halves. Of a parameter that never moved none is finite. Raises
    ValueError for too few draws or draws that are not finite.
    """
    from arviz_stats.base import array_stats  # slow to import

    count = draws.shape[1]
    if count < MINIMUM_DRAWS:
        raise ValueError(f"{count} kept draw{'s' * (count != 1)} per chain, needs at least {MINIMUM_DRAWS}")
    if not np.all(np.isfinite(draws)):
        raise ValueError("not defined for these chains (some draws are not finite)")
    values = np.ascontiguousarray(np.moveaxis(draws, 2, 0))  # (parameters, chains, draws)
    compared, half = values, count // 2
    if len(draws) == 1:
        compared = np.concatenate([values[..., :half], values[..., -half:]], axis=1)
    with np.errstate(all="ignore"):
        rhat = array_stats.rhat(compared, method="rank")
        ess = array_stats.ess(values, method="bulk")
        mcse = array_stats.mcse(values, method="mean")
    # arviz-stats counts equal draws as independent ones.
    known = np.where(unmoved(draws).all(axis=0), np.nan, 1.0)
    return Diagnostics(np.asarray(rhat, dtype=float), known * ess, known * mcse)


def for_all_rows(draws: np.ndarray, temperature: float, mcse: np.ndarray) -> np.ndarray:
    """Return draws (chains, draws, d) shrunk from the tempered posterior to that of all rows.

    Each parameter's distance from its mean is multiplied by √(T + (MCSE/sd)²): the variance of a posterior
    that is normal is divided by T when the likelihood is, and the error of the chain's mean, MCSE (d,), does
    not shrink with T. The prior's weight is neglected. Unchanged if T = 1 or a parameter never moved.
    """
    if temperature == 1.0:
        return draws
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.nan_to_num(mcse / sd, nan=0.0, posinf=0.0)
    return mean + np.sqrt(temperature + error**2) * (draws - mean)
