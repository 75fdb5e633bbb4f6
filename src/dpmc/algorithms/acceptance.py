"""Acceptance tests and the moves that follow from them."""

import numpy as np

from dpmc.base import Draws, Model, State, has_diverged


def metropolis(state: State, proposal: np.ndarray, log_ratio: np.ndarray, draws: Draws) -> State:
    """Move chains to their proposals (chains, d) where ln u < `log_ratio` (chains,); NaN rejects."""
    return settle(state, proposal, draws.log_uniform < log_ratio)


def settle(state: State, proposal: np.ndarray, accepted: np.ndarray) -> State:
    """Move chains to their proposals (chains, d) where `accepted` (chains,) is true."""
    # Chosen, not weighted: 0 times a proposal that has diverged would be NaN.
    theta = np.where(accepted[:, None], proposal, state.theta)
    return State(theta, state.carried, accepted, has_diverged(proposal))


def prior_ratio(model: Model, theta: np.ndarray, proposal: np.ndarray) -> np.ndarray:
    """Return ln p(θ') − ln p(θ) of the prior, (chains,)."""
    return model.log_prior(proposal) - model.log_prior(theta)
