"""The steps of Hamiltonian dynamics (Section 4.1), each for all chains at once; M is diagonal.

A trajectory may take its steps at a *pace* u of its own, with uη for η. It then carries q = p/u:
q += ½η∇ and θ += u²ηM⁻¹q, so that u enters in `drift` alone.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Path(NamedTuple):
    """How a trajectory goes."""

    steps: int  # L
    step_size: np.ndarray  # (d,) η
    mass: np.ndarray  # (d,) diagonal of M
    pace: Any  # (chains, 1) u, or 1


def draw_momentum(mass: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """p = M^½ z (chains, d), z standard normals (chains, d)."""
    return np.sqrt(mass) * normal


def kinetic_energy(momentum: np.ndarray, mass: np.ndarray) -> Any:
    """½ pᵀM⁻¹p (chains,)."""
    return 0.5 * (momentum**2 / mass).sum(axis=1)


def kick(momentum: np.ndarray, fraction: float, step_size: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """p + fraction · η ∇ (chains, d)."""
    return momentum + fraction * step_size * gradient


def drift(theta: np.ndarray, momentum: np.ndarray, path: Path) -> np.ndarray:
    """θ + u² η M⁻¹(p/u) (chains, d); `momentum` is p/u."""
    return theta + path.pace**2 * (path.step_size * momentum / path.mass)


def trajectory(
    theta: np.ndarray,
    momentum: np.ndarray,
    gradient: np.ndarray,
    path: Path,
    gradient_at: Callable[[np.ndarray, int], np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """θ, p and ∇ (chains, d) after L leapfrog steps from θ, p and ∇.

    `gradient_at(theta, step)` is asked once a step, from step 1 on.
    """
    momentum = momentum / path.pace
    for step in range(1, path.steps + 1):
        momentum = kick(momentum, 0.5, path.step_size, gradient)
        theta = drift(theta, momentum, path)
        gradient = gradient_at(theta, step)
        momentum = kick(momentum, 0.5, path.step_size, gradient)
    return theta, momentum * path.pace, gradient
