"""Messages of the library: on standard error, unless the user has handlers of Python's logging."""

import logging
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dpmc

CODE = """
import logging, numpy as np, dpmc
{before}
rows = np.random.default_rng(1).normal(size=(500, 2))
setting = {{"tau": 0.5, "clip": 5, "proposal_sd": 2.0}}
dpmc.sample(dpmc.LinearRegression("y", ["x"]), rows, epsilon=2, hyperparameters=setting, progress={progress})
"""
ROWS = np.random.default_rng(1).normal(size=(500, 2))


@pytest.mark.parametrize(
    ("before", "progress", "starts"),
    [
        ("", True, ["LinearRegression dp-penalty epsilon 2: ", "dpmc: warning: "]),
        ("", False, []),
        ("logging.basicConfig(format='LOG %(levelname)s %(message)s')", True, ["LOG INFO", "LOG WARNING"]),
        ("logging.getLogger('dpmc').setLevel('WARNING')", True, ["dpmc: warning: "]),
        ("logging.getLogger('dpmc').setLevel('ERROR')", True, []),
    ],
)
def test_a_message_is_shown_once(before: str, progress: bool, starts: list[str]) -> None:
    code = CODE.format(before=before, progress=progress)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = done.stderr.splitlines()
    assert bool(said) == bool(starts)
    for start in starts:
        assert any(line.startswith(start) for line in said), said
    assert sum("of the proposals were accepted" in line for line in said) == bool(starts)


def test_records_have_the_name_of_the_package(caplog: pytest.LogCaptureFixture) -> None:
    setting = {"tau": 0.5, "clip": 5, "proposal_sd": 2.0}
    dpmc.sample(dpmc.LinearRegression("y", ["x"]), ROWS, epsilon=2, hyperparameters=setting)
    assert {record.name for record in caplog.records} == {"dpmc"}
    levels = {record.levelno: record.getMessage() for record in caplog.records}
    assert levels.keys() == {logging.INFO, logging.WARNING}
    assert not any(record.getMessage().startswith("dpmc: warning") for record in caplog.records)


def test_a_search_keeps_what_is_fixed() -> None:
    model: Any = dpmc.LinearRegression("y", ["x"], true_theta=[0.5, 1.0], tempering=50)
    fixed = {"clip_l": 6.0, "steps": 3}
    found = dpmc.tune(model, 500, "dp-hmc", epsilon=4, trials=2, seeds=1, fixed=fixed)
    assert {name: found["hyperparameters"][name] for name in fixed} == fixed
    assert not fixed.keys() & set(found["search"]["free"]) and "step_size" in found["search"]["free"]
    with pytest.raises(dpmc.DpmcError, match="fixed: clipp: unknown .* did you mean clip_"):
        dpmc.tune(model, 500, "dp-hmc", epsilon=4, fixed={"clipp": 1.0})
    setting = {"tau": 0.5, "clip": 5, "proposal_sd": 0.1}
    with pytest.raises(dpmc.DpmcError, match="nothing to search"):
        dpmc.tune(model, 500, epsilon=4, fixed=setting, progress=False)


def test_the_ess_of_a_chosen_setting_is_there_also_if_no_chain_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    def never_moved(_: Any) -> None:
        raise ValueError("not defined for these chains (some never moved)")

    monkeypatch.setattr("dpmc.metrics.cell.convergence", never_moved)
    model: Any = dpmc.LinearRegression("y", ["x"], true_theta=[0.5, 1.0], tempering=50)
    found = dpmc.tune(model, 500, epsilon=4, trials=1, seeds=1, progress=False)
    assert found["search"]["chosen"]["ess"] == 0.0 and "rhat" not in found["search"]["chosen"]
