"""Hamiltonian Monte Carlo without privacy (Section 4.1), with optional clipping of ratios and gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.algorithms.acceptance import metropolis, prior_ratio
from dpmc.algorithms.hyperparameters import choice, lengths, positive, whole
from dpmc.algorithms.leapfrog import Path, draw_momentum, kinetic_energy, trajectory
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Draws, Model, Needs, State
from dpmc.privacy.events import NonPrivateRelease

if TYPE_CHECKING:
    from dpmc.privacy.mechanisms import PrivateData


@dataclass(frozen=True, kw_only=True)
class HMC(Sampler):
    """p ~ N(0, M); L leapfrog steps of size η with exact gradients; accept by the change of energy.

    `jitter` multiplies η in each iteration by a point of a scrambled Halton sequence, as in DP-HMC. Without
    noise the gradient at the start of a trajectory is known from the iteration before.
    """

    steps: int = whole("leapfrog steps L")
    step_size: np.ndarray = lengths("step size η")
    mass: np.ndarray = lengths("diagonal of the mass matrix M")
    clip: float = positive("clip bound of a row's log ratio, nats per unit distance", np.inf, infinite=True)
    clip_g: float = positive("clip bound of the norm of a row's gradient", np.inf, infinite=True)
    clip_distance: str = choice(
        "clip by ‖θ − θ'‖, or by |Σ(θ − θ')| as the code behind Figure 6.2", "text", "as_coded"
    )
    jitter: str = choice("multiply η by a uniform number in each iteration", "none", "halton")

    @property
    def note(self) -> str:  # type: ignore[override]
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        as_coded = self.clip_distance == "as_coded"
        return "clips by |sum of differences|: as coded, not as written" if as_coded else ""

    def needs(self, dimension: int) -> Needs:
        """What one iteration consumes."""
        halton = self.jitter == "halton"
        return Needs(
            normals=dimension,
            uniforms=int(halton),
            gradients=self.steps,
            carried=dimension + 1,
            halton=halton,
        )

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        """The gradient at the current position and a mark whether there is one: none yet."""
        return np.zeros(dimension + 1)

    def releases(self, n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events before the first iteration, and of one iteration: exact answers, ε = ∞."""
        once = (NonPrivateRelease("gradient"),)
        return once, (NonPrivateRelease("log-ratio"), NonPrivateRelease("gradient", self.steps))

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """One iteration of every chain."""

        def gradient_at(theta: np.ndarray, _: int) -> np.ndarray:
            return private.exact_gradient(theta, self.clip_g) + model.log_prior_gradient(theta)

        pace = draws.uniform if self.jitter == "halton" else 1.0
        path = Path(self.steps, self.step_size, self.mass, pace)
        momentum = draw_momentum(self.mass, draws.normal)
        known = state.carried[0, -1] == 1.0
        first = state.carried[:, :-1] if known else gradient_at(state.theta, 0)
        proposal, last_momentum, last = trajectory(state.theta, momentum, first, path, gradient_at)

        as_coded = self.clip_distance == "as_coded"
        log_ratio = private.exact_log_ratio(state.theta, proposal, self.clip, as_coded)
        log_ratio = log_ratio + kinetic_energy(momentum, self.mass) - kinetic_energy(last_momentum, self.mass)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        moved = metropolis(state, proposal, log_ratio, draws)
        kept = np.where(moved.accepted[:, None], last, first)
        return moved._replace(carried=np.column_stack([kept, np.ones(len(kept))]))
