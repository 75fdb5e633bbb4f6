"""DP-HMC (Algorithm 4, Theorem 4.3): Hamiltonian Monte Carlo with noisy gradients and acceptance."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, accept
from dpmc.algorithms.leapfrog import draw_momentum, draw_pace, drift, kick, kinetic_energy, scale
from dpmc.compiler import compilable
from dpmc.privacy.events import GaussianRelease
from dpmc.vectors import copy


@compilable
class DPHMC(NamedTuple):
    """p ~ N(0, M); L leapfrog steps of size η with noisy clipped gradients; then the penalty test.

    Accept if ln u < T(R + σz) − ½T²σ² + ½pᵀM⁻¹p − ½p'ᵀM⁻¹p' + ln p(θ') − ln p(θ). (The thesis's listing
    writes u for ln u and drops η from the θ-update.) Each iteration releases one log ratio of noise
    multiplier τ_l√n and L + 1 gradients of multiplier τ_g√n.

    `jitter` multiplies η in each iteration by a point of a scrambled Halton sequence on (0, 1), a sequence of
    its own for each chain, so that no trajectory turns back on itself time and again; η is then the largest
    step (the DP-HMC paper, its Section 3). It costs no privacy and leaves the posterior invariant.

    `reuse_gradients` takes the gradient at the start of a trajectory from the iteration before: kL + 1
    gradient releases. It exists for comparison only: it is not known to leave the posterior invariant.
    """

    tau_l: float  # noise multiplier of a log ratio over √n
    tau_g: float  # noise multiplier of a gradient over √n
    steps: int  # L
    step_size: np.ndarray  # (d,) η
    mass: np.ndarray  # (d,) diagonal of M
    clip_l: float  # nats per unit distance
    clip_g: float  # norm of one row's gradient
    reuse_gradients: bool
    jitter: bool = False

    draws_version = 1
    one_component = False
    batch_size = 0  # it looks at all rows

    @classmethod
    def read(cls, settings: Settings) -> "DPHMC":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.positive("tau_l"),
            settings.positive("tau_g"),
            settings.count("steps"),
            settings.lengths("step_size"),
            settings.lengths("mass"),
            settings.positive("clip_l"),
            settings.positive("clip_g"),
            settings.flag("reuse_gradients", False),
            settings.choice("jitter", ("none", "halton"), "none") == "halton",
        )

    @property
    def variant(self) -> str:
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        return "reuses gradients: not known to be a Markov chain" if self.reuse_gradients else ""

    @property
    def normals(self) -> int:
        """Standard normals that a momentum needs."""
        return len(self.mass)

    @property
    def uniforms(self) -> int:
        """The jitter of the step size, with `jitter`: points of a Halton sequence."""
        return 1 if self.jitter else 0

    @property
    def extras(self) -> int:
        """The gradient carried along and a mark whether there is one, with `reuse_gradients`."""
        return len(self.mass) + 1 if self.reuse_gradients else 0

    def first_extra(self, generator: np.random.Generator) -> np.ndarray:
        """No gradient yet."""
        return np.zeros(self.extras)

    @property
    def noisy_gradients(self) -> int:
        """Noise vectors drawn for each iteration, used or not: a fixed number per stream."""
        return self.steps + 1

    @property
    def evaluations(self) -> tuple[int, int]:
        """Log ratios and gradients per iteration."""
        return 1, self.steps if self.reuse_gradients else self.steps + 1

    def releases(self, n):
        """Events before the first iteration, and of one iteration."""
        root = np.sqrt(n)
        ratio = GaussianRelease("log-ratio", self.tau_l * root)
        if self.reuse_gradients:
            once = (GaussianRelease("gradient", self.tau_g * root),)
            return once, (ratio, GaussianRelease("gradient", self.tau_g * root, self.steps))
        return (), (ratio, GaussianRelease("gradient", self.tau_g * root, self.steps + 1))

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains, d = state.theta.shape
        theta = state.theta.copy()
        momentum = draw_momentum(self.mass, draws.normal, i)
        energy = np.empty(chains)
        for c in range(chains):
            energy[c] = kinetic_energy(momentum[c], self.mass)
        pace = draw_pace(self.jitter, draws.uniform, i)
        scale(momentum, pace, -1)

        gradient = np.empty((chains, d))
        counts = record.gradient_clipped
        if self.reuse_gradients and state.extra[0, d] == 1.0:
            for c in range(chains):
                copy(state.extra[c, :d], gradient[c])
        else:
            door.noisy_gradient(theta, self.clip_g, self.tau_g, noise, i, 0, gradient, counts)
        first = gradient.copy()
        for step in range(1, self.steps + 1):
            kick(momentum, 0.5, self.step_size, gradient)
            drift(theta, self.step_size, momentum, self.mass, pace)
            door.noisy_gradient(theta, self.clip_g, self.tau_g, noise, i, step, gradient, counts)
            kick(momentum, 0.5, self.step_size, gradient)

        scale(momentum, pace, 1)
        log_ratio = np.empty(chains)
        door.noisy_log_ratio(
            state.theta, theta, self.clip_l, self.tau_l, noise, i, log_ratio, record.ratio_clipped
        )
        for c in range(chains):
            log_ratio[c] += energy[c] - kinetic_energy(momentum[c], self.mass)
            log_ratio[c] += door.log_prior(theta[c]) - door.log_prior(state.theta[c])
            accepted = accept(state, theta, log_ratio[c], draws, c, i, record)
            if self.reuse_gradients:
                copy(gradient[c] if accepted else first[c], state.extra[c, :d])
                state.extra[c, d] = 1.0
