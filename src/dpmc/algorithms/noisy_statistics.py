"""One noisy sum of statistics; draws from the posterior given it cost no privacy."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import numpy as np

from dpmc.algorithms.answers import About, Answer, Answered
from dpmc.algorithms.hyperparameters import choice, numbers, positive
from dpmc.base import Model, NoisySum, Posterior, PrivateData, Queries, SummaryModel, Values
from dpmc.common.errors import DpmcError
from dpmc.evaluators.calls import summaries
from dpmc.privacy.events import GaussianQuery
from dpmc.privacy.lattice import SUM
from dpmc.privacy.questions import SumQuestion

ROWS_KEPT = 0.995  #: share of simulated rows that a suggested clip bound does not clip


@dataclass(frozen=True, kw_only=True)
class NoisyStatistics(Answer):
    """Ask Σ clip(t(x_j)) + N(0, σ² I) once a run; draw from p(θ | noisy sum), which the model knows.

    t is the model's `summaries`, clipped to norm `clip` around `centre`. The whole budget is spent on the
    sum, which all chains of a run share: σ = 2 clip times the noise multiplier. The posterior has the noise
    and the hidden sum integrated, as far as the sum is normal and clipping is rare. With `noise: ignored` it
    is that of a sum without noise, for comparison: intervals are too narrow.
    """

    clip: float = positive("clip bound of the norm of a row's summaries, less the centre")
    centre: tuple[float, ...] = numbers("centre of the summaries, in their units", (0.0,))
    noise: str = choice("account for the noise, or ignore it", "integrated", "ignored")

    draws_version = 3
    is_planned = True
    asks = frozenset({SUM})
    needs_model = True
    arrays = MappingProxyType({"sum": ("summary",), "sum_noise_sd": ()})

    @property
    def note(self) -> str:
        return "ignores the noise: intervals too narrow" if self.noise == "ignored" else ""

    def queries(self, n: int) -> Queries:
        return Queries(run=(GaussianQuery(SUM, self.noise_multiplier, sensitivity=2.0 * self.clip),))

    @classmethod
    def first_values(cls, model: Model, rows: np.ndarray) -> Values:
        """Return the clip bound that few simulated rows (n, columns) exceed."""
        norms = np.sqrt((summaries(summary_model(model), rows) ** 2).sum(axis=1))
        return {"clip": float(f"{np.quantile(norms, ROWS_KEPT):.3g}")}

    def check(self, model: Model, n: int, temperature: float = 1.0) -> None:
        """Raise DpmcError for a model without `posterior_given`, and for a centre not of 1 or k values."""
        self._centre(model)

    def _centre(self, model: Model) -> np.ndarray:
        k = summary_model(model).summary_count
        if len(self.centre) not in (1, k):
            rule = f"has {len(self.centre)} values, must be one or {k}, the summaries of a row"
            raise DpmcError(f"hyperparameters: centre: {rule}")
        return np.broadcast_to(np.array(self.centre), (k,))

    def sizes(self, model: Model) -> dict[str, int]:
        return {"summary": cast(SummaryModel, model).summary_count}

    def ask(self, model: Model, private: PrivateData) -> list[Answered]:
        centre = self._centre(model)
        question = SumQuestion(cast(SummaryModel, model), centre, self.clip, 1.0 / self.noise_multiplier)
        sums = private.answers([question] * private.runs) * question.noise_sd + private.n * centre
        return [{"sum": one, "sum_noise_sd": np.array(question.noise_sd)} for one in sums]

    def asked(self, answered: Answered, model: Model, n: int) -> Answered:
        return {**answered, "sum_noise_sd": np.array(2.0 * self.clip * self.noise_multiplier)}

    def posterior(self, answered: Answered, model: Model, n: int, temperature: float) -> Posterior:
        sd = 0.0 if self.noise == "ignored" else float(answered["sum_noise_sd"])
        return cast(SummaryModel, model).posterior_given(NoisySum(answered["sum"], n, sd, temperature))

    @classmethod
    def given_all(cls, answers: Sequence[Answered], about: About) -> Posterior:
        """Return the posterior given the mean of noisy sums, weighted by the precision of their noise."""
        weights = np.array([float(one["sum_noise_sd"]) ** -2.0 for one in answers])
        total = np.average([one["sum"] for one in answers], axis=0, weights=weights)
        noisy = NoisySum(total, about.n, float(weights.sum()) ** -0.5, about.temperature)
        return cast(SummaryModel, about.model).posterior_given(noisy)


def summary_model(model: Model, method: str = "noisy-statistics") -> SummaryModel:
    """Return a model that has the posterior given a noisy sum; raise DpmcError for another one."""
    if not hasattr(model, "posterior_given"):
        raise DpmcError(
            f"{method}: the posterior given a noisy sum is not known for this model; it is for "
            "Gaussians, bananas and the circle, and for models with summaries, summary_count and "
            "posterior_given; for a regression there is noisy-scores"
        )
    return cast(SummaryModel, model)
