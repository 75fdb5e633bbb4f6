"""DP gradient descent (Bassily et al. 2014): steps by noisy clipped gradients; its estimate is their mean."""

import math
from dataclasses import dataclass

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.hyperparameters import integer, positive
from dpmc.algorithms.peers import Peer
from dpmc.base import Draws, Model, Needs, PrivateData, Queries, State, has_diverged
from dpmc.privacy.events import GaussianQuery


@dataclass(frozen=True, kw_only=True)
class DPGradientDescent(Peer):
    """Move to θ' = θ + (η/n)(∇ ln p(θ) + T[Σ clip(∇ ln p(x_j|θ)) + 2 clip s z]), s the noise multiplier.

    All rows, one query a step; the estimate is the mean of the second half of the steps. `steps` share the
    budget: one chain makes that many. A step that would make θ diverge is not made.
    """

    steps: int = integer("steps that the budget pays for, of all chains of a run", searched=True)
    step_size: float = positive("step size η", searched=True)
    clip: float = positive("clip bound of the norm of a row's gradient", searched=True)

    uses_gradients = True
    is_point = True
    equal_queries = "steps"

    def needs(self, dimension: int) -> Needs:
        return Needs(ratios=0, gradients=1, noise_vectors=1)

    def queries(self, n: int) -> Queries:
        return Queries(each=(GaussianQuery("gradient", self.noise_multiplier, sensitivity=2.0 * self.clip),))

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        tau = self.noise_multiplier / math.sqrt(private.n)
        gradient = private.gradient(state.theta, self.clip, tau, 0) + model.log_prior_gradient(state.theta)
        proposal = state.theta + self.step_size / private.n * gradient
        return settle(state, proposal, ~has_diverged(proposal))
