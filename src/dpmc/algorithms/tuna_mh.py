"""TunaMH, exact on few rows, no privacy (Zhang, Cooper and De Sa 2020; DP-Fast MH paper, Algorithm 1)."""

from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.hyperparameters import lengths, positive
from dpmc.algorithms.walks import PoissonWalk
from dpmc.base import FastRule, Queries
from dpmc.privacy.events import NonPrivateQuery


@dataclass(frozen=True, kw_only=True)
class TunaMH(PoissonWalk):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept by a test on Poisson(λ + C‖θ − θ'‖) rows.

    C is the sum of the rows' bounds. If λ + C‖θ − θ'‖ is n or more, the test uses all rows, which costs
    less. This rule is symmetric in θ and θ', so the posterior stays exactly invariant.
    """

    batch_mean: float = positive("λ, expected rows of a minibatch in addition to C‖θ − θ'‖")
    proposal_sd: np.ndarray = lengths("standard deviations of the proposal")

    def rule(self, n: int) -> FastRule:
        return FastRule(np.inf, 1.0, self.batch_mean, most_rows=n, clip=self.public_clip)

    def queries(self, n: int) -> Queries:
        """Return what is asked: an answer without noise, ε = ∞."""
        return Queries(each=(NonPrivateQuery("acceptance test"),))
