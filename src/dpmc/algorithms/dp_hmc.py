"""DP-HMC (Algorithm 4, Theorem 4.3): Hamiltonian Monte Carlo with noisy gradients and acceptance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.algorithms.acceptance import metropolis, prior_ratio
from dpmc.algorithms.hyperparameters import choice, flag, lengths, positive, whole
from dpmc.algorithms.leapfrog import Path, draw_momentum, kinetic_energy, trajectory
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Draws, Model, Needs, State
from dpmc.privacy.events import GaussianRelease

if TYPE_CHECKING:
    from dpmc.privacy.mechanisms import PrivateData


@dataclass(frozen=True, kw_only=True)
class DPHMC(Sampler):
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

    tau_l: float = positive("noise multiplier of a log ratio over √n")
    tau_g: float = positive("noise multiplier of a gradient over √n")
    steps: int = whole("leapfrog steps L")
    step_size: np.ndarray = lengths("step size η")
    mass: np.ndarray = lengths("diagonal of the mass matrix M")
    clip_l: float = positive("clip bound of a row's log ratio, nats per unit distance")
    clip_g: float = positive("clip bound of the norm of a row's gradient")
    reuse_gradients: bool = flag("take the first gradient from the iteration before")
    jitter: str = choice("multiply η by a uniform number in each iteration", "none", "halton")

    @property
    def note(self) -> str:  # type: ignore[override]
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        return "reuses gradients: not known to be a Markov chain" if self.reuse_gradients else ""

    def needs(self, dimension: int) -> Needs:
        """What one iteration consumes: noise for L + 1 gradients, used or not."""
        return Needs(
            normals=dimension,
            uniforms=int(self.jitter == "halton"),
            gradients=self.steps if self.reuse_gradients else self.steps + 1,
            noise_vectors=self.steps + 1,
            carried=dimension + 1 if self.reuse_gradients else 0,
            halton=self.jitter == "halton",
        )

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        """The gradient at the current position and a mark whether there is one: none yet."""
        return np.zeros(self.needs(dimension).carried)

    def releases(self, n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events before the first iteration, and of one iteration."""
        root = np.sqrt(n)
        ratio = GaussianRelease("log-ratio", self.tau_l * root)
        if self.reuse_gradients:
            once = (GaussianRelease("gradient", self.tau_g * root),)
            return once, (ratio, GaussianRelease("gradient", self.tau_g * root, self.steps))
        return (), (ratio, GaussianRelease("gradient", self.tau_g * root, self.steps + 1))

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """One iteration of every chain."""

        def gradient_at(theta: np.ndarray, stage: int) -> np.ndarray:
            noisy = private.gradient(theta, self.clip_g, self.tau_g, stage)
            return noisy + model.log_prior_gradient(theta)

        pace = draws.uniform if self.jitter == "halton" else 1.0
        path = Path(self.steps, self.step_size, self.mass, pace)
        momentum = draw_momentum(self.mass, draws.normal)
        known = self.reuse_gradients and state.carried[0, -1] == 1.0  # all chains are at the same iteration
        first = state.carried[:, :-1] if known else gradient_at(state.theta, 0)
        proposal, last_momentum, last = trajectory(state.theta, momentum, first, path, gradient_at)

        log_ratio = private.penalty_log_ratio(state.theta, proposal, self.clip_l, self.tau_l)
        log_ratio = log_ratio + kinetic_energy(momentum, self.mass) - kinetic_energy(last_momentum, self.mass)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        moved = metropolis(state, proposal, log_ratio, draws)
        if self.reuse_gradients:
            kept = np.where(moved.accepted[:, None], last, first)
            moved = moved._replace(carried=np.column_stack([kept, np.ones(len(kept))]))
        return moved
