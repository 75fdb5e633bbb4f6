"""Mutated inputs: nothing invalid is taken, nothing valid refused, no traceback, no hang, no file lost.

Bugs planted at the entry point show that each kind of fault is noticed.
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


@pytest.mark.parametrize(
    ("seed", "first"),
    [(0, first) for first in range(0, QUICK, 25)]
    + [pytest.param(1, first, marks=pytest.mark.slow) for first in range(0, SLOW, 25)],
)
def test_mutated_inputs(seed, first, tmp_path):
    verdicts = [plan.check(seed, index, tmp_path / str(index)) for index in range(first, first + 25)]
    wrong = [str(verdict) for verdict in verdicts if verdict.faults]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("command", inputs.CASES)
def test_an_unchanged_input_is_accepted(command, tmp_path):
    case = inputs.case(plan.template(), tmp_path / "input", command)
    assert running.judge(case.argv, case.folder, case.outputs, True)[1] == []


# Bugs to plant: what becomes of a command.


def end(main, argv):
    """The exit code of a command."""
    try:
        return main(argv)
    except SystemExit as stop:
        return stop.code


def after(change, result=lambda code: code):
    """A command that does something more at its end, or ends in another way."""

    def main(real, argv):
        code = end(real, argv)
        change()
        return result(code)

    return main


def instead(action):
    """Another thing in the place of a command."""
    return lambda real, argv: action()


def unchecked(main, argv):
    """No epsilon is checked."""
    i = argv.index("--epsilon")
    return end(main, [*argv[: i + 1], "4", *argv[i + 2 :]])


def hanging(main, argv):
    """It never ends."""
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


def crash():
    """A library crashes."""
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)


def nothing():
    """Change nothing."""


STUDY, NEW, ROWS = Path("config/studies/tiny.yaml"), Path("new.nc"), Path("rows.csv")
PLANTS = {
    "a refusal ends as a success": (after(nothing, lambda code: code and 0), False, "accepted, though"),
    "no epsilon is checked": (unchecked, False, "accepted, though it is invalid"),
    "a reader finds no key": (instead(lambda: {}["rows"]), True, "traceback: KeyError"),
    "an input is overwritten": (after(lambda: ROWS.write_text("1,2\n")), True, "changed or lost rows.csv"),
    "an input is removed": (after(STUDY.unlink), False, f"changed or lost {STUDY}"),
    "it hangs": (hanging, True, "still running after"),
    "a library crashes": (instead(crash), True, "killed by SIGSEGV"),
    "too much memory": (instead(lambda: len(bytearray(2**34))), True, "traceback: MemoryError"),
    "too strict": (instead(lambda: sys.exit("dpmc: error: no")), True, "refused, though it is valid"),
    "a warning, too": (after(lambda: print("a warning", file=sys.stderr)), False, "2 lines on standard"),
    "another exit code": (after(nothing, lambda code: min(code, 1)), False, "exit code 1 in place of 2"),
    "it does nothing": (instead(lambda: 0), True, "exit code 0 without new.nc"),
    "a refusal leaves a result": (after(NEW.touch), False, "failed, but wrote new.nc"),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_detected(name, tmp_path, monkeypatch):
    plant, valid, fault = PLANTS[name]
    real = cli.main
    for index in itertools.count():
        _, mutation, case = plan.make(0, index, plan.template(), tmp_path / f"look {index}")
        if mutation.valid is not valid:
            continue
        if fault.endswith("new.nc") and (case.outputs != ["new.nc"] or case.path("new.nc").exists()):
            continue
        if plant is unchecked and mutation.name != "--epsilon wrong":
            continue
        if plan.check(0, index, tmp_path / f"clean {index}").faults:
            continue
        monkeypatch.setattr(cli, "main", lambda argv: plant(real, argv))
        faults = plan.check(0, index, tmp_path / "planted", 3.0 if plant is hanging else 30.0).faults
        assert any(found.startswith(fault) for found in faults), faults
        return
