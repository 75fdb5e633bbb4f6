"""A table with its codebook, and fits of it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmc

BOOK = {
    "name": "people",
    "fields": [
        {
            "name": "visits",
            "type": "integer",
            "constraints": {"minimum": 0, "maximum": 50},
            "shape": "skewed",
        },
        {"name": "age", "type": "number", "constraints": {"minimum": 18, "maximum": 100}},
        {"name": "female", "type": "boolean", "trueValues": ["f"], "falseValues": ["m"], "share": 0.5},
        {"name": "plan", "type": "string", "constraints": {"enum": ["none", "public", "private"]}},
        {"name": "days", "type": "integer", "centre": 300, "scale": 50},
        {"name": "income", "type": "number", "centre": 40_000, "scale": 20_000},
    ],
}
#: Of log E visits: 1, age, female, public, private, female and public, female and private.
BETA = np.array([-1.5, 0.02, 0.3, 0.1, 0.2, 0.0, 0.4])
FORMULA = "visits ~ age + female * plan"


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    """A simulated table of 20,000 people."""
    generator, n = np.random.default_rng(3), 20_000
    age, female = generator.uniform(18, 90, n), generator.integers(0, 2, n)
    plan = generator.integers(0, 3, n)
    z = [np.ones(n), age, female, plan == 1, plan == 2, (plan == 1) * female, (plan == 2) * female]
    visits = generator.poisson(np.exp(np.column_stack(z) @ BETA))
    income = 1_000.0 * age - 5_000.0 * female + generator.normal(0.0, 8_000.0, n)
    names = np.array(["none", "public", "private"])
    days = np.full(n, 300)
    columns = {"visits": visits, "age": age, "female": np.where(female, "f", "m"), "plan": names[plan]}
    return pd.DataFrame({**columns, "days": days, "income": income})


@pytest.fixture(scope="session")
def counted(people: pd.DataFrame) -> dpmc.Fit:
    """A fit of the lab."""
    return dpmc.fit(FORMULA, people, BOOK, family="poisson", epsilon=2)


@pytest.fixture(scope="session")
def released(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a release, in a folder with its ledger and its table."""
    folder = tmp_path_factory.mktemp("released")
    people.to_csv(folder / "people.csv", index=False)
    from dpmc.privacy.data_ledger import DataLedger

    DataLedger.create(folder / "people.ledger", 10.0, 1e-4)
    dpmc.fit(
        FORMULA,
        folder / "people.csv",
        BOOK,
        family="poisson",
        epsilon=2,
        ledger=folder / "people.ledger",
        output=folder / "visits.nc",
    )
    return folder / "visits.nc"
