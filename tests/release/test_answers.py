"""Answers of a release: rows keep to their bounds, doctored files are found, kills cost once."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import dpmc
from dpmc.algorithms.noisy_scores import NoisyScores, regression_of
from dpmc.evaluators.lattice import Lattice, LatticeEvaluator
from dpmc.models import families
from dpmc.models.own import given_model
from dpmc.models.score_tables import ScoreTable, reference
from dpmc.privacy import secure_noise
from dpmc.privacy.data_ledger import DataLedger, _sealed
from dpmc.privacy.questions import ScoreQuestion
from dpmc.releases import files

LOGISTIC = dpmc.LogisticRegression("y", ["x", "w"])
ROWS = LOGISTIC.simulate(np.random.default_rng(0), np.zeros(3), 300)
GIVEN: dict[str, Any] = {"algorithm": "noisy-scores", "epsilon": 3, "delta": 1e-4, "iterations": 9}
Groups = dict[str, xarray.Dataset]


@pytest.mark.parametrize("asks_spread", [False, True])
@pytest.mark.parametrize("clip", [1e-90, 1e-20, 1e-3, 1.5])
def test_rows_of_any_size_move_scores_by_what_is_claimed(clip: float, asks_spread: bool) -> None:
    p, generator = 12, np.random.default_rng(3)
    model = dpmc.Regression("y", [f"x{i}" for i in range(p)], family=families.Normal(1.0), intercept=False)
    table = ScoreTable(families.Normal(1.0), clip)
    sizes = 10.0 ** np.concatenate([generator.uniform(-3, 3, 150), generator.uniform(-165, 149.9, 150)])
    z = generator.standard_normal((300, p)) * sizes[:, None]
    z[:100] = -z[100:200]
    y = generator.choice([0.0, 1.0, -7.0, 1e6, -1e149], 300)
    at = reference(table.family, clip, 0.5)
    for b, reach in ((0.6, 1.3), (1e-3, 1e-3)):
        bounds = b * at.bound * np.sqrt(p), reach * b * p * at.slope / at.root
        question = ScoreQuestion(model, table, np.zeros(p), np.eye(p), *bounds, 2.0, 0.298, asks_spread)
        numbers = question.of_rows(np.column_stack([y, z]))
        assert np.isfinite(numbers).all()
        moved = max(np.sqrt(((numbers - row) ** 2).sum(axis=1)).max() for row in numbers)
        assert 1.0 < moved <= 2.0


class Remembers(dpmc.LogisticRegression):
    """A regression that changes outcomes by the largest predictor that it has seen."""

    seen = 0.0

    def response(self, rows: np.ndarray) -> np.ndarray:
        self.seen = max(self.seen, float(np.abs(rows[:, 1]).max()))
        return np.where(rows[:, 1] > 0.5 * self.seen, 1.0 - rows[:, 0], rows[:, 0])


def test_what_a_regression_keeps_of_a_row_reaches_no_others() -> None:
    model = given_model(Remembers("y", ["x", "w"]))[1].model
    table = ScoreTable(families.Bernoulli(), 3.0)
    question = ScoreQuestion(regression_of(model), table, np.zeros(3), np.eye(3), 1.0, 1.0, 0.5, 0.2)
    other = ROWS.copy()
    other[0, 1] = 1e6
    sums = [LatticeEvaluator(model, rows, Lattice(1, 1)).answer_sums([question]) for rows in (ROWS, other)]
    (one, unit, rounding), (two, _, _) = sums
    assert 0.0 < unit * np.linalg.norm((one - two).astype(float)) <= 0.5 + rounding


class Changes(families.Bernoulli):
    """A family that works in the arrays that it gets."""

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        score = super().score(eta, y)
        y[...] = 0.0
        return score


def test_a_family_that_changes_its_arrays_is_refused_before_epsilon_is_spent(tmp_path: Path) -> None:
    ledger = DataLedger.create(tmp_path / "people.ledger", 10.0, 1e-2)
    model = dpmc.Regression("y", ["x", "w"], family=Changes(), prior_sd=1.0)
    with pytest.raises(dpmc.DpmcError, match="must not change the arrays"):
        dpmc.release(model, ROWS, ledger=ledger.path, progress=False, **GIVEN)
    assert not DataLedger.open(ledger.path).entries


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> xarray.DataTree:
    """Return a release of noisy scores."""
    ledger = DataLedger.create(tmp_path_factory.mktemp("answers") / "people.ledger", 10.0, 1e-2)
    return dpmc.release(LOGISTIC, ROWS, ledger=ledger.path, progress=False, **GIVEN)


def with_value(name: str, at: Any, value: float) -> Callable[[Groups], None]:
    def change(groups: Groups) -> None:
        groups["/answer"][name].values[at] = value

    return change


def with_hyperparameters(**values: Any) -> Callable[[Groups], None]:
    """Return a function that changes hyperparameters, in the entry with a hash that fits, too."""

    def change(groups: Groups) -> None:
        attrs = groups["/"].attrs
        entry = {key: value for key, value in json.loads(attrs["data_ledger"]).items() if key != "hash"}
        changed = json.loads(attrs["hyperparameters"]) | values
        entry["about"]["hyperparameters"] = changed
        attrs["hyperparameters"] = json.dumps(changed, sort_keys=True)
        attrs["data_ledger"] = json.dumps(_sealed(entry), sort_keys=True)

    return change


def of_another_model(groups: Groups) -> None:
    """Let the model be one's own, which cannot be made again, and append rounds that nobody paid for."""
    attrs = groups["/"].attrs
    entry = {key: value for key, value in json.loads(attrs["data_ledger"]).items() if key != "hash"}
    entry["about"]["model_id"] = "own.module:Family"
    attrs["data_ledger"] = json.dumps(_sealed(entry), sort_keys=True)
    del attrs["description"]
    with_more_rounds(groups)


def with_more_rounds(groups: Groups) -> None:
    answer = groups["/answer"]
    twice = xarray.concat([answer, answer.isel(round=[-1])], "round", data_vars="minimal")
    groups["/answer"] = twice.assign_attrs(answer.attrs)


def with_another_variable(groups: Groups) -> None:
    groups["/answer"]["more"] = ("round", np.zeros(10))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (with_value("scores", (0, 0), 0.1), "/answer: at: is not what is asked"),
        (with_value("scores", (7, 0), 10.0), "/answer: at: is not what is asked"),
        (with_value("information", (3, 0, 1), 1.0), "is not what is asked"),
        (with_value("whitening", (3, 0, 0), 1.0), "/answer: whitening: is not what is asked"),
        (with_value("length", 9, 1.0), "/answer: length: is not what is asked"),
        (with_value("n", 2, 301.0), "/answer: n: is not what is asked"),
        (with_value("squares", 0, np.nan), "/answer: must be finite"),
        (with_value("information", (0, 0, 0), 1e300), "/answer: cannot be computed again"),
        (with_value("length", 0, -1e308), "/answer: cannot be computed again"),
        (with_more_rounds, "/answer: sizes"),
        (of_another_model, "/answer: round: 11 are not those of the queries"),
        (with_another_variable, "/answer: variable 'more' is not allowed"),
        (with_hyperparameters(clip=1.0), "is not what is asked"),
        (with_hyperparameters(information_share=0.9), "information_share: 0.9 must be in (0, 0.298]"),
        (with_hyperparameters(rounds=10**9), "rounds: 1000000000 must be a whole number"),
        (with_hyperparameters(rounds=4), "are not those of noisy-scores"),
    ],
)
def test_a_doctored_answer_is_found(
    change: Callable[[Groups], None], problem: str, released: xarray.DataTree
) -> None:
    groups = {group.path: group.to_dataset(inherit=False).copy(deep=True) for group in released.subtree}
    assert files.check(xarray.DataTree.from_dict(groups)) == []
    change(groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = files.check(xarray.DataTree.from_dict(groups))
    assert problem in " ".join(found)


class Stopped(BaseException):
    """Stands for a kill: nothing handles it."""


@pytest.mark.parametrize(("noises", "steps"), [(1, 0), (16, 0), (17, 1), (17, 5)])
def test_a_release_that_stops_spends_once(
    noises: int, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop while questions are asked, or while draws are made; then call again."""
    ledger = DataLedger.create(tmp_path / "people.ledger", 10.0, 1e-2)
    noisy_sum, step, done = secure_noise.noisy_sum, NoisyScores.step, {"noises": 0, "steps": 0}

    def once(name: str, stop: int) -> None:
        done[name] += 1
        if done[name] == stop:
            raise Stopped

    def noisy(*given: Any) -> np.ndarray:
        once("noises", noises)
        return noisy_sum(*given)

    def stepped(*given: Any) -> Any:
        once("steps", steps)
        return step(*given)

    def release() -> xarray.DataTree:
        output = tmp_path / "release.nc"
        return dpmc.release(LOGISTIC, ROWS, ledger=ledger.path, progress=False, output=output, **GIVEN)

    monkeypatch.setattr(secure_noise, "noisy_sum", noisy)
    monkeypatch.setattr(NoisyScores, "step", stepped)
    with pytest.raises(Stopped):
        release()
    if steps:
        assert files.check(release()) == []
    else:
        with pytest.raises(dpmc.DpmcError, match="paid for and lost"):
            release()
    assert len(DataLedger.open(ledger.path).entries) == 1
    assert done["noises"] == min(noises, 16)
