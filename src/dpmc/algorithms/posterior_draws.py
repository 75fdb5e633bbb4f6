"""Posterior sampling (Dimitrakakis et al. 2014; Wang, Fienberg, Smola 2015): each draw is paid for."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.hyperparameters import integer, positive
from dpmc.algorithms.noisy_statistics import summary_model
from dpmc.algorithms.peers import Peer
from dpmc.base import Draws, Model, Needs, NoisySum, PrivateData, Queries, State
from dpmc.common.errors import DpmcError
from dpmc.models.gaussian import Gaussian, GaussianPosterior
from dpmc.privacy.events import GaussianQuery
from dpmc.privacy.questions import SumQuestion


@dataclass(frozen=True, kw_only=True)
class PosteriorDraws(Peer):
    """Draw each θ from p(θ | Σ clip(t(x_j))), likelihood tempered by 1/T' = max(1/T, σ²/n), t the summaries.

    The exponential mechanism: for a Gaussian it adds normal noise to the sum, of sd √(n/T'), and one that
    does not depend on the rows. The noise multiplier s of a draw says σ = 2 clip s: `draws` share the budget,
    and the less is left for each, the more the posterior is tempered. It is never sharper than T says.
    """

    clip: float = positive("clip bound of the norm of a row's summaries")
    draws: int = integer("draws that the budget pays for, of all chains of a run")

    equal_queries = "draws"

    def needs(self, dimension: int) -> Needs:
        return Needs(normals=dimension, ratios=0, noise_vectors=1)

    def queries(self, n: int) -> Queries:
        sensitivity = 2.0 * self.clip
        return Queries(
            each=(GaussianQuery("posterior draw", self.noise_multiplier, sensitivity=sensitivity),)
        )

    def check(self, model: Model, n: int, temperature: float = 1.0) -> None:
        """Raise DpmcError for a model that is not Gaussian."""
        if not isinstance(getattr(model, "given", model), Gaussian):
            raise DpmcError("posterior-draws: model: must be a Gaussian with known covariance")

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        own, n = summary_model(model), private.n
        question = SumQuestion(own, np.zeros(own.summary_count), self.clip, 1.0 / self.noise_multiplier)
        noise_sd = max(question.noise_sd, np.sqrt(n / private.temperature))
        sums = private.noisy_sums(question, noise_sd / question.noise_sd) * question.noise_sd

        def given(total: np.ndarray) -> GaussianPosterior:
            return cast(GaussianPosterior, own.posterior_given(NoisySum(total, n, 0.0, n / noise_sd**2)))

        # θ = K (Σt + noise) + rest: the mean K Σt + … is affine in the sum, and K Kᵀ σ² part of the spread.
        posterior, units = given(np.zeros(own.summary_count)), np.eye(own.summary_count)
        slope = np.array([given(unit).centre - posterior.centre for unit in units]).T
        rest = posterior.spread - noise_sd**2 * slope @ slope.T
        values, vectors = np.linalg.eigh(rest)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        theta = np.array([given(one).centre for one in sums]) + draws.normal @ root.T
        return settle(state, theta, np.ones(len(theta), np.bool_))
