"""DP-SGLD (Wang et al. 2015, Li et al. 2019): Langevin steps whose injected noise is the privacy noise."""

import math
from dataclasses import dataclass

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.hyperparameters import choice
from dpmc.algorithms.langevin import Langevin
from dpmc.base import Draws, Model, PrivateData, State, has_diverged

#: Factor of the gradient in units of h: ½ by Langevin dynamics, 1 in the published code.
DRIFTS = {"correct": 0.5, "published": 1.0}


@dataclass(frozen=True, kw_only=True)
class DPSGLD(Langevin):
    """Move to θ' = θ + (h/2)(∇ ln p(θ) + (n/b) Σ_B clip(T ∇ ln p(x_j|θ))) + N(0, h), h = η/n; no test.

    The batch B is b rows drawn without replacement in each iteration. One query per iteration: the sum
    with N(0, 4/h) noise; the step is a function of it. Its sensitivity is 2nC/b, C the clip bound, so its
    noise multiplier on the batch is b/(C√(ηn)). The DP-HMC paper's code (`drift: published`) has h in place
    of h/2, which gives half the posterior's variance as h → 0 and a noise multiplier of b/(2C√(ηn)).

    Batch noise is not corrected for. Relative to the injected noise its variance is (h/4)(n²/b)(1 − b/n)S,
    S the covariance of the rows' gradients. It vanishes as h → 0 but widens stiff directions at a given h.

    A step that would make θ diverge is not made: the chain stays. The step is counted and its privacy spent.
    """

    drift: str = choice("factor of the gradient: h/2, or h as published", "correct", "published")

    @property
    def note(self) -> str:
        return "drift h in place of h/2, as published" if self.drift == "published" else ""

    def noise_multiplier(self, n: int) -> float:
        """Return the noise multiplier of the batch gradient with which the step's noise is N(0, h)."""
        # s from: DRIFTS h times the noise sd 2nCs/b of the sum is √h.
        return self.batch_size / (2.0 * DRIFTS[self.drift] * self.clip * math.sqrt(self.step_size * n))

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        h = self.step_size / private.n
        proposal = state.theta + DRIFTS[self.drift] * h * self.gradient(state, model, private)
        return settle(state, proposal, ~has_diverged(proposal))
