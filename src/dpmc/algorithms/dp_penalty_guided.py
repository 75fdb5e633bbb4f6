"""DP penalty with one-component updates and a guided walk (Section 3.1; Yıldırım & Ermiş 2019)."""

from dataclasses import dataclass

from dpmc.algorithms.dp_penalty import DPPenalty
from dpmc.algorithms.walks import GuidedWalk


@dataclass(frozen=True, kw_only=True)
class DPPenaltyGuided(GuidedWalk, DPPenalty):
    """Move one uniformly chosen component by direction × |N(0, proposal_sd²)|; reverse on rejection.

    Each component keeps a direction ±1, random at the start (`State.carried`). Test and query as in
    DP penalty.
    """
