"""TunaMH without privacy (Zhang, Cooper and De Sa 2020; DP-Fast MH paper, Algorithm 1): exact on few rows."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings
from dpmc.algorithms.dp_fast_mh import step
from dpmc.compiler import compilable
from dpmc.privacy.events import NonPrivateRelease
from dpmc.privacy.fast_mechanism import FastRule


@compilable
class TunaMH(NamedTuple):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept by a test on Poisson(λ + C‖θ − θ'‖) rows.

    C is the sum of the rows' bounds. Where λ + C‖θ − θ'‖ is n or more the test is made on all rows, which
    costs less; the rule is symmetric in θ and θ', so the posterior stays exactly invariant.
    """

    batch_mean: float  # λ
    proposal_sd: np.ndarray  # (d,)

    draws_version = 1
    one_component = False
    batch_size = 0
    random_rows = True
    random_words = 1
    public_clip = np.inf

    @classmethod
    def read(cls, settings: Settings) -> "TunaMH":
        """Take this algorithm's hyperparameters."""
        return cls(settings.positive("batch_mean"), settings.lengths("proposal_sd"))

    @property
    def normals(self) -> int:
        """Standard normals that a proposal needs."""
        return len(self.proposal_sd)

    uniforms = 0
    extras = 0
    evaluations = (1, 0)  # log ratios and gradients per iteration
    noisy_gradients = 0

    def releases(self, n):
        """Events before the first iteration, and of one iteration: no noise, ε = ∞."""
        return (), (NonPrivateRelease("acceptance test"),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        rule = FastRule(np.inf, 1.0, self.batch_mean, door.n, np.inf, True, False, False, False)
        step(rule, self.proposal_sd, door, noise, draws, i, state, record)
