"""DP penalty with one-component updates and a guided walk (Section 3.1; Yıldırım & Ermiş 2019)."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, accept, guided_walk
from dpmc.compiler import compilable
from dpmc.privacy.events import GaussianRelease


@compilable
class DPPenaltyGuided(NamedTuple):
    """Move one uniformly chosen component by direction × |N(0, proposal_sd²)|; turn around on rejection.

    Each component keeps a direction ±1, random at the start (`State.extra`). Test and release as in DP
    penalty.
    """

    tau: float  # noise multiplier over √n
    clip: float  # nats per unit distance
    proposal_sd: np.ndarray  # (d,)

    draws_version = 1
    one_component = True
    batch_size = 0  # it looks at all rows

    @classmethod
    def read(cls, settings: Settings) -> "DPPenaltyGuided":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.positive("tau"),
            settings.positive("clip"),
            settings.lengths("proposal_sd"),
        )

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
        return (), (GaussianRelease("log-ratio", self.tau * np.sqrt(n)),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains = state.theta.shape[0]
        component = np.empty(chains, np.int64)
        proposal = guided_walk(state.theta, state.extra, self.proposal_sd, draws, i, component)
        log_ratio = np.empty(chains)
        door.noisy_log_ratio(
            state.theta, proposal, self.clip, self.tau, noise, i, log_ratio, record.ratio_clipped
        )
        for c in range(chains):
            log_ratio[c] += door.log_prior(proposal[c]) - door.log_prior(state.theta[c])
            if not accept(state, proposal, log_ratio[c], draws, c, i, record):
                state.extra[c, component[c]] *= -1.0
