"""Sampling jobs of several ε and seeds: the same bits as one by one, also after a kill."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from dpmc.cli.main import main
from dpmc.data.chain_files import read_chain

MODEL = ("sample", "--study", "smoke", "--model", "circle", "--data", "circle.nc")
CELL = (*MODEL, "--method", "dp-penalty")
PATTERN = "eps-{epsilon}/seed-{seed}.nc"

#: `dpmc`, killed after so many calls of a function, by its module and name.
DEADLY = """
import importlib, os, signal, sys
from dpmc.cli import main as cli

module, name, left = importlib.import_module(sys.argv.pop(1)), sys.argv.pop(1), int(sys.argv.pop(1))
function = getattr(module, name)

def do_and_die(*arguments):
    global left
    function(*arguments)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

setattr(module, name, do_and_die)
sys.exit(cli.main(sys.argv[1:]))
"""

#: `dpmc`, waiting for a file before chains get their output names.
SLOW = """
import pathlib, sys, time
from dpmc.cli import main as cli
from dpmc.sampling import jobs

finish = jobs.finish

def wait_and_finish(them):
    while not pathlib.Path("{go}").exists():
        time.sleep(0.02)
    finish(them)

jobs.finish = wait_and_finish
sys.exit(cli.main(sys.argv[1:]))
"""


def run(*arguments: str) -> None:
    assert main((*CELL, "--quiet", *arguments)) == 0


def killed(module: str, name: str, after: int, *arguments: str) -> None:
    command = [sys.executable, "-c", DEADLY, module, name, str(after), *arguments]
    assert subprocess.run(command, check=False).returncode == -9


def chains(folder: str) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*.nc")}


def test_several_epsilons_are_bit_identical_to_each_alone(folder):
    run("--epsilon", "8", "1.0", "4", "--seed", "2", "0", "--output", f"all/{PATTERN}")
    for epsilon in ("1", "4", "8"):
        for seed in ("0", "2"):
            run("--epsilon", epsilon, "--seed", seed, "--output", f"one/eps-{epsilon}/seed-{seed}.nc")
    assert chains("all") == chains("one") and len(set(chains("all").values())) == 6
    assert read_chain("all/eps-1/seed-0.nc").attrs["epsilon"] == "1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*CELL, "--epsilon", "1", "1.0", "--seed", "0", "--output", PATTERN), "--epsilon: 1 1 must be"),
        ((*CELL, "--epsilon", "1", "--seed", "0", "0", "--output", PATTERN), "--seed: 0 0 must be"),
        ((*CELL, "--epsilon", "x", "--seed", "0", "--output", PATTERN), "epsilon: "),
        ((*CELL, "--epsilon", "1", "2", "--seed", "0", "--output", "c-{seed}.nc"), "is named twice"),
        (
            (*MODEL, "--method", "x", "--epsilon", "1", "--seed", "0", "--output", PATTERN),
            "methods: 'x' is unknown",
        ),
    ],
)
def test_invalid_runs_are_refused_and_nothing_is_written(folder, refused, arguments, words):
    assert words in refused(*arguments)
    assert not chains("eps-1") and not list(folder.glob(".*"))


@pytest.mark.parametrize(
    ("written", "kept", "checkpoint_seconds"),
    [(1, 0, "1e9"), (3, 3, "1e9"), (6, 6, "1e9"), (4, 0, "0")],
)
def test_a_killed_job_loses_no_finished_chain(folder, written, kept, checkpoint_seconds):
    """Runs that finished after the last checkpoint are made again; without one, finished cells stay."""
    job = ("--epsilon", "1", "4", "--seed", "0", "1", "2", "--checkpoint-seconds", checkpoint_seconds)
    run(*job, "--output", f"whole/{PATTERN}")
    killed("dpmc.data.chain_files", "write_chains", written, *CELL, *job, "--output", f"killed/{PATTERN}")
    assert not list(Path("killed").rglob("seed-*.nc"))
    waiting = {path.stat().st_ino for path in Path("killed").rglob(".*-seed-*.nc")}
    assert len(waiting) == written
    run(*job, "--output", f"killed/{PATTERN}")
    assert chains("killed") == chains("whole")
    assert not list(Path("killed").rglob(".*"))
    made = {path.stat().st_ino for path in Path("killed").rglob("*.nc")}
    assert len(made & waiting) >= kept


def test_finished_runs_survive_a_kill(folder):
    """As Snakemake does after a kill, the test deletes the outputs of the unfinished job."""
    job = ("--epsilon", "1", "4", "--seed", "0", "1", "--output", PATTERN)
    killed("os", "link", 2, *CELL, *job)
    for output in Path().glob("eps-*/seed-*.nc"):
        output.unlink()
    waiting = {path.stat().st_ino for path in Path().glob("eps-*/.*-seed-?.nc")}
    assert len(waiting) == 4
    run(*job)
    assert {path.stat().st_ino for path in Path().glob("eps-*/seed-*.nc")} == waiting
    left = [path for path in Path().glob("eps-*/.*") if path.suffix != ".tmp"]  # of killed writers
    assert not left


def test_a_second_process_waits_and_makes_no_chain_again(folder):
    """As after `kill -9` of Snakemake, whose jobs go on: the run that follows starts the same ones."""
    outputs = ("--epsilon", "4", "--seed", "0", "1", "--output", f"two/{PATTERN}")
    slow = SLOW.format(go=folder / "go")
    first = subprocess.Popen([sys.executable, "-c", slow, *CELL, "--quiet", *outputs])
    while len(list(folder.glob("two/eps-4/.*-seed-*.nc"))) < 2:
        assert first.poll() is None
        time.sleep(0.02)
    command = [sys.executable, "-m", "dpmc", *CELL, "--no-summary", *outputs]
    second = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert second.stderr.readline() == (
        "dpmc: two/eps-4: waiting for another process that samples these chains\n"
    )
    (folder / "go").touch()
    assert first.wait() == 0
    made = {path: path.stat().st_ino for path in folder.glob("two/**/*.nc")}
    assert "iterations" not in second.communicate()[1] and second.returncode == 0
    assert {path: path.stat().st_ino for path in folder.glob("two/**/*.nc")} == made
    assert not list(folder.glob("two/**/.*"))
    run("--epsilon", "4", "--seed", "0", "1", "--output", f"one/{PATTERN}")
    assert chains("one") == chains("two") and len(made) == 2


def test_a_file_system_without_hard_links_suffices(folder, monkeypatch):
    job = ("--epsilon", "1", "4", "--seed", "0", "--output")
    run(*job, f"linked/{PATTERN}")

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    run(*job, f"copied/{PATTERN}")
    assert chains("copied") == chains("linked") and not list(Path("copied").rglob(".*"))


TWO = {
    "dp-penalty-a": {"algorithm": "dp-penalty"},
    "dp-penalty-b": {"algorithm": "dp-penalty", "accountant": "rdp"},
}


def test_several_methods_are_bit_identical_to_each_alone_also_after_a_kill(folder):
    study = yaml.safe_load(Path("config/studies/smoke.yaml").read_text())
    Path("config/studies/two.yaml").write_text(yaml.safe_dump({**study, "methods": TWO}))
    model = (*MODEL, "--quiet", "--study", "two")
    for method in TWO:
        alone = ("--epsilon", "1", "--seed", "0", "1", "--output", f"one/{method}/{PATTERN}")
        assert main((*model, "--method", method, *alone)) == 0
    runs = ("--method", *TWO, "--epsilon", "1", "--seed", "0", "1", "--output")
    assert main((*model, *runs, f"all/{{method}}/{PATTERN}")) == 0
    assert chains("all") == chains("one") and len(set(chains("all").values())) == 4
    both = (*model, *runs, f"killed/{{method}}/{PATTERN}")
    killed("dpmc.data.chain_files", "write_chains", 3, *both)
    waiting = {path.stat().st_ino for path in Path("killed").rglob(".*-seed-?.nc")}
    assert main(both) == 0
    assert chains("killed") == chains("one")
    assert len({path.stat().st_ino for path in Path("killed").rglob("*.nc")} & waiting) == 3


def test_waiting_files_of_other_settings_are_not_used(folder):
    """Other hyperparameters: nothing of the killed job is taken."""
    job = ("--epsilon", "1", "4", "--seed", "0", "--output", PATTERN)
    killed("dpmc.data.chain_files", "write_chains", 1, *CELL, *job)
    (folder / "own.yaml").write_text(yaml.safe_dump({"tau": 0.1, "clip": 2, "proposal_sd": 0.05}))
    run(*job, "--hyperparameters", "own.yaml")
    assert json.loads(read_chain("eps-1/seed-0.nc").attrs["hyperparameters"])["tau"] == 0.1
