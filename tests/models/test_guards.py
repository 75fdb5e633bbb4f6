"""A user's model cannot change what the loop uses, and shows no warning that depends on rows."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpmc

OPTIONS: dict[str, Any] = {"epsilon": 5, "iterations": 30, "progress": False, "start": [0.3, 0.2]}
SETTINGS: dict[str, dict[str, Any]] = {
    "dp-penalty": {"tau": 0.5, "clip": 1.0, "proposal_sd": 0.1},
    "minibatch-penalty": {"tau": 9.0, "clip": 1.0, "proposal_sd": 0.1, "batch_size": 40},
    "dp-sgld": {"batch_size": 40, "clip": 1.0, "step_size": 0.1},
}
ROWS = np.random.default_rng(3).normal(1.0, 1.0, (200, 2))


def density(theta: np.ndarray, rows: np.ndarray) -> Any:
    return -0.5 * ((rows - theta) ** 2).sum(axis=1)


def gradient(theta: np.ndarray, rows: np.ndarray) -> Any:
    return rows - theta


class Good:
    dimension = 2

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> Any:
        return density(theta, rows)

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> Any:
        return gradient(theta, rows)

    def log_prior(self, theta: np.ndarray) -> Any:
        return -0.5 * (theta**2).sum()

    def log_prior_gradient(self, theta: np.ndarray) -> Any:
        return -theta


METHODS = [name for name in vars(Good) if name.startswith("log_")]


def edits_theta(method: Callable[..., Any]) -> Callable[..., Any]:
    """Move the position that is given."""

    def edited(self: Good, theta: np.ndarray, *rows: np.ndarray) -> Any:
        result = method(self, theta, *rows)
        theta += 1.0
        return result

    return edited


def one_buffer(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same array at each call."""
    buffers: dict[tuple[int, ...], np.ndarray] = {}

    def kept(self: Good, *arguments: np.ndarray) -> np.ndarray:
        result = np.asarray(method(self, *arguments))
        buffer = buffers.setdefault(result.shape, result.copy())
        buffer[...] = result
        return buffer

    return kept


def tree(model: Any, algorithm: str) -> Any:
    """Return a run on `ROWS`."""
    return dpmc.sample(model, ROWS, algorithm, hyperparameters=SETTINGS[algorithm], **OPTIONS)


@pytest.fixture(autouse=True)
def common_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key streams by names alone, so that runs of different models can be compared."""
    from dpmc.sampling import run

    monkeypatch.setattr(run, "stream_names", lambda cell, seed: ("guards", cell.method, seed))


@pytest.mark.parametrize("algorithm", SETTINGS)
@pytest.mark.parametrize("wrong", [edits_theta, one_buffer])
def test_editing_positions_or_results_changes_nothing(wrong: Any, algorithm: str) -> None:
    wrong_model = type("Wrong", (Good,), {name: wrong(vars(Good)[name]) for name in METHODS})
    expected, found = (tree(model(), algorithm).posterior.theta.values for model in (Good, wrong_model))
    assert np.ptp(expected) > 0.0
    np.testing.assert_array_equal(found, expected)


def test_forms_that_edit_positions_change_nothing() -> None:
    def ratio_form(theta: np.ndarray, proposal: np.ndarray) -> Any:
        found = proposal - theta, -0.5 * (proposal**2 - theta**2).sum(axis=1)
        theta += 1.0
        proposal -= 1.0
        return found

    def gradient_form(theta: np.ndarray) -> Any:
        found = np.tile(np.eye(2), (len(theta), 1, 1)), -theta
        theta += 1.0
        return found

    forms = {"statistics": lambda rows: rows, "ratio_form": ratio_form, "gradient_form": gradient_form}
    found = tree(dpmc.Model(2, density, **forms), "dp-penalty").posterior.theta.values
    expected = tree(dpmc.Model(2, density), "dp-penalty").posterior.theta.values
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("method", ["log_likelihood", "statistics", "check_rows"])
def test_rows_cannot_be_edited(method: str) -> None:
    before = ROWS.copy()

    class EditsRows(Good):
        pass

    def edit(self: Any, *arguments: Any) -> Any:
        arguments[-1][:] -= 1.0
        return density(np.zeros(2), arguments[-1])

    setattr(EditsRows, method, edit)
    with pytest.raises(dpmc.DpmcError, match=f"{method}.*read-only"):
        tree(EditsRows(), "dp-penalty")
    np.testing.assert_array_equal(ROWS, before)


@pytest.mark.parametrize("setting", ["default", "error"])
def test_no_warning_depends_on_the_rows(setting: Any, recwarn: pytest.WarningsRecorder, capfd: Any) -> None:
    """Rows about 7 make NumPy, and the model itself, warn; dummy rows do not."""
    warned = []

    class Loud(Good):
        def check_rows(self, rows: np.ndarray) -> None:
            self.loud(rows)

        def loud(self, rows: np.ndarray) -> Any:
            if (np.abs(rows - 7.125) < 1e-9).any():
                warned.append(True)
                warnings.warn("a row is near 7.125", stacklevel=2)
            return np.log(np.abs(rows[:, 0] - 7.125)) * 0.0 + 1.0 / (rows[:, 1] - 7.125) * 0.0

        def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> Any:
            return density(theta, rows) + self.loud(rows)

    rows = ROWS.copy()
    rows[5] = 7.125
    with warnings.catch_warnings(), np.errstate(all="warn" if setting == "default" else "raise"):
        warnings.simplefilter(setting)
        recwarn.clear()
        options = {**OPTIONS, "hyperparameters": SETTINGS["dp-penalty"]}
        assert dpmc.sample(Loud(), rows, **options).attrs["iterations"] == 30
        assert np.geterr()["divide"] == ("warn" if setting == "default" else "raise")
    assert warned and not list(recwarn)
    assert capfd.readouterr().err == ""
