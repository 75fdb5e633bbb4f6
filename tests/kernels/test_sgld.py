"""DP-SGLD and DP-SGNHT: their steps, releases and stationary laws, and faults in each of them.

There is no acceptance test, so nothing keeps the posterior exactly. What is checked instead: every step,
number by number, against the formulas written down anew; that noise and sensitivity are the declared ones;
and the law over long runs. For a Gaussian whose rows are not clipped SGLD's steps are linear, and its
stationary covariance is the solution of Lyapunov's equation, batch noise included: long runs must agree
with it within their own error, and it with the posterior as h → 0.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from dpmc import datasets, sampling
from dpmc.algorithms import algorithm_class
from dpmc.algorithms.common import Record, Settings, State
from dpmc.algorithms.dp_hmc import DPHMC
from dpmc.algorithms.dp_mala import DPMALA
from dpmc.algorithms.dp_sgld import DPSGLD
from dpmc.algorithms.dp_sgnht import DPSGNHT
from dpmc.algorithms.hmc import HMC
from dpmc.datasets.published import dp_hmc_covariance
from dpmc.evaluators.batch import BatchEvaluator, draw_batch
from dpmc.models.gaussian import Gaussian
from dpmc.privacy import accountants
from dpmc.privacy.events import SubsampledGaussianRelease, repeat
from dpmc.problem import Problem
from dpmc.sampling import Cell, sample
from dpmc.studies import load_study
from kernels import ladder
from kernels.ladder import LARGE, Kernel, Setting, SpyNoise, lengths
from kernels.paper_cells import cell

SGLD, SGNHT = "dpmc.algorithms.dp_sgld", "dpmc.algorithms.dp_sgnht"
DOOR, BATCH = "dpmc.privacy.mechanisms", "dpmc.evaluators.batch"


# --- one step, number by number ------------------------------------------------------------------


def small(n: int = 30) -> Setting:
    """A slanted Gaussian with a prior that is felt, tempered."""
    model = Gaussian(np.array([[0.8, -0.9], [-0.9, 2.0]]), 0.5, 0.5)
    return Setting(model, model.simulate(np.random.default_rng(9), np.array([0.5, -0.3]), n), 0.4)


#: Clip bounds such that some rows are clipped and some are not.
KERNELS = {
    "dp-sgld": Kernel(DPSGLD(12, 0.5, 0.9, 0.5), python=True, setting=small()),
    "dp-sgld published": Kernel(DPSGLD(12, 0.5, 0.9, 1.0), python=True, setting=small()),
    "dp-sgnht": Kernel(DPSGNHT(12, 0.5, 6.0, 1.7, False, 2), python=True, setting=small()),
    "dp-sgnht published": Kernel(DPSGNHT(12, 0.5, 6.0, 1.7, True, 2), python=True, setting=small()),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def evaluator_of(kernel: Kernel) -> Any:
    table = kernel.setting.model.statistics(kernel.setting.rows)
    return (kernel.batches or BatchEvaluator).build(table)


def advanced(kernel: Kernel, start: np.ndarray, given: Any, noise: Any = None, evaluator: Any = None) -> Any:
    """Records and final states of all iterations that `given` has numbers for, in plain Python."""
    record = Record.empty(len(start), given.draws.log_u.shape[1], start.shape[1])
    state = State(start.copy(), given.extra.copy())
    door = kernel.door_of(kernel.setting, evaluator or evaluator_of(kernel))
    noise = noise or kernel.noise(given.ratio_normals, given.gradient_normals)
    sampling.run_iterations(kernel.algorithm, door, noise, given.draws, state, record)
    return record, state


def wanted_path(kernel: Kernel, start: np.ndarray, given: Any) -> np.ndarray:
    """θ_1 … θ_m (chains, m, 2) by the formulas of the spec, 3.7, from rows."""
    algorithm, setting = kernel.algorithm, kernel.setting
    n, b, model = setting.n, algorithm.batch_size, setting.model
    h = algorithm.step_size / n
    path = np.empty((len(start), given.draws.log_u.shape[1], 2))
    for c, theta in enumerate(start):
        p, xi = given.extra[c, :2], given.extra[c, 2] if given.extra.shape[1] else 0.0
        for i in range(path.shape[1]):
            chosen = np.empty(b, np.int64)
            draw_batch(given.draws.words[c, i], np.zeros(n, bool), chosen)
            rows = setting.temperature * (setting.rows[chosen] - theta) @ model.precision
            norms = np.sqrt((rows**2).sum(axis=1))
            assert 0 < (norms > algorithm.clip).sum() < b
            clipped = rows * np.minimum(1.0, algorithm.clip / norms)[:, None]
            gradient = n / b * clipped.sum(axis=0) - theta / model.prior_variance
            z = given.gradient_normals[c, i, 0]
            if isinstance(algorithm.step_size, float) and hasattr(algorithm, "drift"):
                theta = theta + algorithm.drift * h * gradient + np.sqrt(h) * z
            else:
                new = p - xi * h * p + h * gradient + np.sqrt(2.0 * h * algorithm.diffusion) * z
                moving = p if algorithm.old_momentum else new
                theta, p = theta + h * moving, new
                xi = xi + h * ((moving**2).sum() / 2.0 - 1.0)
            path[c, i] = theta
    return path


def step_error(kernel: Kernel, chains: int = 3, m: int = 5) -> float:
    """How far the kernel's path is from the formulas', at most."""
    generator = np.random.default_rng(30)
    start = kernel.setting.posterior.draws(generator, chains)
    given = ladder.numbers(kernel.algorithm, generator, chains, m, 2)
    with np.errstate(all="ignore"):
        record, _ = advanced(kernel, start, given)
    return float(np.nan_to_num(np.abs(record.theta - wanted_path(kernel, start, given)), nan=9.0).max())


@each_kernel
def test_every_step_is_the_formula(kernel: Kernel) -> None:
    assert step_error(kernel) < 1e-12


@each_kernel
def test_momentum_and_thermostat_are_carried_from_block_to_block(kernel: Kernel) -> None:
    generator = np.random.default_rng(31)
    start = kernel.setting.posterior.draws(generator, 2)
    given = ladder.numbers(kernel.algorithm, generator, 2, 4, 2)
    whole, _ = advanced(kernel, start, given)

    def part(place: slice, extra: np.ndarray) -> Any:
        draws = type(given.draws)(*(array[:, place] for array in given.draws))
        normals = (given.ratio_normals[:, place], given.gradient_normals[:, place])
        return ladder.Numbers(draws, *normals, extra)

    _, middle = advanced(kernel, start, part(slice(0, 2), given.extra))
    rest, _ = advanced(kernel, middle.theta, part(slice(2, 4), middle.extra))
    np.testing.assert_array_equal(rest.theta, whole.theta[:, 2:])


# --- releases ------------------------------------------------------------------------------------


class SpyBatches:
    """Remembers what was asked about batches."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.asked: list[tuple[float, np.ndarray]] = []

    def batch_gradient_sums(self, model, theta, bound, words, i, sums, counts):  # type: ignore[no-untyped-def]
        self.asked.append((float(bound), words[:, i].copy()))
        self._inner.batch_gradient_sums(model, theta, bound, words, i, sums, counts)


def release_faults(kernel: Kernel, chains: int = 2, m: int = 4) -> list[str]:
    """What the performed releases have different from the declared ones; empty if nothing."""
    algorithm, setting = kernel.algorithm, kernel.setting
    generator = np.random.default_rng(23)
    start = setting.posterior.draws(generator, chains)
    given = ladder.numbers(algorithm, generator, chains, m, 2)
    noise = SpyNoise(kernel.noise(given.ratio_normals, given.gradient_normals))
    evaluator = SpyBatches(evaluator_of(kernel))
    advanced(kernel, start, given, noise, evaluator)
    once, each = algorithm.releases(setting.n)
    n, b = setting.n, algorithm.batch_size
    if once or [(type(e), e.batch_size, e.n, e.count) for e in each] != [
        (SubsampledGaussianRelease, b, n, 1)
    ]:
        return [f"declared {once}, {each}"]
    faults = []
    sensitivity = 2.0 * n * algorithm.clip / b
    if not np.isclose(each[0].sensitivity, sensitivity, rtol=1e-12):
        faults.append(f"sensitivity {each[0].sensitivity}, it is {sensitivity}")
    bounds = [bound for bound, _ in evaluator.asked]
    if not np.allclose(bounds, [algorithm.clip / setting.temperature] * m, rtol=1e-12):
        faults.append(f"bounds of rows {bounds}")
    if not all((words == given.draws.words[:, i]).all() for i, (_, words) in enumerate(evaluator.asked)):
        faults.append("a batch was not drawn by its iteration's own words")
    places = sorted((c, i) for c, i, _, _ in noise.gradients)
    if places != [(c, i) for c in range(chains) for i in range(m)]:
        faults.append(f"noise at {places}")
    sds = [sd for _, _, _, sd in noise.gradients]
    if not np.allclose(sds, each[0].noise_multiplier * sensitivity, rtol=1e-12):
        faults.append(f"sds {sds}, declared {each[0].noise_multiplier * sensitivity}")
    return faults + (["a log ratio was asked"] if noise.ratios else [])


def attained(kernel: Kernel) -> float:
    """Noise multiplier found from outside, over the declared one, for the worst neighbours.

    One row of the batch goes from far on one side to far on the other; the first step shows by how much it
    moves, and how much a unit of noise does.
    """
    algorithm, setting = kernel.algorithm, kernel.setting
    generator = np.random.default_rng(24)
    start = setting.posterior.draws(generator, 1)
    given = ladder.numbers(algorithm, generator, 1, 2, 2)
    given.draws.words[:] = 0  # row 0 is the batch's first

    def path(side: float, z: float) -> np.ndarray:
        rows = setting.rows.copy()
        rows[0] = side * 1e7
        normals = np.zeros_like(given.gradient_normals)
        normals[0, 0, 0, 0] = z
        told = replace(kernel, setting=replace(setting, rows=rows))
        record, _ = advanced(told, start, replace(given, gradient_normals=normals))
        return np.asarray(record.theta[0])

    # by the old momentum a step is seen one iteration later
    at = 1 if getattr(algorithm, "old_momentum", False) else 0
    change = path(1.0, 0.0)[at] - path(-1.0, 0.0)[at]
    sd = (path(1.0, 1.0)[at] - path(1.0, -1.0)[at]) / 2.0
    found = np.sqrt((sd**2).sum() / (change**2).sum())
    return float(found / algorithm.releases(setting.n)[1][0].noise_multiplier)


@each_kernel
def test_performed_releases_equal_declared_ones(kernel: Kernel) -> None:
    assert release_faults(kernel) == []


@each_kernel
def test_noise_multiplier_is_attained_by_the_worst_neighbour(kernel: Kernel) -> None:
    assert attained(kernel) == pytest.approx(1.0, rel=1e-6)


# --- seeded faults -------------------------------------------------------------------------------

CAUGHT: dict[Callable[[Kernel], Any], Callable[[Any], bool]] = {
    step_error: lambda error: error > 1e-6,
    release_faults: bool,
    attained: lambda fraction: fraction < 0.999,
}


@dataclass(frozen=True)
class Fault:
    """A mistake in a module's text, for a kernel, and the checks that must catch it."""

    kernel: str
    module: str
    old: str
    new: str
    checks: tuple[Callable[[Kernel], Any], ...]


MOVING = "moving = old if self.old_momentum else new"
MULTIPLIER = "batch_gradient_release(self.noise_multiplier(n)"
NOISE_SD = "sd = multiplier * 2.0 * clip * scale"
SCALE = "scale = float(self.n) / float(words.shape[2])\n        sd ="
FAULTS = {
    "drift twice too large": Fault("dp-sgld", SGLD, "self.drift * h * grad", "h * grad", (step_error,)),
    "step not over n": Fault("dp-sgld", SGLD, "self.step_size / door.n", "self.step_size", (step_error,)),
    "noise half as large": Fault(
        "dp-sgld", DOOR, NOISE_SD, NOISE_SD.replace("2.0 * ", ""), (step_error, attained, release_faults)
    ),
    "noise without n/b": Fault(
        "dp-sgld", DOOR, NOISE_SD, NOISE_SD.replace(" * scale", ""), (step_error, attained, release_faults)
    ),
    "too large a multiplier declared": Fault(
        "dp-sgld",
        SGLD,
        MULTIPLIER,
        "batch_gradient_release(2.0 * self.noise_multiplier(n)",
        (attained, release_faults),
    ),
    "the published multiplier for the correct drift": Fault(
        "dp-sgld", SGLD, "/ (2.0 * self.drift * self.clip", "/ (2.0 * self.clip", (step_error,)
    ),
    "half the sensitivity declared": Fault(
        "dp-sgnht",
        SGNHT,
        "self.clip, self.batch_size, n)",
        "self.clip / 2, self.batch_size, n)",
        (release_faults,),
    ),
    "the first batch again and again": Fault(
        "dp-sgld",
        DOOR,
        "safe, bound, words, i, answer",
        "safe, bound, words, 0, answer",
        (step_error, release_faults),
    ),
    "the first noise again and again": Fault(
        "dp-sgnht",
        DOOR,
        "noise.vector(c, i, 0, sd, z)",
        "noise.vector(c, 0, 0, sd, z)",
        (step_error, release_faults),
    ),
    "n/b forgotten": Fault("dp-sgld", DOOR, SCALE, "scale = 1.0\n        sd =", (step_error, release_faults)),
    "temperature forgotten": Fault(
        "dp-sgld", DOOR, "scale * self.temperature * answer", "scale * answer", (step_error, attained)
    ),
    "clipped before tempering": Fault(
        "dp-sgld", DOOR, "bound = clip / self.temperature", "bound = clip", (step_error, release_faults)
    ),
    "prior's gradient forgotten": Fault("dp-sgld", DOOR, "+ z[k] + prior[k]", "+ z[k]", (step_error,)),
    "prior's gradient scaled like the rows'": Fault(
        "dp-sgnht", DOOR, "+ z[k] + prior[k]", "+ z[k] + scale * prior[k]", (step_error,)
    ),
    "no clipping": Fault(
        "dp-sgld",
        BATCH,
        "clip_factors(work, factors, rows, bound)",
        "clip_factors(work, factors, rows, 1e9)",
        (step_error, attained),
    ),
    "rows of one block only": Fault(
        "dp-sgld", BATCH, "weighted_sums(work, factors, sums[c])", "sums[c] = work[:, 0]", (step_error,)
    ),
    "stale momentum": Fault("dp-sgnht", SGNHT, MOVING, "moving = old", (step_error,)),
    "new momentum where the old one was published": Fault(
        "dp-sgnht published", SGNHT, MOVING, "moving = new", (step_error,)
    ),
    "momentum not carried on": Fault(
        "dp-sgnht", SGNHT, "copy(carried[c], state.extra[c])", "pass", (step_error,)
    ),
    "friction that heats": Fault(
        "dp-sgnht", SGNHT, "old - state.extra[c, d] * h", "old + state.extra[c, d] * h", (step_error,)
    ),
    "no friction": Fault("dp-sgnht", SGNHT, "old - state.extra[c, d] * h * old", "old", (step_error,)),
    "a thermostat for one component": Fault(
        "dp-sgnht", SGNHT, "(square / d - 1.0)", "(square - 1.0)", (step_error,)
    ),
    "half the diffusion": Fault(
        "dp-sgnht", SGNHT, "np.sqrt(2.0 * self.diffusion", "np.sqrt(self.diffusion", (step_error,)
    ),
}
CASES = [
    pytest.param(fault, check, id=f"{name}: {check.__name__}")
    for name, fault in FAULTS.items()
    for check in fault.checks
]


@pytest.mark.parametrize(("fault", "check"), CASES)
def test_fault_is_caught(fault: Fault, check: Callable[[Kernel], Any]) -> None:
    assert CAUGHT[check](check(KERNELS[fault.kernel].mutated(fault.module, (fault.old, fault.new))))


@pytest.mark.parametrize("name", ["dp-sgld", "dp-sgnht"])
@pytest.mark.parametrize("module", [None, DOOR, BATCH])
def test_text_run_anew_without_a_fault_is_not_blamed(name: str, module: str | None) -> None:
    kernel = KERNELS[name].mutated(module or type(KERNELS[name].algorithm).__module__)
    for check, caught in CAUGHT.items():
        assert not caught(check(kernel))


# --- laws ----------------------------------------------------------------------------------------


def gaussian_problem(precision: np.ndarray, n: int, prior_variance: float, starts: int) -> Problem:
    """A conjugate problem whose start points are exact posterior draws."""
    model = Gaussian(precision, prior_variance, prior_variance)
    generator = np.random.default_rng(40)
    d = len(precision)
    rows = model.simulate(generator, np.linspace(-1.0, 1.0, d), n)
    law = model.posterior(rows, 1.0)
    return Problem(
        label="conjugate",
        model_id="conjugate",
        dataset="tests",
        model=model,
        rows=rows,
        temperature=1.0,
        starts=law.draws(generator, starts),
        true_theta=np.zeros(d),
        reference=np.empty((0, d)),
        baselines=np.empty((0, 0, d)),
        posterior_mean=law.mean(),
        posterior_covariance=law.covariance(),
    )


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
    n, b, f = on.n, algorithm.batch_size, algorithm.drift
    h = algorithm.step_size / n
    inverse = np.linalg.inv(on.posterior_covariance)
    spread = np.cov(on.rows @ on.model.precision, rowvar=False)
    noise = h * np.eye(on.dimension) + (f * h) ** 2 * n**2 * (1.0 - b / n) / b * spread
    return np.asarray(solve_discrete_lyapunov(np.eye(on.dimension) - f * h * inverse, noise))


SLANTED = np.array([[0.8, -0.5], [-0.5, 1.5]])


def sgld(on: Problem, pull: float, batch_size: int, drift: float) -> DPSGLD:
    """SGLD whose largest hΛ is `pull`, with a clip bound out of reach."""
    step = pull * on.n / np.linalg.eigvalsh(np.linalg.inv(on.posterior_covariance)).max()
    return DPSGLD(batch_size, 1e6, float(step), drift)


@pytest.mark.parametrize("drift", [0.5, 1.0])
@pytest.mark.parametrize(("pull", "batch_size"), [(0.4, 40), (0.2, 10), (0.2, 40)])
def test_sgld_has_its_exact_stationary_law(pull: float, batch_size: int, drift: float) -> None:
    on = gaussian_problem(SLANTED, 40, 0.1, 60)
    algorithm = sgld(on, pull, batch_size, drift)
    draws = long_run(on, algorithm, 6000, 60)
    found, error = ratios(draws, stationary_covariance(on, algorithm))
    assert error.max() < 0.02
    assert np.abs((found - 1.0) / error).max() < 4.5
    centre = draws.mean(axis=(0, 1)) / (draws.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(60))
    assert np.abs(centre).max() < 4.5


@pytest.mark.parametrize(("drift", "limit"), [(0.5, 1.0), (1.0, 0.5)])
def test_small_steps_of_sgld_sample_the_posterior_or_as_published_half_its_variance(
    drift: float, limit: float
) -> None:
    on = gaussian_problem(SLANTED, 40, 0.1, 60)
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
    found, error = ratios(long_run(on, sgld(on, 0.02, 40, drift), 30_000, 60), on.posterior_covariance)
    assert error.max() < 0.03
    assert np.abs((found - ratio(0.02, 40)) / error).max() < 4.5
    assert np.abs(found - limit).max() < 0.01 + 4.5 * error.max()


def stiff_problem(chains: int) -> Problem:
    """Ten directions, one of them 100 times as stiff as the others: a thermostat sees their mean alone."""
    return gaussian_problem(np.diag([1.0] * 9 + [100.0]), 50, 100.0, chains)


@pytest.mark.parametrize(("old_momentum", "low", "high"), [(False, 0.9, 1.1), (True, 1.6, 2.3)])
def test_sgnht_samples_the_posterior_or_as_published_too_wide_a_law(
    old_momentum: bool, low: float, high: float
) -> None:
    on = stiff_problem(60)
    h = 0.1 / np.sqrt(50 * 100.0)  # hω = 0.1 in the stiff direction; heating h²ω² against cooling hA
    algorithm = DPSGNHT(50, 1e6, float(50 * h), 0.02 / h, old_momentum, 10)
    found, error = ratios(long_run(on, algorithm, 12_000, 60), on.posterior_covariance)
    assert error.max() < 0.06
    assert low < found[0] < high  # the stiffest direction has the smallest variance
    if not old_momentum:
        assert np.abs((found - 1.0) / error).max() < 4.5


def the_papers_gaussian(rows: int, starts: int) -> Problem:
    """The posterior of the paper's Gaussian from a few heavy rows: all are in each batch: no noise of it."""
    precision = 100_000 / rows * np.linalg.inv(dp_hmc_covariance())
    return gaussian_problem(0.5 * (precision + precision.T), rows, 100.0**2, starts)


def stiffest_under_sgnht(order: str, iterations: int, chains: int) -> tuple[float, float]:
    """Variance over the exact one in the stiffest direction at the published step, and its standard error."""
    on = the_papers_gaussian(4, chains)
    values = {"batch_size": 4, "clip": 1e9, "step_size": 4 * 0.2 / 100_000, "diffusion": 30, "order": order}
    algorithm = DPSGNHT.read(Settings(values, 10, "tests"))
    found, error = ratios(long_run(on, algorithm, iterations, chains), on.posterior_covariance)
    return float(found[0]), float(error[0])


def test_the_order_of_sgnht_makes_the_stiffest_direction_wider() -> None:
    # with the same random numbers, so that the two runs err in common
    correct, error = stiffest_under_sgnht("correct", 40_000, 20)
    published, _ = stiffest_under_sgnht("published", 40_000, 20)
    assert abs(correct - 1.0) < 4.5 * error < 1.0
    assert 1.5 < published / correct < 2.2


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
    algorithm = DPSGLD.read(Settings(values, 10, "tests"))
    exact = np.linalg.eigvalsh(stationary_covariance(on, algorithm))
    exact /= np.linalg.eigvalsh(on.posterior_covariance)
    assert exact[0] == pytest.approx(wanted, abs=0.005)
    found, error = ratios(long_run(on, algorithm, 6000, 30), on.posterior_covariance)
    assert np.abs((found[0] - exact[0]) / error[0]) < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dp-sgld", "dp-sgnht"])
def test_published_batches_heat_the_stiffest_direction(method: str) -> None:
    # batches of 1,000 of 100,000 rows: their noise is many times the injected one, and clipping takes only
    # a part of it away; drift and order matter little beside it
    on = datasets.build("paper-gauss", "paper-gauss", "published", starts=10)
    on.starts = on.model.posterior(on.rows, 1.0).draws(np.random.default_rng(3), 10)
    values = {
        "dp-sgld": {"batch_size": 1000, "clip": 15, "step_size": 0.008},
        "dp-sgnht": {"batch_size": 1000, "clip": 12, "step_size": 0.2, "diffusion": 30},
    }[method]
    algorithm = algorithm_class(method).read(Settings(values, 10, "tests"))
    found, error = ratios(long_run(on, algorithm, 40_000, 10), on.posterior_covariance)
    assert found[0] - 2.5 * error[0] > 3.0


# --- multipliers, ledgers ------------------------------------------------------------------------

PUBLISHED = [
    (DPSGLD(1000, 0.2, 1.0, 1.0), 7.906, {4: 27425, 15: 259283}),
    (DPSGLD(1000, 0.2, 1.0, 0.5), 15.81, {}),
    (DPSGNHT(1000, 0.2, 100.0, 50.0, True, 2), 7.906, {4: 27425}),
    (DPSGNHT(1000, 0.2, 100.0, 50.0, False, 2), 7.906, {}),
    (DPSGLD(1000, 15.0, 0.008, 1.0), 1.1785, {4: 564, 15: 5366}),
    (DPSGLD(1000, 15.0, 0.008, 0.5), 2.357, {}),
    (DPSGNHT(1000, 12.0, 0.2, 30.0, True, 10), 2.282, {4: 2275, 15: 21521}),
    (DPSGNHT(1000, 12.0, 0.2, 30.0, False, 10), 2.282, {}),
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
    judge = accountants.resolve("thesis", each)
    assert judge.name == "replace-pld"
    for epsilon, wanted in iterations.items():  # of each of four chains
        found = judge.iterations((), repeat(each, 4), float(epsilon), 1e-6)
        assert found == pytest.approx(wanted, rel=2e-4, abs=1)


@pytest.mark.parametrize("method", ["dp-sgld", "dp-sgld published", "dp-sgnht", "dp-sgnht published"])
def test_ledger_epsilon_by_three_accountants(method: str) -> None:
    on = gaussian_problem(SLANTED, 500, 1.0, 4)
    chosen = cell(method, on, iterations=None, most_iterations=50, epsilon="3", delta=1e-3)
    algorithm = chosen.algorithm
    spent = {}
    for name in ("replace-pld", "wor-pld", "rdp"):
        now = replace(chosen, accountant=name, chains=2)
        k = now.allowed_iterations()
        ledger = json.loads(sample(now, [0])[0].attributes["ledger"])
        (performed,) = ledger["performed"]
        assert (performed["type"], performed["count"]) == ("subsampled-gaussian", 2 * k)
        assert performed["noise_multiplier"] == pytest.approx(float(algorithm.noise_multiplier(500)))
        assert performed["sensitivity"] == pytest.approx(2.0 * 500 * algorithm.clip / 20)
        assert ledger["performed"] == ledger["reserved"]
        assert 0.0 < ledger["epsilon_spent"] <= 3.0
        releases = repeat(algorithm.releases(500)[1], 2 * k)
        assert ledger["epsilon_spent"] == accountants.get(name).epsilon(releases, 1e-3, near=3.0)
        spent[name] = {
            n: accountants.get(n).epsilon(releases, 1e-3) for n in ("replace-pld", "wor-pld", "rdp")
        }
    for by in spent.values():  # the same releases, judged by all three
        assert by["wor-pld"] <= by["replace-pld"]
        assert by["wor-pld"] <= by["rdp"]


# --- DP-MALA and jitter --------------------------------------------------------------------------

MALA = Kernel(DPMALA(0.004, 0.001, lengths(0.9, 0.4), lengths(2.5, 0.4), 100.0, 400.0), python=True)


def test_mala_is_hmc_with_one_step() -> None:
    hmc = DPHMC(0.004, 0.001, 1, *MALA.algorithm[2:], False)
    generator = np.random.default_rng(5)
    start = LARGE.posterior.draws(generator, 3)
    given = ladder.numbers(hmc, generator, 3, 20, 2)
    ours, theirs = (
        ladder.run(replace(MALA, algorithm=a), MALA.door_of(LARGE), start, given)
        for a in (MALA.algorithm, hmc)
    )
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    assert MALA.algorithm.releases(60) == hmc.releases(60)
    assert MALA.algorithm.evaluations == hmc.evaluations


def test_mala_passes_the_ladder() -> None:
    assert ladder.imbalance(MALA) < ladder.IMBALANCE
    assert ladder.return_error(MALA) < ladder.RETURN_ERROR
    assert ladder.volume_error(MALA) < ladder.VOLUME_ERROR
    assert ladder.release_faults(MALA) == []
    (found, declared) = ladder.attained_multipliers(MALA)["gradient"]
    assert found == pytest.approx(declared, rel=1e-6)


JITTERED = DPHMC(0.00125, 0.00125, 3, lengths(0.3, 0.14), lengths(1.3, 0.7), 400.0, 400.0, False, True)


JITTERED_HMC = HMC(3, lengths(0.3, 0.14), lengths(1.3, 0.7), np.inf, np.inf, False, True)


@pytest.mark.parametrize(
    "algorithm",
    [JITTERED, JITTERED_HMC, DPMALA(0.00125, 0.00125, lengths(0.4, 0.2), lengths(1.3, 0.7), 400.0, 400.0)],
    ids=["dp-hmc jittered", "hmc jittered", "dp-mala"],
)
def test_exact_draws_stay_exact(algorithm: Any) -> None:
    assert ladder.invariance(Kernel(algorithm), LARGE, chains=4000, iterations=50) > ladder.P_VALUE


def pace_error(kernel: Kernel) -> float:
    """How far a trajectory with a jitter of u is from one of the step size uη without jitter."""
    usual = JITTERED_HMC if hasattr(kernel.algorithm, "as_coded") else JITTERED
    generator = np.random.default_rng(6)
    start = LARGE.posterior.draws(generator, 3)
    given = ladder.numbers(kernel.algorithm, generator, 3, 4, 2)
    given.draws.uniform[:] = 0.37
    plain = usual._replace(step_size=0.37 * usual.step_size, jitter=False)
    ours = ladder.run(kernel, kernel.door_of(LARGE), start, given)
    theirs = ladder.run(Kernel(plain, python=True), kernel.door_of(LARGE), start, given)
    assert theirs.accepted.any()
    return float(np.abs(ours.theta - theirs.theta).max())


PACES = {
    "none": ("dp_hmc", "scale(momentum, pace, 1)", "scale(momentum, pace, 1)"),
    "energy of the wrong momentum": ("dp_hmc", "scale(momentum, pace, 1)", ""),
    "p in place of p/u": ("dp_hmc", "scale(momentum, pace, -1)", ""),
    "the jitter of the first iteration": (
        "leapfrog",
        "uniform[c, i, 0]",
        "uniform[c, 0, 0] * (i == 0) + (i > 0)",
    ),
    "u in place of u²": ("leapfrog", "pace[c] ** 2", "pace[c]"),
}


@pytest.mark.parametrize("name", PACES)
def test_jitter_multiplies_the_step_size(name: str, monkeypatch: Any) -> None:
    module, old, new = PACES[name]
    kernel = Kernel(JITTERED, python=True)
    if module == "dp_hmc":
        kernel = kernel.mutated("dpmc.algorithms.dp_hmc", (old, new))
    else:
        changed = ladder.mutant("dpmc.algorithms.leapfrog", (old, new))
        own = ladder.mutant("dpmc.algorithms.dp_hmc")
        own.update({key: changed[key] for key in ("draw_pace", "drift")})
        kernel = replace(kernel, algorithm=own["DPHMC"](*JITTERED))
    error = pace_error(kernel)
    assert error < 1e-12 if name == "none" else error > 1e-6


@pytest.mark.parametrize("name", ["none", "energy of the wrong momentum", "p in place of p/u"])
def test_jitter_multiplies_the_step_size_of_hmc(name: str) -> None:
    _, old, new = PACES[name]
    error = pace_error(Kernel(JITTERED_HMC, python=True).mutated("dpmc.algorithms.hmc", (old, new)))
    assert error < 1e-12 if name == "none" else error > 1e-6


def test_the_study_has_the_published_settings() -> None:
    study = load_study("config/studies/dp-hmc.yaml")
    for label, (algorithm, _, _) in zip(
        ("dp-sgld-published", "dp-sgld", "dp-sgnht-published", "dp-sgnht"), PUBLISHED[:4], strict=True
    ):
        values, source = study.pinned_hyperparameters("paper-banana", label)
        assert study.algorithm(label, values, 2, source) == algorithm
