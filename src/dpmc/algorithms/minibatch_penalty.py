"""Minibatch DP penalty (Section 3.4): DP penalty with the log ratio of a small batch of rows."""

from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.hyperparameters import choice, integer, lengths, positive
from dpmc.algorithms.walks import RandomWalk
from dpmc.base import PrivateData, Queries
from dpmc.privacy.events import SubsampledGaussianQuery

#: Sensitivity of half the batch variance in units of (1 − 1/b)(nTc/b)²: by Lemma 3.4, and the exact one.
VARIANCE_FACTORS = {"thesis": 3.0, "tight": 2.0}


@dataclass(frozen=True, kw_only=True)
class MinibatchPenalty(RandomWalk):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if ln u < noisy batch log ratio + ln p(θ') − ln p(θ).

    The batch is b rows drawn without replacement in each iteration. Batch noise is corrected like the
    privacy noise, as if the batch mean were normal. The posterior is invariant up to that approximation and
    up to clipping. One query per iteration, of noise multiplier √τ on the batch.
    """

    tau: float = positive("squared noise multiplier on the batch", searched=True)
    batch_size: int = integer("rows b of a batch", searched=True)
    clip: float = positive("clip bound of a row's log ratio, nats per unit distance", searched=True)
    proposal_sd: np.ndarray = lengths("standard deviations of the proposal", searched=True)
    sensitivity: str = choice(
        "sensitivity of half the batch's variance: Lemma 3.4 or exact", "thesis", "tight"
    )

    def queries(self, n: int) -> Queries:
        multiplier = float(np.sqrt(self.tau))
        return Queries(each=(SubsampledGaussianQuery("batch log-ratio", multiplier, self.batch_size, n),))

    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        factor = VARIANCE_FACTORS[self.sensitivity]
        return private.batch_penalty_log_ratio(theta, proposal, self.clip, np.sqrt(self.tau), factor)
