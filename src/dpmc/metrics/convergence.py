"""Convergence of several chains of one cell: R-hat, effective sample size, Monte Carlo error.

The estimators are arviz-stats' (rank-normalised split R-hat and bulk ESS of Vehtari et al.
2021), through its array interface, which its 0.8 and 1.x series share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MINIMUM_DRAWS = 4  # a split R-hat halves each chain and needs a variance in each half
MINIMUM_CHAINS = 2


class Convergence(NamedTuple):
    """The worst parameter's value of each diagnostic."""

    rhat_max: float
    ess_bulk_min: float
    mcse_mean_max: float


def convergence(draws: Floats) -> Convergence:
    """Return the worst R-hat, bulk ESS and MCSE of the mean over the parameters.

    `draws` is (chains, draws, parameters). MCSE is in units of the parameter.

    Raises
    ------
    ValueError
        For fewer than 2 chains or 4 draws, or when a diagnostic is not finite (chains that
        never moved).
    """
    chains, count, _ = draws.shape
    if chains < MINIMUM_CHAINS:
        raise ValueError(f"{chains} chain, needs at least {MINIMUM_CHAINS}")
    if count < MINIMUM_DRAWS:
        noun = "draw" if count == 1 else "draws"
        raise ValueError(f"{count} kept {noun} per chain, needs at least {MINIMUM_DRAWS}")
    # Imported here: it is slow to import and only the evaluation needs it.
    from arviz_stats.base import array

    statistics: Any = array.array_stats  # untyped

    values = np.ascontiguousarray(np.moveaxis(draws, 2, 0))  # a tenth faster than strided
    with np.errstate(all="ignore"):
        result = Convergence(
            rhat_max=float(np.max(statistics.rhat(values, method="rank"))),
            ess_bulk_min=float(np.min(statistics.ess(values, method="bulk"))),
            mcse_mean_max=float(np.max(statistics.mcse(values, method="mean"))),
        )
    if not np.all(np.isfinite(result)):
        raise ValueError("not defined for these chains (some never moved)")
    return result
