"""Proposals of random walks."""

import numpy as np

from dpmc.base import Draws


def walk(theta: np.ndarray, proposal_sd: np.ndarray, draws: Draws) -> np.ndarray:
    """θ' ~ N(θ, diag(proposal_sd²)) (chains, d)."""
    return theta + proposal_sd * draws.normal


def guided_walk(
    theta: np.ndarray, direction: np.ndarray, proposal_sd: np.ndarray, draws: Draws
) -> tuple[np.ndarray, np.ndarray]:
    """Move one random component of each chain by direction × |N(0, proposal_sd²)|.

    `direction` (chains, d) is ±1. Returns θ' (chains, d), and which component moved (chains, d), as bool.
    """
    d = theta.shape[1]
    component = (d * draws.uniform[:, :1]).astype(np.int64) == np.arange(d)
    length = direction * np.abs(proposal_sd * draws.normal[:, :1])
    return np.where(component, theta + length, theta), component


def first_directions(dimension: int, generator: np.random.Generator) -> np.ndarray:
    """Random directions ±1 (d,) of one chain's guided walk."""
    return np.where(generator.random(dimension) < 0.5, -1.0, 1.0)
