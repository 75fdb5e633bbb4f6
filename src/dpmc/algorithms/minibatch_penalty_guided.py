"""Minibatch DP penalty with one-component updates and a guided walk (Sections 3.1 and 3.4)."""

from dataclasses import dataclass

from dpmc.algorithms.minibatch_penalty import MinibatchPenalty
from dpmc.algorithms.walks import GuidedWalk


@dataclass(frozen=True, kw_only=True)
class MinibatchPenaltyGuided(GuidedWalk, MinibatchPenalty):
    """Move one uniformly chosen component by direction × |N(0, proposal_sd²)|; reverse on rejection.

    Each component keeps a direction ±1, random at the start (`State.carried`). Test and query as in
    minibatch penalty.
    """
