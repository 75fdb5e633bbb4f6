"""What a person would pick instead: closed forms, sensitivities, what the ledger says, refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.algorithms import ALGORITHMS, algorithm_class, with_fact
from dpmc.algorithms.adassp import AdaSSP
from dpmc.privacy.data_ledger import DataLedger
from dpmc.privacy.moments import MomentsQuestion
from kernels.cells import PEERS
from kernels.ladder import P_VALUE
from kernels.test_noisy_statistics import private_of

LINE = dpmc.LinearRegression("y", ["x"], sd=0.8, prior_sd=2.0)
LOGIT = dpmc.LogisticRegression("y", ["x"], prior_sd=2.0)
MODELS: dict[str, Any] = {"adassp": LINE, "dp-gradient-descent": LINE}
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


# AdaSSP

STRANGE = [np.array([a, b]) for a in (0.0, 1e9, -1e9, np.nan, 3.0) for b in (0.3, -1e9, np.inf, 1e200, 1.5)]


def test_a_replaced_row_moves_moments_by_their_sensitivity_at_most() -> None:
    rows, question = rows_of(LINE, 20), MomentsQuestion(LINE, 1.7, 0.9, 1.0)
    generator = np.random.default_rng(3)
    others = [*STRANGE, *(10.0**k * generator.standard_normal(2) for k in range(-3, 6))]
    with np.errstate(all="ignore"):
        numbers = np.array([question.total(np.vstack([rows, row])) for row in others])
        squares = np.array([question.squares(np.vstack([rows[:0], row])) for row in others])
    assert np.isfinite(numbers).all()
    for part, least, most in ((slice(0, 3), 0.6, 1.0), (slice(3, 5), 0.9, 1.0)):
        moved = np.linalg.norm(numbers[:, None, part] - numbers[None, :, part], axis=2)
        assert least < moved.max() <= most + 1e-12
    spectral = np.linalg.norm(squares[:, None] - squares, 2, axis=(2, 3))
    assert spectral.max() <= 1.7**2 * (1.0 + 1e-12)


def test_two_rows_at_right_angles_attain_the_sensitivity_of_squares() -> None:
    model = dpmc.LinearRegression("y", ["x", "w"], intercept=False)
    question = MomentsQuestion(model, 1.0, 1.0, 1.0)
    both = [question.total(np.array([row])) for row in ([0.0, 5.0, 0.0], [0.0, 0.0, 5.0])]
    assert np.linalg.norm(both[0] - both[1]) == pytest.approx(1.0, rel=1e-8)


def test_adassp_is_least_squares_of_clipped_rows_without_noise() -> None:
    rows, values = rows_of(LINE), {"noise_multiplier": QUIET}
    tree = sampled("adassp", LINE, rows, "inf", values=values)
    z, y = MomentsQuestion(LINE, **PEERS["adassp"], noise_multiplier=1.0).clipped(rows)
    assert (np.abs(LINE.design(rows) - z) > 0.0).any()
    theta = tree.posterior.theta.values[0]
    assert len(theta) == 4 and (theta == theta[0]).all()
    assert np.allclose(theta[0], np.linalg.lstsq(z, y, rcond=None)[0], atol=1e-4)


def test_adassp_answers_have_their_noise_and_its_ridge_is_what_the_matrix_lacks() -> None:
    s, question = 0.5, MomentsQuestion(LINE, 2.0, 3.0, 0.5)
    rows = rows_of(LINE)
    private = private_of(LINE, rows, range(4000))
    least = private.least_eigenvalues(question)
    exact = np.linalg.eigvalsh(question.squares(rows))[0]
    assert stats.kstest((least - exact) / (s * 4.0), "norm").pvalue > P_VALUE
    numbers = private_of(LINE, rows, range(4000)).answers([question] * 4000) - question.total(rows)
    assert min(stats.kstest(column, "norm").pvalue for column in numbers.T) > P_VALUE
    method: Any = AdaSSP(**PEERS["adassp"], noise_multiplier=s)
    moments = question.moments(question.total(rows))
    for known, surely in ((1.0, 0.0), (10.0, 10.0 - 1.6448536 * s * 4.0), (1e9, 1e9)):
        ridge = max(0.0, np.sqrt(2.0) * s * 4.0 * np.sqrt(2.0 * np.log(8.0 / 0.05)) - surely)
        wanted = np.linalg.solve(moments.squares + ridge * np.eye(2), moments.products)
        assert np.allclose(method.solution(known, moments, question), wanted, rtol=1e-6)


def test_adassp_leaves_an_unknown_sd_where_it_starts_and_refuses_other_models() -> None:
    model = dpmc.LinearRegression("y", ["x"], sd=None)
    rows = model.simulate(np.random.default_rng(1), np.array([0.5, -0.3, 0.0]), 300)
    tree = sampled("adassp", model, rows, 5.0, start=[0.0, 0.0, -0.7])
    assert (tree.posterior.theta.values[0, :, 2] == -0.7).all()
    with pytest.raises(dpmc.DpmcError, match="adassp: model: must be a LinearRegression without weights"):
        sampled("adassp", LOGIT, rows_of(LOGIT))
