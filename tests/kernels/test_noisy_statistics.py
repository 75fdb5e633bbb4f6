"""Noisy statistics: noise and sensitivity, posteriors that are exact and calibrated, refusals."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import dpmc
from dpmc import evaluators
from dpmc.algorithms.noisy_statistics import NoisyStatistics
from dpmc.base import NoisySum
from dpmc.evaluators.calls import without_warnings
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from dpmc.models.mixture import Mixture
from dpmc.privacy.accountants.gaussian import GaussianDp
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise
from dpmc.privacy.questions import SumQuestion
from kernels.ladder import FAULT_P, P_VALUE, smallest_p
from kernels.problems import Setting

SLANTED = Gaussian(np.array([[2.0, -0.9], [-0.9, 1.0]]), 4.0, 4.0)
BENT = Banana(0.5, 0.0, 0.0, np.array([2.0, 1.0]), 4.0)
RING = Circle(0.02)


# Privacy


def private_of(model: Any, rows: np.ndarray, seeds: range = range(1)) -> PrivateData:
    """Return the mechanisms for these rows; each seed is a run."""
    width = len(seeds)
    noise = LabNoise(np.zeros((1, width)), np.zeros((1, width, 0, 2)), [*map(np.random.default_rng, seeds)])
    return PrivateData(evaluators.evaluator_of(model, rows), 1.0, noise, np.zeros((1, width, 0), np.uint64))


@pytest.mark.parametrize("centre", [0.0, 1.5])
def test_a_replaced_row_changes_the_sum_by_at_most_twice_the_clip_bound(centre: float) -> None:
    generator = np.random.default_rng(1)
    rows = SLANTED.simulate(generator, np.zeros(2), 50)
    strange = [np.full(2, value) for value in (0.0, 1e9, -1e9, np.inf, -np.inf, np.nan, 1e300)]
    strange += [np.array([1e9, np.nan]), *(10.0**k * generator.standard_normal(2) for k in range(-3, 9))]
    question, sums = SumQuestion(SLANTED, np.full(2, centre), 0.7, 1e30), []
    for row in strange:
        with without_warnings():
            private = private_of(SLANTED, np.concatenate([row[None], rows]))
            sums.append(private.answers([question])[0] * question.noise_sd)
    changes = np.linalg.norm(np.array(sums)[:, None] - np.array(sums), axis=2)
    assert np.isfinite(changes).all()
    assert 1.39 < changes.max() <= 1.4 * (1.0 + 1e-12)


def test_noise_has_the_declared_sd_and_the_sum_is_that_of_all_rows() -> None:
    algorithm: Any = NoisyStatistics(clip=0.7, noise_multiplier=1.3, centre=(0.5, -1.0))
    rows = np.linspace(-0.1, 0.1, 6).reshape(3, 2)
    answers = algorithm.ask(SLANTED, private_of(SLANTED, rows, range(2000)))
    deviations = SLANTED.summaries(rows) - [0.5, -1.0]
    clipped = deviations * np.minimum(1.0, 0.7 / np.linalg.norm(deviations, axis=1))[:, None]
    noise = (
        np.array([answer["sum"] for answer in answers]) - clipped.sum(axis=0) - 3.0 * np.array([0.5, -1.0])
    )
    assert all(answer["sum_noise_sd"] == pytest.approx(1.3 * 2.0 * 0.7) for answer in answers)
    assert smallest_p(ndtr(noise / (1.3 * 2.0 * 0.7))) > P_VALUE


OPTIONS: dict[str, Any] = {"epsilon": 0.8, "delta": 1e-5, "iterations": 20, "progress": False}


def sampled(hyperparameters: Any = None, **changes: Any) -> Any:
    rows = SLANTED.simulate(np.random.default_rng(2), np.zeros(2), 500)
    values = {"clip": 2.0} if hyperparameters is None else hyperparameters
    return dpmc.sample(SLANTED, rows, "noisy-statistics", hyperparameters=values, **{**OPTIONS, **changes})


@pytest.mark.parametrize("chains", [1, 3])
def test_the_whole_budget_is_spent_on_one_query_that_chains_share(chains: int) -> None:
    tree = sampled(chains=chains)
    (event,) = json.loads(tree.attrs["ledger"])["performed"]
    assert (event["count"], event["sensitivity"]) == (1, 4.0)
    assert json.loads(tree.attrs["ledger"])["epsilon_spent"] == pytest.approx(0.8)
    query = NoisyStatistics(clip=2.0, noise_multiplier=event["noise_multiplier"]).queries(500).run
    assert 0.9999e-5 < GaussianDp().delta(query, 0.8) <= 1e-5
    assert tree["answer"]["sum"].shape == (2,)


def test_a_person_with_several_rows_gets_as_many_times_the_noise() -> None:
    noise = []
    for rows in (1, 5):
        ledger = json.loads(sampled(rows_per_person=rows).attrs["ledger"])
        assert ledger["epsilon_spent"] == pytest.approx(0.8)
        noise.append(ledger["performed"][0]["noise_multiplier"])
        budget = {"epsilon": 0.8, "delta": 1e-5, "rows_per_person": rows}
        bought = dpmc.budget(500, "noisy-statistics", {"clip": 2.0}, **budget)
        assert bought == {"noise_multiplier": noise[-1], "tight": np.inf}
        little = {"clip": 2.0, "noise_multiplier": 0.9 * noise[-1]}
        assert dpmc.budget(500, "noisy-statistics", little, **budget)["tight"] == 0
    assert noise[1] == pytest.approx(5.0 * noise[0])


def test_more_than_the_budget_is_refused() -> None:
    with pytest.raises(dpmc.DpmcError, match="budget exceeded"):
        sampled({"clip": 2.0, "noise_multiplier": 0.1})


def test_models_without_a_posterior_given_a_sum_are_refused() -> None:
    algorithm = NoisyStatistics(clip=1.0, noise_multiplier=1.0)
    words = (
        "posterior given a noisy sum is not known for this model; .* for a regression there is noisy-scores"
    )
    for model in (Mixture(2.0, 3.0), dpmc.LogisticRegression("y", ["a"]), dpmc.LinearRegression("y", ["a"])):
        with pytest.raises(dpmc.DpmcError, match=words):
            algorithm.check(model, 50)
    with pytest.raises(dpmc.DpmcError, match="centre: has 3 values, must be one or 2"):
        replace(algorithm, centre=(0.0, 0.0, 0.0)).check(SLANTED, 50)


# Posteriors


@pytest.mark.parametrize("temperature", [1.0, 0.2])
@pytest.mark.parametrize("model", [SLANTED, BENT, RING], ids=["Gaussian", "banana", "circle"])
def test_without_noise_the_posterior_is_the_exact_one(model: Any, temperature: float) -> None:
    rows = model.simulate(np.random.default_rng(3), np.array([0.8, -0.5]), 200)
    noisy = NoisySum(model.summaries(rows).sum(axis=0), 200, 0.0, temperature)
    found, wanted = model.posterior_given(noisy), model.posterior(rows, temperature)
    normal, uniform = (
        np.random.default_rng(4).standard_normal((9, 2)),
        np.random.default_rng(5).random((9, 2)),
    )
    np.testing.assert_allclose(found.at(normal, uniform), wanted.at(normal, uniform), rtol=1e-9)


@pytest.mark.parametrize("temperature", [1.0, 0.2])
@pytest.mark.parametrize("model", [SLANTED, BENT], ids=["Gaussian", "banana"])
def test_the_noisy_posterior_is_that_of_a_noisy_mean(model: Any, temperature: float) -> None:
    """Mean summaries are normal of variance 1/(nT) + (σ/n)², so that Bayes' rule is that of two densities."""
    total, n, sd = np.array([130.0, -70.0]), 200, 12.0
    posterior = model.posterior_given(NoisySum(total, n, sd, temperature))
    generator = np.random.default_rng(6)
    theta = posterior.at(generator.standard_normal((40, 2)), generator.random((40, 2)))
    natural = np.array([model.natural(at) for at in theta]) if model is BENT else theta
    expected = np.array([model.summaries(at[None])[0] for at in natural])
    wanted = -0.5 * ((total / n - expected) ** 2).sum(axis=1) / (1.0 / (n * temperature) + (sd / n) ** 2)
    wanted += model.log_prior(theta)
    if model is BENT:
        found = stats.multivariate_normal(posterior.mu, np.diag(posterior.variance)).logpdf(natural)
    else:
        found = stats.multivariate_normal(posterior.centre, posterior.spread).logpdf(theta)
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], rtol=1e-7, atol=1e-7)


def rank_p(model: Any, n: int, algorithm: NoisyStatistics, sets: int) -> float:
    """Return the p-value that ranks of θ from the prior among 19 draws are uniform."""
    generator, ranks = np.random.default_rng(5), []
    for j in range(sets):
        theta = 2.0 * generator.standard_normal(2)
        theta[1] -= model.bend(np.array([theta[0], 0.0])) if model is BENT else 0.0
        (answered,) = algorithm.ask(
            model, private_of(model, model.simulate(generator, theta, n), range(j, j + 1))
        )
        posterior = algorithm.posterior(answered, model, n, 1.0)
        ranks.append((posterior.draws(generator, 19) < theta).sum(axis=0))
    return smallest_p((np.array(ranks) + generator.random((sets, 2))) / 20.0)


@pytest.mark.parametrize(("model", "clip"), [(SLANTED, 8.0), (BENT, 50.0)], ids=["Gaussian", "banana"])
def test_posteriors_are_calibrated_and_those_that_ignore_the_noise_are_not(model: Any, clip: float) -> None:
    algorithm = NoisyStatistics(clip=clip, noise_multiplier=2.0)
    assert rank_p(model, 300, algorithm, 500) > P_VALUE
    assert rank_p(model, 300, replace(algorithm, noise="ignored"), 500) < FAULT_P


def test_the_circle_is_averaged_over_the_sum_given_the_noisy_one() -> None:
    """Exact draws given each Σr², Σr² ~ N(noisy sum, σ²); u = ‖θ‖² of both have one distribution."""
    n, sd, generator = 200, 25.0, np.random.default_rng(7)
    noisy = NoisySum(np.array([260.0]), n, sd, 0.5)
    found = (RING.posterior_given(noisy).draws(generator, 4000) ** 2).sum(axis=1)
    wanted = []
    for total in noisy.total + sd * generator.standard_normal((4000, 1)):
        exact = RING.posterior_given(NoisySum(total, n, 0.0, 0.5))
        wanted.append((exact.draws(generator, 1) ** 2).sum())
    assert stats.ks_2samp(found, wanted).pvalue > P_VALUE
    angle = Setting(RING, RING.simulate(generator, np.array([1.0, 0.0]), n), 0.5).posterior.draws(
        generator, 4000
    )
    assert (
        stats.kstest(np.arctan2(angle[:, 1], angle[:, 0]), "uniform", (-np.pi, 2.0 * np.pi)).pvalue > P_VALUE
    )
