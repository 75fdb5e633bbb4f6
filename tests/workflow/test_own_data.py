"""An own study outside the clone, with its model, rows and hyperparameters beside it."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import yaml
from scipy.optimize import brentq
from scipy.stats import norm

from dpmc.cli.main import main
from dpmc.common.errors import DpmcError
from dpmc.data.chain_files import read_chain
from dpmc.data.problem import read_problem
from dpmc.studies import find_study, load_study, number_of_rows, study_files
from pipeline_copy import ROOT, SMALL, copy_pipeline, make_figures

MODEL = """import numpy as np
class Normal:
    dimension = 1
    n = 999
    def log_likelihood(self, theta, rows):
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)
"""
SIMULATE = """    def simulate(self, generator, theta, n):
        return generator.normal(theta, 1.0, (n, 1))
"""
STUDY: dict[str, Any] = {
    **{key: SMALL[key] for key in ("title", "delta", "seeds")},
    "tuning": {"mode": "none"},
    "models": {"mine": {"model": "model_of_mine:Normal", "data": "rows/my.csv", "epsilons": [2]}},
    "methods": {"dp-penalty": {"most_iterations": 50}},
    "figures": [],
}
SETTINGS = {"dp-penalty": {"mine": {"tau": 1.0, "clip": 2.0, "proposal_sd": 0.05}}}


def write_rows(path: Path, n: int) -> None:
    path.parent.mkdir(exist_ok=True)
    np.savetxt(path, np.random.default_rng(n).normal(1.0, 1.0, (n, 1)), header="x", comments="")


@pytest.fixture
def own(tmp_path, monkeypatch) -> Path:
    """A folder with a study, its hyperparameters, its model and its rows."""
    folder = tmp_path / "own project"
    (folder / "hyperparameters").mkdir(parents=True)
    (folder / "mystudy.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    (folder / "hyperparameters/mystudy.yaml").write_text(yaml.safe_dump(SETTINGS))
    (folder / "model_of_mine.py").write_text(MODEL)
    write_rows(folder / "rows/my.csv", 400)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield folder
    sys.modules.pop("model_of_mine", None)


def change(folder: Path, **changes: Any) -> Path:
    (folder / "mystudy.yaml").write_text(yaml.safe_dump({**STUDY, **changes}, sort_keys=False))
    return folder / "mystudy.yaml"


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Delta of a mu-GDP mechanism at epsilon."""
    upper, lower = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    return float(norm.cdf(upper) - np.exp(epsilon) * norm.cdf(lower))


def test_commands_find_all_beside_the_study(own, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    study = ("--study", str(own / "mystudy.yaml"), "--model", "mine")
    assert main(("data", *study, "--output", "my.nc")) == 0
    problem = read_problem("my.nc")
    assert (problem.dataset, problem.n, problem.label) == ("my", 400, "mine")
    sample = ("sample", *study, "--method", "dp-penalty", "--epsilon", "2", "--seed", "0")
    assert main((*sample, "--data", "my.nc", "--output", "a.nc")) == 0
    assert main((*sample, "--output", "b.nc")) == 0, "rows read on the spot"
    first, second = (read_chain(name) for name in ("a.nc", "b.nc"))
    assert first.attrs["n"] == 400 and first.attrs["dataset"] == "my"
    assert first.attrs["delta"] == pytest.approx(0.1 / 400)
    np.testing.assert_array_equal(first.draws, second.draws)
    capsys.readouterr()
    assert main(("budget", *study, "--method", "dp-penalty", "--epsilon", "2")) == 0
    assert "n 400" in capsys.readouterr().out


def test_private_rows_are_not_tuned_on(own, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    models = {"mine": {**STUDY["models"]["mine"], "tuning_epsilon": 2}}
    study = ("--study", str(change(own, tuning={"seeds": 1}, models=models)), "--model", "mine")
    assert main(("data", *study, "--output", "my.nc")) == 0
    tune = ("tune", *study, "--method", "dp-penalty", "--output", "t.yaml", "--quiet")
    assert main((*tune, "--data", "my.nc")) == 2
    assert "private rows" in capsys.readouterr().err
    assert main(tune) == 2
    assert "say tuning: {mode: none}" in capsys.readouterr().err
    (own / "model_of_mine.py").write_text(MODEL + SIMULATE)
    sys.modules.pop("model_of_mine")
    assert main(tune) == 0
    assert yaml.safe_load(Path("t.yaml").read_text())["tried"]["data"] == "tuning"
    assert main(("data", *study, "--data", "tuning", "--output", "tuning.nc")) == 0
    assert read_problem("tuning.nc").n == 400, "as many rows as the file"


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (
            {"data": "rows/my.txt"},
            ["data: 'rows/my.txt' must be published", "(.csv, .csv.gz, .parquet, .xlsx)"],
        ),
        ({"n": 100}, ["n: 100 must be left out with a file of rows"]),
        ({"data": "fresh-0", "columns": ["x"]}, ["columns: only with a file of rows"]),
    ],
)
def test_mistakes(own, models, words) -> None:
    with pytest.raises(DpmcError) as caught:
        load_study(change(own, models={"mine": {**STUDY["models"]["mine"], **models}}))
    for word in ["mystudy.yaml: line ", ": models: mine: ", *words]:
        assert word in str(caught.value)


def test_columns_by_name(own, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pandas.DataFrame({"age": [1.0, 2.0, 3.0], "x": [0.5, 0.25, -0.5], "who": ["a", "b", "c"]})
    table.to_csv(own / "table.csv", index=False)
    model = {**STUDY["models"]["mine"], "data": "table.csv", "columns": ["x"]}
    path = change(own, models={"mine": model})
    assert number_of_rows(load_study(path), "mine") == 3
    assert main(("data", "--study", str(path), "--model", "mine", "--output", "mine.nc")) == 0
    problem = read_problem("mine.nc")
    assert problem.rows.tolist() == [[0.5], [0.25], [-0.5]] and problem.dataset == "table"
    with pytest.raises(DpmcError, match="table.csv: .*'?y"):
        number_of_rows(load_study(change(own, models={"mine": {**model, "columns": ["y"]}})), "mine")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("data", "rows/none.csv", "none.csv: No such file"),
        ("model", "model_of_mine:Norma", "'model_of_mine:Norma' cannot be loaded"),
    ],
)
def test_models_that_cannot_be_loaded_are_refused_with_the_line_of_the_study(
    own, capsys, key, value, words
) -> None:
    path = change(own, models={"mine": {**STUDY["models"]["mine"], key: value}})
    number = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if value in text)
    assert main(("data", "--study", str(path), "--model", "mine", "--output", str(own / "my.nc"))) == 2
    error = capsys.readouterr().err
    assert f"{path}: line {number}: models: mine: {key}: " in error and words in error


def test_a_tuning_epsilon_is_needed_where_settings_are_tried(own) -> None:
    assert load_study(own / "mystudy.yaml").model("mine").tuning_epsilon == "inf"
    for tuning in ({}, {"mode": "none", "methods": ["dp-penalty"]}):
        with pytest.raises(DpmcError, match=r"line \d+: models: mine: key 'tuning_epsilon' is missing"):
            load_study(change(own, tuning=tuning))


def test_places_of_studies(own, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = ROOT / "config/studies/smoke.yaml"
    assert find_study("smoke") == shipped, "comes with dpmc"
    (tmp_path / "config/studies").mkdir(parents=True)
    (tmp_path / "config/studies/smoke.yaml").write_text("")
    assert find_study("smoke") == Path("config/studies/smoke.yaml")
    assert find_study("mystudy") == Path("config/studies/mystudy.yaml"), "to be named where there is none"
    monkeypatch.setenv("DPMC_STUDIES", str(own))
    assert find_study("mystudy") == own / "mystudy.yaml"
    assert study_files([str(own / "mystudy.yaml"), str(shipped)]) == {
        "mystudy": own / "mystudy.yaml",
        "smoke": shipped,
    }
    for places, words in (
        ("nowhere", "studies: nowhere: no such file or folder"),
        ([str(shipped.parent), "config/studies"], "studies: smoke: is both "),
    ):
        with pytest.raises(DpmcError, match=words):
            study_files(places)


def test_the_pipeline_runs_it_and_follows_the_rows(own, tmp_path) -> None:
    places = ["config/studies", str(own / "mystudy.yaml")]
    folder = copy_pipeline(tmp_path / "pipeline", {"other": SMALL}, studies=places)
    make_figures(folder, "mystudy")
    chain = folder / "results/mystudy/chains/mine/dp-penalty/eps-2/seed-1.nc"
    assert read_chain(chain).attrs["dataset"] == "my"
    assert (folder / "data/mystudy/mine/my.nc").exists()
    # Gaussian queries: one run is mu-GDP, two are sqrt(2) mu-GDP (Dong et al. 2022).
    ledger = json.loads(read_chain(chain).attrs["ledger"])
    mu = brentq(lambda mu: gaussian_delta(ledger["epsilon_spent"], mu) - 0.1 / 400, 0.01, 10.0)
    said = (folder / "results/mystudy/spending.txt").read_text()
    together = re.search(r"^my.csv: 2 runs of dp-penalty spent epsilon (\S+) together", said, re.M)
    assert gaussian_delta(float(together[1]), np.sqrt(2) * mu) == pytest.approx(0.1 / 400, rel=0.01)
    assert "mystudy,mine,dp-penalty,2,1," in (folder / "results/mystudy/metrics.csv").read_text()
    assert "Nothing to be done" in make_figures(folder, "mystudy")
    write_rows(own / "rows/my.csv", 500)
    planned = make_figures(folder, "--dry-run", "mystudy")
    assert "rule data:" in planned and "sample_mystudy_mine" in planned
