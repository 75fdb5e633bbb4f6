"""The law of noisy sums: moments of exponential families, and of regressions against simulation."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.base import NoisySum
from dpmc.models.exponential import ExponentialFamily
from dpmc.models.summaries import log_normal, noise_covariance
from kernels.test_noisy_statistics import Rates

REGRESSIONS: dict[str, Any] = {
    "linear": dpmc.LinearRegression("y", ["a", "b"], sd=0.8),
    "logistic": dpmc.LogisticRegression("y", ["a", "b"]),
    "Poisson": dpmc.PoissonRegression("y", ["a", "b"]),
}
THETA = np.array([0.3, 0.6, -0.4])


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


def test_noise_covariance_is_that_of_symmetric_matrices() -> None:
    generator, m = np.random.default_rng(2), 400_000
    upper = np.triu(generator.standard_normal((m, 3, 3)))
    noise = upper + np.triu(upper, 1).transpose(0, 2, 1)
    noise[:, 0, 0] = 0.0
    u, v = generator.standard_normal((2, 3))
    found = noise_covariance(u[None], v[None])[0]
    np.testing.assert_allclose((noise @ u).T @ (noise @ v) / m, found, atol=0.03)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_derivatives_of_the_mean_are_those_of_differences(name: str) -> None:
    eta, h = np.linspace(-2.0, 2.0, 9), 1e-5
    up, down, here = (REGRESSIONS[name].expected(eta + k * h) for k in (1.0, -1.0, 0.0))
    for order in range(3):
        np.testing.assert_allclose((up[order] - down[order]) / (2.0 * h), here[order + 1], atol=1e-8)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_the_law_of_a_sum_without_noise_is_that_of_simulated_rows(name: str) -> None:
    """The residual of Σ zy given Σ zzᵀ has mean 0 and the stated covariance, over data sets."""
    model, n, sets = REGRESSIONS[name], 400, 3000
    generator = np.random.default_rng(3)
    totals = [model.summaries(model.simulate(generator, THETA, n)).sum(axis=0) for _ in range(sets)]
    residual, covariance = model.law(np.tile(THETA, (sets, 1)), NoisySum(np.array(totals), n, 0.0, 1.0))
    root = np.linalg.cholesky(covariance)
    scores = np.linalg.solve(root, residual[:, :, None])[:, :, 0]
    assert np.abs(scores.mean(axis=0)).max() < 4.5 / np.sqrt(sets)
    assert np.abs(np.cov(scores.T) - np.eye(3)).max() < 0.12


@pytest.mark.parametrize("name", REGRESSIONS)
def test_noise_adds_its_variance_by_the_delta_method(name: str) -> None:
    """Over draws of small noise on one data set, the residual varies as the law says."""
    model, n, sd, draws = REGRESSIONS[name], 100_000, 60.0, 4000
    generator = np.random.default_rng(4)
    total = model.summaries(model.simulate(generator, THETA, n)).sum(axis=0)
    noisy = total + sd * generator.standard_normal((draws, len(total)))
    theta = np.tile(THETA, (draws, 1))
    residual, covariance = model.law(theta, NoisySum(noisy, n, sd, 1.0))
    without = model.law(theta[:1], NoisySum(total[None], n, 0.0, 1.0))[1]
    wanted = covariance.mean(axis=0) - without[0]
    scale = np.sqrt(np.diag(wanted))
    assert np.abs((np.cov(residual.T) - wanted) / np.outer(scale, scale)).max() < 0.1
