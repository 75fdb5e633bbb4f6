"""The table of budgets against accountants and ledger."""

import csv
import math
from pathlib import Path

import pytest

from dpmc.cli.given import write_table
from dpmc.privacy import accountants
from dpmc.privacy.events import SubsampledGaussianRelease, repeat
from dpmc.reports.tables import budgets
from dpmc.studies import MissingSettings, load_study

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
delta: 1e-6
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
def study(tmp_path: Path):
    path = tmp_path / "studies" / "made-up.yaml"
    path.parent.mkdir()
    path.write_text(STUDY)
    return load_study(path)


def table(study, path: Path) -> dict[tuple[str, str], dict[str, str]]:
    write_table(path, budgets.COLUMNS, budgets.rows(study, HYPERPARAMETERS))
    with path.open(newline="") as file:
        return {(row["method"], row["epsilon"]): row for row in csv.DictReader(file)}


def test_each_cell_has_a_row_with_every_suitable_accountant(study, tmp_path: Path) -> None:
    found = table(study, tmp_path / "budgets.csv")
    assert len(found) == 7
    each = repeat([SubsampledGaussianRelease("x", math.sqrt(0.7), 1000, N)], study.chains)
    row = found["minibatch-penalty", "4"]
    assert {name for name in accountants.ACCOUNTANTS if row[name]} == {"rdp", "replace-pld", "wor-pld"}
    for name in ("rdp", "replace-pld", "wor-pld"):
        assert int(row[name]) == accountants.get(name).iterations((), each, 4.0, DELTA)
    assert (row["accountant"], row["iterations"]) == ("replace-pld", row["replace-pld"])
    events = repeat(each, int(row["iterations"]))
    assert float(row["epsilon_spent"]) == accountants.get("replace-pld").epsilon(events, DELTA, 4.0) <= 4.0
    assert float(row["epsilon_spent_tight"]) == accountants.get("wor-pld").epsilon(events, DELTA)
    assert float(row["epsilon_spent_tight"]) < float(row["epsilon_spent"])


def test_caps_and_cells_without_a_budget(study, tmp_path: Path) -> None:
    found = table(study, tmp_path / "budgets.csv")
    assert found["capped", "4"]["iterations"] == "20"
    assert found["capped", "4"]["budget_iterations"] == found["dp-penalty", "4"]["iterations"]
    row = found["rwmh", "inf"]
    assert (row["iterations"], row["budget_iterations"], row["epsilon_spent"]) == ("50", "inf", "inf")


def test_missing_hyperparameters_name_the_cell(study, tmp_path: Path) -> None:
    with pytest.raises(MissingSettings, match=r"^budget of easy dp-penalty epsilon 1: .*made-up"):
        write_table(tmp_path / "budgets.csv", budgets.COLUMNS, budgets.rows(study))
    assert not (tmp_path / "budgets.csv").exists()
