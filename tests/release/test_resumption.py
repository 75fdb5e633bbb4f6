"""A killed release is resumed only if all that is public about its run is as it was."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.algorithms.dp_penalty import DPPenalty
from dpmc.cli.main import main
from dpmc.data import datasets
from dpmc.models.own import given_model
from dpmc.privacy.accountants.gaussian import GaussianDp
from dpmc.privacy.data_ledger import DataLedger
from dpmc.releases import facts as release_facts
from dpmc.releases import files as release_files
from dpmc.releases import loop as releases
from dpmc.sampling import run
from dpmc.sampling.cell import Cell, Given

VALUES = {"tau": 2.0, "clip": 1.0, "proposal_sd": [0.1, 0.1]}
MODEL = dpmc.LinearRegression("y", ["x"], tempering=20)
ROWS = MODEL.simulate(np.random.default_rng(0), np.array([0.5, 1.0]), 60)


def problem(model: Any = MODEL, n: int = 60, label: str = "m", source: tuple[str, ...] = ("y", "x")) -> Any:
    name, definition = given_model(model)
    return datasets.public_setting(label, name, (n, 2), 20, definition, source)


def cell() -> Cell:
    return Cell(
        problem(), "dp-penalty", DPPenalty(**VALUES), "8", 1e-3, "tight", iterations=12, given=Given(VALUES)
    )


#: Another value of each field of a cell; "problem" has several public parts.
CHANGES: dict[str, list[Any]] = {
    "problem": [
        problem(n=61),
        problem(label="n"),
        problem(source=("y", "w")),
        problem(dpmc.LinearRegression("y", ["x"], tempering=30)),
        problem(dpmc.LinearRegression("y", ["x"], tempering=20, prior_sd=2)),
        problem(dpmc.LinearRegression("y", ["w"], tempering=20)),
        dataclasses.replace(problem(), starts=problem().starts + 0.1),
    ],
    "method": ["penalty"],
    "algorithm": [DPPenalty(**{**VALUES, "tau": 3.0})],
    "epsilon": ["9"],
    "delta": [2e-3],
    "accountant": ["zcdp"],
    "chains": [2],
    "iterations": [13, None],
    "thin": [2],
    "most_draws": [6],
    "most_iterations": [100],
    "epsilon_kind": ["per-iteration"],
    "rows_per_person": [2],
    "streams": ["names"],
    "given": [Given({**VALUES, "tau": 2}), Given(VALUES, study="other")],
}


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that continues a release of `cell()` that was stopped in its third block."""
    ledger, output = DataLedger.create(tmp_path / "ledger", 100.0, 0.1), tmp_path / "release.nc"

    def run(changed: Cell) -> Any:
        return releases.release(changed, ROWS, DataLedger.open(ledger.path), output)

    advance, left = releases.ReleaseLoop.advance, iter(range(2))

    def stopped(self: Any, m: int) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        advance(self, m)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(releases.ReleaseLoop, "advance", stopped)
        run(cell())
    return run


def test_every_field_of_a_cell_must_be_as_it_was(killed: Callable[..., Any]) -> None:
    assert CHANGES.keys() == {field.name for field in dataclasses.fields(Cell)}
    for name, values in CHANGES.items():
        for value in values:
            try:
                changed = dataclasses.replace(cell(), **{name: value})
                killed(changed)
            except dpmc.DpmcError as error:
                refused_anyway = name in ("epsilon_kind", "rows_per_person")
                assert refused_anyway or "is of a run with other arguments" in str(error), (name, error)
            else:
                raise AssertionError(f"{name}: {value} was resumed")
    assert release_files.check(killed(cell())) == []


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (DPPenalty, "draws_version"),
        (GaussianDp, "version"),
        (run, "__version__"),
        (release_facts, "BLOCKS"),
    ],
)
def test_versions_must_be_as_they_were(
    killed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, place: Any, name: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(place, name, 5)
        with pytest.raises(dpmc.DpmcError, match=r"is of a run with other arguments"):
            killed(cell())
    assert release_files.check(killed(cell())) == []


OWN_MODEL = """
import numpy as np

class Line:
    dimension = 2
    parameters = ("a", "x")

    def log_likelihood(self, theta, rows):
        return -0.5 * (rows[:, 0] - theta[0] - theta[1] * rows[:, 1]) ** 2
"""


@pytest.mark.parametrize("change", [("[y, x]", "[y, w]"), ("most_draws: 10", "most_draws: 5"), ("", "")])
def test_a_study_that_changed_meanwhile_is_not_resumed(
    change: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file would mix two questions: draws of two columns, or of two lengths."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("line_of_own.py").write_text(OWN_MODEL)
    table = np.random.default_rng(0).normal(size=(50, 3))
    np.savetxt("people.csv", table, delimiter=",", header="y,x,w", comments="")
    study = {
        "title": "A line",
        "delta": "0.1/n",
        "seeds": 1,
        "tuning": {"mode": "none"},
        "models": {
            "line": {
                "model": "line_of_own:Line",
                "data": "people.csv",
                "columns": ["y", "x"],
                "epsilons": [8],
            }
        },
        "methods": {"dp-penalty": {"algorithm": "dp-penalty", "most_draws": 10, "iterations": 40}},
    }
    text = json.dumps(study).replace('["y", "x"]', "[y, x]").replace('"most_draws"', "most_draws")
    Path("own.yaml").write_text(text)
    Path("values.yaml").write_text(json.dumps(VALUES))
    DataLedger.create("ledger", 100.0, 0.1)
    command = [
        "release",
        "--study",
        "own.yaml",
        "--model",
        "line",
        "--method",
        "dp-penalty",
        "--epsilon",
        "8",
    ]
    command += ["--ledger", "ledger", "--output", "release.nc", "--hyperparameters", "values.yaml", "--quiet"]
    advance = releases.ReleaseLoop.advance

    def stopped(self: Any, m: int) -> None:
        advance(self, m)
        if self.done == 7:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(releases.ReleaseLoop, "advance", stopped)
        assert main(command) == 130
    Path("own.yaml").write_text(text.replace(*change))
    assert main(command) == (2 if change[0] else 0)
    Path("own.yaml").write_text(text)
    if change[0]:
        assert main(command) == 0
    assert release_files.read("release.nc")["posterior/theta"].shape == (1, 10, 2)
    assert main(["check-release", "release.nc", "--quiet"]) == 0
