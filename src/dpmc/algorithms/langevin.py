"""Steps by the noisy gradient of a batch, whose privacy noise is the noise that the dynamics inject."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.algorithms.hyperparameters import positive, whole
from dpmc.algorithms.sampler import Sampler
from dpmc.base import Model, Needs, PrivateData, State
from dpmc.privacy.events import SubsampledGaussianRelease


@dataclass(frozen=True, kw_only=True)
class Langevin(Sampler):
    """Steps of h = η/n, each by one release about a batch of b rows; no acceptance test."""

    batch_size: int = whole("rows b of a batch")
    clip: float = positive("clip bound C of the norm of a row's tempered gradient")
    step_size: float = positive("step size η")

    @abstractmethod
    def noise_multiplier(self, n: int) -> Any:
        """Of the batch gradient, whose sensitivity is 2nC/b."""

    def needs(self, dimension: int) -> Needs:
        return Needs(words=self.batch_size, ratios=0, gradients=1, noise_vectors=1)

    def releases(self, n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        multiplier, sensitivity = self.noise_multiplier(n), 2.0 * n * self.clip / self.batch_size
        return (), (
            SubsampledGaussianRelease(
                "batch gradient", float(multiplier), self.batch_size, n, sensitivity=sensitivity
            ),
        )

    def gradient(self, state: State, model: Model, private: PrivateData) -> np.ndarray:
        """∇ ln p(θ) + (n/b) Σ_B clip(∇ ln p(x_j|θ)) + noise (chains, d)."""
        gradient = private.batch_gradient(state.theta, self.clip, self.noise_multiplier(private.n))
        return gradient + model.log_prior_gradient(state.theta)
