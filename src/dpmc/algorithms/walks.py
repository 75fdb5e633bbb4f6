"""Random walks: a proposal, the rows' log ratio, an acceptance test."""

from abc import abstractmethod

import numpy as np

from dpmc.algorithms.acceptance import metropolis, prior_ratio
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Draws, Model, Needs, PrivateData, State


class RandomWalk(Sampler):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); test the log ratio of likelihood and prior."""

    proposal_sd: np.ndarray  # (d,)

    @abstractmethod
    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        """Return the log-likelihood ratio (chains,), by a mechanism."""

    def decide(self, state: State, proposal: np.ndarray, log_ratio: np.ndarray, draws: Draws) -> State:
        """Make the acceptance test, by default Metropolis'."""
        return metropolis(state, proposal, log_ratio, draws)

    def needs(self, dimension: int) -> Needs:
        return Needs(normals=dimension, words=self.batch_size)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        proposal = walk(state.theta, self.proposal_sd, draws)
        log_ratio = self.log_ratio(state.theta, proposal, private)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        return self.decide(state, proposal, log_ratio, draws)


class GuidedWalk(RandomWalk):
    """Move one component in its direction; reverse that direction on rejection.

    Each component keeps a direction ±1, random at the start (`State.carried`).
    """

    def needs(self, dimension: int) -> Needs:
        return Needs(normals=1, uniforms=1, words=self.batch_size, carried=dimension)

    def first_carried(self, dimension: int, generator: np.random.Generator) -> np.ndarray:
        return np.where(generator.random(dimension) < 0.5, -1.0, 1.0)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        proposal, component = guided_walk(state.theta, state.carried, self.proposal_sd, draws)
        log_ratio = self.log_ratio(state.theta, proposal, private)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        moved = self.decide(state, proposal, log_ratio, draws)
        turned = component & ~moved.accepted[:, None]
        return moved._replace(carried=np.where(turned, -state.carried, state.carried))


def walk(theta: np.ndarray, proposal_sd: np.ndarray, draws: Draws) -> np.ndarray:
    """Draw θ' ~ N(θ, diag(proposal_sd²)) (chains, d)."""
    return theta + proposal_sd * draws.normal


def guided_walk(
    theta: np.ndarray, direction: np.ndarray, proposal_sd: np.ndarray, draws: Draws
) -> tuple[np.ndarray, np.ndarray]:
    """Move one random component of each chain by direction × |N(0, proposal_sd²)|.

    `direction` (chains, d) is ±1. Returns θ' (chains, d) and a mask of the moved component (chains, d).
    """
    d = theta.shape[1]
    component = (d * draws.uniform[:, :1]).astype(np.int64) == np.arange(d)
    length = direction * np.abs(proposal_sd * draws.normal[:, :1])
    return np.where(component, theta + length, theta), component
