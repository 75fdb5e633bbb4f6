"""AdaSSP (Wang 2018, Algorithm 2): linear regression from noisy sums, with a ridge that adapts to them."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dpmc.algorithms.hyperparameters import fraction, positive
from dpmc.algorithms.peers import Estimated, Peer, unweighted
from dpmc.base import Model, PrivateData, Queries
from dpmc.models.regression import LinearRegression
from dpmc.privacy.events import GaussianQuery
from dpmc.privacy.moments import MomentsQuestion, NoisyMoments


@dataclass(frozen=True, kw_only=True)
class AdaSSP(Estimated, Peer):
    """Ask λ, the least eigenvalue of Σ zzᵀ, then Σ zzᵀ and Σ zy; solve (Σ zzᵀ + ridge I) θ = Σ zy.

    Each of the three queries has a third of the budget. With noise sds σ_λ, and σ of Σ zzᵀ, the ridge is what
    λ − σ_λ z_{1−ρ} lacks of σ √(p ln(2p²/ρ)). Wang has δ/6 for ρ in the former. There is no prior. An unknown
    ln sd is not estimated: it stays where the chain starts.
    """

    clip_z: float = positive("clip bound of ‖z‖, z the predictors with the intercept's 1")
    clip_y: float = positive("clip bound of |y|, y the outcome less the offset, in the model's unit")
    rho: float = fraction("probability with which the matrix may not be well conditioned", 0.05)

    equal_queries = 3

    def queries(self, n: int) -> Queries:
        names = "least eigenvalue", "squares", "products"
        return Queries(run=tuple(GaussianQuery(name, self.noise_multiplier) for name in names))

    def check(self, model: Model, n: int, temperature: float = 1.0) -> None:
        """Raise DpmcError for a model that is no linear regression, or has weights."""
        unweighted(model, LinearRegression, "adassp")

    def estimates(self, model: Model, private: PrivateData) -> np.ndarray:
        own = unweighted(model, LinearRegression, "adassp")
        question = MomentsQuestion(own, self.clip_z, self.clip_y, self.noise_multiplier)
        least = private.least_eigenvalues(question)
        answers = map(question.moments, private.answers([question] * private.runs))
        return np.array([self.solution(*both, question) for both in zip(least, answers, strict=True)])

    def solution(self, least: float, moments: NoisyMoments, question: MomentsQuestion) -> np.ndarray:
        """Return the estimate (p,) from noisy answers."""
        p = len(moments.products)
        surely = max(0.0, least - ndtri(1.0 - self.rho) * question.least_sd)
        noise = question.noise_sds[0] * np.sqrt(p * np.log(2.0 * p**2 / self.rho))
        return np.linalg.solve(moments.squares + max(0.0, noise - surely) * np.eye(p), moments.products)
