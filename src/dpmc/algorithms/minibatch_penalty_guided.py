"""Minibatch DP penalty with one-component updates and a guided walk (Sections 3.1 and 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmc.algorithms.acceptance import metropolis, prior_ratio
from dpmc.algorithms.minibatch_penalty import MinibatchPenalty
from dpmc.algorithms.proposals import first_directions, guided_walk
from dpmc.base import Draws, Model, Needs, State

if TYPE_CHECKING:
    from dpmc.privacy.mechanisms import PrivateData


@dataclass(frozen=True, kw_only=True)
class MinibatchPenaltyGuided(MinibatchPenalty):
    """Move one uniformly chosen component by direction × |N(0, proposal_sd²)|; turn around on rejection.

    Each component keeps a direction ±1, random at the start (`State.carried`). Test and release as in
    minibatch penalty.
    """

    def needs(self, dimension: int) -> Needs:
        """What one iteration consumes."""
        return Needs(normals=1, uniforms=1, words=self.batch_size, carried=dimension)

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        """Random directions ±1 (d,)."""
        return first_directions(dimension, generator)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """One iteration of every chain."""
        proposal, component = guided_walk(state.theta, state.carried, self.proposal_sd, draws)
        log_ratio = self.log_ratio(state.theta, proposal, private)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        moved = metropolis(state, proposal, log_ratio, draws)
        turned = component & ~moved.accepted[:, None]
        return moved._replace(carried=np.where(turned, -state.carried, state.carried))
