"""The table of budgets against accountants and ledger."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc.cli.given import write_table
from dpmc.privacy import accountants
from dpmc.privacy.events import SubsampledGaussianQuery, repeat
from dpmc.reports.tables import budgets
from dpmc.studies import MissingSettings, Study, study_of

N, DELTA = 100_000, 1e-6
SD = {"proposal_sd": [0.01, 0.01]}
HYPERPARAMETERS = {
    ("easy", "dp-penalty"): {"tau": 0.1, "clip": 1.0, **SD},
    ("easy", "capped"): {"tau": 0.1, "clip": 1.0, **SD},
    ("easy", "minibatch-penalty"): {"tau": 0.7, "clip": 1.0, "batch_size": 1000, **SD},
    ("easy", "rwmh"): {"clip": 1.0, **SD},
}
STUDY = """
title: made up
epsilon_kind: total
delta: 1.0e-6
seeds: 2
chains: 2
tuning: {mode: none}
models:
  easy: {model: flat-banana-2d, n: 100000, epsilons: [1, 4], tuning_epsilon: 4}
methods:
  dp-penalty: {models: [easy]}
  capped: {algorithm: dp-penalty, most_iterations: 20, models: [easy]}
  minibatch-penalty: {accountant: thesis, models: [easy]}
  rwmh: {models: [easy], epsilons: [inf], iterations: 50}
figures: []
"""


@pytest.fixture
def study() -> Study:
    return study_of(yaml.safe_load(STUDY), Path("none/made-up.yaml"))


def table(study) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """Return the rows by accountant of each method and ε."""
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in budgets.rows(study, HYPERPARAMETERS):
        found.setdefault((row["method"], row["epsilon"]), {})[row["accountant"]] = row
    return found


def test_each_cell_has_a_row_of_every_suitable_accountant(study) -> None:
    found = table(study)
    assert len(found) == 7
    each = repeat([SubsampledGaussianQuery("x", math.sqrt(0.7), 1000, N)], study.chains)
    cell = found["minibatch-penalty", "4"]
    assert {*cell} == {name for name, one in accountants.ACCOUNTANTS.items() if one.is_meant_for(each)}
    assert [name for name, row in cell.items() if row["chosen"]] == ["replace-pld"]
    assert {row["iterations"] for row in cell.values()} == {cell["replace-pld"]["allowed"]}
    events = repeat(each, cell["replace-pld"]["iterations"])
    for name, row in cell.items():
        one, near = accountants.get(name), 4.0 if row["chosen"] else None
        assert row["allowed"] == one.iterations((), each, 4.0, DELTA)
        assert row["epsilon_spent"] == one.epsilon(events, DELTA, near)
    assert cell["wor-pld"]["epsilon_spent"] < cell["replace-pld"]["epsilon_spent"] <= 4.0


def test_caps_and_cells_without_a_budget(study) -> None:
    found = table(study)
    capped = found["capped", "4"]["tight"]
    assert capped["iterations"] == 20
    assert capped["allowed"] == found["dp-penalty", "4"]["tight"]["iterations"]
    (row,) = found["rwmh", "inf"].values()
    assert (row["iterations"], row["allowed"], row["epsilon_spent"]) == (50, "inf", math.inf)
    assert row["chosen"] == "yes"


def test_missing_hyperparameters_name_the_cell(study, tmp_path: Path) -> None:
    with pytest.raises(MissingSettings, match=r"^budget of easy dp-penalty epsilon 1: .*made-up"):
        write_table(tmp_path / "budgets.csv", budgets.BUDGET_COLUMNS, budgets.rows(study))
    assert not (tmp_path / "budgets.csv").exists()
