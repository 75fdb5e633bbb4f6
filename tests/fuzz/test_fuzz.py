"""Mutated inputs: nothing invalid is taken, nothing valid refused, no traceback, no hang, no file lost.

`python tests/fuzz --count 2000` prints the counts per category. Bugs planted at the entry point show that
each kind of fault is noticed.
"""

import contextlib
import itertools
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from dpmc.cli import main as cli
from fuzz import inputs, plan, running

QUICK, SLOW = 200, 2000  # inputs of `make test`, of `make slow`


def check_all(seed: int, first: int, count: int, folder: Path) -> None:
    verdicts = [plan.check(seed, index, folder / str(index)) for index in range(first, first + count)]
    print(plan.table(verdicts))
    wrong = [str(verdict) for verdict in verdicts if verdict.faults]
    assert not wrong, f"{len(wrong)} of {count} inputs:\n\n" + "\n\n".join(wrong)


@pytest.mark.parametrize("first", range(0, QUICK, 25))
def test_inputs(first, tmp_path):
    check_all(0, first, 25, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SLOW, 100))
def test_one_hundred_mutated_inputs(first, tmp_path):
    check_all(1, first, 100, tmp_path)


@pytest.mark.parametrize("command", inputs.COMMANDS)
def test_an_unchanged_input_is_accepted(command, tmp_path):
    case = inputs.case(plan.template(), tmp_path / "input", command)
    assert running.judge(case.argv, case.folder, case.outputs, True)[1] == []


def test_an_input_is_reproducible(tmp_path):
    for index in range(0, 400, 7):
        made = [plan.make(3, index, plan.template(), tmp_path / f"{index} {turn}") for turn in range(2)]
        one, other = ([word.replace(str(case.folder), "") for word in case.argv] for _, _, case in made)
        assert one == other and made[0][1] == made[1][1] and made[0][2].told == made[1][2].told
        one, other = (inputs.changed_files(case, plan.template()) for _, _, case in made)
        assert {k: v for k, v in one.items() if k[-3:] != ".nc"} == {
            k: v for k, v in other.items() if k[-3:] != ".nc"
        }


# Bugs to plant: what becomes of a command.


def end(main, argv):
    """The exit code of a command."""
    try:
        return main(argv)
    except SystemExit as stop:
        return stop.code


def taken(main, argv):
    """A refusal ends as a success."""
    return end(main, argv) and 0


def unchecked(main, argv):
    """No epsilon is checked."""
    i = argv.index("--epsilon")
    return end(main, [*argv[: i + 1], "4", *argv[i + 2 :]])


def unreadable(main, argv):
    """A reader finds no key."""
    raise KeyError("rows")


def overwriting(main, argv):
    """Inputs are overwritten."""
    code = end(main, argv)
    Path("rows.csv").write_text("1,2\n")
    return code


def removing(main, argv):
    """Inputs are removed."""
    code = end(main, argv)
    Path("config/studies/tiny.yaml").unlink()
    return code


def hanging(main, argv):
    """It never ends."""
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


def crashing(main, argv):
    """A library crashes."""
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)


def greedy(main, argv):
    """It asks for more memory than there may be."""
    return len(bytearray(2**34))


def strict(main, argv):
    """Valid inputs are refused."""
    print("dpmc: error: too strict", file=sys.stderr)
    return 2


def wordy(main, argv):
    """A warning comes before the line of a refusal."""
    print("a warning", file=sys.stderr)
    return end(main, argv)


def miscounted(main, argv):
    """A refusal has another exit code."""
    return min(end(main, argv), 1)


def idle(main, argv):
    """A success writes nothing."""
    return 0


def leaving(main, argv):
    """A refusal leaves a result."""
    code = end(main, argv)
    Path("new.nc").write_bytes(b"")
    return code


@pytest.mark.parametrize(
    ("plant", "valid", "fault"),
    [
        (taken, False, "accepted, though it is invalid"),
        (unchecked, False, "accepted, though it is invalid"),
        (unreadable, True, "traceback: KeyError"),
        (overwriting, True, "changed or lost rows.csv"),
        (removing, False, "changed or lost config/studies/tiny.yaml"),
        (hanging, True, "still running after"),
        (crashing, True, "killed by SIGSEGV"),
        (greedy, True, "traceback: MemoryError"),
        (strict, True, "refused, though it is valid"),
        (wordy, False, "2 lines on standard error"),
        (miscounted, False, "exit code 1 in place of 2"),
        (idle, True, "exit code 0 without new.nc"),
        (leaving, False, "failed, but wrote new.nc"),
    ],
)
def test_a_planted_bug_is_detected(plant, valid, fault, tmp_path, monkeypatch):
    real = cli.main
    for index in itertools.count():
        category, mutation, case = plan.make(0, index, plan.template(), tmp_path / f"look {index}")
        if mutation.valid is not valid or (fault.endswith("new.nc") and case.outputs != ["new.nc"]):
            continue
        if plant is unchecked and mutation.name != "epsilon that is no number":
            continue
        if plan.check(0, index, tmp_path / f"clean {index}").faults:
            continue
        monkeypatch.setattr(cli, "main", lambda argv: plant(real, argv))
        faults = plan.check(0, index, tmp_path / "planted", 3.0 if plant is hanging else 30.0).faults
        assert any(found.startswith(fault) for found in faults), faults
        return
