"""DP penalty (Section 3.1; Yıldırım & Ermiş 2019): random walk with a noisy, corrected acceptance test."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, accept, walk
from dpmc.compiler import compilable
from dpmc.privacy.events import GaussianRelease


@compilable
class DPPenalty(NamedTuple):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if ln u < noisy log ratio + ln p(θ') − ln p(θ).

    The noisy log ratio is T(R + σz) − ½T²σ², whose correction makes the posterior exactly invariant when
    nothing is clipped. One release per iteration, of noise multiplier τ√n.
    """

    tau: float  # noise multiplier over √n
    clip: float  # nats per unit distance
    proposal_sd: np.ndarray  # (d,)

    draws_version = 1
    one_component = False
    batch_size = 0  # it looks at all rows

    @classmethod
    def read(cls, settings: Settings) -> "DPPenalty":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.positive("tau"),
            settings.positive("clip"),
            settings.lengths("proposal_sd"),
        )

    @property
    def normals(self) -> int:
        """Standard normals that a proposal needs."""
        return len(self.proposal_sd)

    uniforms = 0
    extras = 0
    evaluations = (1, 0)  # log ratios and gradients per iteration
    noisy_gradients = 0

    def releases(self, n):
        """Events before the first iteration, and of one iteration."""
        return (), (GaussianRelease("log-ratio", self.tau * np.sqrt(n)),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains = state.theta.shape[0]
        proposal = walk(state.theta, self.proposal_sd, draws.normal, i)
        log_ratio = np.empty(chains)
        door.noisy_log_ratio(
            state.theta, proposal, self.clip, self.tau, noise, i, log_ratio, record.ratio_clipped
        )
        for c in range(chains):
            log_ratio[c] += door.log_prior(proposal[c]) - door.log_prior(state.theta[c])
            accept(state, proposal, log_ratio[c], draws, c, i, record)
