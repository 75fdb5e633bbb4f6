"""Output of a run: percent and time left, failures with the ends of their logs, place of the figures."""

import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_dpmc as plugin
from pipeline_copy import copy_pipeline

STUDY = {
    "title": "one cell",
    "delta": "0.1/n",
    "seeds": 2,
    "settings_of": "cell",
    "tuning": {"seeds": 2},
    "models": {"circle": {"epsilons": [0.5], "tuning_epsilon": 0.5, "n": 2_000}},
    "methods": {"dp-penalty": {}},
    "figures": ["models"],
}
SETTINGS = {"tau": 0.1, "clip": 2, "proposal_sd": 0.05}


def run(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Exit status and lines of a run."""
    command = [sys.executable, "workflow/run.py", "--cores", "1", *arguments, "cell"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_a_run_shows_progress_and_ends_with_the_place_of_the_figures(tmp_path):
    folder = copy_pipeline(tmp_path, {"cell": STUDY}, {"cell": {"dp-penalty": {"circle": SETTINGS}}})
    status, lines = run(folder)
    assert status == 0 and len(lines) < 50, lines
    assert any("jobs (100%), " in line for line in lines)
    assert lines[-1] == "dpmc: made: figures/cell" and (folder / "figures/cell/models.csv").exists()
    assert "Models</h2>" in (folder / "figures/cell/index.html").read_text()

    status, lines = run(folder)
    assert status == 0 and any("Nothing to be done" in line for line in lines), lines
    status, lines = run(folder, "--quiet", "--force")
    assert status == 0 and not any("%" in line for line in lines) and len(lines) <= 2, lines
    status, lines = run(folder, "--verbose", "--forceall")
    assert status == 0 and any(line.startswith("    output: results/cell/") for line in lines)
    assert lines[-1] == "dpmc: made: figures/cell"
    status, lines = run(folder, "--dry-run", "--forceall")
    assert status == 0 and any(line.startswith("    output: results/cell/") for line in lines)
    assert not any("made" in line for line in lines)


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_failed_job_is_shown_with_the_end_of_its_log(tmp_path, quiet):
    folder = copy_pipeline(tmp_path, {"cell": STUDY}, {"cell": {"dp-penalty": {"circle": SETTINGS}}})
    (folder / "data/cell/circle").mkdir(parents=True)
    (folder / "data/cell/circle/tuning.nc").write_text("no data")
    status, lines = run(folder, *quiet)
    assert status == 1 and len(lines) < 50
    at = lines.index("  logs/cell/tuning/circle/dp-penalty.log:")
    assert lines[at - 1].startswith("dpmc: failed: rule tuning: results/cell/tuning/circle/")
    assert lines[at + 1].startswith("    dpmc: error: ") and "tuning.nc" in lines[at + 1]
    assert not any("Traceback" in line or "made" in line for line in lines)


def handler(live: bool = False, quiet: tuple[str, ...] = (), **asked: bool) -> Any:
    options = dict.fromkeys(("dryrun", "verbose", "printshellcmds", "debug_dag"), False) | asked
    made = plugin.LogHandler(SimpleNamespace(quiet=quiet, **options), None)
    made.setFormatter(logging.Formatter("%(message)s"))
    made.live = live
    return made


def record(event: LogEvent | None, message: str = "", level: int = logging.INFO, **fields: Any) -> Any:
    made = logging.LogRecord("snakemake", level, "", 0, message, None, None)
    for name, value in {"event": event, **fields}.items():
        setattr(made, name, value)
    return made


def test_time_left_is_that_of_as_many_jobs(capsys, monkeypatch):
    now = 100.0
    monkeypatch.setattr(plugin.time, "monotonic", lambda: now)
    shown = handler()
    shown.emit(record(LogEvent.JOB_INFO))
    for done, now in ((1, 130.0), (2, 131.0), (3, 141.0), (4, 142.0)):  # noqa: B007
        shown.emit(record(LogEvent.PROGRESS, done=done, total=4))
    assert capsys.readouterr().err.splitlines() == [
        "1 of 4 jobs (25%), 30 s, about 90 s left",
        "3 of 4 jobs (75%), 41 s, about 14 s left",
        "4 of 4 jobs (100%), 42 s, about 0 s left",
    ]


def test_on_a_terminal_one_line_rewrites_itself(capsys):
    shown = handler(live=True)
    for done in (1, 2):
        shown.emit(record(LogEvent.PROGRESS, done=done, total=2))
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and told.count("\r\033[K") == 2 and told.endswith("s left\n")


def test_only_relevant_messages_are_shown(capsys, tmp_path):
    (tmp_path / "job.log").write_text("".join(f"line {k}\n" for k in range(40)))
    shown = handler(quiet=("all",))
    failure = {"rule_name": "tuning", "output": ["a", "b"], "log": [str(tmp_path / "job.log"), "none.log"]}
    for one in (
        record(LogEvent.PROGRESS, done=1, total=2),
        record(None, "Select jobs to execute..."),
        record(None, "Nothing to be done (all is there)."),
        record(None, "a warning", logging.WARNING),
        record(LogEvent.ERROR, "an error\n" + 301 * "x", logging.ERROR),
        record(LogEvent.JOB_ERROR, "Error in rule", logging.ERROR, **failure),
        record(LogEvent.JOB_ERROR, "Error in rule", logging.ERROR, **failure),
    ):
        shown.emit(one)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:4] == ["Nothing to be done (all is there).", "a warning", "an error", 300 * "x" + "…"]
    assert lines[4:6] == ["dpmc: failed: rule tuning: a and 1 more", f"  {tmp_path}/job.log:"]
    assert lines[6:] == [*(f"    line {k}" for k in range(25, 40)), "  none.log:"]


@pytest.mark.parametrize("option", ["dryrun", "verbose", "printshellcmds", "debug_dag"])
def test_snakemakes_own_log_is_shown_if_it_is_asked_for(capsys, option):
    assert handler().writes_to_stream
    own = handler(**{option: True})
    own.emit(record(None, "a warning", logging.WARNING))
    assert not own.writes_to_stream and capsys.readouterr().err == ""
