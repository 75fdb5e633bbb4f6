"""Hamiltonian Monte Carlo without privacy (Section 4.1), with optional clipping of ratios and gradients."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, accept
from dpmc.algorithms.leapfrog import draw_momentum, draw_pace, drift, kick, kinetic_energy, scale
from dpmc.compiler import compilable
from dpmc.privacy.events import NonPrivateRelease
from dpmc.vectors import copy


@compilable
class HMC(NamedTuple):
    """p ~ N(0, M); L leapfrog steps of size η with exact gradients; accept by the change of energy.

    `jitter` multiplies η in each iteration by a point of a scrambled Halton sequence, as in DP-HMC.
    """

    steps: int  # L
    step_size: np.ndarray  # (d,) η
    mass: np.ndarray  # (d,) diagonal of M
    clip: float  # log ratios, nats per unit distance; inf: no clipping
    clip_g: float  # norm of one row's gradient; inf: no clipping
    as_coded: bool = False  # clip by |Σ(θ − θ')| as the code behind Figure 6.2, not by ‖θ − θ'‖
    jitter: bool = False

    @property
    def variant(self) -> str:
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        return "clips by |sum of differences|: as coded, not as written" if self.as_coded else ""

    draws_version = 1
    one_component = False
    batch_size = 0  # it looks at all rows

    @classmethod
    def read(cls, settings: Settings) -> "HMC":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.count("steps"),
            settings.lengths("step_size"),
            settings.lengths("mass"),
            settings.positive("clip", np.inf, infinite=True),
            settings.positive("clip_g", np.inf, infinite=True),
            settings.choice("clip_distance", ("text", "as_coded"), "text") == "as_coded",
            settings.choice("jitter", ("none", "halton"), "none") == "halton",
        )

    @property
    def normals(self) -> int:
        """Standard normals that a momentum needs."""
        return len(self.mass)

    @property
    def uniforms(self) -> int:
        """The jitter of the step size, with `jitter`: points of a Halton sequence."""
        return 1 if self.jitter else 0

    noisy_gradients = 0

    @property
    def extras(self) -> int:
        """The gradient at the current position and a mark whether there is one."""
        return len(self.mass) + 1

    def first_extra(self, generator: np.random.Generator) -> np.ndarray:
        """No gradient yet."""
        return np.zeros(self.extras)

    @property
    def evaluations(self) -> tuple[int, int]:
        """Log ratios and gradients per iteration."""
        return 1, self.steps

    def releases(self, n):
        """Events before the first iteration, and of one iteration: exact answers, ε = ∞."""
        once = (NonPrivateRelease("gradient"),)
        return once, (NonPrivateRelease("log-ratio"), NonPrivateRelease("gradient", self.steps))

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain; without noise the gradient at the start is always known."""
        chains, d = state.theta.shape
        theta = state.theta.copy()
        momentum = draw_momentum(self.mass, draws.normal, i)
        energy = np.empty(chains)
        for c in range(chains):
            energy[c] = kinetic_energy(momentum[c], self.mass)
        pace = draw_pace(self.jitter, draws.uniform, i)
        scale(momentum, pace, -1)

        gradient = np.empty((chains, d))
        if state.extra[0, d] == 1.0:
            for c in range(chains):
                copy(state.extra[c, :d], gradient[c])
        else:
            door.exact_gradient(theta, self.clip_g, i, gradient, record.gradient_clipped)
            for c in range(chains):
                copy(gradient[c], state.extra[c, :d])
                state.extra[c, d] = 1.0
        for _ in range(self.steps):
            kick(momentum, 0.5, self.step_size, gradient)
            drift(theta, self.step_size, momentum, self.mass, pace)
            door.exact_gradient(theta, self.clip_g, i, gradient, record.gradient_clipped)
            kick(momentum, 0.5, self.step_size, gradient)

        scale(momentum, pace, 1)
        log_ratio = np.empty(chains)
        door.exact_log_ratio(state.theta, theta, self.clip, self.as_coded, log_ratio, record.ratio_clipped, i)
        for c in range(chains):
            log_ratio[c] += energy[c] - kinetic_energy(momentum[c], self.mass)
            log_ratio[c] += door.log_prior(theta[c]) - door.log_prior(state.theta[c])
            if accept(state, theta, log_ratio[c], draws, c, i, record):
                copy(gradient[c], state.extra[c, :d])
