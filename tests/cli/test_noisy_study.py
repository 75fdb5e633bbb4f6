"""A study with noisy statistics: its chains, budgets and metrics."""

import csv
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dpmc.algorithms.answers import BEYOND_ROUNDING
from dpmc.algorithms.dp_penalty import exact_multiplier
from dpmc.cli.main import main
from dpmc.data.chain_files import read_chain

STUDY = """
title: one noisy sum
delta: 1e-4
seeds: 1
chains: 2
tuning: {mode: none}
models:
  line: {model: "line_of_a_study:model", n: 200, data: fresh-1, epsilons: [1, 4]}
methods:
  noisy-statistics: {iterations: 30}
  twice: {algorithm: noisy-statistics, iterations: 30, options: {noise_multiplier: 9.0}}
figures: []
"""


MODEL = """
import numpy as np
from dpmc.models.gaussian import Gaussian

class Plane(Gaussian):
    parameters = columns = ("a", "b")

model = Plane(np.eye(2), 4.0, 4.0)
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Return options that name a study beside its model and hyperparameters."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    Path("line_of_a_study.py").write_text(MODEL)
    Path("study.yaml").write_text(STUDY)
    Path("hyperparameters").mkdir()
    values = {"line": {"clip": 6.0}}
    Path("hyperparameters/study.yaml").write_text(json.dumps({"noisy-statistics": values, "twice": values}))
    yield ("--study", "study.yaml", "--model", "line")
    sys.modules.pop("line_of_a_study", None)


def test_each_epsilon_has_its_own_noise_and_chains_have_metrics(study: tuple[str, ...]) -> None:
    output = "noisy-statistics/eps-{epsilon}/seed-{seed}.nc"
    assert main(("sample", *study, "--epsilon", "4", "1", "--seed", "0", "--output", output,
                 "--method", "noisy-statistics")) == 0  # fmt: skip
    for epsilon in (1, 4):
        chain = read_chain(Path(output.format(epsilon=epsilon, seed=0)))
        ledger = json.loads(chain.attrs["ledger"])
        (event,) = ledger["performed"]
        assert event["noise_multiplier"] == exact_multiplier(epsilon, 1e-4) * BEYOND_ROUNDING
        assert ledger["epsilon_spent"] == pytest.approx(epsilon)
        assert json.loads(chain.attrs["calibrated"])["noise_multiplier"] == event["noise_multiplier"]
    assert main(("data", *study, "--output", "data.nc")) == 0
    files = [output.format(epsilon=epsilon, seed=0) for epsilon in (1, 4)]
    assert main(("evaluate", *study, "--data", "data.nc", "--chains", *files, "--output", "m.csv")) == 0
    with open("m.csv", newline="") as file:
        metrics = {row["metric"] for row in csv.DictReader(file) if row["value"]}
    assert "mmd" in metrics and "acceptance_rate" not in metrics, metrics


def test_budgets_of_one_query_allow_any_number_of_iterations(
    study: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    budget = ("budget", *study, "--method")
    assert main((*budget, "noisy-statistics", "--epsilon", "1", "--json")) == 0
    noise = exact_multiplier(1.0, 1e-4) * BEYOND_ROUNDING
    assert json.loads(capsys.readouterr().out) == {"noise_multiplier": noise, "tight": "inf"}
    assert main((*budget, "twice", "--epsilon", "1", "--json")) == 0
    assert json.loads(capsys.readouterr().out) == {"noise_multiplier": 9.0, "tight": "inf"}
    assert main((*budget, "twice", "--epsilon", "0.1", "--json")) == 0
    assert json.loads(capsys.readouterr().out) == {"noise_multiplier": 9.0, "tight": 0}
    assert main((*budget, "twice", "--iterations", "7", "--json")) == 0
    assert 0.0 < json.loads(capsys.readouterr().out)["tight"] < 1.0
    assert main(("budgets", "--study", "study.yaml", "--output", "b.csv")) == 0
    with open("b.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["chosen"]]
    assert [(row["iterations"], row["allowed"]) for row in rows] == 4 * [("30", "inf")]
    spent = [float(row["epsilon_spent"]) for row in rows]
    assert spent[:2] == pytest.approx([1.0, 4.0]) and 0.0 < spent[2] == spent[3] < 1.0
    # Without iterations a method has as many draws as it says itself.
    Path("study.yaml").write_text(STUDY.replace("{iterations: 30}", "{}").replace("iterations: 30, ", ""))
    assert main(("budgets", "--study", "study.yaml", "--output", "b.csv", "--force")) == 0
    with open("b.csv", newline="") as file:
        assert {row["iterations"] for row in csv.DictReader(file)} == {"1000"}


def test_an_own_model_runs_with_an_algorithm_that_the_study_lacks(
    study: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings come from the command line; the draws are those of Python."""
    import dpmc

    monkeypatch.syspath_prepend(".")
    model = importlib.import_module("line_of_a_study").model
    rows = model.simulate(np.random.default_rng(1), np.zeros(2), 300)
    np.savetxt("rows.csv", rows, delimiter=",")
    Path("clip.yaml").write_text("clip: 6")
    cell = ("--model", "line_of_a_study:model", "--method", "noisy-statistics", "--epsilon", "2")
    run = ("sample", *cell, "--data", "rows.csv", "--seed", "0", "--output", "own.nc")
    assert main((*run, "--hyperparameters", "clip.yaml", "--iterations", "25")) == 0
    tree = dpmc.sample(
        model, rows, "noisy-statistics", epsilon=2, hyperparameters={"clip": 6}, iterations=25, progress=False
    )
    np.testing.assert_array_equal(read_chain(Path("own.nc")).draws, tree.posterior.theta.values)
    budget = ("budget", *cell, "--n", "300", "--hyperparameters", "clip.yaml", "--json")
    assert main(budget) == 0 and '"tight": "inf"' in capsys.readouterr().out
    for wrong, words in (
        ((*run, "--force"), "give them by --hyperparameters, or let dpmc.plan find some"),
        (
            ("sample", *study, "--method", "dp-mala", *run[5:]),
            "'dp-mala' is unknown; known: noisy-statistics",
        ),
        ((*run[:3], "--method", "magic", *run[5:]), "'magic' is unknown"),
    ):
        assert main(wrong) == 2
        assert words in capsys.readouterr().err
