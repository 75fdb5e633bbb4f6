"""DP-SGLD and DP-SGNHT: their steps, queries, long runs and multipliers.

There is no acceptance test, so nothing keeps the posterior exactly. Checked instead: every step, number by
number, against formulas written independently; that noise and sensitivity are the declared ones; and long
runs against stationary distributions that are known. For a Gaussian whose rows are not clipped SGLD's steps
are linear, and its stationary covariance is the solution of Lyapunov's equation, batch noise included.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from dpmc.algorithms.dp_sgld import DPSGLD, DRIFTS
from dpmc.algorithms.dp_sgnht import DPSGNHT
from dpmc.data.problem import Problem
from dpmc.evaluators import kernels
from dpmc.models.gaussian import Gaussian
from dpmc.privacy import accountants
from dpmc.privacy.events import repeat
from dpmc.privacy.runs import RunQueries
from dpmc.sampling.loop import Cell, sample
from kernels import ladder, queries
from kernels.cells import problem_of
from kernels.ladder import Kernel, Numbers
from kernels.problems import SLANT, simulated

#: A slanted Gaussian with a prior that is felt, tempered.
SMALL = simulated(replace(SLANT, prior_variance=0.5, exact_prior_variance=0.5), 30, 0.4, 9)
#: Clip bounds such that some rows are clipped and some are not.
BATCH = {"batch_size": 12, "clip": 0.5}
KERNELS = {
    "dp-sgld": Kernel(DPSGLD(**BATCH, step_size=0.9), SMALL),
    "dp-sgld published": Kernel(DPSGLD(**BATCH, step_size=0.9, drift="published"), SMALL),
    "dp-sgnht": Kernel(DPSGNHT(**BATCH, step_size=6.0, diffusion=1.7), SMALL),
    "dp-sgnht published": Kernel(DPSGNHT(**BATCH, step_size=6.0, diffusion=1.7, order="published"), SMALL),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


# --- one step, number by number ------------------------------------------------------------------


def wanted_path(kernel: Kernel, start: np.ndarray, given: Numbers) -> np.ndarray:
    """θ_1 … θ_m (m, chains, 2) by the formulas of the spec, 3.7, from rows."""
    algorithm, model, rows = kernel.algorithm, SMALL.model, SMALL.rows
    n, b = SMALL.n, algorithm.batch_size
    h = algorithm.step_size / n
    path = np.empty((len(given.words), *start.shape))
    for c, theta in enumerate(start):
        p, xi = (given.carried[c, :2], given.carried[c, 2]) if given.carried.shape[1] else (0.0, 0.0)
        for i in range(len(path)):
            chosen = kernels.draw_batches(given.words[i, c : c + 1], n)[0]
            gradients = SMALL.temperature * (rows[chosen] - theta) @ model.precision
            norms = np.sqrt((gradients**2).sum(axis=1))
            assert 0 < (norms > algorithm.clip).sum() < b
            clipped = gradients * np.minimum(1.0, algorithm.clip / norms)[:, None]
            gradient = n / b * clipped.sum(axis=0) - theta / model.prior_variance
            z = given.gradient_normals[i, c, 0]
            if hasattr(algorithm, "drift"):
                drift = {"correct": 0.5, "published": 1.0}[algorithm.drift]
                theta = theta + drift * h * gradient + np.sqrt(h) * z
            else:
                new = p - xi * h * p + h * gradient + np.sqrt(2.0 * h * algorithm.diffusion) * z
                moving = p if algorithm.order == "published" else new
                theta, p = theta + h * moving, new
                xi = xi + h * ((moving**2).sum() / 2.0 - 1.0)
            path[i, c] = theta
    return path


def started(kernel: Kernel, seed: int, chains: int, m: int) -> tuple[np.ndarray, Numbers]:
    generator = np.random.default_rng(seed)
    start = SMALL.posterior.draws(generator, chains)
    return start, ladder.numbers(kernel, generator, chains, m)


def step_error(kernel: Kernel) -> float:
    """Return the largest distance of the kernel's path from that of the formulas."""
    start, given = started(kernel, 30, 3, 5)
    wanted = wanted_path(kernel, start, given)
    with np.errstate(all="ignore"):
        found = ladder.run(kernel, start, given).theta
    return float(np.nan_to_num(np.abs(found - wanted), nan=9.0).max())


@each_kernel
def test_every_step_is_the_formula(kernel: Kernel) -> None:
    assert step_error(kernel) < 1e-12


# --- queries ------------------------------------------------------------------------------------


def attained(kernel: Kernel) -> float:
    """Return the measured noise multiplier over the declared one, for the worst neighbours.

    One row of the batch goes from far on one side to far on the other; the first step shows by how much it
    moves, and how much a unit of noise does.
    """
    start, given = started(kernel, 24, 1, 2)
    given.words[:] = 0  # row 0 is the batch's first

    def path(side: float, z: float) -> np.ndarray:
        rows = SMALL.rows.copy()
        rows[0] = side * 1e7
        normals = np.zeros_like(given.gradient_normals)
        normals[0, 0, 0, 0] = z
        now = replace(given, gradient_normals=normals)
        return ladder.run(kernel, start, now, replace(SMALL, rows=rows)).theta[:, 0]

    # by the old momentum a step is seen one iteration later
    at = 1 if getattr(kernel.algorithm, "order", "") == "published" else 0
    change = path(1.0, 0.0)[at] - path(-1.0, 0.0)[at]
    sd = (path(1.0, 1.0)[at] - path(1.0, -1.0)[at]) / 2.0
    found = np.sqrt((sd**2).sum() / (change**2).sum())
    return float(found / kernel.algorithm.queries(SMALL.n).each[0].noise_multiplier)


@each_kernel
def test_queries_are_the_declared_ones_and_their_noise_is_attained_by_the_worst_neighbour(
    kernel: Kernel,
) -> None:
    assert queries.query_faults(kernel) == []
    assert attained(kernel) == pytest.approx(1.0, rel=1e-6)


# --- long runs -----------------------------------------------------------------------------------


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
    assert all(run.totals["diverging"].sum() == 0 for run in runs)
    return np.concatenate([run.draws for run in runs])[:, iterations // 2 :] - on.exact.posterior_mean


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
    inverse = np.linalg.inv(on.exact.posterior_covariance)
    spread = np.cov(on.rows @ on.model.precision, rowvar=False)
    noise = h * np.eye(on.dimension) + (f * h) ** 2 * n**2 * (1.0 - b / n) / b * spread
    return np.asarray(solve_discrete_lyapunov(np.eye(on.dimension) - f * h * inverse, noise))


SLANTED = np.array([[0.8, -0.5], [-0.5, 1.5]])


def sgld(on: Problem, pull: float, batch_size: int, drift: str) -> DPSGLD:
    """SGLD whose largest hΛ is `pull`, with a clip bound out of reach."""
    step = pull * on.n / np.linalg.eigvalsh(np.linalg.inv(on.exact.posterior_covariance)).max()
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
    found, error = ratios(long_run(on, algorithm, 3000, 160), on.exact.posterior_covariance)
    assert error.max() < 0.06
    assert low < found[0] < high  # the stiffest direction has the smallest variance
    if order == "correct":
        assert np.abs((found - 1.0) / error).max() < 4.5


# --- multipliers, ledgers ------------------------------------------------------------------------

#: Hyperparameters, multipliers as published and corrected, and iterations of four chains as published.
PUBLISHED: list[tuple[Any, dict[str, float], float, float, dict[int, int]]] = [
    (DPSGLD, {"clip": 0.2, "step_size": 1.0}, 7.906, 15.81, {4: 27425, 15: 259283}),
    (DPSGNHT, {"clip": 0.2, "step_size": 100.0, "diffusion": 50.0}, 7.906, 7.906, {4: 27425}),
    (DPSGLD, {"clip": 15.0, "step_size": 0.008}, 1.1785, 2.357, {4: 564, 15: 5366}),
    (DPSGNHT, {"clip": 12.0, "step_size": 0.2, "diffusion": 30.0}, 2.282, 2.282, {4: 2275, 15: 21521}),
]


@pytest.mark.parametrize(("kind", "values", "published", "corrected", "iterations"), PUBLISHED)
def test_published_multipliers_and_iterations(
    kind: Any, values: dict[str, float], published: float, corrected: float, iterations: dict[int, int]
) -> None:
    option = "drift" if kind is DPSGLD else "order"
    for variant, multiplier in (("correct", corrected), ("published", published)):
        once, each = RunQueries.of(kind(batch_size=1000, **values, **{option: variant}), 100_000)
        assert once == ()
        assert [e.count for e in each] == [1]
        assert each[0].noise_multiplier == pytest.approx(multiplier, rel=5e-4)
        assert each[0].sensitivity == pytest.approx(2.0 * 100_000 * values["clip"] / 1000, rel=1e-14)
    accountant = accountants.resolve("thesis", each)
    assert accountant.name == "replace-pld"
    for epsilon, wanted in iterations.items():
        found = accountant.iterations((), repeat(each, 4), float(epsilon), 1e-6)
        assert found == pytest.approx(wanted, rel=2e-4, abs=1)
