"""Clusters without a cluster: profiles, resources of rules, refusals."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from pipeline_copy import copy_pipeline

ROOT = Path(__file__).parents[2]
PROFILES = sorted(path.parent.name for path in ROOT.glob("profiles/*/profile.yaml"))

CELL = {
    "title": "one cell",
    "delta": "0.1/n",
    "seeds": 5,
    "settings_of": "thesis",
    "models": {"circle": {"epsilons": [0.3, 0.5], "tuning_epsilon": 0.5, "n": 2_000}},
    "methods": {"dp-penalty": {}, "dp-hmc": {}},
    "figures": ["circle"],
}


def module(name: str, folder: str) -> Any:
    """A module of a folder that is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"{folder}/{name}.py")
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


run_py = module("run", "workflow")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the pipeline with one small study."""
    return copy_pipeline(tmp_path, {"cell": CELL})


def run(folder: Path, *command: str, **settings: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=600,
                          env={**os.environ, **settings}, check=False)  # fmt: skip
    return done.returncode, done.stdout + done.stderr


# Profiles


def test_there_is_a_profile_for_slurm_and_one_for_others():
    assert {"default", "slurm", "generic"} == set(PROFILES)


@pytest.mark.parametrize("name", PROFILES)
def test_every_entry_of_a_profile_is_an_option_of_snakemake(name):
    from snakemake.cli import get_argument_parser

    profile = yaml.safe_load((ROOT / f"profiles/{name}/profile.yaml").read_text())
    known = {option for action in get_argument_parser()._actions for option in action.option_strings}
    plugin = f"{profile.get('executor')}-"
    assert [key for key in profile if not key.startswith(plugin) and f"--{key}" not in known] == []


@pytest.mark.parametrize("name", ["slurm", "generic"])
def test_a_cluster_profile_continues_after_failures_and_retries_jobs(name):
    profile = yaml.safe_load((ROOT / f"profiles/{name}/profile.yaml").read_text())
    assert profile["retries"] == 2 and profile["scheduler"] == "greedy"
    assert profile["keep-going"] and profile["rerun-incomplete"] and profile["show-failed-logs"]
    assert set(profile["default-resources"]) == {"mem_mb", "runtime"}, (
        "partition and account are for users to name"
    )
    for attempt in (1, 2, 3):  # as Snakemake evaluates them
        asked = [eval(text, {"attempt": attempt}) for text in profile["default-resources"].values()]
        assert asked == [1000 * 2 ** (attempt - 1), 60 * 2 ** (attempt - 1)]
    assert not {"config", "cores"} & set(profile), "--config of the command line would replace it"


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (("workflow/run.py", "--profile", "slurn", "cell"), 2, ["no profile 'slurn'", "generic, slurm"]),
        (("-m", "snakemake", "--cores=1", "--workflow-profile", "slurn"), 1, ["'slurn'", "generic, slurm"]),
        (("-m", "snakemake", "--cores", "1", "--workflow-profile=slurn"), 1, ["no profile 'slurn'"]),
        (("-m", "snakemake", "--cores", "1", "--profile", "slurn"), 1, ["slurn", "no profile.yaml"]),
    ],
)  # fmt: skip
def test_a_misspelt_profile_runs_nothing(folder, command, status, words):
    code, output = run(folder, *command)
    assert code == status, output
    for word in words:
        assert word in output
    assert not (folder / "results").exists() and not (folder / "data/cell").exists()


def test_a_profile_without_its_plugin_is_refused(folder):
    (folder / "profiles/nowhere").mkdir()
    (folder / "profiles/nowhere/profile.yaml").write_text("executor: no-such-cluster")
    code, output = run(folder, "workflow/run.py", "--profile=nowhere", "cell")
    assert code == 2 and "Traceback" not in output
    assert "needs snakemake-executor-plugin-no-such-cluster" in output and "make cluster" in output


@pytest.mark.parametrize("arguments", [(), ("--workflow-profile", "default"), ("--workflow-profile", "none")])
def test_correct_names_of_profiles_are_accepted(folder, arguments):
    code, output = run(folder, "-m", "snakemake", "--cores", "1", "-n", *arguments)
    assert code == 0, output


# What jobs ask for


def test_cluster_jobs_request_the_resources_of_the_profile(folder):
    profile = yaml.safe_load((folder / "profiles/slurm/profile.yaml").read_text())
    asked = [f"{key}={value}" for key, value in profile["default-resources"].items()]
    code, output = run(folder, "-m", "snakemake", "--cores", "1", "-n", "--default-resources", *asked)
    assert code == 0, output
    lines = [line for line in output.splitlines() if line.startswith("    resources: ")]
    assert len(lines) > 4 and all("mem_mb=1000" in line and "runtime=60" in line for line in lines)


@pytest.mark.parametrize("command", [("workflow/run.py",), ("-m", "snakemake")])
@pytest.mark.parametrize(
    ("arguments", "settings", "chosen", "jobs"),
    [
        (["--cores", "15"], "auto", {}, 2),
        (["--cores", "16"], "auto", {}, 4),
        (["--cores", "16", "--config", "job=method"], "auto", {}, 2),
        (["--cores", "16"], "chain", {}, 20),
        (["--cores", "1", "--config", "job=cell"], "chain", {}, 4),
        (["--cores", "1"], "auto", {"DPMC_JOB": "cell"}, 4),  # a job of a cluster
        (["--cores", "16"], "auto", {"DPMC_JOB": "method"}, 2),
    ],
)
def test_jobs_are_smaller_where_cores_are_many(folder, command, arguments, settings, chosen, jobs):
    file = folder / "config/config.yaml"
    file.write_text(file.read_text().replace("job: auto", f"job: {settings}"))
    code, output = run(folder, *command, "-n", *arguments, "--", "cell", **chosen)
    assert code == 0, output
    assert f"sample_cell_circle {jobs}" in " ".join(output.split())


SINFO = """#!/bin/sh
printf 'main* 1-00:00:00\nshort 30:00\nhours 2:00:00\ndays 7-12:30:30\nlong infinite\nother n/a\n'
"""


@pytest.mark.parametrize(
    ("resources", "refusal"),
    [
        ({"runtime": "60 * 2 ** (attempt - 1)"}, None),
        ({"runtime": 60, "slurm_partition": "short"}, "60 minutes, the partition short allows 30"),
        ({"runtime": 60, "slurm_partition": "short,long"}, None),
        ({"runtime": 30, "slurm_partition": "short"}, None),
        ({"runtime": 10**4}, "10000 minutes, the partition by default allows 1440"),
        ({"runtime": 120, "slurm_partition": "hours"}, None),
        ({"runtime": 121, "slurm_partition": "hours"}, "121 minutes, the partition hours allows 120"),
        ({"runtime": 10830, "slurm_partition": "days"}, None),
        ({"runtime": 10831, "slurm_partition": "days"}, "10831 minutes, the partition days allows 10830"),
        ({"runtime": 10**6, "slurm_partition": "other"}, None),
        (
            {"runtime": 60, "slurm_partition": "shrot"},
            "no partition 'shrot'; known: days, hours, long, main, other, short",
        ),
    ],
)
def test_a_partition_that_could_not_run_the_jobs_is_refused(
    tmp_path, monkeypatch, capsys, resources, refusal
):
    (tmp_path / "sinfo").write_text(SINFO)
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    profile = {"executor": "slurm", "default-resources": resources}
    if refusal is None:
        run_py.check_partitions(profile)
        return
    with pytest.raises(SystemExit):
        run_py.check_partitions(profile)
    assert refusal in capsys.readouterr().err


def test_of_snakemakes_workflow_only_what_its_documentation_names_is_used():
    used = {
        name
        for file in (ROOT / "Snakefile", *ROOT.glob("workflow/rules/*.smk"))
        for name in re.findall(r"(?<![\w/])workflow\.(\w+)", file.read_text())
    }
    assert used == {"basedir", "cores"}


# The lock


def test_the_cluster_lock_contains_only_the_plugins():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "requirements-cluster.lock").read_text()
    locked = dict(re.findall(r"^([a-z][\w.-]*)==([\w.]+) ", text, re.M))
    for line in project["optional-dependencies"]["cluster"]:
        wanted = Requirement(line)
        assert Version(locked[wanted.name]) in wanted.specifier
    others = set(re.findall(r"^([a-z][\w.-]*)==", (ROOT / "requirements.lock").read_text(), re.M))
    assert not others & set(locked)
    assert text.count("--hash=sha256:") >= 2 * len(locked) and "://" not in text
