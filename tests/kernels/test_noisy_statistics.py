"""Noisy statistics: noise and sensitivity, balance, invariance, calibrated posteriors, refusals."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import dpmc
from dpmc import evaluators
from dpmc.algorithms import noisy_statistics
from dpmc.algorithms.noisy_statistics import NoisyStatistics
from dpmc.base import Draws, State
from dpmc.evaluators.calls import without_warnings
from dpmc.models.banana import Banana
from dpmc.models.gaussian import Gaussian
from dpmc.models.mixture import Mixture
from dpmc.privacy.accountants.gaussian import GaussianDp
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise
from dpmc.sampling.loop import iterate, sample
from kernels import cells
from kernels.ladder import FAULT_P, P_VALUE, Probe, smallest_p

SLANTED = Gaussian(np.array([[2.0, -0.9], [-0.9, 1.0]]), 4.0, 4.0)


class Rates(dpmc.ExponentialFamily):
    """Gamma rows of shape 3 and rate e^θ, normal prior."""

    dimension, prior_sd = 1, 0.5

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        return rows

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        return -np.exp(theta)

    def offset(self, theta: np.ndarray) -> np.ndarray:
        return 3.0 * theta[:, 0]

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -np.exp(theta)[:, :, None], np.full(theta.shape, 3.0)

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        return -0.5 * (theta**2).sum(axis=-1) / self.prior_sd**2

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        return generator.gamma(3.0, np.exp(-theta[0]), (n, 1))


class Sums:
    """Private data with a sum of its own for each chain."""

    def __init__(self, total: np.ndarray, n: int, temperature: float = 1.0) -> None:
        self.total, self.n, self.temperature = total, n, temperature

    def noisy_sum(self, *_: Any) -> np.ndarray:
        return self.total

    def begin(self, _: int) -> None:
        pass


def draws_of(m: int, chains: int, d: int, generator: np.random.Generator) -> Draws:
    """Return the random numbers of m iterations."""
    uniform = generator.random((m, chains, 2))
    return Draws(generator.standard_normal((m, chains, d)), uniform, np.log(generator.random((m, chains))))


def run(algorithm: Any, model: Any, private: Any, start: np.ndarray, m: int, seed: int = 1) -> np.ndarray:
    """Return positions (m, chains, d)."""
    generator, no = np.random.default_rng(seed), np.zeros(len(start), bool)
    carried = algorithm.prepare(start, model, private, ())
    draws = draws_of(m, *start.shape, generator)
    states = iterate(algorithm, model, private, State(start, carried, no, no), draws)
    return np.array([state.theta for state in states])


# Privacy


def private_of(model: Any, rows: np.ndarray, seeds: range = range(1), chains: int = 1) -> PrivateData:
    """Return the mechanisms for these rows; each seed is a run of some chains."""
    width = len(seeds) * chains
    noise = LabNoise(np.zeros((1, width)), np.zeros((1, width, 0, 2)), [*map(np.random.default_rng, seeds)])
    return PrivateData(evaluators.evaluator_of(model, rows), 1.0, noise, np.zeros((1, width, 0), np.uint64))


@pytest.mark.parametrize("centre", [0.0, 1.5])
def test_a_replaced_row_changes_the_sum_by_at_most_twice_the_clip_bound(centre: float) -> None:
    generator = np.random.default_rng(1)
    rows = SLANTED.simulate(generator, np.zeros(2), 50)
    strange = [np.full(2, value) for value in (0.0, 1e9, -1e9, np.inf, -np.inf, np.nan, 1e300)]
    strange += [np.array([1e9, np.nan]), *(10.0**k * generator.standard_normal(2) for k in range(-3, 9))]
    sums = []
    for row in strange:
        with without_warnings():
            private = private_of(SLANTED, np.concatenate([row[None], rows]))
            sums.append(private.noisy_sum(np.full(2, centre), 0.7, 1e-30)[0])
    changes = np.linalg.norm(np.array(sums)[:, None] - np.array(sums), axis=2)
    assert np.isfinite(changes).all()
    assert 1.39 < changes.max() <= 1.4 * (1.0 + 1e-12)


def test_noise_has_the_declared_sd_and_is_shared_by_the_chains_of_a_run() -> None:
    private = private_of(SLANTED, np.zeros((3, 2)), range(2000), chains=2)
    noise = private.noisy_sum(np.zeros(2), 0.7, 1.3).reshape(2000, 2, 2)
    np.testing.assert_array_equal(noise[:, 0], noise[:, 1])
    assert smallest_p(ndtr(noise[:, 0] / (1.3 * 2.0 * 0.7))) > P_VALUE


@pytest.mark.parametrize("chains", [1, 3])
def test_the_whole_budget_is_spent_on_one_query(chains: int) -> None:
    rows = SLANTED.simulate(np.random.default_rng(2), np.zeros(2), 500)
    options: dict[str, Any] = {"epsilon": 0.8, "delta": 1e-5, "chains": chains, "iterations": 20}
    tree = dpmc.sample(
        Rates(),
        rows[:, :1] ** 2,
        "noisy-statistics",
        hyperparameters={"clip": 2.0},
        progress=False,
        **options,
    )
    (event,) = json.loads(tree.attrs["ledger"])["performed"]
    assert (event["count"], event["sensitivity"]) == (1, 4.0)
    assert json.loads(tree.attrs["ledger"])["epsilon_spent"] == pytest.approx(0.8)
    query = NoisyStatistics(clip=2.0, noise_multiplier=event["noise_multiplier"]).queries(500).run
    assert 0.9999e-5 < GaussianDp().delta(query, 0.8) <= 1e-5


def test_a_person_with_several_rows_gets_as_many_times_the_noise() -> None:
    options: dict[str, Any] = {"epsilon": 0.8, "iterations": 20, "hyperparameters": {"clip": 2.0}}
    noise = []
    for rows in (1, 5):
        tree = dpmc.sample(
            Rates(), np.ones((50, 1)), "noisy-statistics", rows_per_person=rows, progress=False, **options
        )
        ledger = json.loads(tree.attrs["ledger"])
        assert ledger["epsilon_spent"] == pytest.approx(0.8)
        noise.append(ledger["performed"][0]["noise_multiplier"])
        budget = {"epsilon": 0.8, "rows_per_person": rows}
        bought = dpmc.budget(50, "noisy-statistics", {"clip": 2.0}, **budget)
        assert bought == {"noise_multiplier": noise[-1], "tight": np.inf}
        little = {"clip": 2.0, "noise_multiplier": 0.9 * noise[-1]}
        assert dpmc.budget(50, "noisy-statistics", little, **budget)["tight"] == 0
    assert noise[1] == pytest.approx(5.0 * noise[0])


def test_more_than_the_budget_is_refused() -> None:
    options: dict[str, Any] = {"epsilon": 1, "iterations": 20, "progress": False}
    values = {"clip": 2.0, "noise_multiplier": 0.1}
    with pytest.raises(dpmc.DpmcError, match="budget exceeded"):
        dpmc.sample(Rates(), np.ones((50, 1)), "noisy-statistics", hyperparameters=values, **options)


def test_the_number_of_iterations_is_asked_for() -> None:
    values = {"clip": 2.0}
    with pytest.raises(dpmc.DpmcError, match="iterations: needed when epsilon is spent before the first"):
        dpmc.sample(Rates(), np.ones((50, 1)), "noisy-statistics", epsilon=1, hyperparameters=values)


# Models


def test_models_without_a_known_law_are_refused() -> None:
    algorithm = NoisyStatistics(clip=1.0, noise_multiplier=1.0)
    with pytest.raises(dpmc.DpmcError, match="law of a noisy sum is not known for this model"):
        algorithm.check(Mixture(2.0, 3.0))
    with pytest.raises(dpmc.DpmcError, match="centre: has 3 values, must be one or 2"):
        replace(algorithm, centre=(0.0, 0.0, 0.0)).check(SLANTED)

    class Curved(Rates):
        def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            linear, constant = super().gradient_form(theta)
            return np.concatenate([linear, linear], axis=2), constant

    for model in (Curved(), dpmc.LogisticRegression("y", ["a"]), dpmc.LinearRegression("y", ["a"])):
        with pytest.raises(dpmc.DpmcError, match="law of a noisy sum is not known for this model"):
            algorithm.check(model)


# Moves


@pytest.mark.parametrize("noise", ["integrated", "ignored"])
@pytest.mark.parametrize("jump", [True, False])
def test_moves_are_in_detailed_balance(jump: bool, noise: str) -> None:
    """The random numbers of the move back are found from the proposal; its density is that of SciPy."""
    model: Any = dpmc.LinearRegression("y", [], sd=None, prior_sd=1.0)  # a normal law of unknown mean and sd
    generator = np.random.default_rng(3)
    theta = 0.3 * generator.standard_normal((6, 2))
    rows = model.simulate(generator, np.array([0.3, -0.3]), 400)
    total = model.summaries(rows).sum(axis=0) + 20.0 * generator.standard_normal(2)
    private: Any = Sums(np.repeat(total[None], 6, axis=0), 400)
    algorithm = NoisyStatistics(clip=4.0, noise_multiplier=2.5, noise=noise)
    carried = algorithm.prepare(theta, model, private, ())
    mode, root = carried[0, 3:5], carried[0, 5:].reshape(2, 2)
    uniform = np.column_stack([np.full(6, 0.2 if jump else 0.8), generator.random(6)])
    normal = generator.standard_normal((6, 2))

    def move(at: np.ndarray, kept: np.ndarray, normal: np.ndarray) -> tuple[State, np.ndarray]:
        probe: Any = Probe()
        state = State(at, kept, np.zeros(6, bool), np.zeros(6, bool))
        return algorithm.step(state, model, private, Draws(normal, uniform, probe)), probe.compared

    there, ratio = move(theta, carried, normal)
    back = -normal
    if jump:  # a proposal at the old position: its length is drawn anew, but not its direction
        unit = (there.theta - mode) @ np.linalg.inv(root).T / normal
        back = (theta - mode) @ np.linalg.inv(root).T / unit
    again, reverse = move(there.theta, there.carried, back)
    np.testing.assert_allclose(again.theta, theta, rtol=1e-9)
    target = algorithm._target(model, private, private.total)
    wanted = target(there.theta) - target(theta)
    if jump:
        law = stats.multivariate_t(mode, root @ root.T, df=5.0)
        wanted = wanted + law.logpdf(theta) - law.logpdf(there.theta)
    np.testing.assert_allclose(ratio, wanted, rtol=1e-8)
    np.testing.assert_allclose(reverse, -wanted, rtol=1e-8)


@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_a_gaussian_has_the_closed_posterior_and_keeps_it(temperature: float) -> None:
    """Noisy Λᵀx has mean nΛᵀθ and variance n/T + σ², so θ is normal; chains begin from exact draws."""
    algorithm = NoisyStatistics(clip=3.0, noise_multiplier=2.0)
    n, chains, generator = 200, 4000, np.random.default_rng(4)
    total = SLANTED.summaries(SLANTED.simulate(generator, np.array([0.4, -0.2]), n)).sum(axis=0)
    total = total + 12.0 * generator.standard_normal(2)
    weight = n**2 / (n / temperature + 12.0**2)
    covariance = np.linalg.inv(weight * SLANTED.precision + np.eye(2) / SLANTED.prior_variance)
    root = np.linalg.cholesky(SLANTED.precision)
    mean = covariance @ (root @ total) * weight / n
    start = generator.multivariate_normal(mean, covariance, chains)
    private = Sums(np.repeat(total[None], chains, axis=0), n, temperature)
    path = run(algorithm, SLANTED, private, start, 15)
    scores = (path[-1] - mean) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    assert (path[-1] != start).any(axis=1).mean() > 0.99
    assert smallest_p(ndtr(scores)) > P_VALUE


def test_a_step_that_diverges_is_rejected() -> None:
    """Half of the proposals do not depend on the step."""
    (chains,) = sample(cells.cell("noisy-statistics", step_scale=1e60, iterations=60), [0])
    diverging, accepted = (int(chains.totals[name][0]) for name in ("diverging", "accepted"))
    assert 15 < diverging < 45
    assert 5 < accepted <= 60 - diverging


# Calibration: θ from the prior, rows, clipping and noise; the rank of θ among posterior draws is uniform


def rank_p(model: Any, n: int, algorithm: NoisyStatistics, sets: int) -> float:
    """Return the p-value that ranks of θ among 19 draws, 20 iterations apart, are uniform."""
    generator, d = np.random.default_rng(5), model.dimension
    theta = getattr(model, "prior_sd", 2.0) * generator.standard_normal((sets, d))
    if isinstance(model, Banana):
        theta[:, 1] -= model.bend(np.column_stack([theta[:, 0], np.zeros(sets)]))
    totals = []
    for truth in theta:
        evaluator = evaluators.evaluator_of(model, model.simulate(generator, truth, n))
        totals.append(evaluator.summary_sum(np.zeros(model.summary_count), algorithm.clip)[0])
    sd = 2.0 * algorithm.clip * algorithm.noise_multiplier
    noisy = np.array(totals) + sd * generator.standard_normal((sets, model.summary_count))
    path = run(algorithm, model, Sums(noisy, n), theta.copy(), 20 * 20)
    ranks = (path[39::20] < theta).sum(axis=0)
    return smallest_p((ranks + generator.random(ranks.shape)) / 20.0)


MODELS: dict[str, tuple[Any, int, float]] = {
    "normal, sd unknown": (dpmc.LinearRegression("y", [], sd=None, prior_sd=0.3), 1000, 14.0),
    "Gaussian": (SLANTED, 300, 8.0),
    "banana": (Banana(0.5, 0.0, 0.0, np.array([2.0, 1.0]), 4.0), 300, 50.0),
    "gamma": (Rates(), 400, 40.0),
}


SETS, FEW = 500, 100  #: data sets of slow tests and of quick ones


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_posteriors_are_calibrated(name: str) -> None:
    model, n, clip = MODELS[name]
    assert rank_p(model, n, NoisyStatistics(clip=clip, noise_multiplier=2.0), SETS) > P_VALUE


@pytest.mark.parametrize("name", ["normal, sd unknown", "Gaussian", "gamma"])
def test_a_few_posteriors_are_calibrated(name: str) -> None:
    model, n, clip = MODELS[name]
    assert rank_p(model, n, NoisyStatistics(clip=clip, noise_multiplier=2.0), FEW) > P_VALUE


@pytest.mark.parametrize("name", ["normal, sd unknown", "Gaussian"])
def test_posteriors_that_ignore_the_noise_are_not(name: str) -> None:
    """As few data sets as above show that these tests have power."""
    model, n, clip = MODELS[name]
    algorithm = NoisyStatistics(clip=clip, noise_multiplier=2.0, noise="ignored")
    assert rank_p(model, n, algorithm, FEW) < FAULT_P


def test_a_density_too_steep_for_the_search_is_taken_as_it_is_at_the_start() -> None:
    """A failure after the query would lose the answer that was paid for."""
    start = np.array([1.0, 0.3])

    def steep(theta: np.ndarray) -> np.ndarray:
        return -1e200 * ((theta - [1.5, 0.3]) ** 2).sum(axis=1)

    with np.errstate(all="ignore"):  # as in the loop
        mode, root = noisy_statistics.laplace(steep, start)
    np.testing.assert_allclose(mode, start)
    assert np.isfinite(root).all() and (np.diag(root) > 0.0).all()
