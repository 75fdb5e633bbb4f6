"""Commands by a run's starter: the same files, messages and exit codes, and nobody outlives anybody."""

import fcntl
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from dpmc import cli, commands, compiler, datasets, evaluators, problem, starter, storage
from dpmc.__main__ import REFUSED, STARTER, same_user

SMOKE = str(Path(__file__).parents[2] / "config/studies/smoke.yaml")
RUN = """
import os, sys
from dpmc import starter
starter.launch()
print(os.environ["DPMC_STARTER"], flush=True)
sys.stdin.read()
"""
MINUTE = 60.0
SAMPLE = ("sample", "--study", SMOKE, "--model", "circle", "--method", "dp-penalty", "--seed", "3")
BUDGET = ("budget", "--study", SMOKE, "--model", "circle", "--method", "dp-penalty", "--epsilon", "4")

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="starters are for Linux")


class Run:
    """A process that has launched a starter, as Snakemake does."""

    def __init__(self) -> None:
        self.variables = {name: value for name, value in os.environ.items() if name != STARTER}
        self.variables |= starter.ONE_THREAD
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.variables
        )
        self.variables[STARTER] = self.process.stdout.readline().decode().strip()
        [self.starter] = psutil.Process(self.process.pid).children()

    def start(self, *arguments: str, stdout=subprocess.PIPE, **variables: str) -> subprocess.Popen:
        """Begin a command of the run."""
        return subprocess.Popen(
            [sys.executable, "-m", "dpmc", *arguments],
            env={**self.variables, **variables},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            # Where tests run in the background, interrupts are ignored, and commands go on ignoring them.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def imported(self, library: str) -> bool:
        """Whether the starter has imported a library, as it does when it serves a command that needs it."""
        return any(library in part.path for part in self.starter.memory_maps())

    def job(self) -> psutil.Process:
        """The process that the starter has made for a command, once it is on its own."""
        wait_until(lambda: any(os.getpgid(job.pid) == job.pid for job in self.starter.children()))
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


def write_rows() -> None:
    """Let the command that waits go on."""

    def written() -> bool:
        try:
            file = os.open("rows.csv", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            return False
        os.write(file, b"1\n2\n3\n")
        os.close(file)
        return True

    wait_until(written)


def wait_until(true):
    """Wait for something that will be true in a moment."""
    end = time.monotonic() + MINUTE
    while not true():
        assert time.monotonic() < end, "waited for a minute"
        time.sleep(0.02)


def wait_until_it_sleeps(process: psutil.Process) -> None:
    """Wait until it waits for something itself, and so hears an interrupt at once."""
    asleep = [False]

    def for_a_while() -> bool:
        asleep.append(process.status() == psutil.STATUS_SLEEPING)
        return all(asleep[-10:])

    wait_until(for_a_while)


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_same_bytes_words_and_exit_code(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, variables in (("there", {}), ("here", {STARTER: "nobody"})):
        chain = (*SAMPLE, "--epsilon", "0.5", "--iterations", "20", "--output", f"{name}.nc")
        finished = run.start(*chain, **variables)
        _, said = finished.communicate(timeout=5 * MINUTE)  # may compile
        assert finished.returncode == 0, said
        assert said.splitlines()[-1].startswith("sample: ") and "20/20 iterations" in said
    assert Path("there.nc").read_bytes() == Path("here.nc").read_bytes()
    assert run.imported("llvmlite")  # it was not done elsewhere
    wrong = ("budget", "--study", SMOKE, "--model", "cirle", "--method", "dp-penalty", "--epsilon", "1")
    for words in (("sample", "--model", "cirle"), wrong):
        here, there = run.start(*words, **{STARTER: ""}), run.start(*words)
        assert here.communicate(timeout=MINUTE) == there.communicate(timeout=MINUTE)
        assert here.returncode == there.returncode == 2


def test_rows_that_a_starter_keeps_are_those_of_the_file(run, tmp_path, monkeypatch):
    """A second file by the same name holds other rows; who has no starter reads what is there."""
    monkeypatch.chdir(tmp_path)
    for seed in range(2):
        rows = ("--data", f"fresh-{seed}", "--output", "rows.nc", "--force")
        assert run.start("data", *SAMPLE[1:5], *rows).wait(MINUTE) == 0
        for name, variables in (("there", {}), ("again", {}), ("here", {STARTER: ""})):
            chain = (*SAMPLE, "--epsilon", "0.5", "--iterations", "20", "--data", "rows.nc")
            finished = run.start(*chain, "--output", f"{name}-{seed}.nc", **variables)
            _, said = finished.communicate(timeout=5 * MINUTE)
            assert finished.returncode == 0, said
        assert Path(f"there-{seed}.nc").read_bytes() == Path(f"here-{seed}.nc").read_bytes()
        assert Path(f"again-{seed}.nc").read_bytes() == Path(f"here-{seed}.nc").read_bytes()
    assert Path("here-0.nc").read_bytes() != Path("here-1.nc").read_bytes()


def test_what_is_prepared_is_found(tmp_path, monkeypatch):
    """A problem that is not found again, or other machine code, would cost speed: nobody would notice."""
    monkeypatch.setattr(problem, "_kept", {})
    monkeypatch.chdir(tmp_path)
    cell = ("--study", SMOKE, "--model", "circle", "--method", "dp-penalty")
    assert cli.main(["compile", *cell, "--output", "made.txt"]) == 0
    assert cli.main(["data", *cell[:4], "--output", "rows.nc"]) == 0
    chain = ["sample", *cell, "--epsilon", "0.5", "--iterations", "20", "--data", "rows.nc"]
    asked = cli.parser().parse_args([*chain, "--output", "chain.nc"])
    commands.prepare_sample(asked, tmp_path)
    for where, name in ((evaluators, "build"), (storage, "reading"), (compiler, "_compile_once")):
        monkeypatch.setattr(where, name, fails)
    assert cli.main([*chain, "--seed", "0", "1", "--output", "chain-{seed}.nc"]) == 0


def number(value):
    return value + 1


def test_what_would_have_to_be_compiled_is_not_prepared(tmp_path, monkeypatch):
    """A starter that compiled, or waited for another that does, would leave all others waiting."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compiler.compiled(number)(1) == 2
    with compiler.loading_only():
        assert compiler.compiled(number)(1) == 2
        [lock] = tmp_path.rglob("lock")
        with open(lock) as held, pytest.raises(LookupError, match="is being made"):
            fcntl.flock(held, fcntl.LOCK_EX)
            compiler.compiled(number)(1)
        for kept in tmp_path.rglob("*.nbc"):
            kept.unlink()
        with pytest.raises(LookupError, match="no machine code"):
            compiler.compiled(number)(1)


def test_what_can_be_read_once_is_the_jobs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run.start("data", *SAMPLE[1:5], "--output", "rows.nc").wait(MINUTE) == 0
    os.mkfifo("settings.yaml")
    settings = ("--data", "rows.nc", "--hyperparameters", "settings.yaml")
    client = run.start(*SAMPLE, "--epsilon", "0.5", "--iterations", "20", *settings, "--output", "chain.nc")
    run.job()
    Path("settings.yaml").write_text("{tau: 4, clip: 0.002, proposal_sd: 0.2}")
    said = client.communicate(timeout=5 * MINUTE)[1]
    assert client.returncode == 0, said
    printed, _ = run.start(*BUDGET, "--json").communicate(timeout=MINUTE)
    assert printed.startswith("{")


def test_help_is_heard_once(monkeypatch):
    """Not by those who come after, from what a fork inherits."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    made = Run()
    assert made.start("sample", "--help").communicate(timeout=MINUTE)[0].count("usage:") == 1
    printed, _ = made.start(*BUDGET, "--json").communicate(timeout=MINUTE)
    assert printed.startswith("{")
    made.process.stdin.close()
    assert made.process.stdout.read() == b""


def test_large_rows_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(problem, "_kept", {})
    datasets.build("circle", "circle", "fresh-0", n=50, starts=2).write(tmp_path / "rows.nc")
    monkeypatch.setattr(problem, "MOST_KEPT", 100)
    assert problem.keep(tmp_path / "rows.nc") is None
    assert problem.read_problem(tmp_path / "rows.nc") is not problem.read_problem(tmp_path / "rows.nc")
    monkeypatch.undo()
    monkeypatch.setattr(problem, "_kept", {})
    kept = problem.keep(tmp_path / "rows.nc")
    assert kept is not None and problem.read_problem(tmp_path / "rows.nc") is kept
    assert problem.keep(tmp_path / "nothing.nc") is None
    assert not problem.room_for(problem.MOST_KEPT)  # beside what is kept
    datasets.build("circle", "circle", "fresh-1", n=50, starts=2).write(tmp_path / "rows.nc")
    assert problem.keep(tmp_path / "rows.nc") is not kept and len(problem._kept) == 1


def test_standard_output_and_folder_are_the_commands_own(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text("model: 1\n")
    refused = run.start("budget", "--study", "study.yaml", *BUDGET[3:])
    said = refused.communicate(timeout=MINUTE)[1]
    assert "study.yaml: " in said and "no such file" not in said  # read from this folder
    printed, said = run.start(*BUDGET, "--json").communicate(timeout=MINUTE)
    assert printed.startswith("{") and said == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_what_cannot_be_printed_is_a_failure(run):
    with open("/dev/full", "w") as full:
        printing = run.start(*BUDGET, stdout=full)
    said = printing.communicate(timeout=MINUTE)[1]
    assert printing.returncode != 0 and "No space left" in said
    assert run.imported("netCDF4")


def test_who_needs_other_variables_runs_by_itself(run, waiting):
    client = run.start(*waiting, NUMBA_OPT="0")
    write_rows()
    assert run.starter.children() == []
    client.communicate(timeout=MINUTE)
    assert client.returncode == 0 and Path("made.nc").exists()


def test_a_job_ends_with_who_waits_for_it(run, waiting):
    client = run.start(*waiting)
    job = run.job()
    client.kill()
    client.wait()
    wait_until(lambda: gone(job))
    assert not gone(run.starter)
    again = run.start(*waiting)
    write_rows()
    again.communicate(timeout=MINUTE)
    assert again.returncode == 0  # the starter goes on


def test_processes_of_a_job_end_with_it(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    endless = ("--epsilon", "inf", "--iterations", str(10**9), "--thin", str(10**7), "--quiet")
    share = ("--seed", "0", "1", "2", "3", "--processes", "4", "--output", "seed-{seed}.nc")
    client = run.start(*SAMPLE[:-2], *endless, *share)
    job = run.job()
    wait_until(lambda: len(job.children()) == 4)
    workers = job.children()
    try:
        client.kill()
        client.wait()
        wait_until(lambda: all(gone(process) for process in (job, *workers)))
    finally:
        for worker in workers:
            if not gone(worker):
                worker.kill()


def test_a_job_that_is_killed_is_reported_and_an_interrupt_is_heard(run, waiting):
    client = run.start(*waiting)
    run.job().kill()
    client.communicate(timeout=MINUTE)
    assert client.returncode == 128 + signal.SIGKILL
    client = run.start(*waiting)
    wait_until_it_sleeps(run.job())
    client.send_signal(signal.SIGINT)
    assert client.communicate(timeout=MINUTE)[1] == "dpmc: interrupted\n"
    assert client.returncode == 130


def test_a_run_that_ends_waits_for_its_starter(run, waiting):
    client = run.start(*waiting)
    job = run.job()
    run.process.stdin.close()
    assert run.process.wait(timeout=MINUTE) == 0
    assert gone(run.starter)
    wait_until(lambda: gone(job))
    client.communicate(timeout=MINUTE)
    assert client.returncode == 1


def test_an_interrupt_is_heard_whoever_has_the_command(run, tmp_path, monkeypatch):
    """A client that waits for a starter that is busy, and then gone, does not run what was interrupted."""
    monkeypatch.chdir(tmp_path)
    run.starter.suspend()
    client = run.start(*BUDGET, "--json")
    wait_until_it_sleeps(psutil.Process(client.pid))  # for an answer
    client.send_signal(signal.SIGINT)
    time.sleep(0.2)
    run.starter.kill()
    printed, said = client.communicate(timeout=MINUTE)
    assert client.returncode == 130 and (printed, said) == ("", "dpmc: interrupted\n")


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_run(run, waiting, end):
    client = run.start(*waiting)
    job = run.job()
    run.process.send_signal(end)
    run.process.wait()
    said = client.communicate(timeout=MINUTE)[1]
    assert said == "dpmc: error: the run that started this command has ended\n"
    assert client.returncode == 1
    wait_until(lambda: gone(job) and gone(run.starter))


def test_a_job_ends_with_the_starter(run, waiting):
    client = run.start(*waiting)
    job = run.job()
    run.starter.kill()
    assert "has ended" in client.communicate(timeout=MINUTE)[1]
    wait_until(lambda: gone(job))


def test_who_asks_a_starter_that_is_gone_runs_by_itself(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run.starter.suspend()
    client = run.start(*BUDGET, "--json")
    time.sleep(0.5)  # it has asked by now, or will find nobody to ask
    run.starter.kill()
    printed, _ = client.communicate(timeout=MINUTE)
    assert client.returncode == 0 and printed.startswith("{")


def test_a_request_that_breaks_off_does_no_harm(run, waiting):
    for sent in (
        b"",
        b"\0\0",
        (1000).to_bytes(4, "big") + b"[",
        (2).to_bytes(4, "big") + b"{}",
        b"\0\0\0\0017",
    ):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect("\0" + run.variables[STARTER])
            connection.sendall(sent)
    client = run.start(*waiting)
    run.job()
    write_rows()
    client.communicate(timeout=MINUTE)
    assert client.returncode == 0


def test_another_users_starter_and_another_users_command_are_left_alone(run, monkeypatch):
    us = os.getuid()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + run.variables[STARTER])
        assert same_user(connection)
        monkeypatch.setattr(os, "getuid", lambda: us + 1)
        assert not same_user(connection)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as connection:
        listener.bind("")
        listener.listen()
        connection.connect(listener.getsockname())
        assert starter.Starter(listener).receive() is None
        assert connection.recv(16) == b""


def fails(*_, **__):
    raise OSError(38, "not here")


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        (os, "pidfd_open", fails),
        (subprocess, "Popen", fails),
        (socket.socket, "bind", fails),
    ],
)
def test_a_run_goes_on_without_a_starter(monkeypatch, where, name, instead):
    monkeypatch.delenv(STARTER, raising=False)
    monkeypatch.setattr(where, name, instead)
    before = len(os.listdir("/proc/self/fd"))
    starter.launch()
    assert STARTER not in os.environ
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_empty_variable_asks_for_no_starter(monkeypatch):
    monkeypatch.setenv(STARTER, "")
    starter.launch()
    assert os.environ[STARTER] == ""


@pytest.mark.parametrize("name", ["fork", "pidfd_open"])
def test_what_cannot_be_forked_runs_with_its_client(monkeypatch, name):
    here, there = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as listener, here:
        serving = starter.Starter(listener)
        monkeypatch.setattr(os, name, fails)
        monkeypatch.setattr(serving, "become", lambda request: os._exit(0))
        assert not serving.fork(starter._Request([], "/", {}, [], there))
        assert here.recv(16) == REFUSED and serving.jobs == []


def test_changed_sources_are_not_served(monkeypatch):
    with socket.socket(socket.AF_UNIX) as listener:
        serving = starter.Starter(listener)
        assert serving.serves(dict(os.environ))
        assert not serving.serves({**os.environ, "NUMBA_OPT": "0"})
        now = starter._sources()
        monkeypatch.setattr(starter, "_sources", lambda: now | {"new.py": (0, 0)})
        assert not serving.serves(dict(os.environ))


def test_what_is_imported_beforehand_is_there():
    """A name that is wrong would cost speed and nothing else: nobody would notice."""
    assert starter.IMPORTS.keys() <= cli._PURPOSE.keys()
    for module in {*starter.COMMON, *(name for names in starter.IMPORTS.values() for name in names)}:
        importlib.import_module(module)
