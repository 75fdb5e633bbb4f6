"""DP-SGNHT (Wang et al. 2015, Ding et al. 2014): noisy Hamiltonian steps on batches, with a thermostat."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, batch_gradient_release, settle
from dpmc.compiler import compilable
from dpmc.privacy.mechanisms import has_diverged
from dpmc.vectors import copy, fill


@compilable
class DPSGNHT(NamedTuple):
    """Move (θ, p, ξ) by steps of h = η/n from p_0 ~ N(0, I), ξ_0 = A; no acceptance test.

    p' = p − ξhp + h(∇ ln p(θ) + (n/b) Σ_B clip(∇ ln p(x_j|θ))) + N(0, 2hA), and then, by the new momentum,
    θ' = θ + hp' and ξ' = ξ + h(‖p'‖²/d − 1): the thermostat ξ takes away what heat batches bring,
    on average over directions only: stiff ones stay too wide where batch noise is large beside 2A.

    The batch B is b rows without replacement, anew in each iteration. One release per iteration: the sum with
    N(0, 2A/h) noise, of sensitivity 2nC/b, C the clip bound: noise multiplier b√(2A)/(2C√(ηn)) on the batch.
    The DP-HMC paper's code (`order: published`) moves θ and ξ by the old p: explicit Euler steps, which feed
    energy to the stiffest directions.

    A step to where θ, p or ξ has diverged is not made: the chain keeps all three, which is counted and paid
    for.
    """

    batch_size: int  # b
    clip: float  # C, norm of one row's gradient (tempered)
    step_size: float  # η
    diffusion: float  # A
    old_momentum: bool  # move by the old p, as published
    parameters: int  # d

    draws_version = 1
    one_component = False
    normals = 0
    uniforms = 0
    evaluations = (0, 1)  # log ratios and gradients per iteration
    noisy_gradients = 1

    @classmethod
    def read(cls, settings: Settings) -> "DPSGNHT":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.count("batch_size"),
            settings.positive("clip"),
            settings.positive("step_size"),
            settings.positive("diffusion"),
            settings.choice("order", ("correct", "published"), "correct") == "published",
            settings.dimension,
        )

    @property
    def variant(self) -> str:
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        return "moves by the old momentum, as published" if self.old_momentum else ""

    @property
    def extras(self) -> int:
        """Momentum p and thermostat ξ, carried along."""
        return self.parameters + 1

    def first_extra(self, generator: np.random.Generator) -> np.ndarray:
        """p_0 ~ N(0, I) and ξ_0 = A (d + 1,)."""
        return np.append(generator.standard_normal(self.parameters), self.diffusion)

    def noise_multiplier(self, n):
        """Of the batch gradient, such that h times its noise is N(0, 2hA); its sensitivity is 2nC/b."""
        return self.batch_size * np.sqrt(2.0 * self.diffusion / (self.step_size * n)) / (2.0 * self.clip)

    def releases(self, n):
        """Events before the first iteration, and of one iteration."""
        return (), (batch_gradient_release(self.noise_multiplier(n), self.clip, self.batch_size, n),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains, d = state.theta.shape
        h = self.step_size / door.n
        gradient = np.empty((chains, d))
        door.noisy_batch_gradient(
            state.theta,
            self.clip,
            self.noise_multiplier(door.n),
            noise,
            draws.words,
            i,
            gradient,
            record.gradient_clipped,
        )
        proposal, carried = state.theta.copy(), state.extra.copy()
        for c in range(chains):
            square = 0.0
            for k in range(d):
                old = state.extra[c, k]
                new = old - state.extra[c, d] * h * old + h * gradient[c, k]
                moving = old if self.old_momentum else new
                carried[c, k] = new
                proposal[c, k] += h * moving
                square += moving * moving
            carried[c, d] += h * (square / d - 1.0)
            if has_diverged(carried[c]):
                fill(proposal[c], np.nan)
            stays = has_diverged(proposal[c])
            settle(state, proposal, not stays, c, i, record)
            if not stays:
                copy(carried[c], state.extra[c])
