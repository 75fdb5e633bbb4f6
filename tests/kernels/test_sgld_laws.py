"""DP-SGLD and DP-SGNHT over long runs, and their ledgers.

For a Gaussian whose rows are not clipped SGLD's steps are linear, and its stationary covariance is the
solution of Lyapunov's equation, batch noise included: long runs must agree with it within their own error,
and it with the posterior as h → 0.
"""

import json
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from dpmc.algorithms.dp_sgld import DPSGLD, DRIFTS
from dpmc.algorithms.dp_sgnht import DPSGNHT
from dpmc.data.problem import Problem
from dpmc.models.gaussian import Gaussian, dp_hmc_covariance
from dpmc.privacy import accountants
from dpmc.privacy.events import repeat
from dpmc.sampling.loop import Cell, sample
from dpmc.studies import build_algorithm, load_study, pinned_hyperparameters
from kernels.cells import cell, problem_of, read


def gaussian_problem(precision: np.ndarray, n: int, prior_variance: float, starts: int) -> Problem:
    """A conjugate problem."""
    model = Gaussian(precision, prior_variance, prior_variance)
    generator = np.random.default_rng(40)
    rows = model.simulate(generator, np.linspace(-1.0, 1.0, len(precision)), n)
    return problem_of(model, rows, 1.0, generator, starts)


def long_run(on: Problem, algorithm: Any, iterations: int, chains: int) -> np.ndarray:
    """Draws (chains, iterations / 2, d) of the second half, centred at the posterior mean."""
    chosen = Cell(on, "long", algorithm, "inf", 1e-3, "rdp", iterations=iterations)
    runs = sample(chosen, list(range(chains)))
    assert all(run.totals[1].sum() == 0 for run in runs)
    return np.concatenate([run.draws for run in runs])[:, iterations // 2 :] - on.posterior_mean


def ratios(draws: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances over exact ones, along the exact covariance's own directions, and their standard errors."""
    values, directions = np.linalg.eigh(exact)
    each = ((draws @ directions) ** 2).mean(axis=1) / values
    return each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))


def stationary_covariance(on: Problem, algorithm: DPSGLD) -> np.ndarray:
    """SGLD's exact stationary covariance for unclipped Gaussian rows, noise of batches included.

    θ' − m = (I − fhΛ)(θ − m) + fh·(batch noise) + √h z, f = `drift`, Λ the posterior's precision; a batch of
    b of n without replacement has noise n²(1 − b/n)S/b, S the covariance of rows' gradients, divisor n − 1.
    """
    n, b, f = on.n, algorithm.batch_size, DRIFTS[algorithm.drift]
    h = algorithm.step_size / n
    inverse = np.linalg.inv(on.posterior_covariance)
    spread = np.cov(on.rows @ on.model.precision, rowvar=False)
    noise = h * np.eye(on.dimension) + (f * h) ** 2 * n**2 * (1.0 - b / n) / b * spread
    return np.asarray(solve_discrete_lyapunov(np.eye(on.dimension) - f * h * inverse, noise))


SLANTED = np.array([[0.8, -0.5], [-0.5, 1.5]])


def sgld(on: Problem, pull: float, batch_size: int, drift: str) -> DPSGLD:
    """SGLD whose largest hΛ is `pull`, with a clip bound out of reach."""
    step = pull * on.n / np.linalg.eigvalsh(np.linalg.inv(on.posterior_covariance)).max()
    return DPSGLD(batch_size=batch_size, clip=1e6, step_size=float(step), drift=drift)


@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize(("pull", "batch_size"), [(0.4, 40), (0.2, 10), (0.2, 40)])
def test_sgld_has_its_exact_stationary_law(pull: float, batch_size: int, drift: str) -> None:
    on = gaussian_problem(SLANTED, 40, 0.1, 180)
    algorithm = sgld(on, pull, batch_size, drift)
    draws = long_run(on, algorithm, 2000, 180)
    found, error = ratios(draws, stationary_covariance(on, algorithm))
    assert error.max() < 0.02
    assert np.abs((found - 1.0) / error).max() < 4.5
    centre = draws.mean(axis=(0, 1)) / (draws.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(180))
    assert np.abs(centre).max() < 4.5


@pytest.mark.parametrize(("drift", "limit"), [("correct", 1.0), ("published", 0.5)])
def test_small_steps_of_sgld_sample_the_posterior_or_as_published_half_its_variance(
    drift: str, limit: float
) -> None:
    on = gaussian_problem(SLANTED, 40, 0.1, 1)
    values, directions = np.linalg.eigh(on.posterior_covariance)

    def ratio(pull: float, batch_size: int) -> np.ndarray:
        law = stationary_covariance(on, sgld(on, pull, batch_size, drift))
        return np.diag(directions.T @ law @ directions) / values

    # what is left is of order h: it halves with the step
    for batch_size in (40, 10):
        errors = [np.abs(ratio(pull, batch_size) - limit).max() for pull in (0.2, 0.1, 0.05, 1e-4)]
        assert errors[-1] < 1e-3
        assert all(
            late == pytest.approx(early / 2.0, rel=0.15)
            for early, late in zip(errors[:2], errors[1:3], strict=True)
        )


def stiff_problem(chains: int) -> Problem:
    """Ten directions, one 100 times as stiff as the others: a thermostat depends on their mean only."""
    return gaussian_problem(np.diag([1.0] * 9 + [100.0]), 50, 100.0, chains)


@pytest.mark.parametrize(("order", "low", "high"), [("correct", 0.9, 1.1), ("published", 1.6, 2.3)])
def test_sgnht_samples_the_posterior_or_as_published_too_wide_a_law(
    order: str, low: float, high: float
) -> None:
    on = stiff_problem(160)
    h = 0.1 / np.sqrt(50 * 100.0)  # hω = 0.1 in the stiff direction; heating h²ω² against cooling hA
    algorithm = DPSGNHT(batch_size=50, clip=1e6, step_size=float(50 * h), diffusion=0.02 / h, order=order)
    found, error = ratios(long_run(on, algorithm, 3000, 160), on.posterior_covariance)
    assert error.max() < 0.06
    assert low < found[0] < high  # the stiffest direction has the smallest variance
    if order == "correct":
        assert np.abs((found - 1.0) / error).max() < 4.5


def the_papers_gaussian(rows: int, starts: int) -> Problem:
    """The posterior of the paper's Gaussian from a few heavy rows: all are in each batch: no noise of it."""
    precision = 100_000 / rows * np.linalg.inv(dp_hmc_covariance())
    return gaussian_problem(0.5 * (precision + precision.T), rows, 100.0**2, starts)


def stiffest_under_sgnht(order: str, iterations: int, chains: int) -> tuple[float, float]:
    """Variance over the exact one in the stiffest direction at the published step, and its standard error."""
    on = the_papers_gaussian(4, chains)
    values = {"batch_size": 4, "clip": 1e9, "step_size": 4 * 0.2 / 100_000, "diffusion": 30, "order": order}
    algorithm = read("dp-sgnht", values, 10)
    found, error = ratios(long_run(on, algorithm, iterations, chains), on.posterior_covariance)
    return float(found[0]), float(error[0])


@pytest.mark.slow
@pytest.mark.parametrize(("order", "low", "high"), [("correct", 0.96, 1.03), ("published", 1.7, 2.1)])
def test_stiffest_direction_at_the_published_step_of_sgnht(order: str, low: float, high: float) -> None:
    found, error = stiffest_under_sgnht(order, 200_000, 40)
    assert error < 0.25
    assert low - 3.0 * error < found < high + 3.0 * error
    if order == "published":
        assert found > 1.0 + 4.0 * error


@pytest.mark.parametrize(("drift", "wanted"), [("correct", 1.19), ("published", 0.73)])
def test_stiffest_direction_at_the_published_step_of_sgld(drift: str, wanted: float) -> None:
    on = the_papers_gaussian(4, 30)
    values = {"batch_size": 4, "clip": 1e9, "step_size": 4 * 0.008 / 100_000, "drift": drift}
    algorithm = read("dp-sgld", values, 10)
    exact = np.linalg.eigvalsh(stationary_covariance(on, algorithm))
    exact /= np.linalg.eigvalsh(on.posterior_covariance)
    assert exact[0] == pytest.approx(wanted, abs=0.005)
    found, error = ratios(long_run(on, algorithm, 6000, 30), on.posterior_covariance)
    assert np.abs((found[0] - exact[0]) / error[0]) < 4.5


# --- multipliers, ledgers ------------------------------------------------------------------------

BANANA = {"batch_size": 1000, "clip": 0.2}
PUBLISHED = [
    (DPSGLD(**BANANA, step_size=1.0, drift="published"), 7.906, {4: 27425, 15: 259283}),
    (DPSGLD(**BANANA, step_size=1.0), 15.81, {}),
    (DPSGNHT(**BANANA, step_size=100.0, diffusion=50.0, order="published"), 7.906, {4: 27425}),
    (DPSGNHT(**BANANA, step_size=100.0, diffusion=50.0), 7.906, {}),
    (DPSGLD(batch_size=1000, clip=15.0, step_size=0.008, drift="published"), 1.1785, {4: 564, 15: 5366}),
    (DPSGLD(batch_size=1000, clip=15.0, step_size=0.008), 2.357, {}),
    (
        DPSGNHT(batch_size=1000, clip=12.0, step_size=0.2, diffusion=30.0, order="published"),
        2.282,
        {4: 2275, 15: 21521},
    ),
    (DPSGNHT(batch_size=1000, clip=12.0, step_size=0.2, diffusion=30.0), 2.282, {}),
]


@pytest.mark.parametrize(("algorithm", "multiplier", "iterations"), PUBLISHED)
def test_published_multipliers_and_iterations(
    algorithm: Any, multiplier: float, iterations: dict[int, int]
) -> None:
    once, each = algorithm.releases(100_000)
    assert once == ()
    assert [e.count for e in each] == [1]
    assert each[0].noise_multiplier == pytest.approx(multiplier, rel=5e-4)
    assert each[0].sensitivity == pytest.approx(2.0 * 100_000 * algorithm.clip / 1000, rel=1e-14)
    accountant = accountants.resolve("thesis", each)
    assert accountant.name == "replace-pld"
    for epsilon, wanted in iterations.items():  # of each of four chains
        found = accountant.iterations((), repeat(each, 4), float(epsilon), 1e-6)
        assert found == pytest.approx(wanted, rel=2e-4, abs=1)


@pytest.mark.parametrize("name", ["replace-pld", "wor-pld", "rdp"])
@pytest.mark.parametrize("method", ["dp-sgld", "dp-sgnht"])
def test_the_ledger_has_the_releases_of_all_chains(method: str, name: str) -> None:
    on = gaussian_problem(SLANTED, 500, 1.0, 4)
    fields = {"iterations": None, "most_iterations": 50, "epsilon": "3", "delta": 1e-3, "chains": 2}
    chosen = cell(method, on, accountant=name, **fields)
    ledger = json.loads(sample(chosen, [0])[0].attributes["ledger"])
    (performed,) = ledger["performed"]
    count = 2 * chosen.allowed_iterations()
    assert (performed["type"], performed["count"]) == ("subsampled-gaussian", count)
    assert performed["noise_multiplier"] == pytest.approx(float(chosen.algorithm.noise_multiplier(500)))
    assert performed["sensitivity"] == pytest.approx(2.0 * 500 * chosen.algorithm.clip / 20)
    assert ledger["performed"] == ledger["reserved"]
    releases = repeat(chosen.algorithm.releases(500)[1], count)
    assert 0.0 < ledger["epsilon_spent"] <= 3.0
    assert ledger["epsilon_spent"] == accountants.get(name).epsilon(releases, 1e-3, near=3.0)


def test_the_study_has_the_published_settings() -> None:
    study = load_study("config/studies/dp-hmc.yaml")
    for label, (algorithm, _, _) in zip(
        ("dp-sgld-published", "dp-sgld", "dp-sgnht-published", "dp-sgnht"), PUBLISHED[:4], strict=True
    ):
        given = pinned_hyperparameters(study, "paper-banana", label)
        assert build_algorithm(study, label, given, 2) == algorithm
