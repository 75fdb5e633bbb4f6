"""Random-walk Metropolis–Hastings without privacy (Algorithm 1), with optional log-ratio clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.algorithms.acceptance import metropolis, prior_ratio, settle
from dpmc.algorithms.hyperparameters import choice, lengths, positive
from dpmc.algorithms.proposals import walk
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Draws, Model, Needs, State
from dpmc.privacy.events import NonPrivateRelease
from dpmc.privacy.fast_rule import barker_threshold

if TYPE_CHECKING:
    from dpmc.privacy.mechanisms import PrivateData


@dataclass(frozen=True, kw_only=True)
class RWMH(Sampler):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if ln u < T R + ln p(θ') − ln p(θ), R exact.

    With Barker's acceptance, ln(u/(1 − u)) stands in place of ln u.
    """

    clip: float = positive("clip bound of a row's log ratio, nats per unit distance", np.inf, infinite=True)
    proposal_sd: np.ndarray = lengths("standard deviations of the proposal")
    clip_distance: str = choice(
        "clip by ‖θ − θ'‖, or by |Σ(θ − θ')| as the code behind Figure 6.2", "text", "as_coded"
    )
    acceptance: str = choice("test", "metropolis", "barker")

    @property
    def note(self) -> str:  # type: ignore[override]
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        as_coded = self.clip_distance == "as_coded"
        return "clips by |sum of differences|: as coded, not as written" if as_coded else ""

    def needs(self, dimension: int) -> Needs:
        """What one iteration consumes."""
        return Needs(normals=dimension)

    def releases(self, n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events before the first iteration, and of one iteration: exact answers, ε = ∞."""
        return (), (NonPrivateRelease("log-ratio"),)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """One iteration of every chain."""
        proposal = walk(state.theta, self.proposal_sd, draws)
        as_coded = self.clip_distance == "as_coded"
        log_ratio = private.exact_log_ratio(state.theta, proposal, self.clip, as_coded)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        if self.acceptance == "barker":
            return settle(state, proposal, barker_threshold(draws.log_uniform) < log_ratio)
        return metropolis(state, proposal, log_ratio, draws)
