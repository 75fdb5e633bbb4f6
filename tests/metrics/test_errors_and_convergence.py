"""Moment errors by hand, and the diagnostics on chains whose answer is known."""

import math

import numpy as np
import pytest

from dpmc.metrics.cell import convergence, covariance_error, mean_error


def test_mean_error_is_the_euclidean_distance() -> None:
    draws = np.array([[0.0, 1.0], [6.0, 7.0]])
    assert mean_error(draws, np.array([0.0, 0.0])) == pytest.approx(5.0)


def test_covariance_error_is_the_frobenius_norm() -> None:
    draws = np.array([[0.0, 0.0], [2.0, 4.0]])  # covariance [[2, 4], [4, 8]] with divisor 1
    assert covariance_error(draws, np.zeros((2, 2))) == pytest.approx(math.sqrt(4 + 16 + 16 + 64))
    assert covariance_error(draws, np.cov(draws.T)) == pytest.approx(0.0, abs=1e-12)


def test_independent_draws_have_converged() -> None:
    draws = np.random.default_rng(3).normal(0.0, [1.0, 5.0], (20, 500, 2))
    result = convergence(draws)
    assert result.rhat_max < 1.01
    assert result.ess_bulk_min == pytest.approx(10_000, rel=0.15)
    assert result.mcse_mean_max == pytest.approx(5.0 / 100.0, rel=0.1)  # the worse parameter's


def test_correlated_draws_are_worth_fewer() -> None:
    generator, rho = np.random.default_rng(4), 0.9
    draws = np.empty((20, 2000, 1))
    draws[:, 0] = generator.normal(size=(20, 1))
    for t in range(1, 2000):
        shock = generator.normal(size=(20, 1))
        draws[:, t] = rho * draws[:, t - 1] + math.sqrt(1 - rho**2) * shock
    # ESS of an AR(1) chain is N (1 - rho) / (1 + rho)
    expected = 40_000 * (1 - rho) / (1 + rho)
    assert convergence(draws).ess_bulk_min == pytest.approx(expected, rel=0.2)


def test_one_chain_is_compared_half_with_half() -> None:
    draws = np.random.default_rng(6).normal(size=(1, 400, 2))
    halves = np.stack([draws[0, :200], draws[0, 200:]])
    assert convergence(draws).rhat_max == convergence(halves).rhat_max < 1.1
    draws[:, 200:, 1] += 3.0
    assert convergence(draws).rhat_max > 1.5


@pytest.mark.parametrize(
    ("draws", "reason"),
    [
        (np.random.default_rng(1).normal(size=(20, 2, 2)), "2 kept draws per chain, needs at least 4"),
        (np.random.default_rng(1).normal(size=(20, 1, 2)), "1 kept draw per chain"),
        (np.ones((20, 50, 2)), "never moved"),
        (np.full((4, 50, 2), np.inf), "not finite"),
    ],
)
def test_draws_without_diagnostics_are_refused(draws: np.ndarray, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        convergence(draws)
