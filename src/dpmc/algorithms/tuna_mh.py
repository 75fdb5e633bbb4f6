"""TunaMH, exact on few rows, no privacy (Zhang, Cooper and De Sa 2020; DP-Fast MH paper, Algorithm 1)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.algorithms.dp_fast_mh_full import fast_step
from dpmc.algorithms.hyperparameters import lengths, positive
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Draws, FastRule, Model, Needs, PrivateData, State
from dpmc.privacy.events import NonPrivateRelease


@dataclass(frozen=True, kw_only=True)
class TunaMH(Sampler):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept by a test on Poisson(λ + C‖θ − θ'‖) rows.

    C is the sum of the rows' bounds. If λ + C‖θ − θ'‖ is n or more, the test uses all rows, which costs
    less. This rule is symmetric in θ and θ', so the posterior stays exactly invariant.
    """

    batch_mean: float = positive("λ, expected rows of a minibatch in addition to C‖θ − θ'‖")
    proposal_sd: np.ndarray = lengths("standard deviations of the proposal")

    public_clip = np.inf

    def needs(self, dimension: int) -> Needs:
        return Needs(normals=dimension, words=1)

    def releases(self, n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the events before the first iteration and of one iteration: no noise, ε = ∞."""
        return (), (NonPrivateRelease("acceptance test"),)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        rule = FastRule(np.inf, 1.0, self.batch_mean, private.n, np.inf, True, False, False, False)
        return fast_step(rule, self.proposal_sd, state, model, private, draws)
