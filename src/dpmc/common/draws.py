"""Draws of chains: diagnostics of each parameter, and the posterior of all rows behind a tempered one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import xarray

MINIMUM_DRAWS = 4  # of a split R-hat, which needs a variance in each half of a chain


class Diagnostics(NamedTuple):
    """Diagnostics of each parameter, (d,), by arviz-stats."""

    rhat: np.ndarray
    ess: np.ndarray  # bulk
    mcse: np.ndarray  # of the mean


def second_half(tree: xarray.DataTree) -> xarray.DataArray:
    """Return θ (chain, draw, parameter) of the iterations (k + 1) // 2 ... k of a result of `dpmc.sample`."""
    theta = tree["posterior"].dataset["theta"]
    return theta[:, theta["draw"].values >= (int(tree.attrs["iterations"]) + 1) // 2]


def diagnostics(draws: np.ndarray) -> Diagnostics:
    """Return R-hat, bulk ESS and MCSE of the mean of draws (chains, draws, parameters).

    R-hat of one chain is that of its two halves. Of a parameter that never moved R-hat is not finite, the ESS
    is the number of draws and the MCSE 0. Raises ValueError for too few draws or draws that are not finite.
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
    return Diagnostics(*(np.asarray(found, dtype=float) for found in (rhat, ess, mcse)))


def is_of_tempered_sum(attributes: Mapping[Any, Any]) -> bool:
    """Return whether a run's draws are of a tempered posterior given a noisy sum, by its attributes.

    The noise of the sum is as large at any temperature, so that √T does not take tempering out.
    """
    return float(attributes.get("temperature", 1.0)) < 1.0 and '"name": "sum"' in str(attributes["ledger"])


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
