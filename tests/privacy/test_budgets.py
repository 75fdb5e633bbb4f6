"""The table of budgets: what accountants and ledger say, read back with clear errors."""

import csv
import math
from pathlib import Path

import pytest

from dpmc import budgets
from dpmc.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.events import GaussianRelease, SubsampledGaussianRelease, repeat
from dpmc.privacy.ledger import Budget, BudgetExceeded, Ledger
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
    budgets.write(study, path, HYPERPARAMETERS)
    with path.open(newline="") as file:
        return {(row["method"], row["epsilon"]): row for row in csv.DictReader(file)}


def test_a_row_a_cell_by_every_accountant_that_is_meant(study, tmp_path: Path) -> None:
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


def test_what_is_spent_is_what_the_ledger_of_a_run_says(study, tmp_path: Path) -> None:
    row = table(study, tmp_path / "budgets.csv")["dp-penalty", "1"]
    ledger = Ledger(Budget(1.0, DELTA), accountants.get("tight"))
    run = repeat([GaussianRelease("log-ratio", 0.1 * math.sqrt(N), study.chains)], int(row["iterations"]))
    ledger.reserve(run)
    ledger.perform(run)
    assert float(row["epsilon_spent"]) == float(row["epsilon_spent_tight"]) == ledger.epsilon()


def test_caps_and_cells_without_a_budget(study, tmp_path: Path) -> None:
    found = table(study, tmp_path / "budgets.csv")
    assert found["capped", "4"]["iterations"] == "20"
    assert found["capped", "4"]["budget_iterations"] == found["dp-penalty", "4"]["iterations"]
    row = found["rwmh", "inf"]
    assert (row["iterations"], row["budget_iterations"], row["epsilon_spent"]) == ("50", "inf", "inf")
    cell = budgets.allowed(tmp_path / "budgets.csv", "made-up", "easy", "rwmh", "inf")
    assert cell == budgets.Allowed(50, None)


def test_epsilon_per_iteration_says_the_total(tmp_path: Path) -> None:
    path = tmp_path / "studies" / "each.yaml"
    path.parent.mkdir()
    text = STUDY.replace("kind: total", "kind: per-iteration").replace(
        "flat-banana-2d,", "flat-banana-2d, iterations: 30,"
    )
    path.write_text(
        "\n".join(line for line in text.splitlines() if "capped" not in line and "mini" not in line)
    )
    values = {("easy", "dp-penalty"): {"clip": 1.0, **SD}, ("easy", "rwmh"): {"clip": 1.0, **SD}}
    for row in budgets.rows(load_study(path), values):
        assert row["budget_iterations"] == "inf"
        if row["method"] == "dp-penalty":
            each = float(row["epsilon"])
            assert row["iterations"] == 30
            assert each < row["epsilon_spent"] < 60 * each


def test_missing_hyperparameters_name_the_cell(study, tmp_path: Path) -> None:
    with pytest.raises(MissingSettings, match=r"^budget of easy dp-penalty epsilon 1: .*made-up"):
        budgets.write(study, tmp_path / "budgets.csv")
    assert not (tmp_path / "budgets.csv").exists()


def test_a_cell_that_is_not_in_the_table(study, tmp_path: Path) -> None:
    table(study, tmp_path / "budgets.csv")
    with pytest.raises(DpmcError, match=r"budgets.csv: has no row for easy dp-penalty epsilon 3"):
        budgets.allowed(tmp_path / "budgets.csv", "made-up", "easy", "dp-penalty", "3")
    with pytest.raises(DpmcError, match=r"line 2: study: 'made-up' must be 'other'"):
        budgets.allowed(tmp_path / "budgets.csv", "other", "easy", "dp-penalty", "1")
    with pytest.raises(DpmcError, match=r"nowhere.csv: no such file"):
        budgets.read(tmp_path / "nowhere.csv", "made-up")


HEAD = "study,model,method,epsilon,iterations,budget_iterations"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 'study' is missing"),
        ("study,model\n", "column 'method' is missing"),
        (f"{HEAD}\ns,a,b,1,-3,5\n", "line 2: iterations: -3 must be at least 0"),
        (f"{HEAD}\ns,a,b,1,3.5,5\n", "line 2: iterations: '3.5' must be a whole number"),
        (f"{HEAD}\ns,a,b,1,inf,inf\n", "line 2: iterations: 'inf' must be a whole number"),
        (f"{HEAD}\ns,a,b,1,3,-5\n", "line 2: budget_iterations: -5 must be at least 0"),
        (f"{HEAD}\ns,a,b,1,3\n", "line 2: must have as many values"),
        (f"{HEAD}\ns,a,b,1,3,5,7\n", "line 2: must have as many values"),
        (f"{HEAD}\ns,a,b,1,3,5\ns,a,b,1,4,5\n", "line 3: a b 1 stands twice"),
    ],
)
def test_what_is_no_table(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "budgets.csv"
    path.write_text(text)
    with pytest.raises(DpmcError, match=message) as caught:
        budgets.read(path, "s")
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_too_long_a_chain_in_a_table_is_refused_before_its_first_release(study, tmp_path: Path) -> None:
    """A table gives the length only; the ledger asks its accountant for delta itself."""
    path = tmp_path / "budgets.csv"
    right = table(study, path)["minibatch-penalty", "4"]["iterations"]
    more = str(int(right) + 1)
    path.write_text(path.read_text().replace(f",{right},", f",{more},"))
    each = repeat([SubsampledGaussianRelease("x", math.sqrt(0.7), 1000, N)], study.chains)
    ledger = Ledger(Budget(4.0, DELTA), accountants.get("replace-pld"))
    cell = budgets.allowed(path, "made-up", "easy", "minibatch-penalty", "4")
    assert cell.iterations == int(right) + 1 > 100
    with pytest.raises(BudgetExceeded, match="epsilon would be 4.0"):
        ledger.foresee(repeat(each, cell.iterations))
    assert ledger.reserved_events == ()
    ledger.foresee(repeat(each, cell.iterations - 1))
