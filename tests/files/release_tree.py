"""A small tree of a release, with an entry of a ledger, for tests of what a release may contain."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from dpmc.privacy import accountants
from dpmc.privacy.data_ledger import DataLedger
from dpmc.privacy.events import GaussianQuery, Query
from dpmc.privacy.lattice import price_of
from dpmc.privacy.ledger import Budget, ReleaseLedger
from dpmc.releases.facts import SPARE

CHAINS, THIN, ITERATIONS, DIMENSION = 2, 2, 7, 3


HYPERPARAMETERS = {"clip": 1.0, "proposal_sd": 0.1, "tau": 10.0}
START = np.zeros((CHAINS, DIMENSION))


def entry(ledger: Path, **about: Any) -> dict[str, Any]:
    """Take an entry from a ledger, which is created if it is missing; keywords replace facts."""
    made = DataLedger.open(ledger) if ledger.exists() else DataLedger.create(ledger, 3.0, 1e-5)
    facts = {"method": "dp-penalty", "model_id": "people:Own", "model_values": "5e1f" * 16}
    facts |= {"hyperparameters": HYPERPARAMETERS}
    facts |= {
        "accountant": "tight",
        "n": 100,
        "columns": 2,
        "temperature": 0.5,
        "chains": CHAINS,
        "run": "4a" * 16,
    }
    facts |= {"thin": THIN, "iterations": None, "start": hashlib.sha256(START.tobytes()).hexdigest()}
    return made.take(0.5, 1e-6, {**facts, **about})


def run_ledger(multiplier: float = 100.0, spare: int = SPARE) -> ReleaseLedger:
    """Return a ledger of `ITERATIONS` iterations of all chains, and the spare ones, which are forfeited."""

    def events(iterations: int) -> tuple[Query, ...]:
        return (GaussianQuery("log-ratio", multiplier, CHAINS * iterations),)

    price = price_of(events(ITERATIONS + spare), 100, DIMENSION, 0, 0.5, 1e-6)
    ledger = ReleaseLedger(Budget(0.5, math.nextafter(1e-6 - price.delta, 0.0)), accountants.get("tight"))
    ledger.prices = (price.to_json(),)
    ledger.reserve(events(spare) if spare else ())
    ledger.forfeit()
    ledger.reserve(events(ITERATIONS))
    ledger.perform(events(ITERATIONS))
    return ledger


def release_tree(taken: dict[str, Any]) -> xarray.DataTree:
    """Return a tree of made-up draws with every part that it may have."""
    chance, k = np.random.default_rng(1), ITERATIONS // THIN
    root = {"mode": "release", "model": "Own", "method": "dp-penalty", "accountant": "tight"}
    root |= {"dpmc_version": "0.1.0", "opendp_version": "0.16.0", "schema": 2, "epsilon": "0.5"}
    root |= {"delta": 1e-6, "temperature": 0.5, "n": 100, "dimension": DIMENSION, "chains": CHAINS}
    root |= {"thin": THIN, "iterations": ITERATIONS, "forfeited": SPARE, "description": "Own()"}
    root |= {"hyperparameters": json.dumps(HYPERPARAMETERS), "data_ledger": json.dumps(taken, sort_keys=True)}
    root |= {"ledger": json.dumps(run_ledger().to_json(), sort_keys=True)}
    library = {"inference_library": "dpmc", "inference_library_version": "0.1.0"}
    chain, draw = np.arange(CHAINS), THIN * np.arange(1, k + 1)
    parameter = np.array(["a", "b", "sd"])
    along = ("chain", "draw")
    draws = chance.normal(size=(CHAINS, k, DIMENSION))
    accepted = chance.integers(THIN + 1, size=(CHAINS, k))
    for j in range(k):  # a chain stays where no proposal is accepted
        draws[:, j] = np.where(accepted[:, j, None] > 0, draws[:, j], draws[:, j - 1] if j else START)
    totals = {"accepted_total": accepted.sum(axis=1) + 1, "diverging_total": np.array([0, 1])}
    return xarray.DataTree.from_dict(
        {
            "/": xarray.Dataset(attrs=root),
            "/posterior": xarray.Dataset(
                {"theta": ((*along, "parameter"), draws)},
                {"chain": chain, "draw": draw, "parameter": parameter},
                library,
            ),
            "/sample_stats": xarray.Dataset(
                {
                    "acceptance_rate": (along, accepted / THIN),
                    "diverging": (along, np.zeros((CHAINS, k), bool)),
                },
                {"chain": chain, "draw": draw},
                {**library, **totals},
            ),
            "/constant_data": xarray.Dataset(
                {"theta_0": (("chain", "parameter"), START)},
                {"chain": chain, "parameter": parameter},
                library,
            ),
        }
    )
