"""Output of a run: percent and time left, failures with the ends of their logs, place of the figures."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_dpmc as plugin
from pipeline_copy import SMALL, copy_pipeline, make_figures


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_pipeline(tmp_path, {"cell": SMALL})


def test_a_run_shows_progress_and_ends_with_the_place_of_the_figures(folder):
    lines = make_figures(folder, "cell").splitlines()
    assert any("jobs (100%), " in line for line in lines) and len(lines) < 50, lines
    assert lines[-1] == "dpmc: made: figures/cell" and (folder / "figures/cell/models.csv").exists()
    assert "Models</h2>" in (folder / "figures/cell/index.html").read_text()

    assert "Nothing to be done" in make_figures(folder, "cell")
    lines = make_figures(folder, "--quiet", "--force", "cell").splitlines()
    assert not any("%" in line for line in lines) and len(lines) <= 2, lines
    for option in ("--verbose", "--dry-run"):
        printed = make_figures(folder, option, "--forceall", "cell")
        assert "\n    output: results/cell/" in printed
        assert ("dpmc: made: figures/cell" in printed) == (option == "--verbose")


def test_a_failed_job_is_shown_with_the_end_of_its_log(folder):
    (folder / "data/cell/circle").mkdir(parents=True)
    (folder / "data/cell/circle/tuning.nc").write_text("no data")
    lines = make_figures(folder, "--quiet", "cell", status=1).splitlines()
    at = lines.index("  logs/cell/tuning/circle.log:")
    assert lines[at - 1].startswith("dpmc: failed: rule tuning_cell_circle: results/cell/tuning/circle/")
    assert lines[at + 1].startswith("    dpmc: error: ") and "tuning.nc" in lines[at + 1]
    assert not any("Traceback" in line or "made" in line for line in lines) and len(lines) < 50


def shown(*events: tuple[LogEvent | None, dict[str, Any]], **asked: Any) -> None:
    """Show events as in a run with the options `asked`."""
    options = {"quiet": (), **dict.fromkeys(("dryrun", "verbose", "printshellcmds", "debug_dag"), False)}
    handler = plugin.LogHandler(SimpleNamespace(**{**options, **asked}), None)
    handler.setFormatter(logging.Formatter("%(message)s"))
    for event, fields in events:
        handler.emit(logging.makeLogRecord({"event": event, "levelno": logging.INFO, **fields}))


def test_time_left_is_that_of_as_many_jobs(capsys, monkeypatch):
    moments = iter((100.0, 130.0, 131.0, 141.0, 142.0))
    monkeypatch.setattr(plugin.time, "monotonic", lambda: next(moments))
    progress = [(LogEvent.PROGRESS, {"done": done, "total": 4}) for done in (1, 2, 3, 4)]
    shown((LogEvent.JOB_INFO, {}), *progress)
    assert capsys.readouterr().err.splitlines() == [
        "1 of 4 jobs (25%), 30 s, about 90 s left",
        "3 of 4 jobs (75%), 41 s, about 14 s left",
        "4 of 4 jobs (100%), 42 s, about 0 s left",
    ]


def test_only_relevant_messages_are_shown(capsys, tmp_path):
    (tmp_path / "job.log").write_text("".join(f"line {k}\n" for k in range(40)))
    failure = {"rule_name": "tuning", "output": ["a", "b"], "log": [str(tmp_path / "job.log"), "none.log"]}
    events = (
        (LogEvent.PROGRESS, {"done": 1, "total": 2}),
        (None, {"msg": "Select jobs to execute..."}),
        (None, {"msg": "Nothing to be done (all is there)."}),
        (LogEvent.ERROR, {"msg": "an error\n" + 301 * "x", "levelno": logging.ERROR}),
        (LogEvent.JOB_ERROR, {"levelno": logging.ERROR, **failure}),
        (LogEvent.JOB_ERROR, {"levelno": logging.ERROR, **failure}),
    )
    shown(*events, quiet=("all",))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["Nothing to be done (all is there).", "an error", 300 * "x" + "…"]
    assert lines[3:5] == ["dpmc: failed: rule tuning: a and 1 more", f"  {tmp_path}/job.log:"]
    assert lines[5:] == [f"    line {k}" for k in range(25, 40)]
    shown(*events, dryrun=True)  # Snakemake's own log is shown instead
    assert capsys.readouterr().err == ""
