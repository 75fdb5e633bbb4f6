"""Metrics of repeated runs, against closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from dpmc.data import datasets
from dpmc.data.problem import Problem
from dpmc.metrics.coverage import errors, has_intervals, intervals, log_score, share_interval
from dpmc.models.gaussian import Gaussian

SETS, D, N = 400, 3, 50


@pytest.fixture(scope="module")
def problem() -> Problem:
    return datasets.build("gauss-30d", "gauss-30d", "fresh-0", 200, 2)


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_intervals_of_the_exact_posterior_hold_as_often_as_they_say(factor: float) -> None:
    generator, theta, sd = np.random.default_rng(1), np.array([1.0, -2.0, 0.0]), 1.0 / math.sqrt(N)
    found = []
    for _ in range(SETS):
        mean = (theta + generator.standard_normal((N, D))).mean(axis=0)
        draws = mean + factor * sd * generator.standard_normal((2000, D))
        found.append(intervals(draws, theta, np.full(D, sd)))
    for level, z in ((50, 0.6745), (90, 1.6449)):
        expected = math.erf(factor * z / math.sqrt(2.0))  # 0.5 and 0.9 for the exact posterior
        share = np.mean([one[f"coverage_{level}"] for one in found])
        assert abs(share - expected) < 4.0 * math.sqrt(expected * (1.0 - expected) / (SETS * D))
        assert np.mean([one[f"width_{level}"] for one in found]) == pytest.approx(2.0 * factor * z, rel=0.01)


def test_errors_are_in_sds_and_that_from_an_unknown_mean_is_missing(problem: Problem) -> None:
    sds = np.sqrt(np.diag(problem.exact.posterior_covariance))
    draws = problem.exact.posterior_mean + np.array([[1.0], [3.0]]) * sds  # their mean is two sds away
    found = errors(draws, problem, sds)
    assert found["error"] == pytest.approx(2.0)
    away = (problem.exact.posterior_mean + 2.0 * sds - problem.true_theta) / sds
    assert found["error_true"] == pytest.approx(math.sqrt(np.mean(away**2)))
    unknown = replace(problem.exact, posterior_mean=np.full(30, np.nan))
    assert set(errors(draws, replace(problem, exact=unknown), sds)) == {"error_true"}


class Further(Gaussian):
    """A Gaussian whose log-likelihood leaves out another term of the row alone."""

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return super().log_likelihood(theta, rows) + 7.0 * rows[:, 0] ** 2


@pytest.mark.parametrize("kind", [Gaussian, Further])
def test_the_score_is_that_of_a_normal_prediction(kind: type[Gaussian], problem: Problem) -> None:
    generator, theta, spread = np.random.default_rng(2), np.zeros(2), 0.5
    rows = generator.standard_normal((4000, 2))
    draws = np.array([0.3, 0.0]) + spread * generator.standard_normal((500, 2))
    about = replace(problem, model=kind(np.eye(2), 1.0, 1.0), true_theta=theta)
    variance = 1.0 + spread**2
    predicted = -0.5 * ((rows - [0.3, 0.0]) ** 2).sum(axis=1) / variance - math.log(variance)
    expected = np.mean(predicted + 0.5 * (rows**2).sum(axis=1))
    assert log_score(draws, about, rows) == pytest.approx(expected, abs=0.02)
    assert log_score(theta[None], about, rows) == 0.0


def test_an_interval_of_a_share_is_wilsons_and_counts_data_sets_that_fail_together_once() -> None:
    whole = [1.0] * 17 + [0.0] * 3
    expected = binomtest(17, 20).proportion_ci(0.95, "wilson")
    assert share_interval(whole) == pytest.approx((0.85, expected.low, expected.high), abs=1e-3)
    assert share_interval([1.0] * 20)[1] == pytest.approx(20.0 / (20.0 + 1.96**2))
    # Of 25 independent intervals a set the share is known as well as from 25 times as many sets.
    independent = np.random.default_rng(0).binomial(25, 0.85, 400) / 25.0
    share, low, high = share_interval(independent)
    expected = binomtest(round(share * 10_000), 10_000).proportion_ci(0.95, "wilson")
    assert high - low == pytest.approx(expected.high - expected.low, rel=0.15)


@pytest.mark.parametrize(
    ("model", "has"), [("flat-banana-2d", True), ("tempered-banana-2d", False), ("circle", False)]
)
def test_intervals_are_asked_for_only_where_rows_are_drawn_at_theta(model: str, has: bool) -> None:
    assert has_intervals(datasets.build(model, model, "fresh-0", 2000, 1)) is has
