"""Clusters without a cluster: profiles, what rules ask for, refusals, the schedule of measured jobs."""

import ast
import csv
import importlib.util
import itertools
import math
import os
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from pipeline_copy import copy_pipeline

ROOT = Path(__file__).parents[2]
PROFILES = sorted(path.parent.name for path in ROOT.glob("profiles/*/profile.yaml"))
RULES = {path.stem: path.read_text() for path in ROOT.glob("workflow/rules/*.smk")}
MEASURED_WALL = 908.0  # seconds of the run of `thesis` on two quiet cores that jobs-thesis.csv comes from

CELL = {
    "title": "one cell",
    "delta": "0.1/n",
    "seeds": 5,
    "settings_of": "thesis",
    "models": {"circle": {"epsilons": [0.5], "tuning_epsilon": 0.5, "n": 2_000}},
    "methods": {"dp-penalty": {}, "dp-hmc": {}},
    "figures": ["circle"],
}


def module(name: str) -> Any:
    """A module of benchmarks/, which is no package."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / f"benchmarks/{name}.py")
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


jobs = module("jobs")
module("measuring")
speed_up = module("speed_up")


def functions(file: str, **known: Any) -> dict[str, Any]:
    """The functions of a rules file without its rules, which only Snakemake can read."""
    text = RULES[file].split("\nrule ")[0]
    text = re.sub(r"^wildcard_constraints:\n(?:    .*\n)*", "", text, flags=re.M)
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = {"csv": csv, "math": math, "subprocess": subprocess, "Path": Path, **known}
    exec(compile(tree, file, "exec"), names)
    return names


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
def test_a_clusters_profile_goes_on_after_failures_and_sends_jobs_again(name):
    profile = yaml.safe_load((ROOT / f"profiles/{name}/profile.yaml").read_text())
    assert profile["retries"] == 2 and profile["scheduler"] == "greedy"
    assert profile["keep-going"] and profile["rerun-incomplete"] and profile["show-failed-logs"]
    assert set(profile["default-resources"]) == {"mem_mb", "runtime"}, (
        "partition and account are for users to name"
    )
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
def test_right_names_of_profiles_are_let_through(folder, arguments):
    code, output = run(folder, "-m", "snakemake", "--cores", "1", "-n", *arguments)
    assert code == 0, output


# What rules ask for


def test_the_table_of_resources_is_what_its_command_makes(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "RESOURCES", tmp_path / "resources.csv")
    jobs.write_resources([jobs.read(study) for study in jobs.studies()])
    assert (tmp_path / "resources.csv").read_text() == (ROOT / "workflow/resources.csv").read_text()


def test_every_rule_that_a_cluster_runs_asks_for_memory_and_time():
    for name, text in RULES.items():
        for rule in re.split(r"^(?:    )?rule ?", text, flags=re.M)[1:]:
            runs = "shell:" in rule and "localrule: True" not in rule
            assert not runs or ("mem_mb=" in rule and "runtime=" in rule), f"{name}.smk: {rule.split(':')[0]}"


def test_needs_follow_the_measurement_with_a_margin_and_double_at_each_retry():
    table = [
        {"rule": "compile", "method": "", "seconds": "20", "mem_mb": "300"},
        {"rule": "evaluate", "method": "", "seconds": "300", "mem_mb": "410"},
        {"rule": "metrics", "method": "", "seconds": "1", "mem_mb": "20"},
        {"rule": "sample_a", "method": "", "seconds": "5", "mem_mb": "100"},
        {"rule": "sample_a", "method": "long", "seconds": "900", "mem_mb": "500"},
    ]
    known = functions("common", RESOURCES=table)
    memory, minutes, measured = (known[name] for name in ("memory", "minutes", "measured"))
    assert [memory("evaluate")(None, attempt, 1) for attempt in (1, 2, 3)] == [700, 1400, 2800]
    assert memory("metrics")(None, 1, 1) == 500, "a job that compiles for itself must not fail"
    assert memory("evaluate")(None, 1, 4) == 2800, "each process holds as much"
    assert [minutes("evaluate")(None, attempt) for attempt in (1, 2)] == [20, 40]
    assert minutes("metrics")(None, 1) == 10
    assert (memory("sample_new")(None, 1, 1), minutes("sample_new")(None, 1)) == (800, 60), (
        "never measured: the largest"
    )
    assert (memory("new")(None, 1, 1), minutes("new")(None, 1)) == (800, 60)
    assert measured("sample_a", "long") and not measured("sample_a", "short")


@pytest.mark.parametrize(
    ("limit", "minutes"),
    [("1:00", 1), ("30:00", 30), ("2:00:00", 120), ("1-00:00:00", 1440), ("7-12:30:30", 10830.5),
     ("infinite", math.inf), ("n/a", math.inf)],
)  # fmt: skip
def test_slurms_time_limits_are_read(limit, minutes):
    assert functions("cluster")["slurm_minutes"](limit) == minutes


@pytest.mark.parametrize(
    ("partitions", "minutes", "refusal"),
    [
        ("short", 120, "the partition short allows 60"),
        ("short,long", 120, None),
        ("long,narrow", 2, None),
        ("narrow,short", 120, "the partition short allows 60"),
        ("narrow", 2, "the nodes there have 1"),
        ("short,longg", 2, "no partition 'longg'; known: long, narrow, short"),
        ("", 10**6, None),  # no default partition: Slurm will say what it thinks
    ],
)
def test_a_job_that_no_partition_could_run_is_refused(partitions, minutes, refusal):
    limits = {"short": (60.0, 8), "long": (10_000.0, 8), "narrow": (60.0, 1)}
    known = functions("cluster", WorkflowError=ValueError)
    known["partition_limits"] = lambda: limits
    rule = types.SimpleNamespace(name="sample_thesis")
    resources = {"slurm_partition": partitions, "runtime": minutes}
    job = types.SimpleNamespace(
        rule=rule, threads=4, is_local=False, is_group=lambda: False, resources=resources
    )
    if refusal is None:
        known["check_partitions"]([job])
    else:
        with pytest.raises(ValueError, match=re.escape(refusal)):
            known["check_partitions"]([job])


# The schedule


def job(seconds: float, *after: int, priority: int = 0, rule: str = "rule", name: str = "name") -> Any:
    return jobs.Job(rule, name, seconds, priority=priority, after=list(after))


def test_small_schedules_are_right():
    diamond = [job(1), job(2, 0), job(3, 0), job(1, 1, 2)]
    assert [speed_up.wall(diamond, cores, dispatch=0.0) for cores in (1, 2, 9)] == [7, 5, 5]
    assert [step.seconds for step in speed_up.critical_path(diamond)] == [1, 3, 1]
    last = [job(1), job(1), job(4)]
    first = [job(1), job(1), job(4, priority=1)]
    assert speed_up.wall(last, 2, 0.0) == 5 and speed_up.wall(first, 2, 0.0) == 4
    assert speed_up.wall([job(0.0)] * 100, 8, dispatch=0.5) == 50, "the main process starts one job at a time"


def test_a_split_job_is_waited_for_as_a_whole():
    before = [
        job(5),
        job(41.2, 0, rule="sample_x", name="sampling/circle/dp-hmc/eps-1"),
        job(3, 1),
        job(2, 2),
    ]
    parts = speed_up.split(before, parts=4)
    assert len(parts) == 7 and parts[5].after == [1, 2, 3, 4] and parts[6].after == [5]
    assert [part.seconds for part in parts[1:5]] == pytest.approx([11.2] * 4)
    assert speed_up.wall(parts, 4, 0.0) == pytest.approx(5 + 11.2 + 3 + 2)


@pytest.mark.parametrize("study", jobs.studies())
def test_no_schedule_is_faster_than_work_and_critical_path_allow(study):
    those = jobs.read(study)
    work = sum(step.seconds for step in those)
    path = sum(step.seconds for step in speed_up.critical_path(those))
    walls = [speed_up.wall(those, cores, dispatch=0.0) for cores in speed_up.CORES]
    assert walls[0] == pytest.approx(work) and walls[-1] == pytest.approx(path)
    for cores, seconds in zip(speed_up.CORES, walls, strict=True):
        # Graham's bound for any list schedule
        assert max(path, work / cores) <= seconds + 1e-6 <= work / cores + path * (1 - 1 / cores) + 2e-6
    assert all(later <= 1.02 * earlier for earlier, later in itertools.pairwise(walls))


def test_the_schedule_predicts_the_measured_run():
    predicted = speed_up.START + speed_up.wall(jobs.read("thesis"), 2)
    assert predicted == pytest.approx(MEASURED_WALL, rel=0.05)


def test_a_table_of_jobs_comes_from_snakemakes_notes(folder, monkeypatch):
    code, output = run(folder, "workflow/run.py", "--cores", "2", "cell")
    assert code == 0, output
    monkeypatch.setattr(jobs, "RESULTS", folder)
    jobs.write("cell", jobs.of_run(folder, "cell"))
    made = {step.name: step for step in jobs.read("cell")}
    names = list(made)
    chain = made["sampling/circle/dp-hmc/eps-0.5"]
    assert {names[number].split("/")[0] for number in chain.after} == {"compiled", "data", "tuning"}
    assert chain.seconds > 0.0 and chain.priority == 1005 and chain.kind == ("sample_cell", "dp-hmc")
    assert {names[number] for number in made["evaluation/circle/chains"].after} >= {
        "sampling/circle/dp-hmc/eps-0.5",
        "sampling/circle/dp-penalty/eps-0.5",
    }


# The lock


def test_the_clusters_lock_holds_its_plugins_and_nothing_of_the_other():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "requirements-cluster.lock").read_text()
    locked = dict(re.findall(r"^([a-z][\w.-]*)==([\w.]+) ", text, re.M))
    for line in project["optional-dependencies"]["cluster"]:
        wanted = Requirement(line)
        assert Version(locked[wanted.name]) in wanted.specifier
    others = set(re.findall(r"^([a-z][\w.-]*)==", (ROOT / "requirements.lock").read_text(), re.M))
    assert not others & set(locked)
    assert text.count("--hash=sha256:") >= 2 * len(locked) and "://" not in text
