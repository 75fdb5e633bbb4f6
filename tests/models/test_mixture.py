"""The mixture: its formulas against each other, its bound, its posterior on a grid and draws from it."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmc.models import mixture
from dpmc.models.mixture import GridPosterior, Mixture

MODEL = Mixture(2.0, 3.0)
TRUE = np.array([0.0, 1.0])
TEMPERATURE = 1.0 / 20.0  # of 2000 rows: as much information as in the paper


def some_rows(n: int = 2000) -> np.ndarray:
    return MODEL.simulate(np.random.default_rng(3), TRUE, n)


def log_density(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """By SciPy, in the plain parametrisation."""
    sd = np.sqrt(MODEL.variance)
    ends = [stats.norm.logpdf(x, mean, sd) for mean in (theta[0], theta[0] + theta[1])]
    return np.logaddexp(*ends) - np.log(2.0)


def test_log_likelihood_is_that_of_two_normal_laws() -> None:
    rows, generator = some_rows(30), np.random.default_rng(1)
    for theta, proposal in generator.uniform(-3.0, 3.0, (20, 2, 2)):
        found = MODEL.log_likelihood(proposal, rows) - MODEL.log_likelihood(theta, rows)
        wanted = log_density(proposal, rows[:, 0]) - log_density(theta, rows[:, 0])
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)


def test_prior_is_flat_on_the_square_and_nothing_outside() -> None:
    theta = np.array([[0.0, 0.0], [3.0, -3.0], [3.1, 0.0], [0.0, -3.1], [np.nan, 0.0], [0.0, np.inf]])
    assert MODEL.log_prior(theta).tolist() == [0.0, 0.0, *[-np.inf] * 4]
    assert (MODEL.log_prior_gradient(theta) == 0.0).all()


def test_row_bounds_are_appendix_es_and_bound_every_ratio_on_the_square() -> None:
    generator = np.random.default_rng(5)
    rows = np.concatenate([some_rows(40), [[0.0], [-9.0], [30.0]]])
    size = np.abs(rows[:, 0])
    bounds = MODEL.row_bounds(rows)
    np.testing.assert_allclose(bounds, np.hypot((2.0 * size + 9.0) / 2.0, (size + 6.0) / 2.0), rtol=1e-14)
    corners = np.array([[a, b] for a in (-3.0, 3.0) for b in (-3.0, 3.0)])
    largest = np.zeros(len(rows))
    for _ in range(3000):
        theta, proposal = generator.uniform(-3.0, 3.0, (2, 2))
        if generator.random() < 0.3:
            theta = corners[generator.integers(4)]
        if generator.random() < 0.5:
            proposal = theta + 1e-3 * (proposal - theta)
        change = MODEL.log_likelihood(proposal, rows) - MODEL.log_likelihood(theta, rows)
        largest = np.maximum(largest, np.abs(change) / np.linalg.norm(proposal - theta))
    assert (largest <= bounds).all()
    assert (largest >= 0.25 * bounds).all()  # nor is it out of all proportion


@pytest.fixture(scope="module")
def posterior() -> GridPosterior:
    return MODEL.posterior(some_rows(), TEMPERATURE)


def test_posterior_is_likelihood_to_the_temperature_times_prior(posterior: GridPosterior) -> None:
    rows, generator = some_rows(), np.random.default_rng(7)
    first, second = (0.5 * (edges[1:] + edges[:-1]) for edges in posterior.edges)
    constants = []
    while len(constants) < 50:
        i, j = generator.integers(0, len(first), 2)
        if posterior.weight[i, j] > 1e-15:
            likelihood = MODEL.log_likelihood(np.array([first[i], second[j]]), rows).sum()
            constants.append(np.log(posterior.weight[i, j]) - TEMPERATURE * likelihood)
    np.testing.assert_allclose(constants, constants[0], rtol=0.0, atol=1e-5)
    assert posterior.weight.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.abs(posterior.edges[0]).max() <= 3.0
    assert np.abs(posterior.edges[1]).max() <= 3.0


def test_twice_as_fine_a_grid_is_the_same_law(posterior: GridPosterior, monkeypatch: Any) -> None:
    monkeypatch.setattr(mixture, "GRID_POINTS", 2 * mixture.GRID_POINTS - 1)
    monkeypatch.setattr(mixture, "SQUARES", 2 * mixture.SQUARES)
    fine = MODEL.posterior(some_rows(), TEMPERATURE)
    sd = np.sqrt(np.diag(fine.covariance()))
    assert (np.abs(posterior.mean() - fine.mean()) < 1e-4 * sd).all()
    assert (np.abs(posterior.covariance() - fine.covariance()) < 1e-4 * np.outer(sd, sd)).all()
    for axis, (edges, fine_edges) in enumerate(
        [(posterior.edges[0], fine.edges[0]), (posterior.edges[1], fine.edges[1])]
    ):
        laws = [np.append(0.0, np.cumsum(p.weight.sum(axis=1 - axis))) for p in (posterior, fine)]
        assert np.abs(np.interp(fine_edges, edges, laws[0]) - laws[1]).max() < 1e-5


def test_draws_follow_the_grid(posterior: GridPosterior) -> None:
    """False alarm of each check: 1e-4."""
    size = 100_000
    draws = posterior.draws(np.random.default_rng(8), size)
    assert draws.shape == (size, 2)
    for axis, edges in enumerate(posterior.edges):
        law = np.append(0.0, np.cumsum(posterior.weight.sum(axis=1 - axis)))
        assert stats.kstest(draws[:, axis], lambda x, e=edges, p=law: np.interp(x, e, p)).pvalue > 1e-4
        width = edges[1] - edges[0]
        assert stats.kstest((draws[:, axis] - edges[0]) / width % 1.0, "uniform").pvalue > 1e-4
    coarse = 60  # cells to a side of the boxes counted
    boxes = posterior.weight.reshape(len(posterior.weight) // coarse, coarse, -1, coarse).sum(axis=(1, 3))
    found = np.histogram2d(*draws.T, bins=(posterior.edges[0][::coarse], posterior.edges[1][::coarse]))[0]
    common = size * boxes >= 5.0
    wanted = np.append(size * boxes[common], size * boxes[~common].sum())
    counts = np.append(found[common], found[~common].sum())
    assert counts.sum() == size
    assert stats.chisquare(counts, wanted).pvalue > 1e-4
