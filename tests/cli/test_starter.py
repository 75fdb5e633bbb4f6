"""Commands by a run's starter: the same files, messages and exit codes, and nobody outlives anybody."""

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from dpmc import cli, starter
from dpmc.__main__ import STARTER

SMOKE = str(Path(__file__).parents[2] / "config/studies/smoke.yaml")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("NUMBA", "OMP", "OPENBLAS", "MKL")}
RUN = """
import os, sys
from dpmc import starter
starter.launch()
print(os.environ["DPMC_STARTER"], flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="starters are for Linux")


class Run:
    """A process that has launched a starter, as Snakemake does."""

    def __init__(self) -> None:
        self.variables = {**os.environ, **ONE_THREAD}
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.variables
        )
        self.variables[STARTER] = self.process.stdout.readline().decode().strip()
        [self.starter] = psutil.Process(self.process.pid).children()

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen:
        """Begin a command of the run."""
        return subprocess.Popen(
            [sys.executable, "-m", "dpmc", *arguments],
            env={**self.variables, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def job(self) -> psutil.Process:
        """The process that the starter has made for a command."""
        wait_until(lambda: self.starter.children())
        [job] = self.starter.children()
        return job


@pytest.fixture
def run():
    made = Run()
    yield made
    made.process.kill()
    made.process.wait()


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    """Arguments of a command that waits until somebody writes rows."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("rows.csv")
    return ("data", "--study", SMOKE, "--model", "circle", "--rows", "rows.csv", "--output", "made.nc")


def wait_until(true):
    """Wait for something that will be true in a moment."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "waited for a minute"
        time.sleep(0.02)


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_same_bytes_words_and_exit_code(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample = ("sample", "--study", SMOKE, "--model", "circle", "--method", "dp-penalty", "--epsilon", "0.5")
    for seed in ("0", "1"):
        chain = (*sample, "--seed", "3", "--iterations", "20", "--output", f"{seed}.nc")
        variables = {} if seed == "0" else {STARTER: str(tmp_path / "nowhere")}
        finished = run.start(*chain, **variables)
        _, said = finished.communicate()
        assert finished.returncode == 0, said
        assert said.splitlines()[-1].startswith("sample: ") and "20/20 iterations" in said
    assert Path("0.nc").read_bytes() == Path("1.nc").read_bytes()
    assert any("llvmlite" in part.path for part in run.starter.memory_maps())  # it was not done elsewhere
    wrong = ("--study", SMOKE, "--model", "cirle", "--method", "dp-penalty", "--epsilon", "1")
    for words in (("sample", "--model", "cirle"), ("budget", *wrong)):
        here, there = run.start(*words, **{STARTER: ""}), run.start(*words)
        assert here.communicate() == there.communicate()
        assert here.returncode == there.returncode == 2


def test_standard_output_folder_and_variables_are_the_commands_own(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text("model: 1\n")
    refused = run.start("budget", "--study", "study.yaml", "--model", "m", "--method", "x", "--epsilon", "4")
    assert "study.yaml: " in refused.communicate()[1]  # read from this folder
    budget = (
        "budget",
        "--study",
        SMOKE,
        "--model",
        "circle",
        "--method",
        "dp-penalty",
        "--epsilon",
        "4",
        "--json",
    )
    printed, said = run.start(*budget).communicate()
    assert printed.startswith("{") and said == ""


def test_who_needs_other_variables_runs_by_itself(run, waiting):
    client = run.start(*waiting, NUMBA_OPT="0")
    Path("rows.csv").write_text("1\n2\n3\n")  # returns once the command reads
    assert run.starter.children() == []
    client.communicate()
    assert client.returncode == 0 and Path("made.nc").exists()


def test_a_job_ends_with_who_waits_for_it(run, waiting):
    client = run.start(*waiting)
    job = run.job()
    client.kill()
    client.wait()
    wait_until(lambda: gone(job))
    assert not gone(run.starter)
    again = run.start(*waiting)
    Path("rows.csv").write_text("1\n2\n3\n")
    again.communicate()
    assert again.returncode == 0  # the starter goes on


def test_a_job_that_is_killed_is_reported_and_an_interrupt_is_heard(run, waiting):
    client = run.start(*waiting)
    run.job().kill()
    client.communicate()
    assert client.returncode == 128 + signal.SIGKILL
    client = run.start(*waiting)
    job = run.job()
    wait_until(lambda: "S" in job.status()[:1].upper() and not Path("made.nc").exists())
    client.send_signal(signal.SIGINT)  # as a terminal does: to both
    job.send_signal(signal.SIGINT)
    assert client.communicate()[1] == "dpmc: interrupted\n"
    assert client.returncode == 130


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_run(run, waiting, end):
    client = run.start(*waiting)
    job = run.job()
    run.process.send_signal(end)
    run.process.wait()
    assert client.communicate()[1] == "dpmc: error: the run that started this command has ended\n"
    assert client.returncode == 1
    wait_until(lambda: gone(job) and gone(run.starter))
    assert not Path(run.variables[STARTER]).parent.exists()


def test_a_job_ends_with_the_starter(run, waiting):
    client = run.start(*waiting)
    job = run.job()
    run.starter.kill()
    assert "has ended" in client.communicate()[1]
    wait_until(lambda: gone(job))


def test_what_is_imported_beforehand_is_there():
    """A name that is wrong would cost speed and nothing else: nobody would notice."""
    assert starter.IMPORTS.keys() <= cli._PURPOSE.keys()
    for module in {*starter.COMMON, *(name for names in starter.IMPORTS.values() for name in names)}:
        importlib.import_module(module)
