"""A small tree of a release, with an entry of a ledger, for tests of what a release may contain."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from dpmc.privacy.data_ledger import DataLedger

CHAINS, THIN, ITERATIONS, DIMENSION = 2, 2, 7, 3


def entry(ledger: Path) -> dict[str, Any]:
    """Take an entry from a ledger, which is created if it is missing."""
    made = DataLedger.open(ledger) if ledger.exists() else DataLedger.create(ledger, 3.0, 1e-5)
    return made.take(0.5, 1e-6, {"method": "dp-penalty", "model": "Own"})


def release_tree(taken: dict[str, Any]) -> xarray.DataTree:
    """Return a tree of made-up draws with every part that it may have."""
    chance, k = np.random.default_rng(1), ITERATIONS // THIN
    root = {"mode": "release", "model": "Own", "method": "dp-penalty", "accountant": "tight"}
    root |= {"dpmc_version": "0.1.0", "opendp_version": "0.16.0", "schema": 2, "epsilon": "0.5"}
    root |= {"delta": 1e-6, "temperature": 0.5, "n": 100, "dimension": DIMENSION, "chains": CHAINS}
    root |= {"thin": THIN, "iterations": ITERATIONS, "forfeited": 1}
    root |= {"hyperparameters": '{"tau": 1}', "data_ledger": json.dumps(taken)}
    root |= {"ledger": json.dumps({"mode": "release", "prices": [], "budget": {}})}
    library = {"inference_library": "dpmc", "inference_library_version": "0.1.0"}
    chain, draw = np.arange(CHAINS), THIN * np.arange(1, k + 1)
    parameter = np.array(["a", "b", "sd"])
    along = ("chain", "draw")
    totals = {"accepted_total": np.array([3, 4]), "diverging_total": np.array([0, 0])}
    return xarray.DataTree.from_dict(
        {
            "/": xarray.Dataset(attrs=root),
            "/posterior": xarray.Dataset(
                {"theta": ((*along, "parameter"), chance.normal(size=(CHAINS, k, DIMENSION)))},
                {"chain": chain, "draw": draw, "parameter": parameter},
                library,
            ),
            "/sample_stats": xarray.Dataset(
                {
                    "acceptance_rate": (along, chance.integers(THIN + 1, size=(CHAINS, k)) / THIN),
                    "diverging": (along, np.zeros((CHAINS, k), bool)),
                },
                {"chain": chain, "draw": draw},
                {**library, **totals},
            ),
            "/constant_data": xarray.Dataset(
                {"theta_0": (("chain", "parameter"), np.zeros((CHAINS, DIMENSION)))},
                {"chain": chain, "parameter": parameter},
                library,
            ),
        }
    )
