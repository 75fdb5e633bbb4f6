"""The pipeline on a reduced grid: equal bits however it is run, and after kills at random moments."""

import contextlib
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from dpmc.common.errors import DpmcError
from dpmc.studies import load_study
from dpmc.studies.whole import read_whole
from pipeline_copy import REDUCED, SMALL, bits, copy_pipeline, make_figures, snakemake


def project(folder: Path, changes: dict[str, Any] | None = None, **config: object) -> Path:
    """A copy of the pipeline with one small study."""
    return copy_pipeline(folder, {"reduced": {**REDUCED, **(changes or {})}}, **config)


def start(folder: Path, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "workflow/run.py", *arguments, "reduced"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A run that nothing disturbs."""
    folder = project(tmp_path_factory.mktemp("whole"))
    make_figures(folder, "--cores=2", "reduced")
    return folder, bits(folder)


@pytest.mark.slow
@pytest.mark.parametrize(("job", "logs"), [("cell", 6), ("chain", 18)])
def test_smaller_jobs_give_bit_identical_results(whole, tmp_path, job, logs):
    folder = project(tmp_path, job=job)
    make_figures(folder, "reduced")
    assert bits(folder) == whole[1]
    for ending in ("log", "tsv"):  # each job is measured
        assert len(list(folder.glob(f"logs/reduced/sampling/**/*.{ending}"))) == logs
    assert len(list(whole[0].glob("logs/reduced/sampling/**/*.log"))) == 3, "one job a method"


@pytest.mark.slow
def test_existing_results_are_made_again(whole, tmp_path):
    """No command overwrites a result without --force, and no rule has it: Snakemake removes outputs."""
    folder = tmp_path / "again"
    shutil.copytree(whole[0], folder)
    before = {path: path.stat().st_mtime_ns for path in folder.glob("results/**/seed-*.nc")}
    make_figures(folder, "--cores=2", "--forceall", "reduced")
    assert all(path.stat().st_mtime_ns > made for path, made in before.items())
    assert bits(folder) == whole[1]


def test_a_run_killed_five_times_has_the_same_results(whole, tmp_path):
    folder = project(tmp_path, checkpoint_seconds=0)
    moments = random.Random(20210311)
    checkpoints = 0
    for number in range(5):
        process = start(folder, "--cores", "2")
        if number < 3:  # within a chain, where that can be told
            wait_for(process, lambda: any(folder.glob("results/**/.checkpoint-*")))
        else:
            time.sleep(moments.uniform(3.0, 7.0))
        kill(process)
        checkpoints += len(list(folder.glob("results/**/.checkpoint-*")))
    assert checkpoints
    make_figures(folder, "--cores=2", "reduced")
    assert bits(folder) == whole[1]
    assert not list(folder.glob("results/**/.*"))  # checkpoints, waiting or temporary files


def wait_for(process: subprocess.Popen, happened: Callable[[], bool]) -> None:
    """Wait until something has happened, the run has ended, or a minute has passed."""
    for _ in range(6000):
        if happened() or process.poll() is not None:
            return
        time.sleep(0.01)


def kill(process: subprocess.Popen | psutil.Process) -> None:
    """kill -9 of a process and all its descendants, the parents first."""
    family = []
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [psutil.Process(process.pid)]
        family += family[0].children(recursive=True)
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(family, timeout=10)
    process.wait()


def test_a_second_run_has_nothing_to_do(whole):
    folder, before = whole
    assert "Nothing to be done" in make_figures(folder, "reduced")
    for setting in ("job=chain", "job=cell", "job=method", "checkpoint_seconds=7"):
        assert "Nothing to be done" in snakemake(folder, "--config", setting)
    assert bits(folder) == before


def test_deleted_chains_are_made_again_only_if_asked_for(whole, tmp_path):
    folder = shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)  # as deep: rules have relative paths
    sampled = r"^sample_reduced_circle +3$"
    shutil.rmtree(folder / "results/reduced/chains")
    assert "Nothing to be done" in snakemake(folder)
    planned = snakemake(folder, "-n", "--quiet=rules", "--forcerun", "evaluate", "--", "reduced")
    assert re.search(sampled, planned, re.M)
    shutil.rmtree(folder / "results/reduced")
    assert re.search(sampled, snakemake(folder, "-n", "--quiet=rules", "reduced"), re.M)


def test_metrics_cut_at_the_end_of_a_line_are_refused(whole, tmp_path, monkeypatch):
    folder = shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(folder)
    study = load_study("config/studies/reduced.yaml")
    for name in ("metrics.csv", "metrics/circle.csv"):
        file = Path("results/reduced") / name
        lines = file.read_text().splitlines(keepends=True)
        assert len(read_whole(study, file)) == len(lines) - 1
        for kept in range(1, len(lines)):
            file.write_text("".join(lines[:kept]))
            with pytest.raises(DpmcError, match="is missing, it may be cut off; rule "):
                read_whole(study, file)
        file.write_text("".join(lines[:-1] if name != "metrics.csv" else lines))
    told = snakemake(folder, "--keep-going", "reduced", status=1)
    words = "circle, exact sample 9: mean_error is missing, it may be cut off; rule evaluate makes it anew"
    assert told.count(f"dpmc: error: {file}: {words}") == 2, "for the figure, and for the joint table"
    file.unlink()
    assert re.search(r"^evaluate +1$", snakemake(folder, "-n", "--quiet=rules", "reduced"), re.M)


def test_a_changed_value_makes_the_chains_of_its_method_alone_anew(whole, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(whole[0], folder)
    file = folder / "config/hyperparameters/thesis.yaml"
    values = yaml.safe_load(file.read_text())
    values["dp-penalty"]["circle"]["proposal_sd"] *= 2
    file.write_text(yaml.safe_dump(values))
    printed = snakemake(folder, "--cores=2", "--verbose", "results/reduced/metrics/circle.csv")
    made = set(re.findall(r"results/reduced/(chains|tuning)/circle/([a-z-]+)", printed))
    assert made == {("chains", "dp-penalty")}
    assert "Nothing to be done" in snakemake(folder, "results/reduced/metrics/circle.csv")


RULES = ("budgets", "data", "figure", "page", "readable_table", "table")


def test_tables_figures_and_the_page_follow_the_study_and_its_hyperparameters(tmp_path):
    """Also those that read nothing else."""
    names = ["models", "hyperparameters", "law"]
    study = {**SMALL, "tuning": {"mode": "none"}, "settings_of": "small", "figures": names}
    values = {"dp-penalty": {"circle": {"tau": 0.1, "clip": 3, "proposal_sd": 0.02}}}
    folder = copy_pipeline(tmp_path, {"small": study}, {"small": values})
    law = {"kind": "maps", "models": ["circle"], "caption": "The posterior."}
    (folder / "config/figures").mkdir()
    (folder / "config/figures/small.yaml").write_text(yaml.safe_dump({"law": law}))
    page = "figures/small/index.html"
    snakemake(folder, "--no-hooks", page)
    assert "Nothing to be done" in snakemake(folder, page)
    for file, old, new, rules in (
        ("studies/small.yaml", "one cell", "a single cell", ["page"]),
        ("studies/small.yaml", "n: 2000", "n: 3000", ["figure", "page", "readable_table", "table"]),
        ("hyperparameters/small.yaml", "tau: 0.1", "tau: 0.2", ["figure", "page", "readable_table", "table"]),
    ):
        path = folder / "config" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        planned = snakemake(folder, "--dry-run", "--quiet=rules", page)
        path.write_text(text)
        assert [name for name in sorted(RULES) if re.search(rf"^{name} +\d+$", planned, re.M)] == rules, file


def test_settings_that_are_not_tried_need_no_job(tmp_path):
    """Chains without a budget have the pinned settings, and a change of these reruns them."""
    grid = {"model": "flat-banana-2d", "n": 1000, "epsilons": ["inf"], "tuning_epsilon": "inf"}
    study = {
        "models": {"clipping-2d": {**grid, "settings_of": "flat-banana-2d"}},
        "methods": {
            f"rwmh-{clip}": {"algorithm": "rwmh", "iterations": 20, "options": {"clip": clip}}
            for clip in (1, 2)
        },
    }
    pinned = {"thesis": {"rwmh": {"flat-banana-2d": {"proposal_sd": 0.01}}}}
    folder = copy_pipeline(tmp_path, {"reduced": {**REDUCED, **study}}, pinned)
    chain = "results/reduced/chains/clipping-2d/rwmh-1/eps-inf/seed-0.nc"
    snakemake(folder, chain)
    assert (folder / chain).exists() and not (folder / "results/reduced/tuning").exists()
    assert len(list(folder.glob("results/reduced/chains/clipping-2d/rwmh-2/eps-inf/*.nc"))) == 3, "one job"
    for job in ("method", "cell", "chain"):
        assert "Nothing to be done" in snakemake(folder, "--config", f"job={job}", "--", chain)
    settings = folder / "config/hyperparameters/thesis.yaml"
    settings.write_text(settings.read_text().replace("0.01", "0.02"))
    assert "sample_reduced" in snakemake(folder, "--dry-run", chain)


@pytest.mark.slow
def test_one_process_fills_numbas_cache_before_the_first_job(tmp_path):
    folder, cache = project(tmp_path / "project"), tmp_path / "cache"

    def compiled(option: str) -> int:
        snakemake(folder, option, "data/reduced/circle/published.nc", NUMBA_CACHE_DIR=str(cache))
        return len(list(cache.rglob("*.nbi")))

    assert compiled("--dry-run") == 0
    assert compiled("--no-hooks") == 0, "making data compiles nothing"
    assert compiled("--forceall") > 0


def test_a_second_run_is_refused_while_one_is_at_work(tmp_path):
    """Also while Snakemake continues alone, because the program that started it was killed."""
    folder = project(tmp_path)
    first = start(folder, "--cores", "1")
    wait_for(first, lambda: any(folder.glob(".snakemake/locks/*")))
    family = psutil.Process(first.pid).children(recursive=True)
    try:
        for alone in (False, True):
            if alone:
                first.kill()
                first.wait()
            output = make_figures(folder, "reduced", status=1)
            assert "another run is at work" in output and "Traceback" not in output
            holder = re.search(r"reduced, process (\d+) on ", output)
            assert int(holder[1]) == family[0].pid, "Snakemake, which runs on"
    finally:
        first.kill()
        kill(family[0])  # Snakemake
        first.wait()


@pytest.mark.parametrize(
    ("settings", "study", "words", "status"),
    [
        ({"chains_per_job": "all"}, {}, ["config: chains_per_job: is called `job` now"], 1),
        ({"stduy": "all"}, {}, ["config: stduy: is unknown; did you mean study? known: study, studies, "], 1),
        ({"cores": 2}, {}, ["config: cores: is unknown; known: study, studies, job, checkpoint_seconds"], 1),
        ({"job": "all"}, {}, ["config: job: 'all' must be one of auto, method, cell, chain"], 1),
        ({"study": "nonsense"}, {}, ["config: study: 'nonsense' must be one of reduced, all"], 1),
        ({}, {"seeds": 0}, ["reduced.yaml", "seeds: 0"], 2),
        ({}, {"methods": {"dp-hcm": {}}}, ["reduced.yaml", "dp-hcm", "unknown"], 2),
    ],
)
def test_a_mistake_in_the_settings_or_the_study_stops_before_any_job(
    tmp_path, settings, study, words, status
):
    folder = project(tmp_path, study, **settings)
    output = make_figures(folder, "reduced", status=status)
    assert all(word in output for word in words) and "Traceback" not in output
    assert not (folder / "results").exists() and not (folder / "data/reduced").exists()


SEARCH = {"seeds": 4, "tuning": {"seeds": 2, "trials": 12, "methods": ["dp-penalty", "dp-hmc"]}}


def trials_in(folder: Path) -> int:
    """Trials of all searches so far."""
    tables = folder.glob("results/reduced/search/*/*.csv")
    return sum(max(0, table.read_text().count("\n") - 2) for table in tables)


@pytest.mark.slow
def test_searches_killed_five_times_find_the_same_settings(tmp_path):
    undisturbed, folder = (project(tmp_path / name, SEARCH) for name in ("whole", "killed"))
    make_figures(undisturbed, "--tune", "--cores=2", "reduced")
    moments = random.Random(5)
    before = 0
    for number in range(5):
        process = start(folder, "--tune", "--cores", "2")
        if number < 3:
            wait_for(process, lambda known=before: trials_in(folder) > known)
        time.sleep(moments.uniform(0.0, 2.0 if number < 3 else 7.0))
        kill(process)
        before = trials_in(folder)
    assert before  # the search that goes on has something to go on from
    make_figures(folder, "--tune", "--cores=2", "reduced")
    tuned = [(place / "results/reduced/tuned.yaml").read_text() for place in (undisturbed, folder)]
    assert tuned[0] == tuned[1]
    assert set(yaml.safe_load(tuned[0])) == {"dp-penalty", "dp-hmc"}
    lessons = [(place / "figures/reduced/search/lessons.png").read_bytes() for place in (undisturbed, folder)]
    assert lessons[0] == lessons[1]


@pytest.mark.parametrize(
    ("study", "words"),
    [
        ({"tuning": {"mode": "none"}}, "reduced: tuning: mode: none"),
        ({"methods": {"rwmh": {"iterations": 10, "epsilons": ["inf"]}}}, "reduced: no method and model with"),
    ],
)
def test_a_study_that_searches_nothing_is_refused(tmp_path, study, words):
    assert words in make_figures(project(tmp_path, study), "--tune", "reduced", status=2)
