"""A released chain and a lab chain of the same setting agree in distribution, for every algorithm."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import read
from dpmc.data import datasets
from dpmc.evaluators.lattice import LatticeEvaluator
from dpmc.models.gaussian import Gaussian
from dpmc.models.own import given_model
from dpmc.privacy import secure_noise
from dpmc.privacy.events import BarkerQuery, GaussianQuery
from dpmc.privacy.lattice import Price, lattice_of
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise
from dpmc.privacy.questions import SumQuestion
from dpmc.privacy.runs import RunQueries
from dpmc.releases.loop import Plan, ReleaseLoop, Unfinished, begin_release
from dpmc.sampling import loop
from dpmc.sampling.cell import Cell

CHAINS, ITERATIONS, ROWS = 1500, 3, 60
#: A p-value below which two laws differ: with up to nine tests of eleven algorithms; one in 10^4 fails.
DIFFERENT = 1e-6


class Normals(Gaussian):
    """Normal rows as a model of one's own."""

    parameters = columns = ("a", "b")


#: Two columns, whose posterior given a noisy sum is known.
NUMBERS = Normals(np.array([[2.0, -0.9], [-0.9, 1.0]]), 4.0, 4.0)

STEP = [0.25, 0.25]
OF_HMC = {"step_size": [0.15, 0.15], "mass": [1.0, 1.0], "clip_l": 0.8, "clip_g": 0.8}
HMC = {**OF_HMC, "tau_l": 1.0, "tau_g": 0.3}
PENALTY = {"tau": 1.0, "clip": 0.8, "proposal_sd": STEP}
BATCH = {"tau": 4.0, "batch_size": 20, "clip": 1.0, "proposal_sd": [0.2, 0.2]}
LANGEVIN = {"batch_size": 20, "clip": 0.5, "step_size": 0.5}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "dp-penalty": ("dp-penalty", PENALTY),
    "dp-penalty-guided": ("dp-penalty-guided", PENALTY),
    "dp-hmc": ("dp-hmc", {**HMC, "steps": 2, "jitter": "halton"}),
    "dp-hmc reusing": ("dp-hmc", {**HMC, "steps": 2, "reuse_gradients": True}),
    "dp-mala": ("dp-mala", HMC),
    "minibatch-penalty": ("minibatch-penalty", BATCH),
    "minibatch-penalty tight": ("minibatch-penalty", {**BATCH, "sensitivity": "tight"}),
    "minibatch-penalty-guided": ("minibatch-penalty-guided", {**BATCH, "tau": 12.0}),
    "dp-barker": ("dp-barker", {"batch_size": 20, "proposal_sd": STEP}),
    "dp-sgld": ("dp-sgld", LANGEVIN),
    "dp-sgnht": ("dp-sgnht", {**LANGEVIN, "diffusion": 60.0}),
}


def cell(name: str, rows: np.ndarray | None) -> Cell:
    """Return many short chains from one start; without rows: for a release."""
    method, values = SETTINGS[name]
    model = dpmc.LinearRegression("y", ["x"], tempering=20, true_theta=[0.5, 1.0], prior_sd=3.0)
    if method == "noisy-statistics":
        model = NUMBERS
    label, definition = given_model(model)
    if rows is None:
        problem = datasets.public_setting("m", label, (ROWS, len(model.columns)), 1, definition)
    else:
        rows = rows[:, : len(model.columns)]
        problem = datasets.from_rows("m", label, "rows", rows, 1, definition=definition)
    problem.starts = np.tile([0.3, 0.8], (CHAINS, 1))
    algorithm = read(algorithm_class(method), values, "here", 2)
    accountant = "rdp" if method == "dp-barker" else "tight"  # `barker-pld` needs 100 rows in a batch
    return Cell(problem, method, algorithm, "inf", 1e-3, accountant, chains=CHAINS, iterations=ITERATIONS)


def rows() -> np.ndarray:
    generator = np.random.default_rng(7)
    x = generator.standard_normal(ROWS)
    return np.column_stack([0.5 + x + generator.standard_normal(ROWS), x])


def released(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (chains, iterations, d) of a release, and which proposals were accepted."""
    plan = Plan.of(of := cell(name, None), resumed=False)
    run = begin_release(of, Price(0.0, 0.0, 0, 1.0, ""), plan)
    made = ReleaseLoop(run, rows()[:, : of.problem.columns], plan, Unfinished(None, {}, "", {}))
    made.make(None)
    counts = np.concatenate(run.counts, axis=2)
    return np.concatenate(run.draws, axis=1), counts[0]


def lab(name: str) -> tuple[np.ndarray, np.ndarray]:
    (chains,) = loop.sample(dataclasses.replace(cell(name, rows()), streams="content"), [0])
    return chains.draws, chains.counts["accepted"]


def difference(some: tuple[np.ndarray, np.ndarray], others: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the smallest p-value of tests of one law: positions, their spread, and acceptance."""
    values = []
    for at in (0, -1):
        a, b = some[0][:, at], others[0][:, at]
        middle = np.median(np.concatenate([a, b]), axis=0)
        for i in range(a.shape[1]):
            values.append(stats.ks_2samp(a[:, i], b[:, i]).pvalue)
            values.append(stats.ks_2samp(abs(a - middle)[:, i], abs(b - middle)[:, i]).pvalue)
    accepted = [[int(part[1].sum()), int((1 - part[1]).sum())] for part in (some, others)]
    if min(accepted[0][1] + accepted[1][1], accepted[0][0] + accepted[1][0]):
        values.append(stats.chi2_contingency(accepted).pvalue)
    return float(min(values))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_release_has_the_law_of_the_lab(name: str) -> None:
    assert difference(released(name), lab(name)) > DIFFERENT


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - {"dp-barker"}))
def test_noise_of_1_4_times_the_scale_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test above has the power to see it, alone or in a log ratio's correction."""
    whole_scale = secure_noise.whole_scale
    monkeypatch.setattr(secure_noise, "whole_scale", lambda sd, unit: np.ceil(1.4 * whole_scale(sd, unit)))
    assert difference(released(name), lab(name)) < DIFFERENT


def barker_log_ratios(draws: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy log ratios (draws,) of DP Barker at one move: of a release, and of the lab."""
    problem, generator, size = cell("dp-barker", rows()).problem, np.random.default_rng(9), 20
    theta, proposal = np.tile([0.3, 0.8], (draws, 1)), np.tile([0.9, 0.1], (draws, 1))
    words = generator.integers(0, 2**64, (1, draws, size), np.uint64, endpoint=False)
    lattice = lattice_of([BarkerQuery("batch log-ratio", size, ROWS)], ROWS)
    of_lab = LabNoise(generator.standard_normal((1, draws)), np.zeros((1, draws, 0, 2)))
    sources = (
        (LatticeEvaluator(problem.model, problem.rows, lattice), secure_noise.SecureNoise()),
        (problem.evaluator, of_lab),
    )
    made, other = (
        PrivateData(evaluator, problem.temperature, source, words).barker_log_ratio(theta, proposal, 0.99)
        for evaluator, source in sources
    )
    return made, other


def test_noise_of_a_barker_test_has_the_law_of_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """And noise of a fifth more is found; acceptance shows less of it, since most log ratios are small."""
    assert stats.ks_2samp(*barker_log_ratios()).pvalue > DIFFERENT
    barker_sd = LatticeEvaluator.barker_sd
    monkeypatch.setattr(LatticeEvaluator, "barker_sd", lambda *arguments: 1.2 * barker_sd(*arguments))
    made, other = (abs(values - np.median(values)) for values in barker_log_ratios())
    assert stats.ks_2samp(made, other).pvalue < DIFFERENT


OF_SUMS = {"clip": 1.5, "noise_multiplier": 1.2, "centre": [0.1]}


def noise_p(draws: int = 3000) -> float:
    """Return the smallest p-value that released sums are normal around the sum of the lab."""
    lattice, words = lattice_of([GaussianQuery("sum", 1.2)], ROWS), np.zeros((1, 1, 0), np.uint64)
    question = SumQuestion(NUMBERS, np.full(2, 0.1), 1.5, 1.0 / 1.2)
    evaluator = LatticeEvaluator(NUMBERS, rows(), lattice)
    private = PrivateData(evaluator, 1.0, secure_noise.SecureNoise(), words)
    found = np.array([private.answers([question])[0] for _ in range(draws)])
    scores = found - question.total(rows())
    pairs = [scores[:, i] * scores[:, i - 1] for i in range(scores.shape[1])]
    values = [stats.kstest(score, "norm").pvalue for score in scores.T]
    values += [2.0 * stats.norm.sf(abs(pair.sum()) / np.sqrt(draws)) for pair in pairs]
    return float(min(values))


def test_a_released_sum_has_the_law_of_the_lab() -> None:
    assert noise_p() > DIFFERENT


def test_wrong_noise_of_a_sum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1.2 times the scale, and of one number for all components."""
    whole_scale, noisy_sum = secure_noise.whole_scale, secure_noise.noisy_sum
    with monkeypatch.context() as patch:
        patch.setattr(secure_noise, "whole_scale", lambda sd, unit: np.ceil(1.2 * whole_scale(sd, unit)))
        assert noise_p(8000) < DIFFERENT
    monkeypatch.setattr(
        secure_noise, "noisy_sum", lambda total, scale: total + noisy_sum(0 * total[:1], scale[:1])[0]
    )
    assert noise_p(8000) < DIFFERENT


def test_chains_of_a_release_share_a_sum_and_have_the_law_of_the_lab(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given the sum, which has no noise here; what they suppose about its noise matters."""
    monkeypatch.setitem(SETTINGS, "noisy-statistics", ("noisy-statistics", OF_SUMS))
    monkeypatch.setattr(secure_noise, "noisy_sum", lambda total, scale: total + 0.0 * scale)
    monkeypatch.setattr(LabNoise, "shared", lambda self, total, unit, sd: (unit * total)[None])
    made = released("noisy-statistics")
    assert difference(made, lab("noisy-statistics")) > DIFFERENT
    more = {**OF_SUMS, "noise_multiplier": 6.0}
    monkeypatch.setitem(SETTINGS, "noisy-statistics", ("noisy-statistics", more))
    assert difference(made, lab("noisy-statistics")) < DIFFERENT


@pytest.mark.parametrize("name", SETTINGS)
def test_sums_without_noise_are_those_of_the_lab(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the rounding of each row: the noise of both is taken away, and a batch is all rows."""
    monkeypatch.setattr(secure_noise, "noisy_sum", lambda total, scale: total + 0.0 * scale)
    algorithm = cell(name, None).algorithm
    if algorithm.batch_size:
        algorithm = dataclasses.replace(algorithm, batch_size=ROWS)  # type: ignore[call-arg]
    lattice = lattice_of(RunQueries.of(algorithm, ROWS).total(1), ROWS)
    problem = cell(name, rows()).problem
    theta = problem.starts[:5] + np.linspace(0.0, 0.4, 10).reshape(5, 2)
    proposal = theta + np.linspace(0.5, -0.3, 10).reshape(5, 2)
    words = np.zeros((1, 5, algorithm.batch_size), np.uint64)
    found = []
    for evaluator, source in (
        (problem.evaluator, LabNoise(np.zeros((1, 5)), np.zeros((1, 5, 4, 2)))),
        (LatticeEvaluator(problem.model, problem.rows, lattice), secure_noise.SecureNoise()),
    ):
        private = PrivateData(evaluator, problem.temperature, source, words)
        if hasattr(algorithm, "log_ratio"):
            found.append(algorithm.log_ratio(theta, proposal, private))
        elif hasattr(algorithm, "noise_multiplier"):
            found.append(private.batch_gradient(theta, algorithm.clip, algorithm.noise_multiplier(ROWS)))
        if hasattr(algorithm, "clip_g"):
            found.append(private.gradient(theta, algorithm.clip_g, algorithm.tau_g, 0))
    half = len(found) // 2
    for of_lab, of_release in zip(found[:half], found[half:], strict=True):
        assert np.abs(of_lab).min() > 0.0
        np.testing.assert_allclose(of_release, of_lab, rtol=1e-5)
