"""Settings of releases that several tests share."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.privacy.data_ledger import DataLedger
from release.of_numbers import Numbers

#: A model with the posterior given a noisy sum of two numbers.
NUMBERS = Numbers()
PENALTY = {"tau": 2.0, "clip": 1.0, "proposal_sd": [0.1, 0.1]}


@pytest.fixture
def ledger(tmp_path: Path) -> DataLedger:
    """Return the ledger of a data set with much left."""
    return DataLedger.create(tmp_path / "people.ledger", 1e6, 0.5, "people")


@pytest.fixture
def make(ledger: DataLedger) -> Any:
    """Return a function that makes a small release; keywords replace its arguments."""

    def call(data: Any = None, model: Any = None, rows: int = 60, **changed: Any) -> Any:
        if model is None and changed.get("algorithm") == "noisy-statistics":
            model = NUMBERS
        model = model or dpmc.LinearRegression("y", ["x"], true_theta=[0.5, 1.0], tempering=20)
        if data is None:
            data = model.simulate(np.random.default_rng(0), np.array([0.5, 1.0]), rows)
        given = {
            "algorithm": "dp-penalty",
            "epsilon": 4,
            "delta": 1e-3,
            "ledger": ledger.path,
            "hyperparameters": PENALTY,
            "iterations": 12,
            "progress": False,
        }
        return dpmc.release(model, data, **{**given, **changed})

    return call
