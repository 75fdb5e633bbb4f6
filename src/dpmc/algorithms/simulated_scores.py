"""Simulated scores: a few noisy sums of clipped gradients, for models that simulate whole rows.

Rounds find a public θ_k; the last one, which has most of the budget, makes the posterior, by simulated rows
(`simulated_likelihood.py`, docs/reference/algorithms/simulated-scores.md).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpmc.algorithms import simulated_likelihood as simulation
from dpmc.algorithms.answers import Answer, Answered, of_rounds, stacked
from dpmc.algorithms.hyperparameters import numbers
from dpmc.algorithms.simulated_likelihood import Found, Likelihood
from dpmc.base import Model, Posterior, PrivateData, Queries
from dpmc.common.errors import DpmcError
from dpmc.evaluators import calls
from dpmc.models.gaussian import GaussianPosterior
from dpmc.models.logistic import Logistic
from dpmc.models.regression import Regression
from dpmc.privacy.events import GaussianQuery
from dpmc.privacy.lattice import SIMULATED
from dpmc.privacy.questions import GradientQuestion

SHARES = (0.05, 0.1, 0.85)  #: of the budget, of the rounds
UNCLIPPED = 0.9  #: part of simulated gradients that is not clipped
LEAST_BOUND = 0.1  #: of B over √d, which is about the length of a white gradient
SIMULATED_PER_ROW = 10  #: simulated rows for each row
INTERVALS, LEAST_SETS, ROWS_OF_SET, PER_ROW_OF_SET = 40, 3, 2000, 5  #: of the calibration
GUESSED = 0.3  #: how far its true θ are from the guess, in sds of one row's estimate
LEAST_HELD = 0.75  #: of its 90 % intervals
NORMAL_90 = 1.6449  #: half of a 90 % interval, in sds
LOST = (
    "the search for theta did not end: the guess was far off, or the noise is large; intervals may not hold"
)
CENTRED = 6.0  #: most that the mean simulated gradient may be off 0, in its standard errors


class GradientRound(NamedTuple):
    """What a round asked and what was answered; all of a group of a file."""

    at: np.ndarray  # θ_k (d,)
    whitening: np.ndarray  # T (d, d)
    bound: float  # B
    noise_sd: float
    scores: np.ndarray  # noisy Σ clip(T ∇ ln p(x_j|θ_k)) (d,)


@dataclass(frozen=True, kw_only=True)
class SimulatedScores(Answer):
    """Ask three noisy sums of clipped gradients; draw from the posterior given the last one."""

    guess: tuple[float, ...] | None = numbers(
        "public θ where the search begins; by default the model's start, its true_theta or 0", None
    )

    uses_gradients = True
    asks = frozenset({SIMULATED})
    arrays = of_rounds(GradientRound._fields, vectors=["at", "scores"], matrices=["whitening"])

    def queries(self, n: int) -> Queries:
        multiplier = self.noise_multiplier
        return Queries(run=tuple(GaussianQuery(SIMULATED, multiplier / np.sqrt(w)) for w in SHARES))

    def check(self, model: Model, n: int, temperature: float = 1.0) -> None:
        """Raise DpmcError for a model whose rows cannot be simulated, and where intervals would not hold.

        The latter is seen on simulated data sets, with public seeds.
        """
        if isinstance(getattr(model, "given", model), Regression | Logistic):
            raise DpmcError("simulated-scores: a regression does not say how its predictors are distributed")
        for names in (("simulate",), ("log_likelihood_gradient", "gradient_form")):
            if not any(calls.offers(model, name) for name in names):
                raise DpmcError(f"simulated-scores: the model has no {names[0]}, which this method needs")
        if temperature != 1.0:
            raise DpmcError("simulated-scores: tempering: must be None: the posterior is that of all rows")
        if len(self.begin(model)) != model.dimension:
            rule = f"has {len(self.begin(model))} values, must be {model.dimension}, one for each parameter"
            raise DpmcError(f"hyperparameters: guess: {rule}")
        count = simulation.count_of(model, n, SIMULATED_PER_ROW)
        if count < n:
            rule = f"{n} is more than the {count} rows that are simulated at most, for this model"
            raise DpmcError(f"simulated-scores: n: {rule}")
        self.require_density(model, count)
        held, lost = self.rehearsal(model, n)
        if held < LEAST_HELD:
            raise DpmcError(
                f"simulated-scores: {held:.0%} of 90 % intervals from simulated data sets hold, and the "
                f"search for theta did not end in {lost:.0%} of them; more rows or epsilon, a narrower "
                "prior or a better guess may do"
            )

    def begin(self, model: Any) -> np.ndarray:
        """Return θ (d,) where the search begins."""
        return simulation.start_of(model) if self.guess is None else np.array(self.guess)

    def require_density(self, model: Any, count: int) -> None:
        """Raise DpmcError if gradients of simulated rows have a mean that is not 0."""
        begin = self.begin(model)
        move = 0.1 * (1.0 + np.abs(begin)) * np.random.default_rng(2).standard_normal(len(begin))
        for theta in (begin, simulation.inside(model, begin, move)):
            gradient = simulation.gradients_at(model, theta, count)
            if (np.abs(gradient.mean(axis=0)) > CENTRED * gradient.std(axis=0) / np.sqrt(count)).any():
                raise DpmcError(
                    "simulated-scores: gradients of simulated rows have not the mean 0: log_likelihood is no "
                    "density of the rows that simulate draws, or its gradient is wrong"
                )

    def rehearsal(self, model: Any, n: int) -> tuple[float, float]:
        """Return the part of 90 % intervals that hold, and of simulated data sets whose search failed.

        Intervals of a failed search count as missed. There are fewer rows if n is large, with as much noise
        beside their sampling.
        """
        m = min(n, ROWS_OF_SET)
        own = dataclasses.replace(self, noise_multiplier=self.noise_multiplier * np.sqrt(m / n))
        count = simulation.count_of(model, m, PER_ROW_OF_SET)
        stated = getattr(model, "true_theta", None)
        centre = self.begin(model) if stated is None else np.array(stated, float)
        scale = GUESSED * simulation.whitening_of(simulation.gradients_at(model, centre, count))
        held = []
        for k in range(max(LEAST_SETS, INTERVALS // len(centre))):
            generator = np.random.default_rng([1, k])
            truth = simulation.inside(model, centre, scale @ generator.standard_normal(len(centre)))
            rows = simulation.simulated(model, truth, m, generator)
            found = own.from_rows(model, rows, generator, count)
            sd = np.sqrt(np.diag(found.covariance))
            held.append(
                (found.converged & (np.abs(found.mean - truth) < NORMAL_90 * sd), not found.converged)
            )
        coverage, lost = (float(np.mean(part)) for part in zip(*held, strict=True))
        return coverage, lost

    def from_rows(self, model: Any, rows: np.ndarray, generator: np.random.Generator, count: int) -> Found:
        """Return what is found from public rows (n, columns), with noise of a generator."""
        rounds = list[GradientRound]()
        try:
            for _ in SHARES:
                asked = self.question(model, rounds, len(rows), count)
                noise = generator.standard_normal(asked.size)
                rounds.append(answered_round(asked, asked.total(rows) + noise))
            return likelihood(model, rounds[-1], len(rows), count).posterior()
        except simulation.FAILURES:
            return Found(np.zeros(model.dimension), np.zeros((model.dimension,) * 2), False)

    def question(self, model: Any, rounds: list[GradientRound], n: int, count: int) -> GradientQuestion:
        """Return the question after these rounds: it is public, since they are."""
        theta = likelihood(model, rounds[-1], n, count).located().mean if rounds else self.begin(model)
        gradient = simulation.gradients_at(model, theta, count)
        whitening = simulation.whitening_of(gradient)
        norm = np.sqrt(((gradient @ whitening) ** 2).sum(axis=1))
        bound = max(float(np.quantile(norm, UNCLIPPED)), LEAST_BOUND * np.sqrt(len(theta)))
        sensitivity = float(np.sqrt(SHARES[len(rounds)])) / self.noise_multiplier
        return GradientQuestion(model, theta, whitening, bound, sensitivity)

    def sizes(self, model: Model) -> dict[str, int]:
        return {"round": len(SHARES), "coefficient": model.dimension, "other_coefficient": model.dimension}

    def ask(self, model: Model, private: PrivateData) -> list[Answered]:
        n, runs = private.n, [list[GradientRound]() for _ in range(private.runs)]
        count = simulation.count_of(model, n, SIMULATED_PER_ROW)
        for _ in SHARES:
            asked = [self.question(model, rounds, n, count) for rounds in runs]
            for rounds, question, own in zip(runs, asked, private.answers(asked), strict=True):
                rounds.append(answered_round(question, own))
        return [stacked(rounds) for rounds in runs]

    def asked(self, answered: Answered, model: Model, n: int) -> Answered:
        rounds, count = list[GradientRound](), simulation.count_of(model, n, SIMULATED_PER_ROW)
        for scores in answered["scores"]:
            question = self.question(model, rounds, n, count)
            rounds.append(answered_round(question, scores / question.noise_sd))
        return stacked(rounds)

    def remarks(self, answered: Answered, model: Model, n: int) -> list[str]:
        """Return that θ was not found by the rounds before the last one, if so."""
        last = self.last(answered, model, n)
        found = last.located()
        is_near = last.length(found.mean - last.question.theta) < simulation.LONGEST_STEP
        return [] if found.converged and is_near else [LOST]

    def posterior(self, answered: Answered, model: Model, n: int, temperature: float) -> Posterior:
        found = self.last(answered, model, n).posterior()
        return GaussianPosterior(found.mean, found.covariance)

    def last(self, answered: Answered, model: Model, n: int) -> Likelihood:
        """Return the likelihood of the last round."""
        last = GradientRound(*(answered[name][-1] for name in GradientRound._fields))
        return likelihood(model, last, n, simulation.count_of(model, n, SIMULATED_PER_ROW))


def answered_round(asked: GradientQuestion, numbers: np.ndarray) -> GradientRound:
    """Return a round of a question and its noisy answer (N,), in units of its noise."""
    return GradientRound(asked.theta, asked.whitening, asked.clip, asked.noise_sd, numbers * asked.noise_sd)


def likelihood(model: Any, answer: GradientRound, n: int, count: int) -> Likelihood:
    """Return the likelihood of a round's answer, by `count` simulated rows."""
    bound, sd = float(answer.bound), float(answer.noise_sd)
    question = GradientQuestion(model, answer.at, answer.whitening, bound, 2.0 * bound / sd)
    return Likelihood(model, n, question, answer.scores, count)
