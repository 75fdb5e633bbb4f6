"""`dpmc.recommend`: the method that is worth its ε, from simulated rows; and its use as hyperparameters."""

import inspect
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.api import plain_hyperparameters
from dpmc.data import datasets
from dpmc.data.problem import Exact
from dpmc.models.gaussian import Gaussian
from dpmc.models.own import given_model
from dpmc.tuning import recommendation
from dpmc.tuning.first_setting import SDS, reference_draws, scales, without_privacy
from dpmc.tuning.recommendation import Prediction, Recommendation, notes

MODEL = dpmc.LogisticRegression("y", ["a", "b"], prior_sd=1.0, true_theta=[0.2, 0.5, -0.5])
GAUSSIAN = Gaussian(np.eye(2), 100.0, 100.0)  #: has summaries; simulated at 0


def no_chain(*_: Any) -> None:
    raise AssertionError("a chain was tried")


@pytest.fixture
def without_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recommendation, "first_setting", no_chain)


@pytest.mark.usefixtures("without_chains")
def test_noisy_scores_of_a_regression_are_recommended_and_the_prediction_holds() -> None:
    found = dpmc.recommend(MODEL, 2000, epsilon=1, twins=3)
    best, other = found.predictions
    assert (found.method, best.method) == ("noisy-scores", "noisy-scores") and best.hyperparameters == {}
    assert str(found).startswith("recommended: noisy-scores\nnoisy-scores ")
    assert other.obstacle.startswith("the posterior given a noisy sum is not known for this model")
    assert f"noisy-statistics  {other.obstacle}" in str(found)
    rows = MODEL.simulate(np.random.default_rng(9), MODEL.true_theta, 2000)
    tree = dpmc.sample(MODEL, rows, found.method, epsilon=1, hyperparameters=found, progress=False)
    low, high = tree["posterior"]["theta"].quantile([0.05, 0.95], ("chain", "draw")).values
    eta = MODEL.design(rows) @ MODEL.true_theta
    weight = 0.25 / np.cosh(0.5 * eta) ** 2  # Fisher's information of η
    z = MODEL.design(rows)
    sd = np.sqrt(np.diag(np.linalg.inv((z * weight[:, None]).T @ z + np.eye(3))))
    assert best.width == pytest.approx(((high - low) / (2.0 * 1.645 * sd)).mean(), rel=0.2)
    assert list(best.half_widths) == ["intercept", "a", "b"]
    assert list(best.half_widths.values()) == pytest.approx(0.5 * (high - low), rel=0.3)


@pytest.mark.usefixtures("without_chains")
def test_one_noisy_sum_is_recommended_with_a_clip_bound_that_few_rows_exceed() -> None:
    found = dpmc.recommend(GAUSSIAN, 2000, epsilon=1, twins=3)
    scores, best = found.predictions
    assert found.method == best.method == "noisy-statistics"
    assert scores.obstacle.startswith("the model must be a regression")
    rows = GAUSSIAN.simulate(np.random.default_rng(9), np.zeros(2), 20_000)
    norms = np.linalg.norm(GAUSSIAN.summaries(rows), axis=1)
    assert (norms > best.hyperparameters["clip"]).mean() == pytest.approx(0.005, abs=0.003)
    tree = dpmc.sample(GAUSSIAN, rows[:2000], found.method, epsilon=1, hyperparameters=found, progress=False)
    sd = np.sqrt(np.diag(GAUSSIAN.posterior(rows[:2000], 1.0).covariance()))
    width = tree["posterior"]["theta"].std(("chain", "draw")).values / sd
    assert best.width == pytest.approx(width.mean(), rel=0.1)


def test_the_rows_of_a_person_cost_noise_in_a_recommendation() -> None:
    one, three = (dpmc.recommend(GAUSSIAN, 2000, epsilon=0.5, twins=1, rows_per_person=m) for m in (1, 3))
    assert three.predictions[1].width > 1.1 * one.predictions[1].width
    assert three.predictions[1].hyperparameters == one.predictions[1].hyperparameters
    with pytest.raises(dpmc.DpmcError, match="rows_per_person"):
        dpmc.recommend(MODEL, 2000, epsilon=1, rows_per_person=0)


def test_a_refused_method_says_what_would_do_and_that_does() -> None:
    methods = "noisy-scores"
    found = dpmc.recommend(MODEL, 200, epsilon=0.2, twins=1, methods=methods)
    assert found.method == "none"
    text = found.predictions[0].obstacle
    rows, epsilon = re.findall(r"(\d+) rows, .*; epsilon ([\d.]+) would do$", text)[0]
    for n, budget in ((int(rows), 0.2), (200, float(epsilon))):
        allowed = dpmc.recommend(MODEL, n, epsilon=budget, delta=0.1 / 200, twins=1, methods=methods)
        assert not allowed.predictions[0].obstacle


def test_chains_are_tried_if_no_answer_serves_and_said_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried = []

    def setting(method: str, *_: Any) -> None:
        tried.append(method)
        raise dpmc.DpmcError("stopped here")

    monkeypatch.setattr(recommendation, "first_setting", setting)
    found = dpmc.recommend(MODEL, 100, epsilon=0.05, twins=1)
    assert found.method == "none" and tried == ["dp-penalty", "dp-hmc"]
    assert [one.method for one in found.predictions][:2] == ["noisy-scores", "noisy-statistics"]
    assert [one.obstacle for one in found.predictions][2:] == ["stopped here"] * 2
    said = caplog.text
    assert "recommend: tries dp-penalty on 1 simulated data sets" in said and "tries dp-hmc" in said
    caplog.clear()
    dpmc.recommend(MODEL, 100, epsilon=0.05, twins=1, progress=False)
    assert not caplog.text


def test_chains_that_hardly_move_are_rejected(caplog: pytest.LogCaptureFixture) -> None:
    model = dpmc.LogisticRegression("y", ["a"], prior_sd=1.0, true_theta=[0.2, 0.5])
    found = dpmc.recommend(model, 1000, epsilon=1, twins=1, methods=["dp-penalty"])
    (chain,) = found.predictions
    assert {"tau", "clip", "proposal_sd"} == {*chain.hyperparameters}
    assert found.method == "none" and chain.width < 0.9 and "rejected (" in str(chain)
    assert "recommend dp-penalty, twin 1 of 1" in caplog.text
    with pytest.raises(dpmc.DpmcError, match="methods: rwmh must be one of .*noisy-scores"):
        dpmc.recommend(model, 1000, epsilon=1, methods=("rwmh",))


@pytest.mark.parametrize("tempering", [None, 300.0])
@pytest.mark.parametrize("sd", [None, 1.5])
def test_widths_without_privacy_are_those_of_a_long_walk(sd: float | None, tempering: float | None) -> None:
    model = dpmc.LinearRegression(
        "y", ["a"], sd=sd, prior_sd=0.1, tempering=tempering, true_theta=[0.1, 0.1, 0.4][: 3 - bool(sd)]
    )
    problem = datasets.build("m", "m", "fresh-0", 3000, definition=given_model(model)[1])
    unknown = replace(problem, exact=Exact.unknown(problem.dimension))
    found, wide = without_privacy(unknown)
    np.testing.assert_allclose(found, reference_draws(unknown, scales(problem)).std(axis=0), rtol=0.15)
    np.testing.assert_array_equal(wide, SDS * found)
    if sd:
        np.testing.assert_allclose(found, without_privacy(problem)[0], rtol=0.1)


SHORT = {"epsilon": 1, "iterations": 20, "progress": False}


def test_a_recommendation_is_taken_as_hyperparameters_of_its_method_alone() -> None:
    rows = GAUSSIAN.simulate(np.random.default_rng(9), np.zeros(2), 500)
    good = Prediction("noisy-statistics", {"clip": 2.0}, 1.0, 1.0, 0.9, 0.1)
    found = Recommendation("noisy-statistics", (good,))
    trees = [
        dpmc.sample(GAUSSIAN, rows, "noisy-statistics", hyperparameters=h, **SHORT)
        for h in (found, {"clip": 2})
    ]
    np.testing.assert_array_equal(*(tree.posterior.theta for tree in trees))
    with pytest.raises(dpmc.DpmcError, match="recommend names noisy-statistics, not dp-penalty"):
        dpmc.sample(GAUSSIAN, rows, hyperparameters=found, **SHORT)
    assert plain_hyperparameters(found) == {"clip": 2.0}, "where the algorithm is checked later"
    none = Recommendation("none", (good,))
    with pytest.raises(dpmc.DpmcError, match="recommend names no method"):
        plain_hyperparameters(none)
    for call in (dpmc.budget, dpmc.tune):
        with pytest.raises(dpmc.DpmcError, match="recommend names no method, not dp-penalty"):
            call(*((500,) if call is dpmc.budget else (MODEL, 500)), hyperparameters=none, epsilon=1)


def test_where_hyperparameters_of_noisy_statistics_come_from() -> None:
    with pytest.raises(dpmc.DpmcError, match=r"clip .*dpmc.recommend\(model, n, epsilon=...\) finds some"):
        dpmc.sample(GAUSSIAN, np.zeros((500, 2)), "noisy-statistics", **SHORT)
    for method in ("noisy-statistics", "noisy-scores"):
        with pytest.raises(dpmc.DpmcError, match=r"nothing to search; dpmc.recommend\(model, n"):
            dpmc.tune(MODEL, 500, method, epsilon=1)


def test_notes_name_a_guess_of_zero_and_the_share_beyond_the_norm() -> None:
    model = dpmc.LogisticRegression("y", ["a", "b"], norm=2.0)
    problems = [datasets.build("m", "m", "fresh-0", 4000, definition=given_model(model)[1])]
    text = "\n".join(notes(problems))
    assert "true_theta is 0" in text
    assert float(re.findall(r"norm: ([\d.]+)%", text)[0]) == pytest.approx(100 * np.exp(-2.0), abs=2.5)


@pytest.mark.usefixtures("without_chains")
def test_an_answer_as_wide_as_the_prior_is_not_recommended() -> None:
    model = dpmc.LogisticRegression("y", ["a", "b"], prior_sd=0.05, true_theta=[0.02, 0.05, -0.05])
    found = dpmc.recommend(model, 500, epsilon=1, twins=1, methods="noisy-scores")
    assert found.method == "none"
    assert found.predictions[0].of_prior > 0.5 and "as wide as the prior's" in str(found)


def test_what_is_not_worth_it() -> None:
    good = Prediction("dp-hmc", {}, 1.5, 2.0, 0.9, 0.1)
    assert good.is_worth_it
    assert good._replace(of_prior=np.nan).is_worth_it, "the prior's sd is unknown"
    assert not good.reasons and "rejected" not in str(good)
    reasons = [
        ("coverage", 0.3, "only 30% of intervals"),
        ("width", 11.0, "intervals 11 times as wide"),
        ("width", 0.8, "intervals 0.8 times as wide"),
        ("of_prior", 0.6, "60% as wide as the prior's"),
    ]
    for key, value, reason in reasons:
        bad = good._replace(**{key: value})
        assert not bad.is_worth_it
        assert f"rejected ({bad.reasons[0]})" in str(bad) and reason in bad.reasons[0]
    assert not good._replace(obstacle="no gradient").is_worth_it


def test_it_takes_no_rows_and_needs_a_finite_budget() -> None:
    arguments = ["model", "n", "epsilon", "delta", "twins", "rows_per_person", "methods", "progress"]
    assert list(inspect.signature(dpmc.recommend).parameters) == arguments
    with pytest.raises(dpmc.DpmcError, match="n, epsilon: needed"):
        dpmc.recommend(MODEL, 100, epsilon="inf")
    with pytest.raises(dpmc.DpmcError, match="n, epsilon: needed"):
        dpmc.recommend(MODEL, epsilon=1)
