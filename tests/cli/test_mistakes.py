"""Mistakes of a user: one line that names file, key, value and rule, and no output."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import yaml

from dpmc import studies
from dpmc.cli.main import main
from dpmc.data import datasets

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the project's config, as the current one."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fails(capsys, *arguments: str) -> str:
    """Run a command that must fail with one line on standard error; return that line."""
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("dpmc: error: ")
    assert error.count("\n") == 1, error
    assert "Traceback" not in error
    return error


def edit(folder: Path, change) -> None:
    path = folder / "config" / "studies" / "thesis.yaml"
    study = yaml.safe_load(path.read_text())
    change(study)
    path.write_text(yaml.safe_dump(study))


BUDGET = ("budget", "--model", "circle", "--method", "dp-hmc", "--epsilon", "1")
SAMPLE = ("sample", "--model", "circle", "--method", "dp-hmc", "--output", "chain.nc", "--seed", "0")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.update(seeds=0), ["seeds", "0", "at least 1"]),
        (lambda s: s.update(delta=1.5), ["delta", "1.5", "(0, 1)"]),
        (lambda s: s.update(delta=0), ["delta", "0"]),
        (lambda s: s.update(epsilon=4), ["epsilon: unknown key; known: title"]),
        (lambda s: s["models"]["circle"].update(epsilons=[-1]), ["circle", "epsilons", "-1"]),
        (lambda s: s["models"]["circle"].pop("epsilons"), ["circle", "'epsilons' is missing"]),
        (lambda s: s["models"].update(cirle={"epsilons": [1], "tuning_epsilon": 1}), ["'cirle'", "known"]),
        (lambda s: s["methods"].update({"dp-hcm": {}}), ["dp-hcm", "unknown", "dp-hmc"]),
        (lambda s: s["methods"]["dp-hmc"].update(accountant="rpd"), ["accountant", "'rpd'", "tight"]),
        (lambda s: s["methods"]["dp-hmc"].update(models=["moon"]), ["models", "'moon'"]),
        (lambda s: s.update(figures=["mmd"]), ["figures", "'mmd'"]),
    ],
)
def test_study_file(folder, capsys, change, words):
    edit(folder, change)
    error = fails(capsys, *BUDGET)
    for word in ["thesis.yaml", *words]:
        assert word in error


def test_invalid_yaml_is_refused(folder, capsys):
    (folder / "config/studies/thesis.yaml").write_text("title: [\n")
    assert "not valid YAML" in fails(capsys, *BUDGET)
    (folder / "config/studies/thesis.yaml").write_text("title: a\ntitle: b\n")
    assert "'title' stands twice" in fails(capsys, *BUDGET)


def test_numbers_with_exponents(tmp_path):
    (tmp_path / "numbers.yaml").write_text("a: 7e-05\nb: -1E3\nc: 2.e+1\nd: e5\ne: 12\nf: 1e\n")
    read = studies.read_yaml(tmp_path / "numbers.yaml")
    assert read == {"a": 7e-5, "b": -1000.0, "c": 20.0, "d": "e5", "e": 12, "f": "1e"}


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "four"])
def test_epsilon(folder, capsys, epsilon):
    assert epsilon in fails(capsys, *SAMPLE, f"--epsilon={epsilon}")
    assert not (folder / "chain.nc").exists()


@pytest.mark.parametrize("delta", ["0", "1", "-0.1", "nan"])
def test_delta(folder, capsys, delta):
    assert "delta" in fails(capsys, *BUDGET, f"--delta={delta}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "moon"), ["'moon'", "circle"]),
        (("--method", "dp-hcm"), ["'dp-hcm'", "dp-hmc"]),
        (
            ("--study", "theses"),
            ["--study: 'theses' is unknown; known: ", "smoke, thesis, ", "a path that ends in .yaml"],
        ),
        (("--seed", "20"), ["seed", "20", "start points"]),
        (("--seed", "-1"), ["seed", "-1"]),
        (("--iterations", "0"), ["iterations", "0", "at least 1"]),
        (("--iterations", "100000"), ["iterations", "100000", "exceeds the budget"]),
        (("--model", "nowhere:Model"), ["nowhere:Model", "cannot be loaded"]),
    ],
)
def test_sample_arguments(folder, capsys, arguments, words):
    error = fails(capsys, *SAMPLE, "--epsilon", "1", *_data(folder, arguments), *arguments)
    for word in words:
        assert word in error
    assert not (folder / "chain.nc").exists()


def _data(folder: Path, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """A data file with 20 start points, for tests of wrong seeds."""
    if "20" not in arguments:
        return ()
    datasets.build("circle", "circle", "published").write(folder / "circle.nc")
    return ("--data", "circle.nc")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"tau": -1, "clip": 1, "proposal_sd": 1}, ["tau", "-1", "greater than 0"]),
        ({"tau": 1, "clip": 1}, ["proposal_sd", "missing"]),
        ({"tau": 1, "clip": 1, "proposal_sd": 1, "mass": 1}, ["mass", "unknown hyperparameter"]),
        ({"tau": 1, "clip": 1, "proposal_sd": [1, 1, 1]}, ["proposal_sd", "3 values", "2 parameters"]),
        ({"tau": "big", "clip": 1, "proposal_sd": 1}, ["tau", "'big'", "not a number"]),
        ({"tau": float("nan"), "clip": 1, "proposal_sd": 1}, ["tau", "nan"]),
    ],
)
def test_hyperparameters(folder, capsys, values, words):
    (folder / "own.yaml").write_text(yaml.safe_dump(values))
    arguments = ("budget", "--model", "circle", "--method", "dp-penalty", "--epsilon", "1")
    error = fails(capsys, *arguments, "--hyperparameters", "own.yaml")
    for word in ["own.yaml", *words]:
        assert word in error


@pytest.fixture
def data(folder):
    """A small data file of the circle."""
    path = folder / "circle.nc"
    datasets.build("circle", "circle", "fresh-0", n=50).write(path)
    return path


def test_rows_that_are_not_finite(folder, data, capsys):
    with netCDF4.Dataset(data, "a") as file:
        file["rows"][7, 0] = np.nan
    error = fails(capsys, *SAMPLE, "--epsilon", "1", "--data", "circle.nc")
    assert "circle.nc" in error and "row 7" in error and "NaN" in error


def test_rows_of_the_wrong_shape(folder, data, capsys):
    (folder / "rows.csv").write_text("1.0,2.0\n3.0,4.0\n")
    error = fails(capsys, *SAMPLE, "--epsilon", "1", "--data", "rows.csv")
    assert "2 columns" in error
    (folder / "rows.csv").write_text("1.0\n3.0,4.0\n")
    assert "line 2" in fails(capsys, *SAMPLE, "--epsilon", "1", "--data", "rows.csv")


def test_data_of_another_model(folder, data, capsys):
    arguments = ("sample", "--model", "flat-banana-2d", "--method", "dp-hmc", "--epsilon", "1")
    error = fails(capsys, *arguments, "--data", "circle.nc", "--output", "seed-0.nc")
    assert "holds data for circle" in error


def test_files_cut_off(folder, data, capsys):
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    assert "cut off" in fails(capsys, *SAMPLE, "--epsilon", "1", "--data", "circle.nc")
    data.write_bytes(whole)
    assert main((*SAMPLE, "--epsilon", "inf", "--iterations", "5", "--data", "circle.nc", "--quiet")) == 0
    chain = folder / "chain.nc"
    chain.write_bytes(chain.read_bytes()[:5000])
    assert "cut off" in fails(
        capsys, "evaluate", "--chains", "chain.nc", "--data", "circle.nc", "--output", "metrics.csv"
    )
    assert not (folder / "metrics.csv").exists()


def test_no_budget_needs_iterations(folder, data, capsys):
    assert "iterations" in fails(capsys, *SAMPLE, "--epsilon", "inf", "--data", "circle.nc")


def test_options_that_do_not_exist():
    done = subprocess.run(
        [sys.executable, "-m", "dpmc", "sample", "--modle", "circle"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "--model" in done.stderr


def test_a_device_is_not_replaced(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")  # as /dev/null, which would be gone for everybody
    data = ["data", "--study", str(ROOT / "config/studies/smoke.yaml"), "--model", "circle"]
    assert "pipe: is not a regular file" in fails(capsys, *data, "--output", str(tmp_path / "pipe"))
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
