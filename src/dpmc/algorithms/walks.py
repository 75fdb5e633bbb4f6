"""Random walks: a proposal, the rows' log ratio, an acceptance test."""

from abc import abstractmethod

import numpy as np

from dpmc.algorithms.acceptance import metropolis, prior_ratio, settle
from dpmc.base import Algorithm, Draws, FastRule, Generators, Model, Needs, PrivateData, State


class RandomWalk(Algorithm):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); test the log ratio of likelihood and prior."""

    proposal_sd: np.ndarray  # (d,)

    @abstractmethod
    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        """Return the log-likelihood ratio (chains,), by a mechanism."""

    def decide(self, state: State, proposal: np.ndarray, log_ratio: np.ndarray, draws: Draws) -> State:
        """Make the acceptance test of log ratios (chains,), by default Metropolis'."""
        return metropolis(state, proposal, log_ratio, draws)

    def needs(self, dimension: int) -> Needs:
        return Needs(normals=dimension, words=self.batch_size)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        proposal = state.theta + self.proposal_sd * draws.normal
        log_ratio = self.log_ratio(state.theta, proposal, private)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        return self.decide(state, proposal, log_ratio, draws)


class GuidedWalk(RandomWalk):
    """Move one random component by direction × |N(0, proposal_sd²)|; reverse its direction on rejection.

    Each component keeps a direction ±1, random at the start (`State.carried`).
    """

    explanation = (
        "Guided: one component is updated at a time (OCU), by a walk that keeps its direction until a "
        "rejection (GWMH)."
    )

    def needs(self, dimension: int) -> Needs:
        return Needs(normals=1, uniforms=1, words=self.batch_size)

    def prepare(
        self, theta: np.ndarray, model: Model, private: PrivateData, generators: Generators
    ) -> np.ndarray:
        """Return random directions ±1, (chains, d)."""
        uniform = np.array([generator.random(theta.shape[1]) for generator in generators])
        return np.where(uniform < 0.5, -1.0, 1.0)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        theta, d = state.theta, state.theta.shape[1]
        component = (d * draws.uniform[:, :1]).astype(np.int64) == np.arange(d)  # the one that moves
        length = state.carried * np.abs(self.proposal_sd * draws.normal[:, :1])
        proposal = np.where(component, theta + length, theta)
        log_ratio = self.log_ratio(state.theta, proposal, private)
        log_ratio = log_ratio + prior_ratio(model, state.theta, proposal)
        moved = self.decide(state, proposal, log_ratio, draws)
        # Without the reversal a guided walk would not leave the posterior invariant.
        turned = component & ~moved.accepted[:, None]
        return moved._replace(carried=np.where(turned, -state.carried, state.carried))


class PoissonWalk(Algorithm):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); make the test of TunaMH or DP-Fast MH that `rule` describes."""

    proposal_sd: np.ndarray  # (d,)

    @property
    def public_clip(self) -> float:
        """Return the clip bound of every row in nats per unit distance; ∞: each row has its own bound."""
        return np.inf

    @abstractmethod
    def rule(self, n: int) -> FastRule:
        """Return the rule that chooses the test on n rows and its noise."""

    def needs(self, dimension: int) -> Needs:
        return Needs(normals=dimension, words=1)  # a key: kernels derive as many numbers as a minibatch needs

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        proposal = state.theta + self.proposal_sd * draws.normal
        ratio = prior_ratio(model, state.theta, proposal)
        rule = self.rule(private.n)
        # The answer is the bit alone: the mechanism makes the whole test and must be given the prior's part.
        accepted = private.fast_test(state.theta, proposal, ratio, rule, draws.log_uniform)
        return settle(state, proposal, accepted)
