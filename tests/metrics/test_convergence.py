"""The diagnostics of convergence, on chains whose answer is known."""

import numpy as np
import pytest

from dpmc.common.draws import diagnostics
from dpmc.metrics.cell import convergence


def test_independent_draws_have_converged() -> None:
    draws = np.random.default_rng(3).normal(0.0, [1.0, 5.0], (20, 500, 2))
    result = convergence(draws)
    assert result["rhat_max"] < 1.01
    assert result["ess_bulk_min"] == pytest.approx(10_000, rel=0.15)
    assert result["mcse_mean_max"] == pytest.approx(5.0 / 100.0, rel=0.1)  # the worse parameter's


def test_one_chain_is_compared_half_with_half() -> None:
    draws = np.random.default_rng(6).normal(size=(1, 400, 2))
    halves = np.stack([draws[0, :200], draws[0, 200:]])
    assert convergence(draws)["rhat_max"] == convergence(halves)["rhat_max"] < 1.1
    draws[:, 200:, 1] += 3.0
    assert convergence(draws)["rhat_max"] > 1.5


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


def test_equal_draws_are_worth_none() -> None:
    """Of a parameter that no chain moved; arviz-stats gives as many as there are draws, and an error of 0."""
    draws = np.random.default_rng(1).normal(size=(2, 50, 2))
    draws[..., 1] = [[1.0], [2.0]]
    found = diagnostics(draws)
    assert np.isnan([found.ess[1], found.mcse[1]]).all() and not np.isfinite(found.rhat[1])
    assert np.isfinite([values[0] for values in found]).all()
