"""`dpmc.recommend`: the method that is worth its ε, from simulated rows."""

import inspect

import numpy as np
import pytest

import dpmc
from dpmc.tuning.recommendation import Prediction

MODEL = dpmc.LogisticRegression("y", ["a", "b"], prior_sd=1.0, true_theta=[0.2, 0.5, -0.5])


def test_one_release_is_recommended_for_a_regression_and_its_prediction_holds() -> None:
    found = dpmc.recommend(MODEL, 2000, epsilon=1, twins=2)
    assert found.method == "noisy-statistics"
    assert str(found).startswith("recommended: noisy-statistics")
    best = found.predictions[0]
    assert 0.003 < best.clipped < 0.008, "one row in 200, as the clip bound was chosen"
    assert all(0.0 <= other.clipped < 1.0 for other in found.predictions[1:] if not other.obstacle)
    assert f"{best.clipped:.1%} of rows clipped" in str(found)
    rows = MODEL.simulate(np.random.default_rng(9), MODEL.true_theta, 2000)
    options = {"epsilon": 1, "iterations": 2000, "progress": False}
    tree = dpmc.sample(MODEL, rows, best.method, hyperparameters=best.hyperparameters, **options)
    low, high = tree["posterior"]["theta"].quantile([0.05, 0.95], ("chain", "draw")).values
    # sds without privacy by Fisher's information, p(1 − p) about 0.23
    assert best.width == pytest.approx(((high - low) / (2.0 * 1.645 / np.sqrt(0.23 * 2000))).mean(), rel=0.4)


def test_none_is_recommended_where_epsilon_n_is_too_small() -> None:
    found = dpmc.recommend(MODEL, 100, epsilon=0.05, twins=1)
    assert found.method == "none"
    assert found.predictions[0].of_prior > 0.5


def test_what_is_not_worth_it() -> None:
    good = Prediction("dp-hmc", {}, 1.5, 2.0, 0.9, 0.1)
    assert good.is_worth_it
    assert good._replace(of_prior=np.nan).is_worth_it, "the prior's sd is unknown"
    for change in ({"coverage": 0.3}, {"width": 11.0}, {"of_prior": 0.6}, {"obstacle": "no gradient"}):
        assert not good._replace(**change).is_worth_it


def test_it_takes_no_rows_and_needs_a_finite_budget() -> None:
    assert list(inspect.signature(dpmc.recommend).parameters) == ["model", "n", "epsilon", "delta", "twins"]
    with pytest.raises(dpmc.DpmcError, match="n, epsilon: needed"):
        dpmc.recommend(MODEL, 100, epsilon="inf")
    with pytest.raises(dpmc.DpmcError, match="n, epsilon: needed"):
        dpmc.recommend(MODEL, epsilon=1)
