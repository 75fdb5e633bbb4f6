"""Random-walk Metropolis–Hastings without privacy (Algorithm 1), with optional log-ratio clipping."""

from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.acceptance import metropolis, settle
from dpmc.algorithms.hyperparameters import choice, lengths, positive
from dpmc.algorithms.walks import RandomWalk
from dpmc.base import Draws, PrivateData, Queries, State
from dpmc.privacy.events import NonPrivateQuery
from dpmc.privacy.fast_mh import barker_threshold


@dataclass(frozen=True, kw_only=True)
class RWMH(RandomWalk):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if ln u < T R + ln p(θ') − ln p(θ), R exact.

    With Barker's acceptance, ln(u/(1 − u)) replaces ln u.
    """

    clip: float = positive("clip bound of a row's log ratio, nats per unit distance", np.inf, infinite=True)
    proposal_sd: np.ndarray = lengths("standard deviations of the proposal")
    clip_distance: str = choice(
        "clip by ‖θ − θ'‖, or by |Σ(θ − θ')| as the code behind Figure 6.2", "text", "as_coded"
    )
    acceptance: str = choice("acceptance test", "metropolis", "barker")

    @property
    def note(self) -> str:
        as_coded = self.clip_distance == "as_coded"
        return "clips by |sum of differences|: as implemented, not as written" if as_coded else ""

    def queries(self, n: int) -> Queries:
        """Return what is asked: exact answers, ε = ∞."""
        return Queries(each=(NonPrivateQuery("log-ratio"),))

    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        return private.exact_log_ratio(theta, proposal, self.clip, self.clip_distance == "as_coded")

    def decide(self, state: State, proposal: np.ndarray, log_ratio: np.ndarray, draws: Draws) -> State:
        if self.acceptance == "barker":
            return settle(state, proposal, barker_threshold(draws.log_uniform) < log_ratio)
        return metropolis(state, proposal, log_ratio, draws)
