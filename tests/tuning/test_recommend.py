"""`dpmc.recommend`: the method that is worth its ε, from simulated rows; and its use as hyperparameters."""

import inspect
import re

import numpy as np
import pytest

import dpmc
from dpmc.api import plain_hyperparameters
from dpmc.common.draws import second_half_draws
from dpmc.data import datasets
from dpmc.models.own import given_model
from dpmc.tuning.recommendation import Prediction, Recommendation, notes, untempered

#: Normal numbers of unknown mean and sd, whose two statistics have a known law.
MODEL = dpmc.LinearRegression("y", [], sd=None, prior_sd=1.0, true_theta=[0.5, 0.0])


def test_a_method_that_cannot_be_used_is_named_with_its_reason() -> None:
    model = dpmc.LogisticRegression("y", ["a", "b"], prior_sd=1.0, true_theta=[0.2, 0.5, -0.5])
    found = dpmc.recommend(model, 2000, epsilon=1, twins=1)
    first, *chains = found.predictions
    assert first.obstacle == "needs an exponential family with as many statistics as parameters"
    assert f"noisy-statistics  {first.obstacle}" in str(found)
    assert not any(other.obstacle for other in chains) and found.method != "noisy-statistics"


def test_one_query_is_recommended_where_its_law_is_known_and_its_prediction_holds() -> None:
    found = dpmc.recommend(MODEL, 2000, epsilon=1, twins=2)
    assert found.method == "noisy-statistics"
    assert str(found).startswith("recommended: noisy-statistics")
    best = found.predictions[0]
    assert 0.003 < best.clipped < 0.008, "one row in 200, as the clip bound was chosen"
    assert all(0.0 <= other.clipped < 1.0 for other in found.predictions[1:] if not other.obstacle)
    assert f"{best.clipped:.1%} of rows clipped" in str(found)
    rows = MODEL.simulate(np.random.default_rng(9), MODEL.true_theta, 2000)
    options = {"epsilon": 1, "iterations": 2000, "progress": False}
    tree = dpmc.sample(MODEL, rows, best.method, hyperparameters=found, **options)
    low, high = tree["posterior"]["theta"].quantile([0.05, 0.95], ("chain", "draw")).values
    sd = 1.0 / np.sqrt(2000 * np.array([1.0, 2.0]))  # without privacy, by Fisher's information
    assert best.width == pytest.approx(((high - low) / (2.0 * 1.645 * sd)).mean(), rel=0.4)
    assert list(best.half_widths) == ["intercept", "log_sd"]
    assert list(best.half_widths.values()) == pytest.approx(0.5 * (high - low), rel=0.4)
    for other in found.predictions[1:]:  # chains that hardly move have a small error
        assert other.coverage < 0.7 and "rejected (only" in str(other)
    assert "true_theta" not in str(found) and "norm" not in str(found)


def test_the_rows_of_a_person_cost_noise_in_a_recommendation() -> None:
    one, three = (dpmc.recommend(MODEL, 2000, epsilon=1, twins=1, rows_per_person=m) for m in (1, 3))
    assert three.predictions[0].width > 1.3 * one.predictions[0].width
    assert three.predictions[0].hyperparameters == one.predictions[0].hyperparameters
    with pytest.raises(dpmc.DpmcError, match="rows_per_person"):
        dpmc.recommend(MODEL, 2000, epsilon=1, rows_per_person=0)


SHORT = {"epsilon": 1, "iterations": 20, "progress": False}


def test_a_recommendation_is_taken_as_hyperparameters_of_its_method_alone() -> None:
    rows = MODEL.simulate(np.random.default_rng(9), MODEL.true_theta, 500)
    good = Prediction("noisy-statistics", {"clip": 2.0}, 1.0, 1.0, 0.9, 0.1)
    found = Recommendation("noisy-statistics", (good,))
    trees = [
        dpmc.sample(MODEL, rows, "noisy-statistics", hyperparameters=h, **SHORT) for h in (found, {"clip": 2})
    ]
    np.testing.assert_array_equal(*(tree.posterior.theta for tree in trees))
    with pytest.raises(dpmc.DpmcError, match="recommend names noisy-statistics, not dp-penalty"):
        dpmc.sample(MODEL, rows, hyperparameters=found, **SHORT)
    assert plain_hyperparameters(found) == {"clip": 2.0}, "where the algorithm is checked later"
    none = Recommendation("none", (good,))
    with pytest.raises(dpmc.DpmcError, match="recommend names no method"):
        plain_hyperparameters(none)
    for call in (dpmc.budget, dpmc.tune):
        with pytest.raises(dpmc.DpmcError, match="recommend names no method, not dp-penalty"):
            call(*((500,) if call is dpmc.budget else (MODEL, 500)), hyperparameters=none, epsilon=1)


def test_where_hyperparameters_of_noisy_statistics_come_from() -> None:
    rows = MODEL.simulate(np.random.default_rng(9), MODEL.true_theta, 500)
    with pytest.raises(dpmc.DpmcError, match=r"clip .*dpmc.recommend\(model, n, epsilon=...\) finds some"):
        dpmc.sample(MODEL, rows, "noisy-statistics", **SHORT)
    with pytest.raises(dpmc.DpmcError, match=r"nothing to search; dpmc.recommend\(model, n"):
        dpmc.tune(MODEL, 500, "noisy-statistics", epsilon=1)


def test_notes_name_a_guess_of_zero_and_the_share_beyond_the_norm() -> None:
    model = dpmc.LogisticRegression("y", ["a", "b"], norm=2.0)
    problems = [datasets.build("m", "m", "fresh-0", 4000, definition=given_model(model)[1])]
    text = "\n".join(notes(problems))
    assert "true_theta is 0" in text
    assert float(re.findall(r"norm: ([\d.]+)%", text)[0]) == pytest.approx(100 * np.exp(-2.0), abs=2.5)


def test_half_widths_are_those_of_the_summary_where_the_model_is_tempered() -> None:
    model = dpmc.LinearRegression("y", ["a"], tempering=100)
    rows = model.simulate(np.random.default_rng(9), model.true_theta, 2000)
    setting = {"tau": 1, "clip": 3, "proposal_sd": 0.1}
    tree = dpmc.sample(model, rows, epsilon=4, hyperparameters=setting, progress=False)
    problem = datasets.build("m", "m", "fresh-0", 2000, definition=given_model(model)[1])
    draws = second_half_draws(tree).values
    table = dpmc.summary(tree)
    expected = (table["upper"] - table["lower"]) / (2.0 * 1.645 * table["sd_draws"])
    np.testing.assert_allclose(untempered(problem, draws), expected, rtol=1e-3)


def test_none_is_recommended_where_epsilon_n_is_too_small() -> None:
    found = dpmc.recommend(MODEL, 100, epsilon=0.05, twins=1)
    assert found.method == "none"
    assert found.predictions[0].of_prior > 0.5


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
    arguments = ["model", "n", "epsilon", "delta", "twins", "rows_per_person"]
    assert list(inspect.signature(dpmc.recommend).parameters) == arguments
    with pytest.raises(dpmc.DpmcError, match="n, epsilon: needed"):
        dpmc.recommend(MODEL, 100, epsilon="inf")
    with pytest.raises(dpmc.DpmcError, match="n, epsilon: needed"):
        dpmc.recommend(MODEL, epsilon=1)
