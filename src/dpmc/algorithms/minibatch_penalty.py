"""Minibatch DP penalty (Section 3.4): DP penalty whose log ratio comes from a small batch of rows."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, accept, walk
from dpmc.compiler import compilable
from dpmc.privacy.events import SubsampledGaussianRelease

#: Sensitivity of half the batch variance, in units of (1 − 1/b)(nTc/b)²: Lemma 3.4, and exactly.
VARIANCE_FACTORS = {"thesis": 3.0, "tight": 2.0}


@compilable
class MinibatchPenalty(NamedTuple):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if ln u < noisy batch log ratio + ln p(θ') − ln p(θ).

    The batch is b rows without replacement, anew in each iteration. Its variance is corrected like the
    privacy noise, as if the batch mean were normal: the posterior is invariant up to that, and up to
    clipping. One release per iteration, of noise multiplier √τ on the batch.
    """

    tau: float  # squared noise multiplier on the batch
    batch_size: int  # b
    clip: float  # nats per unit distance
    proposal_sd: np.ndarray  # (d,)
    variance_factor: float  # of the sensitivity; see VARIANCE_FACTORS

    draws_version = 1
    one_component = False

    @classmethod
    def read(cls, settings: Settings) -> "MinibatchPenalty":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.positive("tau"),
            settings.count("batch_size"),
            settings.positive("clip"),
            settings.lengths("proposal_sd"),
            VARIANCE_FACTORS[settings.choice("sensitivity", tuple(VARIANCE_FACTORS), "thesis")],
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
        return (), (
            SubsampledGaussianRelease("batch log-ratio", float(np.sqrt(self.tau)), self.batch_size, n),
        )

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains = state.theta.shape[0]
        proposal = walk(state.theta, self.proposal_sd, draws.normal, i)
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
            accept(state, proposal, log_ratio[c], draws, c, i, record)
