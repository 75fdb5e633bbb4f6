"""Hamiltonian dynamics (Section 4.1) for all chains at once; M is diagonal.

With jitter each trajectory has a *pace* u: its step size is uη. The code carries q = p/u, with
q += ½η∇ and θ += u²ηM⁻¹q, so that u appears only in `drift`.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpmc.algorithms.acceptance import metropolis, prior_ratio
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Draws, Model, Needs, PrivateData, State


class Hamiltonian(Sampler):
    """Base of samplers with p ~ N(0, M), L leapfrog steps of size η and a test by the change of energy.

    With `reuse_gradients` the first gradient of a trajectory comes from the previous iteration
    (`State.carried`).
    """

    steps: int  # L
    step_size: np.ndarray  # (d,) η
    mass: np.ndarray  # (d,) diagonal of M
    jitter: str  # "none" or "halton": η times a uniform number in each iteration
    reuse_gradients: bool

    @abstractmethod
    def gradient(self, theta: np.ndarray, stage: int, private: PrivateData) -> np.ndarray:
        """Return the iteration's `stage`-th log-likelihood gradient (chains, d), by a mechanism."""

    @abstractmethod
    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        """Return the log-likelihood ratio (chains,), by a mechanism."""

    def needs(self, dimension: int) -> Needs:
        return Needs(
            normals=dimension,
            uniforms=int(self.jitter == "halton"),
            gradients=self.steps if self.reuse_gradients else self.steps + 1,
            carried=dimension + 1 if self.reuse_gradients else 0,
            halton=self.jitter == "halton",
        )

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        """Return zeros (d + 1,): a gradient, and 0 to mark that it is not known yet; (0,) without reuse."""
        return np.zeros(self.needs(dimension).carried)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        def gradient_at(theta: np.ndarray, stage: int) -> np.ndarray:
            return self.gradient(theta, stage, private) + model.log_prior_gradient(theta)

        pace = draws.uniform if self.jitter == "halton" else 1.0
        path = Path(self.steps, self.step_size, self.mass, pace)
        momentum = draw_momentum(self.mass, draws.normal)
        known = self.reuse_gradients and state.carried[0, -1] == 1.0  # all chains are at the same iteration
        first = state.carried[:, :-1] if known else gradient_at(state.theta, 0)
        proposal, last_momentum, last = trajectory(state.theta, momentum, first, path, gradient_at)

        log_ratio = self.log_ratio(state.theta, proposal, private)
        log_ratio = log_ratio + kinetic_energy(momentum, self.mass) - kinetic_energy(last_momentum, self.mass)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        moved = metropolis(state, proposal, log_ratio, draws)
        if self.reuse_gradients:
            kept = np.where(moved.accepted[:, None], last, first)
            moved = moved._replace(carried=np.column_stack([kept, np.ones(len(kept))]))
        return moved


class Path(NamedTuple):
    """Length, step size, mass and pace of a trajectory."""

    steps: int  # L
    step_size: np.ndarray  # (d,) η
    mass: np.ndarray  # (d,) diagonal of M
    pace: Any  # (chains, 1) u, or 1


def draw_momentum(mass: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return p = M^½ z (chains, d), z standard normals (chains, d)."""
    return np.sqrt(mass) * normal


def kinetic_energy(momentum: np.ndarray, mass: np.ndarray) -> Any:
    """Return ½ pᵀM⁻¹p (chains,)."""
    return 0.5 * (momentum**2 / mass).sum(axis=1)


def kick(momentum: np.ndarray, fraction: float, step_size: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return p + fraction · η ∇ (chains, d)."""
    return momentum + fraction * step_size * gradient


def drift(theta: np.ndarray, momentum: np.ndarray, path: Path) -> np.ndarray:
    """Return θ + u² η M⁻¹(p/u) (chains, d); `momentum` is p/u."""
    return theta + path.pace**2 * (path.step_size * momentum / path.mass)


def trajectory(
    theta: np.ndarray,
    momentum: np.ndarray,
    gradient: np.ndarray,
    path: Path,
    gradient_at: Callable[[np.ndarray, int], np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return θ, p and ∇ (chains, d) after L leapfrog steps from θ, p and ∇.

    `gradient_at(theta, step)` is called once per step, for step 1 to L.
    """
    momentum = momentum / path.pace
    for step in range(1, path.steps + 1):
        momentum = kick(momentum, 0.5, path.step_size, gradient)
        theta = drift(theta, momentum, path)
        gradient = gradient_at(theta, step)
        momentum = kick(momentum, 0.5, path.step_size, gradient)
    return theta, momentum * path.pace, gradient
