"""What a person would pick instead: closed forms, sensitivities, what the ledger says, refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.algorithms import ALGORITHMS, algorithm_class, with_fact
from dpmc.privacy.data_ledger import DataLedger
from kernels.cells import PEERS

LINE = dpmc.LinearRegression("y", ["x"], sd=0.8, prior_sd=2.0)
LOGIT = dpmc.LogisticRegression("y", ["x"], prior_sd=2.0)
MODELS: dict[str, Any] = {"dp-gradient-descent": LINE}
QUIET = 1e-7  #: a noise multiplier, as good as none


def rows_of(model: Any, n: int = 400, seed: int = 1) -> np.ndarray:
    return np.asarray(model.simulate(np.random.default_rng(seed), np.array([0.5, -0.3]), n))


def sampled(name: str, model: Any, rows: np.ndarray, epsilon: float | str = 1.0, **options: Any) -> Any:
    """Return the tree of a run; `values` change its hyperparameters."""
    values = {**PEERS[name], **options.pop("values", {})}
    options = {"delta": 1e-4, "hyperparameters": values, "progress": False, **options}
    return dpmc.sample(model, rows, name, epsilon=epsilon, **options)


def test_peers_are_those_that_are_for_comparison() -> None:
    assert set(with_fact("is_for_comparison")) == set(MODELS) == set(PEERS)
    assert set(with_fact("is_point")) <= set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_run_keeps_its_budget_and_spends_nearly_all_of_it(name: str) -> None:
    tree = sampled(name, MODELS[name], rows_of(MODELS[name]))
    assert tree.attrs["status"] == "ok"
    spent = json.loads(tree.attrs["ledger"])["epsilon_spent"]
    assert spent == 0.0 if name == "public-rows" else 0.999 < spent <= 1.0


@pytest.mark.parametrize("name", MODELS)
def test_no_peer_is_released_or_planned(name: str, tmp_path: Path) -> None:
    model, ledger = MODELS[name], DataLedger.create(tmp_path / "people.ledger", 10.0, 0.5, "people").path
    options: Any = {"epsilon": 1, "ledger": ledger, "hyperparameters": PEERS[name]}
    with pytest.raises(dpmc.DpmcError, match=f"{name}: is for comparison only"):
        dpmc.release(model, rows_of(model), name, **options)
    with pytest.raises(dpmc.DpmcError, match="methods: .* must be one of"):
        dpmc.plan(model, n=100, epsilon=1, methods=name)
    assert not algorithm_class(name).asks and name in ALGORITHMS


@pytest.mark.parametrize("name", MODELS)
def test_a_missing_or_wrong_hyperparameter_is_one_line(name: str) -> None:
    first = next(iter(PEERS[name]))
    for value, words in (("many", f"{first}: 'many' "), (None, f"needs {first} ")):
        values = {key: one for key, one in PEERS[name].items() if key != first}
        values |= {} if value is None else {first: value}
        with pytest.raises(dpmc.DpmcError, match=words) as caught:
            dpmc.sample(MODELS[name], rows_of(MODELS[name]), name, epsilon=1, hyperparameters=values)
        assert "\n" not in str(caught.value)


# DP gradient descent


def test_gradient_descent_has_as_many_steps_as_the_budget_pays_for_and_their_noise() -> None:
    tree = sampled("dp-gradient-descent", LINE, rows_of(LINE))
    steps = PEERS["dp-gradient-descent"]["steps"]
    (event,) = json.loads(tree.attrs["ledger"])["performed"]
    assert tree.attrs["iterations"] == event["count"] == steps
    one = dpmc.budget(400, "noisy-scores", epsilon=1.0, delta=1e-4)["noise_multiplier"]
    assert event["noise_multiplier"] == pytest.approx(one * np.sqrt(steps), rel=1e-12)


def test_gradient_descent_ends_at_the_mode_without_noise_and_varies_by_noise_alone() -> None:
    rows, values = rows_of(LOGIT), {"noise_multiplier": QUIET, "step_size": 3.0}
    tree = sampled("dp-gradient-descent", LOGIT, rows, "inf", values=values, iterations=400)
    mode = tree.posterior.theta.values[0, 200:].mean(axis=0)
    slope = LOGIT.log_likelihood_gradient(mode, rows).sum(axis=0) + LOGIT.log_prior_gradient(mode)
    assert np.abs(slope).max() < 1e-3
    # A linear model's iterates are a linear recursion: their spread is that of θ' = (1 − hA)θ + noise.
    rows = rows_of(LINE, 400)
    values = {"noise_multiplier": 20.0, "clip": 50.0, "step_size": 0.3}
    tree = sampled("dp-gradient-descent", LINE, rows, "inf", values=values, iterations=6000)
    theta = tree.posterior.theta.values[0, 100:]
    exact = LINE.posterior(rows, 1.0)
    h, sd = 0.3 / 400, 20.0 * 2.0 * 50.0
    shrink = np.eye(2) - h * np.linalg.inv(exact.covariance())
    spread = np.linalg.solve(np.eye(2) - shrink @ shrink, (h * sd) ** 2 * np.eye(2))
    assert np.allclose(np.cov(theta.T), spread, rtol=0.15, atol=0.05 * spread.max())
    assert (np.abs(theta.mean(axis=0) - exact.mean()) < 0.2 * np.sqrt(np.diag(spread))).all()


def test_gradient_descent_is_searched_with_the_noise_of_the_budget() -> None:
    start = PEERS["dp-gradient-descent"]
    options: Any = {"hyperparameters": start, "trials": 2, "seeds": 1, "progress": False}
    found = dpmc.tune(LINE, 300, "dp-gradient-descent", epsilon=2, **options)
    assert set(found["hyperparameters"]) == set(start)
