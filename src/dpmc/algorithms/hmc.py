"""Hamiltonian Monte Carlo without privacy (Section 4.1), with optional clipping of ratios and gradients."""

from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.hyperparameters import choice, integer, lengths, positive
from dpmc.algorithms.leapfrog import Hamiltonian, Jitter, jitter
from dpmc.base import PrivateData, Queries
from dpmc.privacy.events import NonPrivateQuery


@dataclass(frozen=True, kw_only=True)
class HMC(Hamiltonian):
    """Draw p ~ N(0, M); take L leapfrog steps of size η with exact gradients; accept by the change of energy.

    `jitter` is that of DP-HMC; a range near 1, such as [0.8, 1.2], keeps trajectories long. Gradients have no
    noise, so the first one of a trajectory is taken from the previous iteration.
    """

    steps: int = integer("leapfrog steps L")
    step_size: np.ndarray = lengths("step size η")
    mass: np.ndarray = lengths("diagonal of the mass matrix M")
    clip: float = positive("clip bound of a row's log ratio, nats per unit distance", np.inf, infinite=True)
    clip_g: float = positive("clip bound of the norm of a row's gradient", np.inf, infinite=True)
    clip_distance: str = choice(
        "clip by ‖θ − θ'‖, or by |Σ(θ − θ')| as the code behind Figure 6.2", "text", "as_coded"
    )
    jitter: Jitter = jitter()

    reuse_gradients = True

    @property
    def note(self) -> str:
        as_coded = self.clip_distance == "as_coded"
        return "clips by |sum of differences|: as implemented, not as written" if as_coded else ""

    def queries(self, n: int) -> Queries:
        """Return what is asked: exact answers, ε = ∞."""
        each = NonPrivateQuery("log-ratio"), NonPrivateQuery("gradient", self.steps)
        return Queries(chain=(NonPrivateQuery("gradient"),), each=each)

    def gradient(self, theta: np.ndarray, stage: int, private: PrivateData) -> np.ndarray:
        return private.exact_gradient(theta, self.clip_g)

    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        return private.exact_log_ratio(theta, proposal, self.clip, self.clip_distance == "as_coded")
