"""DP-SGNHT (Wang et al. 2015, Ding et al. 2014): noisy Hamiltonian steps on batches, with a thermostat."""

import math
from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.hyperparameters import choice, positive
from dpmc.algorithms.langevin import Langevin
from dpmc.base import Draws, Generators, Model, PrivateData, State, has_diverged


@dataclass(frozen=True, kw_only=True)
class DPSGNHT(Langevin):
    """Move (θ, p, ξ) by steps of h = η/n from p_0 ~ N(0, I), ξ_0 = A; no acceptance test.

    p' = p − ξhp + h(∇ ln p(θ) + (n/b) Σ_B clip(T ∇ ln p(x_j|θ))) + N(0, 2hA), and then, with the new
    momentum, θ' = θ + hp' and ξ' = ξ + h(‖p'‖²/d − 1). The thermostat ξ removes the heat of batch noise on
    average over directions: stiff directions stay too wide if batch noise is large compared with 2A.

    The batch B is b rows drawn without replacement in each iteration. One query per iteration: the sum
    with N(0, 2A/h) noise. Its sensitivity is 2nC/b, C the clip bound, so its noise multiplier on the batch is
    b√(2A)/(2C√(ηn)). The DP-HMC paper's code (`order: published`) moves θ and ξ with the old p. These are
    explicit Euler steps, which add energy to the stiffest directions.

    A step that would make θ, p or ξ diverge is not made: the chain keeps all three. The step is counted and
    its privacy spent.
    """

    diffusion: float = positive("diffusion A", searched=True)
    order: str = choice("move with the new momentum, or with the old as published", "correct", "published")

    @property
    def note(self) -> str:
        return "moves by the old momentum, as published" if self.order == "published" else ""

    def prepare(
        self, theta: np.ndarray, model: Model, private: PrivateData, generators: Generators
    ) -> np.ndarray:
        """Draw p_0 ~ N(0, I) and append ξ_0 = A, (chains, d + 1)."""
        momentum = [generator.standard_normal(theta.shape[1]) for generator in generators]
        return np.column_stack([momentum, np.full(len(theta), self.diffusion)])

    def noise_multiplier(self, n: int) -> float:
        """Return the noise multiplier of the batch gradient with which h times its noise is N(0, 2hA)."""
        # s from: h times the noise sd 2nCs/b of the sum is √(2hA).
        return self.batch_size * math.sqrt(2.0 * self.diffusion / (self.step_size * n)) / (2.0 * self.clip)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        h = self.step_size / private.n
        old, thermostat = state.carried[:, :-1], state.carried[:, -1:]
        new = old - thermostat * h * old + h * self.gradient(state, model, private)
        moving = old if self.order == "published" else new
        heat = (moving**2).sum(axis=1, keepdims=True) / old.shape[1] - 1.0
        carried = np.concatenate([new, thermostat + h * heat], axis=1)
        proposal = state.theta + h * moving
        proposal[has_diverged(carried)] = np.nan  # so that one test below keeps θ, p and ξ together
        moved = settle(state, proposal, ~has_diverged(proposal))
        return moved._replace(carried=np.where(moved.accepted[:, None], carried, state.carried))
