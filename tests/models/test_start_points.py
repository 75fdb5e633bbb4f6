"""A start point where the prior is 0 or no number is refused before anything is spent."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.privacy.data_ledger import DataLedger
from dpmc.sampling import loop

SETTING = {"tau": 0.5, "clip": 5.0, "proposal_sd": 0.02}
GIVEN: Any = {"epsilon": 2, "hyperparameters": SETTING, "progress": False}
ROWS = np.random.default_rng(0).normal(5.0, 1.0, 200)


class Above:
    """x ~ N(θ, 1) with a flat prior on θ > `least`; chains start around 0."""

    dimension, n, true_theta, least = 1, 200, (0.0,), 4.0

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return -0.5 * (rows[:, 0] - theta[0]) ** 2

    def log_prior(self, theta: np.ndarray) -> Any:
        return 0.0 if theta[0] > self.least else -np.inf

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        return theta + generator.standard_normal((n, 1))


class Undefined(Above):
    """A prior that is no number below `least`."""

    def log_prior(self, theta: np.ndarray) -> Any:
        return 0.0 if theta[0] > self.least else float("nan")


class Narrow(Above):
    """A prior that leaves some of the start points, the first among them, out."""

    least = 0.0


@pytest.fixture
def no_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any iteration fail, and so any query from the rows."""

    def advance(*_: Any) -> None:
        raise AssertionError("an iteration was made")

    monkeypatch.setattr(loop.Loop, "advance", advance)


@pytest.mark.usefixtures("no_iteration")
@pytest.mark.parametrize(
    ("model", "more", "words"),
    [
        (
            Above,
            {},
            r"start: start point 0, \[-0.12\d+\]: log_prior is -inf, must be finite where a chain starts",
        ),
        (Above, {"start": [1.0]}, r"start point 0, \[1.0\]: log_prior is -inf"),
        (Above, {"start": [[5.0], [1.0]], "chains": 2}, r"start point 1, \[1.0\]: log_prior is -inf"),
        (Undefined, {}, "log_prior: nan at start point 0"),
        ("mixture", {"start": [9.0, 9.0]}, r"start point 0, \[9.0, 9.0\]: log_prior is -inf"),
    ],
)
def test_sample_and_release_refuse_it(model: Any, more: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(dpmc.DpmcError, match=words):
        dpmc.sample(model, ROWS, **GIVEN, **more)
    ledger, output = DataLedger.create(tmp_path / "people.ledger", 10.0, 0.01), tmp_path / "release.nc"
    with pytest.raises(dpmc.DpmcError, match=words):
        dpmc.release(model, ROWS[:, None], ledger=ledger.path, output=output, **GIVEN, **more)
    assert not DataLedger.open(ledger.path).entries and [*tmp_path.iterdir()] == [ledger.path]


@pytest.mark.usefixtures("no_iteration")
def test_searches_and_plans_refuse_it() -> None:
    calls = [
        lambda: dpmc.tune(Above, 200, epsilon=2, progress=False),
        lambda: dpmc.tune(Above, 200, epsilon=2, progress=False, hyperparameters=SETTING),
        lambda: dpmc.plan(Above, epsilon=2),
    ]
    for call in calls:
        with pytest.raises(dpmc.DpmcError, match=r"start: start point \d, .*: log_prior is -inf"):
            call()


def test_start_points_that_no_chain_uses_may_lack_prior() -> None:
    """Of the 20 of a data set; that of seed 2 has a prior, that of seed 0 has none."""
    tree = dpmc.sample(Narrow, ROWS, seed=2, iterations=4, **GIVEN)
    assert float(tree.constant_data.theta_0[0, 0]) > 0.0
    with pytest.raises(dpmc.DpmcError, match="start point 0, .* log_prior is -inf"):
        dpmc.sample(Narrow, ROWS, iterations=4, **GIVEN)
