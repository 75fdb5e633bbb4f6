"""Logistic regression: its formulas against each other, its bound, the rows it simulates."""

import numpy as np
import pytest
from scipy import stats

from dpmc.models.logistic import Logistic

MODEL = Logistic(4, 2.5)
THETA = np.array([0.8, -0.5, 1.5, 0.1])


def some_rows(n: int = 40) -> np.ndarray:
    return MODEL.simulate(np.random.default_rng(3), THETA, n)


def test_log_likelihood_is_that_of_a_coin_with_logistic_odds() -> None:
    rows = some_rows()
    for theta in np.random.default_rng(1).normal(0.0, 2.0, (20, 4)):
        wanted = stats.bernoulli.logpmf(rows[:, 0], 1.0 / (1.0 + np.exp(-rows[:, 1:] @ theta)))
        np.testing.assert_allclose(MODEL.log_likelihood(theta, rows), wanted, rtol=1e-9, atol=1e-13)


def test_row_bounds_are_norms_and_bound_every_ratio() -> None:
    generator, rows = np.random.default_rng(5), some_rows()
    bounds = MODEL.row_bounds(rows)
    np.testing.assert_allclose(bounds, np.linalg.norm(rows[:, 1:], axis=1), rtol=1e-14)
    for _ in range(2000):
        theta, step = generator.normal(0.0, 2.0, (2, 4))
        step *= 10.0 ** generator.uniform(-4.0, 1.0)
        change = MODEL.log_likelihood(theta + step, rows) - MODEL.log_likelihood(theta, rows)
        assert (np.abs(change) <= bounds * np.linalg.norm(step) * (1.0 + 1e-9) + 1e-13).all()
    for row, bound in zip(rows, bounds, strict=True):  # nearly reached where the label is most surprising
        against = -40.0 / bound**2 * (2.0 * row[0] - 1.0) * row[1:]
        change = MODEL.log_likelihood(1.1 * against, row[None]) - MODEL.log_likelihood(against, row[None])
        assert abs(change[0]) == pytest.approx(bound * np.linalg.norm(0.1 * against), rel=1e-9)


def test_simulated_rows_are_clipped_normal_with_labels_at_the_stated_odds() -> None:
    """False alarm of each check: 1e-4 or less."""
    n = 20_000
    rows = MODEL.simulate(np.random.default_rng(6), THETA, n)
    assert rows.shape == (n, 5)
    assert set(np.unique(rows[:, 0])) == {0.0, 1.0}
    length = np.linalg.norm(rows[:, 1:], axis=1)
    assert length.max() <= 2.5 * (1.0 + 1e-12)
    clipped = length > 2.5 * (1.0 - 1e-12)
    law = stats.chi(4)
    assert stats.binomtest(int(clipped.sum()), n, float(law.sf(2.5))).pvalue > 1e-4
    free = stats.kstest(length[~clipped], lambda r: law.cdf(r) / law.cdf(2.5))
    assert free.pvalue > 1e-4
    link = rows[:, 1:] @ THETA
    probability = 1.0 / (1.0 + np.exp(-link))
    for chosen in (link < -1.0, np.abs(link) <= 1.0, link > 1.0):
        p = probability[chosen]
        error = (rows[chosen, 0] - p).sum() / np.sqrt((p * (1.0 - p)).sum())
        assert abs(error) < 4.0
