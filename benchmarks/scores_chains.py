"""Chains of `scores.py`: hyperparameters by `dpmc.tune` on public rows of a cell, then one chain a data set.

DP-SGLD samples the posterior of all rows. Chains with an acceptance test have the likelihood tempered to a
tenth of the rows: at ε = 1 without it they do not arrive (on public rows of logistic regression 5 to 7
standard errors off).
"""

from copy import copy
from typing import Any

import numpy as np
from scores_cells import Cell, DataSet, weights

import dpmc
from dpmc.models.families import Normal
from dpmc.models.regression import Regression

CHAINS = "dp-sgld", "dp-penalty", "dp-hmc"  #: DP-MALA is DP-HMC of one step, among the steps that are tried
TEMPERED = 10.0  #: n over the rows that a tempered likelihood counts as
TUNING = 1_000_000  #: number of the public data set of a cell
TRIALS, SEEDS = 12, 2  #: of a search


def told(cell: Cell, model: Regression) -> Regression:
    """Return the model as a chain is told."""
    own = copy(model)
    if cell.case != "dp-sgld":
        own.tempering = cell.n / TEMPERED
    return own


def tuned(cell: Cell, model: Regression, data: DataSet) -> dict[str, Any]:
    """Return the hyperparameters that a search finds on public rows."""
    given = cell.case == "dp-sgld"
    return dpmc.tune(
        told(cell, model),
        data.rows,
        cell.case,
        epsilon=cell.epsilon,
        hyperparameters=first_step(cell, model, data) if given else None,
        fixed={"batch_size": cell.n} if given else None,
        trials=TRIALS,
        seeds=SEEDS,
        data_are_public=True,
        progress=False,
    )


def first_step(cell: Cell, model: Regression, data: DataSet) -> dict[str, Any]:
    """Return where the search of DP-SGLD begins: one gradient in 50 is clipped, a step forgets a tenth."""
    z, family = model.design(data.rows), model.family
    eta = z @ data.fit
    norms = np.abs(family.score(eta, model.response(data.rows))) * np.sqrt((z**2).sum(axis=1))
    information = 1.0 if isinstance(family, Normal) else float(weights(family, eta).mean())
    return {
        "batch_size": cell.n,
        "clip": float(np.quantile(norms, 0.98)),
        "step_size": 0.2 / information,
    }


def of_chain(
    cell: Cell, model: Regression, hyperparameters: dict[str, Any], data: DataSet, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and sds (d,) of the second half of a chain, which starts around the prior mean."""
    tree = dpmc.sample(
        told(cell, model),
        data.rows,
        cell.case,
        epsilon=cell.epsilon,
        hyperparameters=hyperparameters,
        seed=seed,
        progress=False,
    )
    theta = tree["posterior"]["theta"].to_numpy()[0]
    late = theta[len(theta) // 2 :]
    return late.mean(axis=0), late.std(axis=0)
