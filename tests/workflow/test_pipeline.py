"""The pipeline on a reduced grid: equal bits however it is run, and after kills at random moments."""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import yaml

from pipeline_copy import copy_pipeline

ROOT = Path(__file__).parents[2]

STUDY = {
    "title": "a reduced grid",
    "delta": "0.1/n",
    "seeds": 3,
    "settings_of": "thesis",
    "tuning": {"seeds": 2},
    "models": {"circle": {"epsilons": [0.3, 0.5], "tuning_epsilon": 0.5, "n": 20_000}},
    "methods": {"dp-penalty": {}, "dp-penalty-guided": {}, "dp-hmc": {}},
    "figures": ["circle"],
}


def project(folder: Path, **config: object) -> Path:
    """A copy of the pipeline with one small study."""
    return copy_pipeline(folder, {"reduced": STUDY}, **config)


def start(folder: Path, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "workflow/run.py", *arguments, "reduced"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen) -> str:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output[-5000:]
    return output


def bits(folder: Path) -> dict[str, str]:
    """A checksum of everything that a run makes, but run times."""
    made = [*folder.glob("results/**/*.nc"), *folder.glob("results/**/*.csv")]
    made += [*folder.glob("results/**/*.yaml"), *folder.glob("figures/**/*.p*")]
    assert made
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in made}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A run that nothing disturbs."""
    folder = project(tmp_path_factory.mktemp("whole"))
    finish(start(folder, "--cores", "2"))
    return folder, bits(folder)


@pytest.mark.slow
@pytest.mark.parametrize(("job", "logs"), [("cell", 6), ("chain", 18)])
def test_smaller_jobs_give_bit_identical_results(whole, tmp_path, job, logs):
    folder = project(tmp_path, job=job)
    finish(start(folder, "--cores", "1"))
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
    finish(start(folder, "--cores", "2", "--forceall"))
    assert all(path.stat().st_mtime_ns > made for path, made in before.items())
    assert bits(folder) == whole[1]
    for log in folder.glob("logs/reduced/sampling/**/*.log"):
        assert len(log.read_text().splitlines()) <= 15, log.read_text()


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
        kill_everything(process)
        checkpoints += len(list(folder.glob("results/**/.checkpoint-*")))
    assert checkpoints
    output = finish(start(folder, "--cores", "2"))
    assert bits(folder) == whole[1]
    assert not list(folder.glob("results/**/.*")), output  # checkpoints, waiting or temporary files


def wait_for(process: subprocess.Popen, happened: Callable[[], bool]) -> None:
    """Wait until something has happened, the run has ended, or a minute has passed."""
    for _ in range(6000):
        if happened() or process.poll() is not None:
            return
        time.sleep(0.01)


def kill_everything(process: subprocess.Popen) -> None:
    """kill -9 of the run and all its descendants, the parents first."""
    kill(process)
    process.communicate()


def kill(process: subprocess.Popen | psutil.Process) -> None:
    """kill -9 of a process and all its descendants, the parents first."""
    try:
        family = [psutil.Process(process.pid)]
        family += family[0].children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=10)


def test_a_second_run_has_nothing_to_do(whole):
    folder, before = whole
    assert "Nothing to be done" in finish(start(folder, "--cores", "2"))
    for setting in ("job=chain", "job=cell", "job=method", "checkpoint_seconds=7"):
        again = subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "1", "--config", setting],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Nothing to be done" in again.stdout + again.stderr
    assert bits(folder) == before


def test_settings_that_are_not_tried_need_no_job(tmp_path):
    """Chains without a budget have the pinned settings, and a change of these reruns them."""
    grid = {"model": "flat-banana-2d", "n": 1000, "epsilons": ["inf"], "tuning_epsilon": "inf"}
    study = STUDY | {
        "models": {"clipping-2d": {**grid, "settings_of": "flat-banana-2d"}},
        "methods": {
            f"rwmh-{clip}": {"algorithm": "rwmh", "iterations": 20, "options": {"clip": clip}}
            for clip in (1, 2)
        },
    }
    pinned = {"thesis": {"rwmh": {"flat-banana-2d": {"proposal_sd": 0.01}}}}
    folder = copy_pipeline(tmp_path, {"reduced": study}, pinned)
    chain = "results/reduced/chains/clipping-2d/rwmh-1/eps-inf/seed-0.nc"

    def snakemake(*options: str) -> str:
        command = [sys.executable, "-m", "snakemake", "--cores", "1", *options, "--", chain]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    snakemake()
    assert (folder / chain).exists() and not (folder / "results/reduced/tuning").exists()
    assert len(list(folder.glob("results/reduced/chains/clipping-2d/rwmh-2/eps-inf/*.nc"))) == 3, "one job"
    for job in ("method", "cell", "chain"):
        assert "Nothing to be done" in snakemake("--config", f"job={job}")
    settings = folder / "config/hyperparameters/thesis.yaml"
    settings.write_text(settings.read_text().replace("0.01", "0.02"))
    assert "sample_reduced" in snakemake("--dry-run")


@pytest.mark.slow
def test_one_process_fills_numbas_cache_before_the_first_job(tmp_path):
    folder, cache = project(tmp_path / "project"), tmp_path / "cache"
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    settings = {**os.environ, "PATH": path, "NUMBA_CACHE_DIR": str(cache)}

    def compiled(*options: str) -> int:
        target = ["--", "data/reduced/circle/published.nc"]
        subprocess.run([*command, *options, *target], cwd=folder, env=settings, check=True)
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
            second = start(folder, "--cores", "1")
            output, _ = second.communicate(timeout=60)
            assert second.returncode == 1
            assert "another run is at work" in output and "Traceback" not in output
    finally:
        first.kill()
        kill(family[0])  # Snakemake
        first.communicate()


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"chains_per_job": "all"}, "chains_per_job: is called `job` now"),
        ({"job": "all"}, "job: 'all' must be one of auto, method, cell, chain"),
        ({"study": "nonsense"}, "study: 'nonsense' must be one of reduced, all"),
    ],
)
def test_a_mistake_in_the_settings_is_one_line(tmp_path, settings, rule):
    folder = project(tmp_path, **settings)
    output, _ = (process := start(folder, "--cores", "1")).communicate(timeout=60)
    assert process.returncode != 0 and "Traceback" not in output
    assert f"config: {rule}" in output and "config.yaml" not in output
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("seeds", 0, ["seeds", "0", "at least 1"]),
        ("methods", {"dp-hcm": {}}, ["dp-hcm", "unknown"]),
        ("delta", 2, ["delta", "2"]),
    ],
)
def test_an_invalid_study_stops_before_any_job(tmp_path, key, value, words):
    folder = project(tmp_path)
    (folder / "config/studies/reduced.yaml").write_text(yaml.safe_dump({**STUDY, key: value}))
    process = start(folder, "--cores", "1")
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in output
    for word in ["reduced.yaml", *words]:
        assert word in output
    assert not (folder / "results").exists()
    assert not (folder / "data/reduced").exists()


def searching(folder: Path, **tuning: object) -> Path:
    """A copy of the pipeline whose study is searched in a few trials."""
    folder = project(folder)
    study = {**STUDY, "seeds": 4, "tuning": {"seeds": 2, "trials": 12, "methods": ["dp-penalty", "dp-hmc"]}}
    (folder / "config/studies/reduced.yaml").write_text(yaml.safe_dump({**study, **tuning}))
    return folder


def trials_in(folder: Path) -> int:
    """Trials of all searches so far."""
    tables = folder.glob("results/reduced/search/*/*.csv")
    return sum(max(0, table.read_text().count("\n") - 2) for table in tables)


@pytest.mark.slow
def test_searches_killed_five_times_find_the_same_settings(tmp_path):
    undisturbed = searching(tmp_path / "whole")
    finish(start(undisturbed, "--tune", "--cores", "2"))
    folder = searching(tmp_path / "killed")
    moments = random.Random(5)
    before = 0
    for number in range(5):
        process = start(folder, "--tune", "--cores", "2")
        if number < 3:
            wait_for(process, lambda known=before: trials_in(folder) > known)
        time.sleep(moments.uniform(0.0, 2.0 if number < 3 else 7.0))
        kill_everything(process)
        before = trials_in(folder)
    assert before  # the search that goes on has something to go on from
    output = finish(start(folder, "--tune", "--cores", "2"))
    assert (folder / "results/reduced/tuned.yaml").exists(), output
    found = [(run / "results/reduced/tuned.yaml").read_text() for run in (undisturbed, folder)]
    assert found[0] == found[1]
    settings = yaml.safe_load(found[0])
    assert {method: list(models) for method, models in settings.items()} == {
        "dp-penalty": ["circle"],
        "dp-hmc": ["circle"],
    }
    for name in ("lessons", "circle-dp-hmc"):
        picture = (folder / f"figures/reduced/search/{name}.png").read_bytes()
        assert picture == (undisturbed / f"figures/reduced/search/{name}.png").read_bytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tuning": {"mode": "none"}}, "reduced: tuning: mode: none"),
        (
            {"methods": {"rwmh": {"iterations": 10, "epsilons": ["inf"]}}},
            "reduced: no method and model with free",
        ),
    ],
)
def test_a_study_that_searches_nothing_is_refused(tmp_path, change, words):
    folder = searching(tmp_path, **{"tuning": {}, **change})
    process = start(folder, "--tune", "--cores", "1")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2 and words in output


def test_studies_may_be_named_before_and_after_an_option(tmp_path):
    folder = project(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "workflow/run.py", "reduced", "--cores", "1", "no-such-study"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "no study 'no-such-study'" in process.communicate(timeout=60)[1] and process.returncode == 2
