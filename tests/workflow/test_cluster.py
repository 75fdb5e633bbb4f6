"""Clusters without a cluster: profiles, resources of rules, refusals."""

import importlib.util
import os
import re
from pathlib import Path

import pytest
import yaml

from dpmc.studies import load_study
from dpmc.studies.sizes import JOB_NEEDS
from pipeline_copy import ROOT, SMALL, copy_pipeline, make_figures, run, snakemake

CELL = {
    **SMALL,
    "seeds": 5,
    "models": {"circle": {"epsilons": [0.3, 0.5], "tuning_epsilon": 0.5, "n": 2_000}},
    "methods": {"dp-penalty": {}, "dp-hmc": {}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the pipeline with one small study."""
    return copy_pipeline(tmp_path, {"cell": CELL})


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (("workflow/run.py", "--profile", "slurn", "cell"), 2, ["no profile 'slurn'", "generic, slurm"]),
        (("-m", "snakemake", "--cores=1", "--workflow-profile", "slurn"), 1, ["'slurn'", "generic, slurm"]),
    ],
)
def test_a_misspelt_profile_runs_nothing(folder, command, status, words):
    output = run(folder, *command, status=status)
    assert all(word in output for word in words), output
    assert not (folder / "results").exists() and not (folder / "data/cell").exists()


def test_an_empty_profile_is_refused_in_one_line(folder):
    (folder / "profiles/slurm/profile.yaml").write_text("# nothing yet")
    output = make_figures(folder, "--profile=slurm", "cell", status=2)
    rule = "must be keys with values, such as executor: slurm"
    assert output == f"dpmc: error: --profile: profiles/slurm/profile.yaml: {rule}\n"


def test_a_profile_without_its_plugin_is_refused(folder):
    (folder / "profiles/nowhere").mkdir()
    (folder / "profiles/nowhere/profile.yaml").write_text("executor: no-such-cluster")
    output = make_figures(folder, "--profile=nowhere", "cell", status=2)
    assert "needs snakemake-executor-plugin-no-such-cluster" in output and "make cluster" in output
    assert "Traceback" not in output


def test_jobs_ask_for_what_their_kind_was_measured_to_need(folder):
    printed = snakemake(folder, "-n", "--no-hooks", "results/cell/tuning/circle/dp-hmc.yaml")
    for rule in ("data", "tuning"):
        asked = re.search(rf"^rule {rule}\w*:$.*?^    resources: (.*?)$", printed, re.M | re.S)[1]
        assert (f"mem_mb={JOB_NEEDS[rule][0]}" in asked) and (f"runtime={JOB_NEEDS[rule][1]}" in asked)


def test_trials_of_a_model_are_one_job_unless_chains_wait_for_them(folder):
    printed = snakemake(folder, "-n", "--no-hooks", "cell")
    assert "tuning_cell_circle 1 " in " ".join(printed.split())
    study = {**CELL, "tuning": {**CELL["tuning"], "mode": "search"}}
    (folder / "config/studies/cell.yaml").write_text(yaml.safe_dump(study))
    printed = " ".join(snakemake(folder, "-n", "--no-hooks", "cell").split())
    assert all(f"tuning_cell_circle_{method} 1 " in printed for method in CELL["methods"])


def test_no_rule_that_works_lacks_resources_and_measurements(folder):
    rules = (folder / "workflow/rules").glob("*.smk")
    for block in re.split(r"^(?=\s*rule\b)", "\n".join(file.read_text() for file in rules), flags=re.M)[1:]:
        works = "dpmc " in block.partition("shell:")[2] and "localrule: True" not in block
        assert works == ("mem_mb=megabytes(" in block and "runtime=minutes(" in block), block
        measured = "    benchmark:" in block or "--times {log.times}" in block
        assert measured == (works or "rule figure:" in block), block


@pytest.mark.parametrize("name", ["slurm", "generic"])
def test_short_jobs_share_one_of_a_cluster_that_asks_for_no_more_than_one_that_samples(folder, name):
    profile = yaml.safe_load((folder / f"profiles/{name}/profile.yaml").read_text())
    assert profile["cores"] == 1, "a group asks for the cores and memory of its largest member"
    assert profile["groups"] == {rule: rule for rule in profile["group-components"]}
    for rule, members in profile["group-components"].items():
        assert 1 < members <= JOB_NEEDS["sample"][1] / JOB_NEEDS[rule][1]
        assert JOB_NEEDS[rule][0] <= JOB_NEEDS["sample"][0]


@pytest.mark.parametrize(
    ("command", "arguments", "setting", "chosen", "jobs"),
    [
        (make_figures, ["--cores", "16"], "auto", {}, 3),
        (snakemake, ["--cores", "16", "--config", "job=method"], "auto", {}, 2),
        (snakemake, ["--cores", "1", "--jobs", "200"], "auto", {}, 3),  # what a dry run on a cluster is given
        (snakemake, ["--cores", "1", "--jobs", "15"], "auto", {}, 2),
        (make_figures, ["--cores", "1", "--config", "job=cell"], "chain", {}, 4),
        (snakemake, ["--cores", "1"], "auto", {"DPMC_JOB": "cell"}, 4),  # a job of a cluster
        (snakemake, ["--cores", "16"], "auto", {"DPMC_JOB": "method"}, 2),
    ],
)
def test_jobs_are_smaller_where_cores_are_many(folder, command, arguments, setting, chosen, jobs):
    file = folder / "config/config.yaml"
    file.write_text(file.read_text().replace("job: auto", f"job: {setting}"))
    output = command(folder, "-n", *arguments, "--", "cell", **chosen)
    shown = dict(re.findall(r"^(sample_cell_circle\w*) +(\d+)$", output, re.M))
    assert sum(map(int, shown.values())) == jobs
    assert ("sample_cell_circle_cells" in shown) == (jobs == 3)


SINFO = """#!/bin/sh
printf 'main* 1-00:00:00\nshort 30:00\nhours 2:00:00\ndays 7-12:30:30\nlong infinite\nother n/a\n'
"""


@pytest.mark.parametrize(
    ("runtime", "partition", "refusal"),
    [
        (60, None, None),
        (60, "short", "jobs of sample ask for 60 minutes, the partition short allows 30"),
        (60, "short,long", None),
        (10**4, None, "10000 minutes, the partition by default allows 1440"),
        (10830, "days", None),
        (10831, "days", "10831 minutes, the partition days allows 10830"),
        (10**6, "other", None),
        (60, "shrot", "no partition 'shrot'; known: days, hours, long, main, other, short"),
    ],
)
def test_a_partition_that_could_not_run_the_jobs_is_refused(
    tmp_path, monkeypatch, capsys, runtime, partition, refusal
):
    spec = importlib.util.spec_from_file_location("run", ROOT / "workflow/run.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    (tmp_path / "sinfo").write_text(SINFO)
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(
        program, "JOB_NEEDS", {"data": (500, 20), "sample": (1000, runtime), "no": (1, 10**9)}
    )
    resources = {"slurm_partition": partition} if partition else None
    profile = {"executor": "slurm", "default-resources": resources}
    if refusal is None:
        program.check_partitions(profile, {"no"})
        return
    with pytest.raises(SystemExit):
        program.check_partitions(profile, {"no"})
    assert refusal in capsys.readouterr().err


def test_the_simulated_schedule_waits_for_evaluations(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    schedule = importlib.import_module("schedule")
    rule = (ROOT / "workflow/rules/evaluation.smk").read_text()
    log = tmp_path / re.search(r'"(logs/.*)"', rule)[1].format(study="thesis", model="circle")
    figure = tmp_path / "logs/thesis/figures/circle.log"
    for path in (log, figure):
        path.parent.mkdir(parents=True)
        path.write_text("evaluate: 2.0 s CPU in 3.0 s, at most 100 MB in a process\n")
    metrics = tmp_path / "results/thesis/metrics.csv"
    metrics.parent.mkdir(parents=True)
    metrics.write_text("study,model,method,epsilon,seed,metric,value\n")
    jobs = schedule.jobs_of(load_study("thesis"), tmp_path, "method")
    assert {job[2]: job[3] for job in jobs} == {
        "evaluate circle": {"sample circle"},
        "figure": {"evaluate circle"},
    }
    assert schedule.makespan(jobs, 2) > 4
