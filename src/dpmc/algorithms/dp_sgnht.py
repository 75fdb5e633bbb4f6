"""DP-SGNHT (Wang et al. 2015, Ding et al. 2014): noisy Hamiltonian steps on batches, with a thermostat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.hyperparameters import choice, positive, whole
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Draws, Model, Needs, State, has_diverged
from dpmc.privacy.events import SubsampledGaussianRelease

if TYPE_CHECKING:
    from dpmc.privacy.mechanisms import PrivateData


@dataclass(frozen=True, kw_only=True)
class DPSGNHT(Sampler):
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

    batch_size: int = whole("rows b of a batch")
    clip: float = positive("clip bound C of the norm of a row's tempered gradient")
    step_size: float = positive("step size η")
    diffusion: float = positive("diffusion A")
    order: str = choice("move by the new momentum, or by the old as published", "correct", "published")

    @property
    def note(self) -> str:  # type: ignore[override]
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        return "moves by the old momentum, as published" if self.order == "published" else ""

    def needs(self, dimension: int) -> Needs:
        """What one iteration consumes; momentum p and thermostat ξ are carried along."""
        return Needs(words=self.batch_size, ratios=0, gradients=1, noise_vectors=1, carried=dimension + 1)

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        """p_0 ~ N(0, I) and ξ_0 = A (d + 1,)."""
        return np.append(generator.standard_normal(dimension), self.diffusion)

    def noise_multiplier(self, n: int) -> Any:
        """Of the batch gradient, such that h times its noise is N(0, 2hA); its sensitivity is 2nC/b."""
        return self.batch_size * np.sqrt(2.0 * self.diffusion / (self.step_size * n)) / (2.0 * self.clip)

    def releases(self, n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events before the first iteration, and of one iteration: sensitivity 2nC/b."""
        multiplier, sensitivity = self.noise_multiplier(n), 2.0 * n * self.clip / self.batch_size
        return (), (
            SubsampledGaussianRelease(
                "batch gradient", float(multiplier), self.batch_size, n, sensitivity=sensitivity
            ),
        )

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """One iteration of every chain."""
        h = self.step_size / private.n
        gradient = private.batch_gradient(state.theta, self.clip, self.noise_multiplier(private.n))
        gradient = gradient + model.log_prior_gradient(state.theta)
        old, thermostat = state.carried[:, :-1], state.carried[:, -1:]
        new = old - thermostat * h * old + h * gradient
        moving = old if self.order == "published" else new
        heat = (moving**2).sum(axis=1, keepdims=True) / old.shape[1] - 1.0
        carried = np.concatenate([new, thermostat + h * heat], axis=1)
        proposal = state.theta + h * moving
        proposal[has_diverged(carried)] = np.nan
        moved = settle(state, proposal, ~has_diverged(proposal))
        return moved._replace(carried=np.where(moved.accepted[:, None], carried, state.carried))
