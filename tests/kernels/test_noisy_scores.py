"""Noisy scores: what is asked follows from answers, posteriors are calibrated, and faults are caught."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.algorithms import noisy_scores, score_answers
from dpmc.algorithms.dp_penalty import exact_multiplier
from dpmc.evaluators.generic import Evaluator
from dpmc.models.families import Normal
from dpmc.privacy.noise import LabNoise
from kernels.ladder import Fault, sown
from kernels.problems import BANANA
from models import test_score_tables
from models.test_score_tables import FAMILIES, Gamma, StudentT
from privacy import test_questions

PREDICTORS = ["a", "b"]
SDS = [0.5, 0.5, 0.5]
MODELS: dict[str, Any] = {
    "linear": dpmc.LinearRegression("y", PREDICTORS, prior_sd=SDS),
    "linear, sd unknown": dpmc.LinearRegression("y", PREDICTORS, sd=None, prior_sd=[*SDS, 1.0]),
    "logistic": dpmc.LogisticRegression("y", PREDICTORS, binary={"a": 0.2}, prior_sd=SDS),
    "poisson": dpmc.PoissonRegression("y", PREDICTORS, prior_sd=SDS),
    "negative binomial": dpmc.NegativeBinomialRegression("y", PREDICTORS, dispersion=0.5, prior_sd=SDS),
    "student": dpmc.Regression("y", PREDICTORS, family=StudentT(), prior_sd=SDS),
    "gamma": dpmc.Regression("y", PREDICTORS, family=Gamma(), prior_sd=SDS),
}
TABLES: dict[Any, dict[Any, Any]] = {}  #: of families, by clip bound: they take long


def method(mu: float, **options: Any) -> Any:
    """Return noisy scores of a Gaussian-DP parameter μ."""
    return noisy_scores.NoisyScores(noise_multiplier=1.0 / mu, **options)


def answers_of(model: Any, rows: np.ndarray, mu: float, generator: Any, **options: Any) -> list[Any]:
    """Return the rounds about these rows; `generator` makes the noise."""
    tables = TABLES.setdefault(repr(type(model.family)), {})
    search = noisy_scores.Search(method(mu, **options), model, len(rows), tables=tables)
    asking = search.questions()
    question = next(asking)
    try:
        while True:
            question = asking.send(question.total(rows) + generator.standard_normal(question.size))
    except StopIteration:
        return search.rounds


def posterior_of(model: Any, rounds: list[Any], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return means and sds of a posterior."""
    prior, log_sd = noisy_scores.prior_of(model), noisy_scores.log_sd_prior(model)
    found = noisy_scores.posterior_given(rounds, prior, log_sd, n)
    return found.mean(), np.sqrt(np.diag(found.covariance()))


# What is asked


def query_faults(**options: Any) -> list[str]:
    """Return where queries asked differ from those declared and performed; all noise has sd 1."""
    asked: list[tuple[str, float]] = []
    noise: list[float] = []
    answer_sums = Evaluator.answer_sums

    def spied(self: Any, questions: Any) -> Any:
        names = {"LengthQuestion": "length", "ScoreQuestion": "scores"}
        asked.append((names[type(questions[0]).__name__], 1.0 / questions[0].sensitivity))
        return answer_sums(self, questions)

    def shared(self: Any, total: np.ndarray, unit: float, sd: float) -> np.ndarray:
        noise.append(sd)
        return unit * total

    model, multiplier = MODELS["linear, sd unknown"], exact_multiplier(0.8, 1e-5)
    rows = model.simulate(np.random.default_rng(1), np.array([0.3, -0.2, 0.4, 0.1]), 600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Evaluator, "answer_sums", spied)
        patch.setattr(LabNoise, "shared", shared)
        budget: dict[str, Any] = {"epsilon": 0.8, "delta": 1e-5, "hyperparameters": options}
        tree = dpmc.sample(model, rows, "noisy-scores", chains=2, iterations=5, progress=False, **budget)
    events = json.loads(tree.attrs["ledger"])["performed"]
    declared = method(1.0 / multiplier, **options).queries(600).run
    found = {
        "performed": [(e["name"], e["noise_multiplier"]) for e in events for _ in range(e["count"])],
        "declared": [(e.name, e.noise_multiplier) for e in declared],
        "asked": asked,
    }
    faults = [] if set(noise) == {1.0} else [f"noise {noise}"]
    for what, queries in found.items():
        names, values = zip(*sorted(queries), strict=True)
        if not np.isclose(sum(1.0 / m**2 for m in values), multiplier**-2, rtol=1e-9):
            faults.append(f"{what}: budget")
        wanted = zip(*sorted(asked), strict=True)
        if list(names) != list(next(wanted)) or not np.allclose(values, next(wanted), rtol=1e-9):
            faults.append(f"{what}: {queries}")
    return faults


@pytest.mark.parametrize("options", [{}, {"rounds": 1}, {"rounds": 9, "information_share": 0.1, "clip": 1.5}])
def test_the_queries_declared_are_asked_and_performed_and_spend_the_budget(options: dict[str, Any]) -> None:
    assert query_faults(**options) == []


class Answered:
    """Private data without rows: it has recorded answers alone, for each run."""

    def __init__(self, recorded: list[np.ndarray], n: int, runs: int = 1) -> None:
        self.recorded, self.n, self.runs, self.asked = iter(recorded), n, runs, list[Any]()

    def answers(self, questions: Any) -> np.ndarray:
        self.asked.append(questions)
        return np.array([next(self.recorded)] * self.runs)


@pytest.mark.parametrize("name", ["linear, sd unknown", "logistic", "student"])
def test_what_is_asked_follows_from_answers_and_public_numbers(name: str) -> None:
    """Of an answer with rows: asked again without rows, of another run, and from the file's arrays."""
    model, generator, recorded = MODELS[name], np.random.default_rng(2), []
    rows = model.simulate(generator, np.full(model.dimension, 0.3), 900)

    class Rows(Answered):
        def answers(self, questions: Any) -> np.ndarray:
            recorded.append(questions[0].total(rows) + generator.standard_normal(questions[0].size))
            return np.array([recorded[-1]])

    algorithm: Any = method(0.3)
    (answered,) = algorithm.ask(model, Rows([], 900))
    without = Answered(recorded, 900, runs=2)
    for again in [*algorithm.ask(model, without), algorithm.asked(answered, model, 900)]:
        for key, array in answered.items():
            np.testing.assert_allclose(again[key], array, rtol=1e-9, atol=1e-12, err_msg=key)
    assert all(question.sensitivity for pair in without.asked for question in pair)
    doctored = {**answered, "scores": answered["scores"].copy()}
    doctored["scores"][0] *= 1.01
    assert not np.allclose(algorithm.asked(doctored, model, 900)["at"], answered["at"], rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "options", "mu", "words"),
    [
        (MODELS["logistic"], {}, 0.01, r"n mu is 6 \(n = 600, mu = 0.01\); .* 7 p\^1.5 = 36.4 on, p = 3 coefficients: "
         r"3638 rows, 6.1 times the mu, or fewer predictors would do"),
        (dpmc.LogisticRegression("y", PREDICTORS, tempering=100), {}, 1.0, "tempering: must be None"),
        (MODELS["logistic"], {"information_share": 0.3}, 1.0, "information_share: 0.3 must be at most 0.298"),
        (BANANA, {}, 1.0, "the model must be a regression: dpmc.LinearRegression, .* a family of your own"),
        (dpmc.Regression("y", ["a"], family=type("Off", (Gamma,), {"log_base": lambda self, y: 0.0 * y})()), {}, 1.0,
         "family Off: log_density: integrates to .* must be 1"),
        (dpmc.Regression("y", ["a"], family=type("Off", (StudentT,), {"score": lambda self, eta, y: eta - y})()),
         {}, 1.0, "family Off: score: .* must be the derivative of log_density"),
    ],
)  # fmt: skip
def test_what_has_no_interval_is_refused_in_one_line(model: Any, options: Any, mu: float, words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=words) as caught:
        method(mu, **options).check(model, 600)
    assert "\n" not in str(caught.value)
    enough = 36.4 / 600.0
    method(enough).check(MODELS["logistic"], 600)


# What is made of it


@pytest.mark.parametrize("name", ["linear", "linear, sd unknown", "logistic", "student"])
def test_without_information_the_posterior_is_the_prior(name: str) -> None:
    assert prior_faults(name) == []


def prior_faults(name: str) -> list[str]:
    """Return at which μ mean or sd differ from the prior's: the less, the less is known."""
    model, generator, found = MODELS[name], np.random.default_rng(3), []
    sds = np.asarray(model.prior_sd)
    rows = model.simulate(generator, 0.6 * sds, 1000)
    for mu, most in ((1e-4, 0.3), (1e-5, 0.05), (1e-6, 0.01)):
        for _ in range(5):
            mean, sd = posterior_of(model, answers_of(model, rows, mu, generator), 1000)
            if not (np.abs(mean / sds) < most).all() or not (np.abs(sd / sds - 1.0) < most).all():
                found.append(f"{mu}: {mean / sds}, {sd / sds}")
    return found


def scores_of(name: str, sets: int, n: int, mu: float, seed: int = 4, **options: Any) -> np.ndarray:
    """Return (θ − mean)/sd (sets, d) of θ from the prior: standard normal if posteriors are calibrated."""
    model, found = MODELS[name], []
    for j in range(sets):
        generator = np.random.default_rng([seed, j])
        theta = np.asarray(model.prior_sd) * generator.standard_normal(model.dimension)
        rows = model.simulate(generator, theta, n)
        mean, sd = posterior_of(model, answers_of(model, rows, mu, generator, **options), n)
        found.append((theta - mean) / sd)
    return np.array(found)


def calibration_faults(name: str, sets: int, n: int, mu: float, **options: Any) -> list[str]:
    """Return which coefficients' 90 % intervals, ranks or squared scores are not those of posteriors."""
    z, found = scores_of(name, sets, n, mu, **options), []
    for i, own in enumerate(z.T[:3]):
        held = int((np.abs(own) < stats.norm.isf(0.05)).sum())
        if stats.binomtest(held, sets, 0.9).pvalue < 1e-4:
            found.append(f"coverage of {i}: {held / sets}")
    every = z[:, :3].ravel()
    ranks = np.histogram(stats.norm.cdf(every), 10, (0.0, 1.0))[0]
    if stats.chisquare(ranks).pvalue < 1e-4:
        found.append(f"ranks {ranks}")
    low, high = stats.chi2.ppf([1e-4, 1.0 - 1e-4], every.size) / every.size
    if not 0.9 * low < (every**2).mean() < 1.1 * high:  # the posterior is an approximation
        found.append(f"mean square {(every**2).mean()}")
    return found


#: Sets, n and μ of a calibration that takes a few seconds, and of a longer one.
FEW, MANY = (60, 1000, 0.3), (300, 2000, 0.3)
QUICK = ("linear", "linear, sd unknown", "logistic", "student")


@pytest.mark.parametrize("name", QUICK)
def test_a_few_posteriors_are_calibrated(name: str) -> None:
    assert calibration_faults(name, *FEW) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_posteriors_are_calibrated(name: str) -> None:
    assert calibration_faults(name, *MANY) == []


def test_one_main_round_agrees_with_five() -> None:
    """About the same rows, over their noise: θ_k of five rounds differ, and M's noise."""
    model, differences, widths = MODELS["logistic"], [], []
    for j in range(12):
        generator = np.random.default_rng([5, j])
        rows = model.simulate(generator, np.array([0.3, -0.4, 0.5]), 2000)
        (one, one_sd), (five, five_sd) = (
            posterior_of(model, answers_of(model, rows, 0.15, generator, rounds=rounds), 2000)
            for rounds in (1, 5)
        )
        differences.append((one - five) / np.hypot(one_sd, five_sd))
        widths.append(five_sd / one_sd)
    assert 0.2 < (np.square(differences)).mean() < 1.5
    assert np.abs(np.mean(differences, axis=0)).max() < 0.9
    assert 0.85 < np.median(widths) < 1.15


class Correlated(dpmc.LogisticRegression):
    """Predictors of correlation 0.99."""

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        common, own = generator.standard_normal((n, 1)), generator.standard_normal((n, 2))
        x = np.sqrt(0.99) * common + 0.1 * own
        return np.column_stack([self.outcomes(generator, theta, self.design(x)), x])


#: By name: a model, the truth, which a prior may make unlikely, and a posterior sd that is more than enough.
HARD: dict[str, tuple[Any, list[float], list[float]]] = {
    "correlation": (Correlated("y", PREDICTORS, prior_sd=1.0), [0.3, 0.8, -0.5], [0.3, 1.0, 1.0]),
    "wide prior": (dpmc.LogisticRegression("y", PREDICTORS, prior_sd=10.0), [0.3, 0.8, -0.5], [0.3] * 3),
    "small sd": (
        dpmc.LinearRegression("y", PREDICTORS, sd=None, prior_sd=[1.0, 1.0, 1.0, 2.5]),
        [0.3, 0.8, -0.5, np.log(0.1)],
        [0.03] * 3 + [0.3],
    ),
    "large sd": (
        dpmc.LinearRegression("y", PREDICTORS, sd=None, prior_sd=[10.0, 10.0, 10.0, 2.5]),
        [3.0, 8.0, -5.0, np.log(10.0)],
        [2.0] * 3 + [0.3],
    ),
    "large counts": (
        dpmc.PoissonRegression("y", PREDICTORS, prior_sd=[3.0, 0.5, 0.5]),
        [3.0, 0.3, -0.2],
        [0.1] * 3,
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "counts" in name else []) for name in HARD]
)
def test_hard_cases_are_found(name: str) -> None:
    model, truth, widest = HARD[name]
    scores = []
    for j in range(6):
        generator = np.random.default_rng([6, j])
        rows = model.simulate(generator, np.array(truth), 4000)
        mean, sd = posterior_of(model, answers_of(model, rows, 0.4, generator), 4000)
        scores.append((np.array(truth) - mean) / sd)
        assert (sd < widest).all(), f"{sd}"
    assert np.abs(scores).max() < 4.5 and np.square(scores).mean() < 2.2
