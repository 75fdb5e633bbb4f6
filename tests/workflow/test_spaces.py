"""Folders with spaces in their names: of the environment, of the clone and of a project."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_copy import ROOT, SMALL, copy_pipeline

#: A study for which every script of the workflow is called.
ALL_SCRIPTS: dict[str, Any] = {
    **SMALL,
    "tuning": {"seeds": 2, "trials": 12, "methods": ["dp-penalty"]},
    "models": {
        "flat-banana-2d": {"epsilons": [0.5], "tuning_epsilon": 0.5},
        "mine": {
            "model": "flat-banana-2d",
            "settings_of": "flat-banana-2d",
            "data": "rows.csv",
            "epsilons": [1],
            "tuning_epsilon": 1,
        },
    },
    "methods": {
        "dp-penalty": {"accountant": "thesis"},
        "dp-penalty-tuned": {"algorithm": "dp-penalty", "hyperparameters": "tuned", "accountant": "tight"},
        "rwmh": {"epsilons": ["inf"], "iterations": 10, "options": {"clip": 1}},
    },
}
PENALTY = {"dp-penalty": {"flat-banana-2d": {"tau": 1.0, "clip": 3.0, "proposal_sd": 0.1}}}
SETTINGS = {"thesis": {**PENALTY, "rwmh": {"flat-banana-2d": {"proposal_sd": 0.1}}}, "thesis.tuned": PENALTY}
TARGETS = (
    *("thesis", "results/thesis/tuned.yaml", "figures/thesis/search/lessons.png"),
    "data/downloads/digits.found",
)


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The Python of an environment in a folder with a space."""
    (tmp_path / "my env").symlink_to(sys.prefix)
    return tmp_path / "my env/bin/python"


def run(python: Path, folder: Path, *words: str, sources: Path = ROOT / "src") -> str:
    """Run Python in a folder, with dpmc's `sources`; return what it prints."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), *words],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(sources)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def test_every_path_of_a_command_is_one_word(tmp_path, python):
    folder = copy_pipeline(tmp_path / "my clone", {"thesis": ALL_SCRIPTS}, SETTINGS)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "config/figures", folder / "config/figures")
    for module in (ROOT / "config/studies").glob("*.py"):
        shutil.copy(module, folder / "config/studies")
    np.savetxt(folder / "config/studies/rows.csv", np.ones((20, 1)), header="x", comments="")
    # From a folder beside the clone: the paths of scripts and published tables lead there.
    (tmp_path / "elsewhere").mkdir()
    asked = ("--snakefile", str(folder / "Snakefile"), "--configfile", str(folder / "config/config.yaml"))
    places = f"studies={folder / 'config/studies'}"
    words = ("-n", "-p", "--cores=1", *asked, "--config", places, "--", *TARGETS)
    planned = run(python, tmp_path / "elsewhere", "-m", "snakemake", *words, sources=folder / "src")
    commands = [shlex.split(command) for command in re.findall(r"Shell command: (.*)", planned)]
    named = {Path(word).name for command in commands for word in command if word.endswith(".py")}
    assert named == {script.name for script in (ROOT / "workflow/scripts").glob("*.py")}
    halves = ("../my", "clone/")
    assert not [
        word for command in commands for word in command if word.startswith(halves) and " " not in word
    ]


@pytest.mark.parametrize("kind", ["clone", "project"])
def test_a_run_starts(tmp_path, python, kind):
    if kind == "clone":
        folder, data = (
            copy_pipeline(tmp_path / "my clone", {"small": SMALL}),
            "data/small/circle/published.nc",
        )
    else:
        folder, data = tmp_path / "my project", "data/regression/regression/measurements.nc"
        run(python, tmp_path, "-m", "dpmc", "init", str(folder))
    run(python, folder, "-m", "snakemake", "--cores=1", data)
    assert (folder / data).exists()
