"""Acceptance: where chains go, given their proposals and the outcome of their tests."""

import numpy as np

from dpmc.base import Draws, Model, State, has_diverged


def metropolis(state: State, proposal: np.ndarray, log_ratio: np.ndarray, draws: Draws) -> State:
    """Move chains to their proposals where ln u < log_ratio (chains,); NaN: they stay."""
    return settle(state, proposal, draws.log_uniform < log_ratio)


def settle(state: State, proposal: np.ndarray, accepted: np.ndarray) -> State:
    """Move chains to their proposals (chains, d) where accepted (chains,)."""
    theta = np.where(accepted[:, None], proposal, state.theta)
    return State(theta, state.carried, accepted, has_diverged(proposal))


def prior_ratio(model: Model, theta: np.ndarray, proposal: np.ndarray) -> np.ndarray:
    """ln p(θ') − ln p(θ) (chains,)."""
    return model.log_prior(proposal) - model.log_prior(theta)
