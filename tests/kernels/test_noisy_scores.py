"""Noisy scores: what is asked follows from answers, posteriors are calibrated, and faults are caught."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.algorithms import hyperparameters, noisy_scores, score_answers
from dpmc.algorithms.dp_penalty import exact_multiplier
from dpmc.evaluators.generic import Evaluator
from dpmc.evaluators.lattice import Lattice, LatticeEvaluator
from dpmc.privacy.noise import LabNoise
from kernels.ladder import Fault, sown
from kernels.problems import BANANA
from models import test_score_tables
from models.test_score_tables import Gamma, StudentT
from privacy import test_questions

PREDICTORS = ["a", "b"]
SDS = [0.5, 0.5, 0.5]
MODELS: dict[str, Any] = {
    "linear": dpmc.LinearRegression("y", PREDICTORS, prior_sd=SDS),
    "linear, sd unknown": dpmc.LinearRegression("y", PREDICTORS, sd=None, prior_sd=[*SDS, 0.7]),
    "logistic": dpmc.LogisticRegression("y", PREDICTORS, binary={"a": 0.2}, prior_sd=SDS),
    "poisson": dpmc.PoissonRegression("y", PREDICTORS, prior_sd=SDS),
    "negative binomial": dpmc.NegativeBinomialRegression("y", PREDICTORS, dispersion=0.5, prior_sd=SDS),
    "student": dpmc.Regression("y", PREDICTORS, family=StudentT(), prior_sd=SDS),
    "gamma": dpmc.Regression("y", PREDICTORS, family=Gamma(), prior_sd=SDS),
    "poisson, exposure": dpmc.PoissonRegression("y", PREDICTORS, exposure={"days": (365, 200)}, prior_sd=SDS),
    "logistic, offset": dpmc.LogisticRegression("y", PREDICTORS, offset={"o": (3.0, 1.0)}, prior_sd=SDS),
    "linear, offset": dpmc.LinearRegression("y", PREDICTORS, sd=None, offset="o", prior_sd=[*SDS, 0.7]),
    "logistic, weights": dpmc.LogisticRegression("y", PREDICTORS, weights={"w": 25}, prior_sd=SDS),
}
TABLES: dict[Any, dict[Any, Any]] = {}  #: of families, by clip bound: they take long


def method(mu: float, **options: Any) -> Any:
    """Return noisy scores of a Gaussian-DP parameter μ."""
    values = {"noise_multiplier": 1.0 / mu, **options}
    return hyperparameters.read(noisy_scores.NoisyScores, values, "noisy-scores", None)


def answers_of(
    model: Any, rows: np.ndarray, mu: float, generator: Any, integers: bool = False, **options: Any
) -> Any:
    """Return the search that asked about these rows, also in a release's; `generator` makes the noise."""
    tables = TABLES.setdefault(repr(type(model.family)), {})
    search = noisy_scores.Search(method(mu, **options), model, len(rows), tables=tables)
    asking = search.questions()
    question = next(asking)
    evaluator = LatticeEvaluator(model, rows, Lattice(1, 1)) if integers else None
    try:
        while True:
            total = question.total(rows)
            if evaluator is not None:
                (units,), unit, _ = evaluator.answer_sums([question])
                np.testing.assert_allclose(units * unit, total, atol=1e-2)
                total = units * unit
            question = asking.send(total + generator.standard_normal(question.size))
    except StopIteration:
        return search


def posterior_of(search: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return means and sds of the posterior given what a search was answered."""
    found = noisy_scores.posterior_given([search.answered], search.n)
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


OFF_BASE: Any = type("Off", (Gamma,), {"log_base": lambda self, y: 0.0 * y})()
OFF_SCORE: Any = type("Off", (StudentT,), {"score": lambda self, eta, y: eta - y})()


def test_a_tempered_problem_is_refused_whoever_tempers_it() -> None:
    """Else a file would say a temperature that its posterior has not."""
    model = dpmc.LinearRegression("y", ["x"])
    method(1.0).check(model, 10_000, 1.0)
    with pytest.raises(dpmc.DpmcError, match="tempering: must be None"):
        method(1.0).check(model, 10_000, 0.5)


@pytest.mark.parametrize(
    ("model", "options", "mu", "words"),
    [
        (MODELS["logistic"], {}, 0.01,
         r"n mu is 6 \(n = 600, mu = 0.01\); .* 7 p\^1.5 = 36.4 on, "
         r"p = 3 coefficients: 3638 rows, 6.1 times the mu, or fewer predictors would do"),
        (dpmc.LogisticRegression("y", PREDICTORS, tempering=100), {}, 1.0, "tempering: must be None"),
        (MODELS["logistic"], {"information_share": 0.3}, 1.0,
         r"information_share: 0.3 must be in \(0, 0.298\]"),
        (BANANA, {}, 1.0, "the model must be a regression: dpmc.LinearRegression, .* a family of your own"),
        (dpmc.Regression("y", ["a"], family=OFF_BASE), {}, 1.0,
         "family Off: log_density: integrates to .* must be 1"),
        (dpmc.Regression("y", ["a"], family=OFF_SCORE), {}, 1.0,
         "family Off: score: .* must be the derivative of log_density"),
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
            mean, sd = posterior_of(answers_of(model, rows, mu, generator))
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
        mean, sd = posterior_of(answers_of(model, rows, mu, generator, **options))
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


#: Sets, n and μ of a calibration that takes a few seconds, of one with little information, and a longer one.
FEW, LITTLE, MANY = (60, 1000, 0.3), (100, 600, 0.1), (300, 2000, 0.3)
QUICK = ("linear", "linear, sd unknown", "logistic", "student", "linear, offset", "logistic, offset")


@pytest.mark.parametrize("name", QUICK)
def test_a_few_posteriors_are_calibrated(name: str) -> None:
    assert calibration_faults(name, *FEW) == []


@pytest.mark.parametrize("name", ["logistic, weights", "logistic, offset"])
def test_a_few_posteriors_of_a_releases_integers_are_calibrated(name: str) -> None:
    assert calibration_faults(name, *FEW, integers=True) == []


def test_a_few_posteriors_with_little_information_are_calibrated() -> None:
    assert calibration_faults("logistic", *LITTLE) == []


def sd_faults() -> list[str]:
    """Return where ln sd from χ, is far from the truth, or not as far as said."""
    generator, found = np.random.default_rng(7), []
    for n, noise in ((500, 0.3), (500, 30.0)):
        z = []
        for _ in range(200):
            truth, noisy = 0.5 * generator.standard_normal(), noise * generator.standard_normal()
            chi = np.minimum((np.exp(truth - 0.2) * generator.standard_normal(n)) ** 2, 1.5**2).sum() + noisy
            answer: Any = SD_ANSWER._replace(spread=chi, noise_sd=noise / (np.sqrt(2.0) * 1.5**2))
            own = score_answers.log_sd_of([answer], n, score_answers.LogSd(0.0, 0.25))
            z.append((truth - own.mean) / np.sqrt(own.variance))
        if not 0.6 < np.square(z).mean() < 1.6:
            found.append(f"{np.square(z).mean()}")
    return found


SD_ANSWER: Any = score_answers.Round(*[1.0] * 15)._replace(bound=1.0, clip=1.5, residual_sd=np.exp(0.2))


def test_ln_sd_is_as_far_from_the_truth_as_is_said() -> None:
    assert sd_faults() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_posteriors_are_calibrated(name: str) -> None:
    assert calibration_faults(name, *MANY) == []


def length_faults() -> list[str]:
    """Return at which scale of predictors the first T does not make them about as long as white ones."""
    found = []
    for scale in (0.2, 5.0):
        generator, model = np.random.default_rng(9), MODELS["linear"]
        rows = model.simulate(generator, np.zeros(3), 2000)
        model = dpmc.LinearRegression("y", PREDICTORS, intercept=False, prior_sd=0.5)
        rows[:, 1:] *= scale
        first = answers_of(model, rows, 1.0, generator).rounds[0]
        length = np.exp(np.log(np.linalg.norm(rows[:, 1:] @ first.whitening, axis=1) / np.sqrt(2.0)).mean())
        if not 0.6 < length < 1.5:
            found.append(f"{scale}: {length}")
    return found


def test_rows_of_any_scale_are_about_as_long_as_white_ones_from_the_first_scores_on() -> None:
    assert length_faults() == []


def answer_faults() -> list[str]:
    """Return where posteriors given an answer are not calibrated, M known or with a fifth of it noise."""
    generator, found, expected = np.random.default_rng(8), [], 100.0
    whitening, one = np.array([[0.5, 0.1, 0.0], [0.1, 1.0, -0.2], [0.0, -0.2, 2.0]]), np.eye(3)
    prior = score_answers.Belief(np.array([0.5, -1.0, 2.0]), whitening @ whitening)
    for phi, noise_sd, information_sd in ((1.3, 3.0, 2.0), (0.7, 30.0, 2.0), (1.0, 10.0, 20.0)):
        z = []
        for _ in range(200):
            back, noise = generator.multivariate_normal(np.zeros(3), one), generator.standard_normal((3, 3))
            part = generator.standard_normal((3, 3))
            information = expected * (one + 0.15 * (part + part.T))
            information += max(0.0, 20.0 - np.linalg.eigvalsh(information)[0]) * one
            at = prior.mean + whitening @ np.array([0.4, -0.3, 0.5])
            d = back - np.array([0.4, -0.3, 0.5])
            s = generator.multivariate_normal(information @ d, phi * information + noise_sd**2 * one)
            answer = score_answers.Round(
                at, whitening, 1.0, 1.0, 1.5, 1.0, noise_sd, information_sd, expected, 1.0, 1e4, s,
                information + 0.5 * information_sd * (noise + noise.T), phi * np.trace(information), 0.0,
            )  # fmt: skip
            known, _ = score_answers.posterior_of([answer], prior)
            error = prior.mean + whitening @ back - known.mean
            z.append(error @ np.linalg.solve(known.covariance, error) / 3.0)
        low, high = stats.chi2.ppf([1e-4, 1.0 - 1e-4], 600) / 600
        if not 0.9 * low < np.mean(z) < 1.1 * high:
            found.append(f"mean square {np.mean(z)} with noise {noise_sd}, {information_sd}")
        clear = answer._replace(information=information, information_sd=1e-6)
        new, back_of = score_answers.whitened(clear, np.full(3, np.inf)), np.linalg.inv(whitening)
        if not np.allclose(new @ back_of @ information @ back_of @ new, expected * one, rtol=1e-3, atol=0.1):
            found.append("T does not make rows white")
    return found


def test_posteriors_given_an_answer_are_calibrated_and_rows_are_made_white() -> None:
    assert answer_faults() == []


def test_noise_of_the_mean_of_rounds_is_that_of_all() -> None:
    """The first main round has less budget than the others."""
    rounds = [SD_ANSWER._replace(noise_sd=sd, information_sd=2.0 * sd, scores=sd) for sd in (4.0, 2.0, 2.0)]
    mean = score_answers.mean_of(rounds)
    assert (mean.noise_sd, mean.information_sd) == pytest.approx((24.0**0.5 / 3.0, 2.0 * 24.0**0.5 / 3.0))
    assert mean.scores == pytest.approx(8.0 / 3.0)


def test_one_main_round_agrees_with_five() -> None:
    """About the same rows, over their noise: θ_k of five rounds differ, and M's noise."""
    model, differences, widths = MODELS["logistic"], [], []
    for j in range(12):
        generator = np.random.default_rng([5, j])
        rows = model.simulate(generator, np.array([0.3, -0.4, 0.5]), 2000)
        (one, one_sd), (five, five_sd) = (
            posterior_of(answers_of(model, rows, 0.15, generator, rounds=rounds)) for rounds in (1, 5)
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


BOOK = {
    "fields": [
        {"name": "y", "type": "number", "centre": 0, "scale": 1},
        {"name": "age", "type": "number", "constraints": {"minimum": 18, "maximum": 64}},
        {"name": "bmi", "type": "number", "constraints": {"minimum": 15, "maximum": 54}},
        {"name": "smoker", "type": "boolean", "share": 0.2},
    ]
}
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
    "rare level": (
        dpmc.LogisticRegression("y", ["x1"], levels={"g": {"a": 0.992, "b": 0.008}}, prior_sd=10.0),
        [0.3, 0.8, -0.5],
        [0.1, 0.1, 3.0],
    ),
    "interaction": (
        dpmc.LinearRegression("y ~ age + smoker * bmi", codebook=BOOK, sd=None, prior_sd=[10.0] * 5 + [2.0]),
        [0.0, 0.3, -0.5, 0.3, 1.0, np.log(0.4)],
        [0.1, 0.02, 0.4, 0.02, 0.15, 0.1],
    ),
}


def hard_faults(name: str, sets: int = 6, n: int = 4000) -> list[str]:
    """Return what is far from the truth, over posterior sds, or hardly known."""
    model, truth, widest = HARD[name]
    scores, widths = [], []
    for j in range(sets):
        generator = np.random.default_rng([6, j])
        rows = model.simulate(generator, np.array(truth), n)
        mean, sd = posterior_of(answers_of(model, rows, 0.4, generator))
        scores.append((np.array(truth) - mean) / sd)
        widths.append(sd / widest)
    found = [f"sd {np.max(widths, axis=0)} too large"] if np.max(widths) > 1.0 else []
    if np.abs(scores).max() > 4.5 or np.square(scores).mean() > 2.2:
        found.append(f"far from the truth: {scores}")
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "counts" in name else []) for name in HARD]
)
def test_hard_cases_are_found(name: str) -> None:
    assert hard_faults(name) == []


# Faults

#: Checks by name: what each complains of. All are used by a quick test, here or beside questions and tables.
CHECKS: dict[str, Callable[[], Any]] = {
    "tables": lambda: [
        fault for name in test_score_tables.QUICK for fault in test_score_tables.faults_of(name, 1.5, True)
    ],
    "pairs": lambda: [fault for case in ("student", *PAIRS) for fault in test_questions.pair_faults(case)],
    "other": test_questions.other_pair_faults,
    "sums": lambda: [fault for case in test_questions.QUICK for fault in test_questions.differences(case)],
    "lemma": lambda: test_questions.noise_faults(0.2),
    "queries": query_faults,
    "prior": lambda: [fault for name in ("linear", "linear, sd unknown") for fault in prior_faults(name)],
    "calibration": lambda: calibration_faults("linear", *FEW),
    "little": lambda: calibration_faults("logistic", *LITTLE),
    "sd": sd_faults,
    "length": length_faults,
    "answers": answer_faults,
    "small": lambda: hard_faults("small sd", 3),
    "wide": lambda: hard_faults("wide prior", 3),
    "correlation": lambda: hard_faults("correlation", 3),
    "rare": lambda: hard_faults("rare level", 3),
    "interaction": lambda: hard_faults("interaction", 3, 2000),
}
PAIRS = ("normal, sd unknown", "lying", "lying, sd unknown")
QUESTIONS, TABLE, ANSWERS, ROUNDS = (
    f"dpmc.{name}"
    for name in (
        "privacy.questions",
        "models.score_tables",
        "algorithms.score_answers",
        "algorithms.noisy_scores",
    )
)
OF_S, OF_M = (
    "most * 2.0 * self.bound / (A * np.sqrt(B))",
    "most * self.largest_information / (A * np.sqrt(self.share))",
)
SECOND_MOMENTS = "np.outer(step, step) + A @ covariance @ B"  #: of steps, on which M's noise acts
#: (module, function, shape) -> name: a piece of the shape, what replaces it, and the checks that complain.
FAULTS: dict[tuple[str, str, str], dict[str, tuple[str, str, str]]] = {
    (QUESTIONS, "noise_sd", OF_S): {
        "scores' noise of half the sensitivity": ("2.0 * ", "", "pairs lemma"),
        "M's share of the budget given to s": ("B", "1.0", "lemma"),
    },
    (QUESTIONS, "information_sd", OF_M): {
        "M's noise with its share not rooted": ("np.sqrt(self.share)", "self.share", "lemma"),
        "M's noise halved": ("self.l", "0.5 * self.l", "pairs lemma"),
    },
    (QUESTIONS, "squares_sd", "np.sqrt(2.0) * A * B"): {
        "q's noise a third": ("np.sqrt(2.0)", "0.3", "pairs lemma"),
    },
    (QUESTIONS, "spread_sd", "np.sqrt(2.0) * A * B / C"): {
        "chi's noise a third": ("np.sqrt(2.0)", "0.3", "pairs lemma"),
    },
    (QUESTIONS, "_parts", "np.clip(A * row.h * length, -limit, limit)"): {
        "no clamp of s": ("", "A * row.h * length", "pairs"),
    },
    (QUESTIONS, "_parts", "np.sqrt(chi) / A if B else 1.0"): {
        "no bound of s by chi": ("", "1.0", "pairs"),
    },
    (QUESTIONS, "_parts", "self.bound / reach"): {
        "weight without B": ("self.bound", "np.inf", "sums"),
    },
    (QUESTIONS, "_parts", "self.largest_information / most"): {
        "weight without H": ("self.l", "1e9 * self.l", "sums"),
    },
    (QUESTIONS, "_parts", "row.root * row.bound * length"): {
        "weight by the score": ("row.bound", "np.abs(row.h)", "sums"),
    },
    (QUESTIONS, "_parts", "tz / length[:, None]"): {
        "direction without length 1": (" / length[:, None]", "", "pairs sums"),
    },
    (QUESTIONS, "of_rows", "s**2"): {
        "q of rows not squared": ("s**2", "np.abs(s)", "sums"),
    },
    (QUESTIONS, "total", "s**2"): {
        "q not squared": ("s**2", "np.abs(s)", "sums"),
    },
    (QUESTIONS, "_parts", "row.root * row.slope"): {
        "M of slope alone": ("row.root * ", "", "sums"),
    },
    (QUESTIONS, "_parts", "row.known & A"): {
        "impossible outcomes count": ("row.known & ", "", "sums"),
    },
    (QUESTIONS, "of_rows", "np.sqrt(2.0)"): {
        "M's off-diagonal entries not scaled": ("2.0", "1.0", "sums"),
    },
    (QUESTIONS, "answer", "np.sqrt(0.5)"): {
        "M's off-diagonal entries as diagonal ones": ("0.5", "1.0", "sums"),
    },
    (QUESTIONS, "noise_sd", "2.0 * FARTHEST / A"): {
        "lengths' noise of half the sensitivity": ("2.0 * ", "", "other"),
    },
    (QUESTIONS, "noise_sd", "2.0 * self.clip / A"): {
        "a sum's noise of half the sensitivity": ("2.0 * ", "", "other"),
    },
    (TABLE, "at", "Scores(h - mean, A, B, C, h, D)"): {
        "scores not centred": (" - mean", "", "tables"),
    },
    (TABLE, "at", "0.5 * A * distance"): {
        "curvature of the mean upside down": ("0.5", "-0.5", "tables"),
    },
    (TABLE, "at", "(slope + A) * distance"): {
        "mean of the node": (" * distance", " * 0.0", "tables"),
    },
    (TABLE, "_moments", "mean(h * score)"): {
        "slope without the score": ("score", "h", "tables"),
    },
    (TABLE, "_moments", "mean(h**2) - level**2"): {
        "variance without the square of the mean": (" - level**2", "", "tables"),
    },
    (TABLE, "at", "np.maximum(self._high[i] - mean, A)"): {
        "bound of one side": ("", "self._high[i] - mean", "tables"),
    },
    (ANSWERS, "posterior_of", "A / dispersion_of(B, C)"): {
        "sampling not counted": ("A", "1e9 * A", "calibration answers"),
    },
    (ANSWERS, "posterior_of", "answer.noise_sd**2 * one"): {
        "noise of s not counted": ("answer", "0.0 * answer", "little answers"),
    },
    (ANSWERS, "posterior_of", SECOND_MOMENTS): {
        "noise of M not counted": (SECOND_MOMENTS, f"0.0 * ({SECOND_MOMENTS})", "answers"),
        "noise of M four times": (SECOND_MOMENTS, f"4.0 * ({SECOND_MOMENTS})", "answers"),
    },
    (ANSWERS, "dispersion_of", "answer.squares / A"): {
        "phi halved": ("answer", "0.5 * answer", "answers"),
    },
    (ANSWERS, "information_of", "mean * A + kept * deviation"): {
        "deviation of M upside down": ("+", "-", "answers"),
    },
    (ANSWERS, "posterior_of", "first.at + A @ d"): {
        "d upside down": ("+", "-", "calibration wide"),
    },
    (ANSWERS, "posterior_of", "prior.mean - first.at"): {
        "pull away from the prior": ("", "first.at - prior.mean", "little"),
    },
    (ANSWERS, "mean_of", "A / len(rounds)"): {
        "main rounds' noise not averaged": (" / len(rounds)", "", "calibration"),
    },
    (ANSWERS, "whitened", "symmetric_power(A, -0.5)"): {
        "T upside down": ("-", "", "answers"),
    },
    (ANSWERS, "whitened", "white + np.diag(longest ** -2.0)"): {
        "rows of a rare level stretched without end": (" + np.diag(longest ** -2.0)", "", "rare"),
    },
    (ANSWERS, "_log_sd", "float(np.log(answer.residual_sd)) + A"): {
        "step of chi upside down": ("+", "-", "sd small"),
    },
    (ANSWERS, "_log_sd", "float(noise / n / slope) ** 2"): {
        "noise of chi not counted": ("noise", "0.0 * noise", "sd"),
    },
    (ANSWERS, "_log_sd", "variance / n / slope**2"): {
        "sampling of chi not counted": ("variance", "0.0 * variance", "sd"),
    },
    (ROUNDS, "shares", "1.0 - sum(WARM_UP)"): {
        "warm-up rounds not subtracted": (" - sum(WARM_UP)", "", "queries"),
    },
    (ROUNDS, "shares", "total - length"): {
        "length questions not subtracted": (" - length", "", "queries"),
    },
    (ROUNDS, "questions", "method.mu * np.sqrt(share)"): {
        "scores asked at the whole budget": ("np.sqrt(share)", "1.0", "queries"),
    },
    (ROUNDS, "questions", "method.mu * np.sqrt(length)"): {
        "lengths asked at the whole budget": ("np.sqrt(length)", "1.0", "queries"),
    },
    (ROUNDS, "priors", "sds[:p] ** 2"): {
        "prior sd as variance": (" ** 2", "", "prior"),
    },
    (ROUNDS, "priors", "float(sds[p]) ** 2"): {
        "prior sd of ln sd as variance": (" ** 2", "", "prior"),
    },
    (ROUNDS, "questions", "answer.at + A * B"): {
        "step away from the answer": ("+", "-", "wide"),
    },
    (ROUNDS, "questions", "np.exp(-seen * A / B)"): {
        "length corrected to the wrong side": ("-seen", "seen", "length"),
    },
    (ROUNDS, "questions", "symmetric_power(white, -0.5)"): {
        "rows taken as white before they are asked": ("-0.5", "0.0", "interaction"),
    },
    (ROUNDS, "questions", "whitening * new / sd, new"): {
        "T not in units of the new sd": ("", "whitening, sd", "small"),
    },
}
SOWN = {
    name: (module, Fault(function, shape, shape.replace(piece or shape, by, 1)), checks.split())
    for (module, function, shape), faults in FAULTS.items()
    for name, (piece, by, checks) in faults.items()
}
CAUGHT = [(name, check) for name, (*_, checks) in SOWN.items() for check in checks]


@pytest.mark.parametrize(("name", "check"), CAUGHT)
def test_fault_is_caught(name: str, check: str) -> None:
    module, fault, _ = SOWN[name]
    with sown(module, fault), np.errstate(all="ignore"):
        try:
            found = CHECKS[check]()
        except (np.linalg.LinAlgError, dpmc.DpmcError, AssertionError) as error:
            found = [str(error)]
    assert found


@pytest.mark.parametrize("module", [QUESTIONS, TABLE, ANSWERS, ROUNDS])
def test_reloaded_sources_without_a_fault_pass(module: str) -> None:
    with sown(module):
        for check in {check for name, check in CAUGHT if SOWN[name][0] == module}:
            assert not CHECKS[check](), check
