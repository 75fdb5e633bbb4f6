"""Random-walk Metropolis–Hastings without privacy (Algorithm 1), with optional log-ratio clipping."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, accept, settle, walk
from dpmc.compiler import compilable
from dpmc.privacy.events import NonPrivateRelease
from dpmc.privacy.fast_mechanism import barker_threshold


@compilable
class RWMH(NamedTuple):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if ln u < T R + ln p(θ') − ln p(θ), R exact.

    With `barker` by Barker's test, which has ln(u/(1 − u)) in place of ln u.
    """

    clip: float  # nats per unit distance; inf: no clipping
    proposal_sd: np.ndarray  # (d,)
    as_coded: bool = False  # clip by |Σ(θ − θ')| as the code behind Figure 6.2, not by ‖θ − θ'‖
    barker: bool = False

    @property
    def variant(self) -> str:
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        return "clips by |sum of differences|: as coded, not as written" if self.as_coded else ""

    draws_version = 1
    one_component = False
    batch_size = 0  # it looks at all rows

    @classmethod
    def read(cls, settings: Settings) -> "RWMH":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.positive("clip", np.inf, infinite=True),
            settings.lengths("proposal_sd"),
            settings.choice("clip_distance", ("text", "as_coded"), "text") == "as_coded",
            settings.choice("acceptance", ("metropolis", "barker"), "metropolis") == "barker",
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
        """Events before the first iteration, and of one iteration: exact answers, ε = ∞."""
        return (), (NonPrivateRelease("log-ratio"),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains = state.theta.shape[0]
        proposal = walk(state.theta, self.proposal_sd, draws.normal, i)
        log_ratio = np.empty(chains)
        door.exact_log_ratio(
            state.theta, proposal, self.clip, self.as_coded, log_ratio, record.ratio_clipped, i
        )
        for c in range(chains):
            log_ratio[c] += door.log_prior(proposal[c]) - door.log_prior(state.theta[c])
            if self.barker:
                settle(state, proposal, barker_threshold(draws.log_u[c, i]) < log_ratio[c], c, i, record)
            else:
                accept(state, proposal, log_ratio[c], draws, c, i, record)
