"""DP-SGNHT (Wang et al. 2015, Ding et al. 2014): noisy Hamiltonian steps on batches, with a thermostat."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.hyperparameters import choice, positive
from dpmc.algorithms.langevin import Langevin
from dpmc.base import Draws, Model, Needs, PrivateData, State, has_diverged


@dataclass(frozen=True, kw_only=True)
class DPSGNHT(Langevin):
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

    diffusion: float = positive("diffusion A")
    order: str = choice("move by the new momentum, or by the old as published", "correct", "published")

    @property
    def note(self) -> str:  # type: ignore[override]
        return "moves by the old momentum, as published" if self.order == "published" else ""

    def needs(self, dimension: int) -> Needs:
        """What one iteration consumes; momentum p and thermostat ξ are carried along."""
        return replace(super().needs(dimension), carried=dimension + 1)

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        """p_0 ~ N(0, I) and ξ_0 = A (d + 1,)."""
        return np.append(generator.standard_normal(dimension), self.diffusion)

    def noise_multiplier(self, n: int) -> Any:
        """Of the batch gradient, such that h times its noise is N(0, 2hA); its sensitivity is 2nC/b."""
        return self.batch_size * np.sqrt(2.0 * self.diffusion / (self.step_size * n)) / (2.0 * self.clip)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        h = self.step_size / private.n
        old, thermostat = state.carried[:, :-1], state.carried[:, -1:]
        new = old - thermostat * h * old + h * self.gradient(state, model, private)
        moving = old if self.order == "published" else new
        heat = (moving**2).sum(axis=1, keepdims=True) / old.shape[1] - 1.0
        carried = np.concatenate([new, thermostat + h * heat], axis=1)
        proposal = state.theta + h * moving
        proposal[has_diverged(carried)] = np.nan
        moved = settle(state, proposal, ~has_diverged(proposal))
        return moved._replace(carried=np.where(moved.accepted[:, None], carried, state.carried))
