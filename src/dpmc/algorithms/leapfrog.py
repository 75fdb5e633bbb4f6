"""Hamiltonian dynamics (Section 4.1) for all chains at once; M is diagonal.

With jitter each trajectory has a *pace* u: its step size is uη. The trajectory is computed with q = p/u, by
q += ½η∇ and θ += u²ηM⁻¹q, so that u appears only in the step of θ.
"""

from abc import abstractmethod
from typing import Any, Literal

import numpy as np

from dpmc.algorithms.acceptance import metropolis, prior_ratio
from dpmc.algorithms.hyperparameters import choice
from dpmc.base import Algorithm, Draws, Generators, Model, Needs, PrivateData, State

#: η is multiplied in each iteration by a uniform number on (0, 1), if it is "halton", or on (a, b).
Jitter = Literal["none", "halton"] | tuple[float, float]


def jitter() -> Any:
    """Declare the jitter of step sizes."""
    meaning = "multiply η in each iteration by a uniform number on (0, 1) or (a, b)"
    return choice(meaning, "none", "halton", or_range=True)


class Hamiltonian(Algorithm):
    """Base of samplers with p ~ N(0, M), L leapfrog steps of size η and a test by the change of energy.

    With `reuse_gradients` the first gradient of a trajectory comes from the previous iteration
    (`State.carried`). A rejection keeps it: drawn anew, it would change the chain's distribution.
    """

    steps: int  # L
    step_size: np.ndarray  # (d,) η
    mass: np.ndarray  # (d,) diagonal of M
    jitter: Jitter
    reuse_gradients: bool

    uses_gradients = True

    @abstractmethod
    def gradient(self, theta: np.ndarray, stage: int, private: PrivateData) -> np.ndarray:
        """Return the iteration's `stage`-th log-likelihood gradient (chains, d), by a mechanism."""

    @abstractmethod
    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        """Return the log-likelihood ratio (chains,), by a mechanism."""

    def needs(self, dimension: int) -> Needs:
        return Needs(
            normals=dimension,
            uniforms=int(self.jitter != "none"),
            gradients=self.steps if self.reuse_gradients else self.steps + 1,
            halton=self.jitter != "none",
        )

    def prepare(
        self, theta: np.ndarray, model: Model, private: PrivateData, generators: Generators
    ) -> np.ndarray:
        """Return the gradients at the start points (chains, d); (chains, 0) without reuse."""
        if not self.reuse_gradients:
            return np.zeros((len(theta), 0))
        return self.gradient(theta, 0, private) + model.log_prior_gradient(theta)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        def gradient_at(theta: np.ndarray, stage: int) -> np.ndarray:
            return self.gradient(theta, stage, private) + model.log_prior_gradient(theta)

        low, high = (0.0, 1.0) if isinstance(self.jitter, str) else self.jitter
        pace = 1.0 if self.jitter == "none" else low + (high - low) * draws.uniform  # u (chains, 1), or 1
        momentum = np.sqrt(self.mass) * draws.normal
        first = state.carried if self.reuse_gradients else gradient_at(state.theta, 0)

        half, proposal, gradient, q = 0.5 * self.step_size, state.theta, first, momentum / pace
        for stage in range(1, self.steps + 1):
            q = q + half * gradient
            proposal = proposal + pace**2 * (self.step_size * q / self.mass)
            gradient = gradient_at(proposal, stage)
            q = q + half * gradient

        log_ratio = self.log_ratio(state.theta, proposal, private)
        # The momentum is not reversed: its energy is even, and the next iteration draws a new one.
        log_ratio = log_ratio + self.kinetic_energy(momentum) - self.kinetic_energy(q * pace)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        moved = metropolis(state, proposal, log_ratio, draws)
        if self.reuse_gradients:
            kept = np.where(moved.accepted[:, None], gradient, first)
            moved = moved._replace(carried=kept)
        return moved

    def kinetic_energy(self, momentum: np.ndarray) -> np.ndarray:
        """Return ½ pᵀM⁻¹p (chains,)."""
        # Along the last axis, so that the order of additions does not depend on the number of chains.
        return 0.5 * (momentum**2 / self.mass).sum(axis=1)
