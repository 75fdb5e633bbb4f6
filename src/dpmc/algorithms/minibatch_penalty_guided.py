"""Minibatch DP penalty with one-component updates and a guided walk (Sections 3.1 and 3.4)."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, accept, guided_walk
from dpmc.algorithms.minibatch_penalty import MinibatchPenalty
from dpmc.compiler import compilable


@compilable
class MinibatchPenaltyGuided(NamedTuple):
    """Move one uniformly chosen component by direction × |N(0, proposal_sd²)|; turn around on rejection.

    Each component keeps a direction ±1, random at the start (`State.extra`). Test and release as in
    minibatch penalty.
    """

    tau: float  # squared noise multiplier on the batch
    batch_size: int  # b
    clip: float  # nats per unit distance
    proposal_sd: np.ndarray  # (d,)
    variance_factor: float  # of the sensitivity; see minibatch_penalty.VARIANCE_FACTORS

    draws_version = 1
    one_component = True

    @classmethod
    def read(cls, settings: Settings) -> "MinibatchPenaltyGuided":
        """Take this algorithm's hyperparameters, those of minibatch penalty."""
        return cls(*MinibatchPenalty.read(settings))

    normals = 1
    uniforms = 1
    evaluations = (1, 0)  # log ratios and gradients per iteration
    noisy_gradients = 0

    @property
    def extras(self) -> int:
        """Directions carried along."""
        return len(self.proposal_sd)

    def first_extra(self, generator: np.random.Generator) -> np.ndarray:
        """Random directions ±1 (d,)."""
        return np.where(generator.random(self.extras) < 0.5, -1.0, 1.0)

    def releases(self, n):
        """Events before the first iteration, and of one iteration."""
        return MinibatchPenalty(*self).releases(n)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains = state.theta.shape[0]
        component = np.empty(chains, np.int64)
        proposal = guided_walk(state.theta, state.extra, self.proposal_sd, draws, i, component)
        log_ratio = np.empty(chains)
        door.noisy_batch_log_ratio(
            state.theta,
            proposal,
            self.clip,
            np.sqrt(self.tau),
            self.variance_factor,
            noise,
            draws.words,
            i,
            log_ratio,
            record.ratio_clipped,
        )
        for c in range(chains):
            log_ratio[c] += door.log_prior(proposal[c]) - door.log_prior(state.theta[c])
            if not accept(state, proposal, log_ratio[c], draws, c, i, record):
                state.extra[c, component[c]] *= -1.0
