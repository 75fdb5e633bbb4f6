"""Symmetric KL by histogram: by hand, against numpy's histogram and a closed form; test accuracy."""

import math

import numpy as np
import pytest

from dpmc.common.errors import DpmcError
from dpmc.data.histogram import (
    EDGES,
    FLOOR,
    accuracy,
    bin_counts,
    equal_edges,
    symmetric_kl,
    symmetric_kl_of_counts,
)


def test_edges_run_between_the_extremes():
    draws = np.array([[0.0, -1.0], [2.0, 5.0], [1.0, 2.0]])
    edges = equal_edges(draws)
    assert edges.shape == (2, EDGES)
    assert edges[:, 0].tolist() == [0.0, -1.0] and edges[:, -1].tolist() == [2.0, 5.0]
    np.testing.assert_allclose(np.diff(edges), [[2 / 99] * 99, [6 / 99] * 99], rtol=1e-12)


@pytest.mark.parametrize("draws", [np.empty((0, 2)), np.ones((5, 2)), np.array([[0.0, 1.0], [1.0, 1.0]])])
def test_no_grid_without_different_draws(draws):
    with pytest.raises(DpmcError, match="must differ"):
        equal_edges(draws)


def test_bins_include_their_lower_edge_and_the_last_bin_both():
    edges = np.array([[0.0, 1.0, 2.0], [0.0, 10.0, 20.0]])
    draws = np.array(
        [[0, 0], [0, 10], [1, 0], [2, 20], [0.5, 9.9], [2.1, 5], [-0.1, 5], [1, 21], [np.nan, 1], [np.inf, 1]]
    )
    counts, dropped = bin_counts(draws, edges)
    assert counts.tolist() == [[2, 1], [1, 1]] and dropped == 5


def test_counts_are_those_of_numpy():
    generator = np.random.default_rng(3)
    truth, draws = generator.standard_normal((5000, 2)), 1.3 * generator.standard_normal((4000, 2))
    edges = equal_edges(truth)
    expected = np.histogram2d(draws[:, 0], draws[:, 1], bins=[edges[0], edges[1]])[0]
    counts, dropped = bin_counts(draws, edges)
    np.testing.assert_array_equal(counts, expected)
    assert dropped == 4000 - expected.sum() > 0


def test_value_by_hand():
    p, q = np.array([[3, 1], [0, 0]]), np.array([[1, 1], [2, 0]])
    kl_pq = 0.75 * math.log(3.0) + FLOOR * math.log(FLOOR / 0.5)
    kl_qp = 0.25 * math.log(1 / 3) + 0.5 * math.log(0.5 / FLOOR)
    assert symmetric_kl_of_counts(p, q) == pytest.approx((kl_pq + kl_qp) / 2, rel=1e-12)
    assert symmetric_kl_of_counts(q, p) == pytest.approx(symmetric_kl_of_counts(p, q), rel=1e-12)
    assert symmetric_kl_of_counts(7 * p, p) == pytest.approx(0.0, abs=1e-15)


def test_no_draw_on_the_grid_is_the_worst_and_finite():
    truth = np.array([[50, 50], [0, 0]])
    nothing = symmetric_kl_of_counts(np.zeros((2, 2), int), truth)
    assert nothing == pytest.approx(0.5 * math.log(0.5 / FLOOR), rel=1e-9)
    assert nothing > symmetric_kl_of_counts(np.array([[1, 0], [0, 0]]), truth)


def test_two_shifted_normal_laws():
    # KL is s²/2 in both directions for a shift by s; in bins of exact probabilities it is 1 to 3 % less. The
    # noise of 10⁶ draws in at most 1,600 bins adds about (bins / draws), below 1 % of the value.
    from scipy.stats import norm

    generator = np.random.default_rng(20210311)
    size, shift = 1_000_000, 0.5
    edges = np.linspace(-6.5, 6.5, 41)[None].repeat(2, axis=0)
    one, two = np.diff(norm.cdf(edges[0])), np.diff(norm.cdf(edges[0] - shift))
    binned = 0.5 * np.sum((one - two) * np.log(one / two))
    truth, _ = bin_counts(generator.standard_normal((size, 2)), edges)
    draws = generator.standard_normal((size, 2)) + np.array([shift, 0.0])
    value, dropped = symmetric_kl(draws, edges, truth)
    assert dropped < 10
    assert binned == pytest.approx(shift**2 / 2, rel=0.03)
    assert value == pytest.approx(binned, rel=0.05)


def test_accuracy():
    rows = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 5.0], [1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    assert accuracy(np.array([1.0, 0.0]), rows) == 0.75
    assert accuracy(np.zeros(2), rows) == 0.5
