"""Base of samplers that step by a noisy batch gradient; its privacy noise is the dynamics' injected noise."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.hyperparameters import integer, positive
from dpmc.base import Algorithm, Model, Needs, PrivateData, Queries, State
from dpmc.privacy.events import SubsampledGaussianQuery


@dataclass(frozen=True, kw_only=True)
class Langevin(Algorithm):
    """Sampler with steps of h = η/n, one query on a batch of b rows each, and no acceptance test."""

    batch_size: int = integer("rows b of a batch", searched=True)
    clip: float = positive("clip bound C of the norm of a row's tempered gradient", searched=True)
    step_size: float = positive("step size η", searched=True)

    uses_gradients = True

    @abstractmethod
    def noise_multiplier(self, n: int) -> float:
        """Return the noise multiplier of the batch gradient, whose sensitivity is 2nC/b."""

    def needs(self, dimension: int) -> Needs:
        return Needs(words=self.batch_size, ratios=0, gradients=1, noise_vectors=1)

    def queries(self, n: int) -> Queries:
        multiplier, sensitivity = self.noise_multiplier(n), 2.0 * n * self.clip / self.batch_size
        event = SubsampledGaussianQuery(
            "batch gradient", multiplier, self.batch_size, n, sensitivity=sensitivity
        )
        return Queries(each=(event,))

    def gradient(self, state: State, model: Model, private: PrivateData) -> np.ndarray:
        """Return ∇ ln p(θ) + (n/b) Σ_B clip(T ∇ ln p(x_j|θ)) + noise, (chains, d)."""
        gradient = private.batch_gradient(state.theta, self.clip, self.noise_multiplier(private.n))
        # Added after the mechanism: the prior is public and needs neither clipping nor noise.
        return gradient + model.log_prior_gradient(state.theta)
