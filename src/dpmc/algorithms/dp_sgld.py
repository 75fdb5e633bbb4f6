"""DP-SGLD (Wang et al. 2015, Li et al. 2019): Langevin steps whose injected noise is the privacy noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.hyperparameters import choice, positive, whole
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Draws, Model, Needs, State, has_diverged
from dpmc.privacy.events import SubsampledGaussianRelease

if TYPE_CHECKING:
    from dpmc.privacy.mechanisms import PrivateData


#: What the gradient is multiplied by, in units of h: Langevin's ½, and the public code's 1.
DRIFTS = {"correct": 0.5, "published": 1.0}


@dataclass(frozen=True, kw_only=True)
class DPSGLD(Sampler):
    """θ' = θ + (h/2)(∇ ln p(θ) + (n/b) Σ_B clip(∇ ln p(x_j|θ))) + N(0, h), h = η/n; no acceptance test.

    The batch B is b rows without replacement, anew in each iteration. One release per iteration: the sum with
    N(0, 4/h) noise, of which the step is a function. Its sensitivity is 2nC/b, C the clip bound, so its noise
    multiplier on the batch is b/(C√(ηn)). The DP-HMC paper's code (`drift: published`) has h in place of h/2:
    half the posterior's variance as h → 0, and a multiplier of b/(2C√(ηn)).

    Nothing corrects for the noise of batches: (h/4)(n²/b)(1 − b/n)S beside 1 of the injected noise, S the
    covariance of the rows' gradients; it vanishes as h → 0, but widens stiff directions at a given h.

    A step to where θ has diverged is not made: the chain stays, which is counted and paid for.
    """

    batch_size: int = whole("rows b of a batch")
    clip: float = positive("clip bound C of the norm of a row's tempered gradient")
    step_size: float = positive("step size η")
    drift: str = choice("of the gradient: h/2, or h as published", "correct", "published")

    @property
    def note(self) -> str:  # type: ignore[override]
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        return "drift h in place of h/2, as published" if self.drift == "published" else ""

    def needs(self, dimension: int) -> Needs:
        """What one iteration consumes."""
        return Needs(words=self.batch_size, ratios=0, gradients=1, noise_vectors=1)

    def noise_multiplier(self, n: int) -> Any:
        """Of the batch gradient, such that `drift` h times its noise is N(0, h); its sensitivity is 2nC/b."""
        return self.batch_size / (2.0 * DRIFTS[self.drift] * self.clip * np.sqrt(self.step_size * n))

    def releases(self, n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events before the first iteration, and of one iteration: sensitivity 2nC/b."""
        multiplier, sensitivity = self.noise_multiplier(n), 2.0 * n * self.clip / self.batch_size
        return (), (
            SubsampledGaussianRelease(
                "batch gradient", float(multiplier), self.batch_size, n, sensitivity=sensitivity
            ),
        )

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """One iteration of every chain."""
        h = self.step_size / private.n
        gradient = private.batch_gradient(state.theta, self.clip, self.noise_multiplier(private.n))
        gradient = gradient + model.log_prior_gradient(state.theta)
        proposal = state.theta + DRIFTS[self.drift] * h * gradient
        return settle(state, proposal, ~has_diverged(proposal))
