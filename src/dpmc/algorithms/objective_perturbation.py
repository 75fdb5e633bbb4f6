"""Objective perturbation (Kifer, Smith, Thakurta 2012): the mode of a randomly tilted logistic likelihood."""

from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.hyperparameters import fraction, positive
from dpmc.algorithms.peers import Estimated, unweighted
from dpmc.base import Model, PrivateData, Queries, Values
from dpmc.common.errors import DpmcError
from dpmc.models.regression import LogisticRegression
from dpmc.privacy.events import ApproximateQuery
from dpmc.privacy.perturbed_objective import Perturbation, PerturbedLogit


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(Estimated):
    """Return the θ that minimises Σ ℓ_j(θ) + ½ Σ r θ² + b·θ, b ~ N(0, σ² I), once a run.

    ℓ_j is −ln p(y_j|z_j, θ), ‖z_j‖ clipped. The ridge r of a coefficient is the prior's, 1/prior_sd², but at
    least what the proof needs (`privacy/perturbed_objective.py`), for `share` of ε; the noise has the rest.
    """

    clip_z: float = positive("clip bound of ‖z‖, z the predictors with the intercept's 1")
    epsilon: float = positive("ε of the query; by default the budget's")
    delta: float = fraction("δ of the query; by default the budget's", below_one=True)

    share: float = fraction("share of ε for the least ridge, ½ in the paper", 0.5, below_one=True)

    calibrates_run = True

    @classmethod
    def calibrate(cls, values: Values, epsilon: float, delta: float, n: int, per_person: int = 1) -> Values:
        """Return the hyperparameters `values` with ε and δ of the budget."""
        if per_person > 1:
            raise DpmcError("rows_per_person: objective-perturbation protects single rows; give 1")
        return {"epsilon": epsilon, "delta": delta, **values}

    def queries(self, n: int) -> Queries:
        return Queries(run=(ApproximateQuery("optimum", self.epsilon, self.delta),))

    def check(self, model: Model, n: int, temperature: float = 1.0) -> None:
        """Raise DpmcError for a model that is no logistic regression, or has weights, and for tempering."""
        unweighted(model, LogisticRegression, "objective-perturbation")
        if temperature != 1.0:
            raise DpmcError("objective-perturbation: tempering: must be None")

    def estimates(self, model: Model, private: PrivateData) -> np.ndarray:
        own = unweighted(model, LogisticRegression, "objective-perturbation")
        known = Perturbation.of(self.epsilon, self.delta, self.clip_z, self.share)
        ridge = np.maximum(own.prior_sd**-2.0, known.ridge)
        return private.perturbed_optima(PerturbedLogit(own, self.clip_z, known.noise_sd, ridge))
