"""DP Barker (Section 3.3, Algorithm 3; Heikkilä et al. 2019): the noise of a batch makes the test random."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, settle, walk
from dpmc.compiler import compilable
from dpmc.privacy.barker_correction import barker_correction
from dpmc.privacy.events import BarkerRelease


@compilable
class DPBarker(NamedTuple):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if λ + N(0, 2 − s²) + ln p(θ') − ln p(θ) + V > 0.

    λ is the log ratio of a batch of b rows without replacement and s² its variance; batch noise and
    N(0, 2 − s²) make N(0, 2), and the correction V, which knows nothing of the rows, nearly a
    Logistic(0, 1) of it: Barker's test. One release per iteration.
    """

    batch_size: int  # b
    clip_factor: float  # clip bound in units of √b/(nT); at most 1
    proposal_sd: np.ndarray  # (d,)

    draws_version = 1
    one_component = False

    @classmethod
    def read(cls, settings: Settings) -> "DPBarker":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.count("batch_size"),
            settings.fraction("clip_factor", 1.0),
            settings.lengths("proposal_sd"),
        )

    @property
    def normals(self) -> int:
        """Standard normals that a proposal needs."""
        return len(self.proposal_sd)

    uniforms = 1  # the correction's
    extras = 0
    evaluations = (1, 0)  # log ratios and gradients per iteration
    noisy_gradients = 0

    def releases(self, n):
        """Events before the first iteration, and of one iteration."""
        return (), (BarkerRelease("batch log-ratio", self.batch_size, n),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains = state.theta.shape[0]
        proposal = walk(state.theta, self.proposal_sd, draws.normal, i)
        log_ratio = np.empty(chains)
        door.barker_log_ratio(
            state.theta,
            proposal,
            self.clip_factor,
            noise,
            draws.words,
            i,
            log_ratio,
            record.ratio_clipped,
        )
        for c in range(chains):
            log_ratio[c] += door.log_prior(proposal[c]) - door.log_prior(state.theta[c])
            accepted = log_ratio[c] + barker_correction(draws.uniform[c, i, 0]) > 0.0
            settle(state, proposal, accepted, c, i, record)
