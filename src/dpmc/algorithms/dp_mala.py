"""DP-MALA: DP-HMC with one leapfrog step, a Langevin proposal with noisy gradients and acceptance."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings
from dpmc.algorithms.dp_hmc import DPHMC
from dpmc.compiler import compilable
from dpmc.privacy.events import GaussianRelease


@compilable
class DPMALA(NamedTuple):
    """p ~ N(0, M); one leapfrog step of size η with noisy clipped gradients; then the penalty test.

    Each iteration releases one log ratio of noise multiplier τ_l√n and two gradients of multiplier τ_g√n, at
    both ends of the step, like DP-HMC (Theorem 4.3) and unlike an unpublished draft's sensitivity bound.
    """

    tau_l: float  # noise multiplier of a log ratio over √n
    tau_g: float  # noise multiplier of a gradient over √n
    step_size: np.ndarray  # (d,) η
    mass: np.ndarray  # (d,) diagonal of M
    clip_l: float  # nats per unit distance
    clip_g: float  # norm of one row's gradient

    draws_version = 1
    one_component = False
    batch_size = 0  # it looks at all rows
    uniforms = 0
    extras = 0
    evaluations = (1, 2)  # log ratios and gradients per iteration
    noisy_gradients = 2

    @classmethod
    def read(cls, settings: Settings) -> "DPMALA":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.positive("tau_l"),
            settings.positive("tau_g"),
            settings.lengths("step_size"),
            settings.lengths("mass"),
            settings.positive("clip_l"),
            settings.positive("clip_g"),
        )

    @property
    def normals(self) -> int:
        """Standard normals that a momentum needs."""
        return len(self.mass)

    @property
    def steps(self) -> int:
        """Leapfrog steps L = 1."""
        return 1

    def releases(self, n):
        """Events before the first iteration, and of one iteration."""
        root = np.sqrt(n)
        return (), (
            GaussianRelease("log-ratio", self.tau_l * root),
            GaussianRelease("gradient", self.tau_g * root, 2),
        )

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        one_step = DPHMC(
            self.tau_l, self.tau_g, 1, self.step_size, self.mass, self.clip_l, self.clip_g, False, False
        )
        one_step.iterate(door, noise, draws, i, state, record)
