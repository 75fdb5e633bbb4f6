"""DP-MALA: DP-HMC with one leapfrog step, a Langevin proposal with noisy gradients and acceptance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.algorithms.dp_hmc import DPHMC
from dpmc.algorithms.hyperparameters import lengths, positive
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Draws, Model, Needs, State

if TYPE_CHECKING:
    from dpmc.privacy.mechanisms import PrivateData


@dataclass(frozen=True, kw_only=True)
class DPMALA(Sampler):
    """p ~ N(0, M); one leapfrog step of size η with noisy clipped gradients; then the penalty test.

    Each iteration releases one log ratio of noise multiplier τ_l√n and two gradients of multiplier τ_g√n, at
    both ends of the step, like DP-HMC (Theorem 4.3) and unlike an unpublished draft's sensitivity bound.
    """

    tau_l: float = positive("noise multiplier of a log ratio over √n")
    tau_g: float = positive("noise multiplier of a gradient over √n")
    step_size: np.ndarray = lengths("step size η")
    mass: np.ndarray = lengths("diagonal of the mass matrix M")
    clip_l: float = positive("clip bound of a row's log ratio, nats per unit distance")
    clip_g: float = positive("clip bound of the norm of a row's gradient")

    @property
    def one_step(self) -> DPHMC:
        """The same as DP-HMC with L = 1."""
        return DPHMC(
            tau_l=self.tau_l,
            tau_g=self.tau_g,
            steps=1,
            step_size=self.step_size,
            mass=self.mass,
            clip_l=self.clip_l,
            clip_g=self.clip_g,
        )

    def needs(self, dimension: int) -> Needs:
        """What one iteration consumes."""
        return self.one_step.needs(dimension)

    def releases(self, n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events before the first iteration, and of one iteration."""
        return self.one_step.releases(n)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """One iteration of every chain."""
        return self.one_step.step(state, model, private, draws)
