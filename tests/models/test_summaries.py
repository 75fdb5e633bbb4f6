"""The law of noisy sums: moments of exponential families."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.base import NoisySum
from dpmc.models.exponential import ExponentialFamily
from dpmc.models.summaries import log_normal
from kernels.test_noisy_statistics import Rates


def test_log_normal_is_the_density_up_to_a_constant_and_none_if_it_is_not_definite() -> None:
    generator = np.random.default_rng(1)
    residual, roots = generator.standard_normal((5, 3)), generator.standard_normal((5, 3, 3))
    covariance = roots @ roots.transpose(0, 2, 1)
    wanted = [stats.multivariate_normal.logpdf(r, cov=c) for r, c in zip(residual, covariance, strict=True)]
    found = log_normal(residual, covariance)
    np.testing.assert_allclose(found - found[0], np.array(wanted) - wanted[0], rtol=1e-7)
    covariance[1], residual[2] = np.diag([1.0, 1.0, -1.0]), np.nan
    assert np.isfinite(log_normal(residual, covariance)).tolist() == [True, False, False, True, True]


def test_moments_of_an_exponential_family_follow_from_its_density() -> None:
    theta = np.array([[-0.5], [0.0], [0.7]])
    mean, covariance = Rates().moments(theta)
    np.testing.assert_allclose(mean, 3.0 / np.exp(theta), rtol=1e-12)
    np.testing.assert_allclose(covariance[:, 0], 3.0 / np.exp(2.0 * theta), rtol=1e-7)


class Squares(ExponentialFamily):
    """x ~ N(θ_i², 1) in each column, so that the derivatives of the slopes are singular at 0."""

    dimension = 2

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        return rows

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        return theta**2

    def offset(self, theta: np.ndarray) -> np.ndarray:
        return -0.5 * (theta**4).sum(axis=1)

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return 2.0 * theta[:, :, None] * np.eye(2), -2.0 * theta**3

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        return theta**2 + generator.standard_normal((n, 2))


def test_a_model_with_more_statistics_than_parameters_has_no_law_of_a_sum_but_other_samplers() -> None:
    """Whether it has the law is asked of every model, so that the question must not fail."""

    class Curved(Rates):
        def statistics(self, rows: np.ndarray) -> np.ndarray:
            return np.concatenate([rows, rows**2], axis=1)

        def slopes(self, theta: np.ndarray) -> np.ndarray:
            return np.concatenate([-np.exp(theta), -theta], axis=1)

        def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            linear = np.stack([-np.exp(theta), -np.ones_like(theta)], axis=2)
            return linear, np.full(theta.shape, 3.0)

    assert hasattr(Rates(), "summary_count") and not hasattr(Curved(), "summary_count")
    rows = Rates().simulate(np.random.default_rng(0), np.zeros(1), 50)
    options: dict[str, Any] = {"hyperparameters": {"proposal_sd": 0.1}, "iterations": 9, "progress": False}
    assert dpmc.sample(Curved(), rows, "rwmh", epsilon="inf", **options).attrs["n"] == 50
    with pytest.raises(dpmc.DpmcError, match="law of a noisy sum is not known for this model"):
        dpmc.sample(
            Curved(), rows, "noisy-statistics", epsilon=1, hyperparameters={"clip": 1.0}, iterations=9
        )


def test_singular_derivatives_of_one_chain_do_not_end_the_others() -> None:
    theta = np.array([[1.5, 0.7], [0.0, 1.0], [0.3, -2.0]])
    mean, covariance = Squares().moments(theta)
    known = [0, 2]
    np.testing.assert_array_equal(mean[known], Squares().moments(theta[known])[0])
    np.testing.assert_allclose(mean[known], theta[known] ** 2)
    np.testing.assert_allclose(covariance[known], [np.eye(2)] * 2, atol=1e-6)
    sums = NoisySum(np.full((3, 2), 200.0), 100, 1.0, 1.0)
    assert np.isfinite(Squares().summary_log_likelihood(theta, sums)).tolist() == [True, False, True]


def test_a_noisy_sum_can_be_sampled_where_derivatives_are_singular_at_the_origin() -> None:
    """The search for the mode begins at 0, too."""
    truth = np.array([1.5, 0.7])
    rows = Squares().simulate(np.random.default_rng(0), truth, 200)
    options: dict[str, Any] = {"hyperparameters": {"clip": 5.0}, "iterations": 400, "start": truth}
    tree = dpmc.sample(Squares(), rows, "noisy-statistics", epsilon=10, progress=False, **options)
    draws = tree["posterior"]["theta"].values[0, 200:]
    np.testing.assert_allclose(np.abs(draws).mean(axis=0), truth, atol=0.25)
