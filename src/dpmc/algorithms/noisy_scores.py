"""Noisy scores: a few rounds of noisy bounded scores of a regression, then a posterior that knows its noise.

In each round rows give a bounded score that is unbiased given their predictors, at a public θ_k, and their
information (`privacy/questions.py`). Warm-up rounds find θ and a matrix T that makes rows white; main rounds
keep T and the bounds, so that their mean is one answer at the mean θ. What is asked depends on earlier noisy
answers and public numbers alone (docs/reference/algorithms/noisy-scores.md).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from dpmc.algorithms.answers import About, Answer, Answered, of_rounds, stacked
from dpmc.algorithms.hyperparameters import fraction, integer, positive
from dpmc.algorithms.score_answers import (
    LEAST_EXPECTED,
    Belief,
    LogSd,
    Round,
    Weights,
    information_of,
    log_sd_of,
    mean_of,
    posterior_of,
    predicted_variance,
    symmetric_power,
    tails_of,
    whitened,
    without_noise,
)
from dpmc.base import Model, Posterior, PrivateData, Queries, Question, Values
from dpmc.common.errors import DpmcError
from dpmc.models import families
from dpmc.models.gaussian import GaussianPosterior
from dpmc.models.regression import Regression
from dpmc.models.score_tables import ScoreTable, check_family, reference, score_table
from dpmc.privacy.events import GaussianQuery
from dpmc.privacy.lattice import LENGTH, SCORES
from dpmc.privacy.questions import LARGEST_SHARE, LengthQuestion, ScoreQuestion

#: Shares of the budget of the warm-up rounds. With three or four of them an intercept of 3 (Poisson, n =
#: 2,000) left 57 to 84 % of 90 % intervals that hold, with five 86 to 88 %.
WARM_UP = (0.03, 0.03, 0.03, 0.05, 0.06)
LENGTH_SHARE = 0.01  #: of the budget, for the rows' mean length; at most a third of a round's
TRUST = 2.0  #: longest step, in units of T: farther away scores are not linear
#: Largest prior sd while θ_k is looked for, in units of 1/a: beyond it a score tells little. The answer is
#: used with the prior as it is.
SEARCHED = 1.0
AT = 0.5  #: η at which bounds are chosen; the intercept found so far, in its place, changed little
#: Multiples b of B = b sup √p and clip bounds c among which the least predicted variance is chosen.
BOUNDS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5)
CLIPS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5)
BINARY_CLIP = 3.0  #: 0/1 outcomes bound their score themselves
WARM_CLIP = 1.5  #: least c of warm-up rounds, whose θ is far off
#: Of nμ/p^1.5. At 3.6 (30 coefficients) 84 to 93 % of 90 % intervals held, of some coefficients 79 %, and
#: they were nearly the prior's.
LEAST_INFORMATION = 7.0
LITTLE_INFORMATION = 10.0  #: below it a warning says so
#: Errors (`tails_of`) between two sds of residuals that a warning needs. Of 10,000 rows at ε = 2, 4 it came
#: in 1 of 128 answers with normal residuals, in 50 to 100 % with log-normal ones or two sds.
FAR = 2.5
OVERDISPERSED = 1.1  #: q/tr M over its value under the model, beyond twice its error
PREDICTORS = 4096  #: rows by the design's public numbers, for the first T
RARE = 0.07  #: information of a 0/1 outcome
#: Share of rows with finite entries, beyond twice its error. Of complete rows it was .99 to 1.2 on average
#: (predictors normal, 0/1, skew, t; residuals normal and log-normal), with a fifth missing .8 to .97.
COMPLETE = 0.85
_MORE_DISPERSED = ("the family negative-binomial allows for it", "a larger dispersion allows for it")

Steps = Generator[Question, np.ndarray, None]  #: questions; each gets the noisy numbers of its answer


@dataclass(frozen=True, kw_only=True)
class NoisyScores(Answer):
    """Ask noisy bounded scores of a regression in a few rounds; draw from the posterior given the answers."""

    clip: float | None = positive("clip bound of scores, in their sds; by default the best predicted", None)
    rounds: int = integer(
        "main rounds, which share what the warm-up leaves of the budget", default=5, most=100
    )
    information_share: float = fraction("budget's share for the information", default=0.2, most=LARGEST_SHARE)

    draws_version = 2
    is_of_regressions = is_planned = True
    asks = frozenset({LENGTH, SCORES})
    arrays = MappingProxyType(
        {
            **of_rounds(Round._fields, ["at", "scores"], ["whitening", "information"]),
            "prior_sd": ("parameter",),
        }
    )
    explanation = "Noisy scores ask a few times; draws from the posterior given the answers cost nothing."

    @property
    def mu(self) -> float:
        """Return the Gaussian-DP parameter of all rounds together."""
        return 1.0 / self.noise_multiplier

    @property
    def shares(self) -> tuple[tuple[float, float], ...]:
        """Return each round's shares of the budget: of its length question (or 0), and of its scores."""
        totals = (*WARM_UP, *[(1.0 - sum(WARM_UP)) / self.rounds] * self.rounds)
        lengths = [
            min(LENGTH_SHARE, total / 3.0) if k <= len(WARM_UP) else 0.0 for k, total in enumerate(totals)
        ]
        return tuple((length, total - length) for length, total in zip(lengths, totals, strict=True))

    def queries(self, n: int) -> Queries:
        named = [pair for length, scores in self.shares for pair in ((LENGTH, length), (SCORES, scores))]
        multiplier = self.noise_multiplier
        return Queries(run=tuple(GaussianQuery(name, multiplier / np.sqrt(w)) for name, w in named if w))

    @classmethod
    def first_values(cls, model: Model, rows: np.ndarray) -> Values:
        regression_of(model)
        return {}

    def check(self, model: Model, n: int, temperature: float = 1.0) -> None:
        """Raise DpmcError for a model that is no regression, and for too little information for intervals.

        Also for tempering, an unknown sd beside weights, and an invalid family.
        """
        model = regression_of(model)
        if model.tempering is not None or temperature != 1.0:
            raise DpmcError("noisy-scores: tempering: must be None: the posterior is that of all rows")
        if model.design.weights and priors_of(model)[1]:
            raise DpmcError("noisy-scores: sd: must be a number beside weights, whose sum is not asked")
        check_family(_unit_family(model))
        p = len(model.design.coefficients)
        mu = self.mu * usual_share(model)
        if n * mu < LEAST_INFORMATION * p**1.5:
            of_weights = ", by the largest weight" if model.design.weights else ""
            raise DpmcError(
                f"noisy-scores: n mu is {n * mu:.3g} (n = {n}, mu = {mu:.3g}{of_weights}); intervals hold "
                f"from {LEAST_INFORMATION:g} p^1.5 = {LEAST_INFORMATION * p**1.5:.3g} on, p = {p} "
                f"coefficients: {int(LEAST_INFORMATION * p**1.5 / mu) + 1} rows, "
                f"{LEAST_INFORMATION * p**1.5 / (n * mu):.2g} times the mu, or fewer predictors would do"
            )

    def sizes(self, model: Model) -> dict[str, int]:
        p = len(regression_of(model).design.coefficients)
        sizes = {"round": len(WARM_UP) + self.rounds, "coefficient": p, "other_coefficient": p}
        return {**sizes, "parameter": model.dimension}

    def ask(self, model: Model, private: PrivateData) -> list[Answered]:
        tables: dict[float, ScoreTable] = {}
        runs = [Search(self, regression_of(model), private.n, tables) for _ in range(private.runs)]
        steps = [run.questions() for run in runs]
        asked: list[Question | None] = [next(step) for step in steps]
        while questions := [question for question in asked if question]:  # all runs ask equally often
            numbers = private.answers(questions)
            asked = [answered_by(step, own) for step, own in zip(steps, numbers, strict=True)]
        return [run.answered for run in runs]

    def asked(self, answered: Answered, model: Model, n: int) -> Answered:
        run = Search(self, regression_of(model), n)
        step = run.questions()
        question: Question | None = next(step)
        for one in Round.unstacked(answered):
            if isinstance(question, LengthQuestion):
                question = answered_by(step, np.array([one.length]))
            assert isinstance(question, ScoreQuestion)
            question = answered_by(step, question.numbers(one.answer))
        return run.answered

    def remarks(self, answered: Answered, model: Model, n: int) -> list[str]:
        found, own = [], regression_of(model)
        rounds = Round.unstacked(answered)
        p, last, main = (
            len(own.design.coefficients),
            rounds[len(WARM_UP) - 1],
            mean_of(rounds[len(WARM_UP) :]),
        )
        matrix, mu = information_of(main).matrix, self.mu * usual_share(own)
        if own.design.weights:  # what they are beside the guess shows in the noisy information alone
            mu *= min(1.0, np.trace(matrix) / (p * main.expected_information))
        if n * mu < LITTLE_INFORMATION * p**1.5:
            of_weights = " (weights are far below their maximum), and may be too narrow"
            text = "little information: the prior has a large part in the intervals"
            found.append(text + of_weights * bool(own.design.weights))
        excess = main.squares / np.trace(matrix) / main.expected_dispersion
        error = np.sqrt(2.0) * main.bound * main.noise_sd / np.trace(matrix) / main.expected_dispersion
        if own.family.support == "counts" and excess > OVERDISPERSED + 2.0 * error:
            found.append(
                f"scores vary {excess:.2f} times as much as the model says: counts are overdispersed, and "
                f"intervals too narrow; {_MORE_DISPERSED[isinstance(own.family, families.NegativeBinomial)]}"
            )
        found += [own.caution] if own.caution else []
        back = np.linalg.inv(main.whitening)
        each = (back @ matrix @ back)[0, 0] / (n * own.design.usual_weight)
        if priors_of(own)[1]:
            found += _of_residuals(last, main, n, each if own.design.intercept else np.inf)
        if own.family.support == "binary" and own.design.intercept and each < RARE:
            found.append(
                f"an outcome has {each:.2g} of information, at most 0.25: outcomes are rare or nearly "
                "determined by the predictors, and intervals may be too narrow; a narrower prior helps"
            )
        return found

    def posterior(self, answered: Answered, model: Model, n: int, temperature: float) -> Posterior:
        return posterior_given([answered], n)

    @classmethod
    def given_all(cls, answers: Sequence[Answered], about: About) -> Posterior:
        return posterior_given(answers, about.n, about.prior_sd)

    @classmethod
    def covariance_without_noise(
        cls, answers: Sequence[Answered], prior_sd: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        main, prior, _ = _known(answers, prior_sd)
        return without_noise(main, prior)


def _of_residuals(last: Round, main: Round, n: int, each: float) -> list[str]:
    """Return remarks if the residual sd is a parameter; `each` is a row's information on the intercept."""
    found = []
    if main.clip > last.clip:
        more, error = tails_of(last, main, n)
        if more > FAR * error:
            found.append(
                f"residuals are not normal: their sd is {np.expm1(more):.1%} larger at the larger of two "
                "clip bounds; if they are skewed, estimates are not those of least squares: model the "
                "logarithm of a positive outcome, or give a larger clip"
            )
    usual = main.expected_information / (n * main.residual_sd**2)
    back = np.linalg.inv(main.whitening)[0]
    share, error = each / usual, main.information_sd * (back @ back) / (n * usual)
    if share + 2.0 * error < COMPLETE:
        found.append(
            f"about {share:.0%} of the rows count, the others have missing or odd entries: the residual sd "
            "and intervals are too narrow; leave out rows without an outcome, declare fills (dpmc check-rows)"
        )
    return found


def answered_by(step: Steps, numbers: np.ndarray) -> Question | None:
    """Return the next question after these noisy numbers (N,); None after the last one."""
    try:
        return step.send(numbers)
    except StopIteration:
        return None


def regression_of(model: Any) -> Regression:
    """Return the regression that a model is; raise DpmcError for another one."""
    own = getattr(model, "given", model)
    if not isinstance(own, Regression):
        raise DpmcError(
            "noisy-scores: the model must be a regression: dpmc.LinearRegression, LogisticRegression, "
            "PoissonRegression, NegativeBinomialRegression, or dpmc.Regression with a family of your own"
        )
    return own


def usual_share(model: Regression) -> float:
    """Return the usual weight of a row over the largest: 1 without weights."""
    return model.design.usual_weight / model.design.largest_weight


def priors(sds: np.ndarray, p: int) -> tuple[Belief, LogSd | None]:
    """Return the priors of p coefficients and of ln sd given all their `sds`, (p,) or (p + 1,).

    That of ln sd is None if the residual sd is no parameter.
    """
    log_sd = None if len(sds) == p else LogSd(0.0, float(sds[p]) ** 2)
    return Belief(np.zeros(p), np.diag(sds[:p] ** 2)), log_sd


def priors_of(model: Regression) -> tuple[Belief, LogSd | None]:
    """Return the priors of a regression."""
    return priors(np.asarray(model.prior_sd, float), len(model.design.coefficients))


def _unit_family(model: Regression) -> Any:
    """Return the family of a regression, with sd 1 if its residual sd is a parameter."""
    return families.Normal(1.0) if priors_of(model)[1] else model.family


def posterior_given(answers: Sequence[Answered], n: int, prior_sd: np.ndarray | None = None) -> Posterior:
    """Return the posterior given answers about the same n rows.

    `prior_sd` (p,) has the sds of the normal prior around 0; None: those of the first answer. If it has one
    more than there are coefficients, the last is that of ln sd.
    """
    main, prior, log_sd = _known(answers, prior_sd)
    found, _ = posterior_of(main, prior)
    if log_sd is None:
        return GaussianPosterior(*found)
    own = log_sd_of(main, n, log_sd)
    return GaussianPosterior(np.append(found.mean, own.mean), block_diag(found.covariance, own.variance))


def _known(
    answers: Sequence[Answered], prior_sd: np.ndarray | None
) -> tuple[list[Round], Belief, LogSd | None]:
    """Return the main answers, the prior of coefficients, and that of ln sd."""
    main = [mean_of(Round.unstacked(answered)[len(WARM_UP) :]) for answered in answers]
    sds, p = answers[0]["prior_sd"] if prior_sd is None else prior_sd, len(main[0].at)
    return main, *priors(sds, p)


@dataclass
class Search:
    """The rounds of one run. All that it holds is public: it follows from noisy answers."""

    method: NoisyScores
    model: Regression
    n: int
    tables: dict[float, ScoreTable] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)

    @property
    def answered(self) -> Answered:
        """Return what was asked and answered, and the prior: all that a posterior needs."""
        return {**stacked(self.rounds), "prior_sd": np.asarray(self.model.prior_sd, float)}

    def table(self, clip: float, sd: float) -> ScoreTable:
        """Return the table of bounded scores; `sd` is the current one if it is a parameter, else 1."""
        if priors_of(self.model)[1]:
            return ScoreTable(families.Normal(sd), clip)
        if clip not in self.tables:
            self.tables[clip] = score_table(self.model.family, clip)
        return self.tables[clip]

    def questions(self) -> Steps:
        """Yield questions; each gets the noisy numbers of its answer."""
        method, model, warm, n = self.method, self.model, len(WARM_UP), self.n
        prior, log_sd = priors_of(model)
        theta, sd, p = prior.mean, 1.0, len(prior.mean)
        root = reference(_unit_family(model), BINARY_CLIP, 0.0).root
        searched = self.searched(prior)
        share_of_weight = usual_share(model)
        worth = n * share_of_weight / model.design.largest_weight  # of rows without weights, for the noise
        reach = float(np.clip(n * share_of_weight * method.mu / (20.0 * p**1.5), 1.3, 5.0))
        # Of a column of zeros and ones: with a larger T its ones are clamped more by H than by B, they say
        # less, and M asks for a larger T yet.
        longest = np.where(model.design.indicators, reach * np.sqrt(p) / root, np.inf)
        z = model.design(model.design.simulate(np.random.default_rng(0), PREDICTORS))
        white = z.T @ z / len(z) + np.diag((longest * root) ** -2.0 + LEAST_EXPECTED)
        whitening = symmetric_power(white, -0.5) / root
        for k, (length, share) in enumerate(method.shares):
            sensitivity = method.mu * np.sqrt(share)
            if k <= warm:
                together = method.rounds if k == warm else 1
                b, c = self.bounds(sensitivity * np.sqrt(together * worth), k < warm, p)
                table = self.table(c, sd)
            seen = 0.0
            if length:
                question = LengthQuestion(model, table, theta, whitening, method.mu * np.sqrt(length))
                numbers = yield question
                noise = question.noise_sd / n  # of a mean logarithm, which is normal around 0 beforehand
                seen = float(numbers[0])
                whitening = whitening * np.exp(-seen * noise / (1.0 + noise**2))
            at = reference(table.family, c, AT)
            white = at.slope / at.root
            asked = ScoreQuestion(
                model,
                table,
                theta,
                whitening,
                bound=b * at.bound * np.sqrt(p),
                largest_information=reach * b * p * white,
                sensitivity=sensitivity,
                share=method.information_share,
                asks_spread=log_sd is not None,
            )
            numbers = yield asked
            self.rounds.append(Round.of(asked, numbers, n, Weights.at(b, p), at, sd)._replace(length=seen))
            answer = self.rounds[-1] if k < warm else mean_of(self.rounds[warm:])
            found, d = posterior_of([answer], searched)
            theta = answer.at + (found.mean - answer.at) * min(1.0, TRUST / max(float(np.sqrt(d @ d)), 1e-9))
            if k < warm:
                whitening = whitened(answer, longest * sd)
                if log_sd is not None:
                    new = float(np.exp(log_sd_of([answer], n, log_sd).mean))
                    whitening, sd = whitening * new / sd, new

    def searched(self, prior: Belief) -> Belief:
        """Return the prior with which θ_k is looked for."""
        family = _unit_family(self.model)
        if getattr(family, "is_location", False):
            return prior
        most = (SEARCHED / reference(family, BINARY_CLIP, 0.0).root) ** 2
        return Belief(prior.mean, np.minimum(prior.covariance, most))

    def bounds(self, strength: float, is_warm: bool, p: int) -> tuple[float, float]:
        """Return b and c of the least predicted variance, if predictors are white and normal."""
        given, is_binary = self.method.clip, self.model.family.support == "binary"
        clips = (given,) if given else (BINARY_CLIP,) if is_binary else CLIPS
        strength *= np.sqrt(1.0 - self.method.information_share)
        found = []
        for c in clips:
            at = reference(_unit_family(self.model), c, AT)
            found += [(predicted_variance(b, at, p, strength), b, c) for b in BOUNDS]
        _, b, c = min(found)
        return b, c if given or is_binary or not is_warm else max(c, WARM_CLIP)
