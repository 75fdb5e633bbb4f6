"""Base of what a person would pick instead, for comparison only (docs/reference/algorithms/peers.md)."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.answers import multiplier_of_each
from dpmc.algorithms.hyperparameters import positive
from dpmc.base import (
    Algorithm,
    Draws,
    Generators,
    Model,
    Needs,
    PrivateData,
    State,
    Values,
    has_diverged,
)
from dpmc.common.errors import DpmcError
from dpmc.models.regression import Regression

R = TypeVar("R", bound=Regression)
FEW_DRAWS = 4  #: of an estimate, all equal: the fewest that are evaluated


@dataclass(frozen=True, kw_only=True)
class Peer(Algorithm):
    """A method whose equal Gaussian queries share the budget of a run."""

    noise_multiplier: float = positive("noise sd over sensitivity of a query; by default the budget's")

    is_for_comparison = True
    calibrates_run = True
    equal_queries: ClassVar[str | int]  #: number in a run, or the hyperparameter that is it

    @classmethod
    def calibrate(cls, values: Values, epsilon: float, delta: float, n: int, per_person: int = 1) -> Values:
        """Return the hyperparameters `values` with the least noise such that one chain is (ε, δ)-DP."""
        number = cls.equal_queries if isinstance(cls.equal_queries, int) else values.get(cls.equal_queries, 1)
        multiplier = multiplier_of_each(epsilon, delta, per_person, float(number))
        return {"noise_multiplier": multiplier, **values}


@dataclass(frozen=True, kw_only=True)
class Estimated(Algorithm):
    """A method that has one estimate (p,) a run; its draws are all equal to it.

    Parameters beyond p stay where the chain starts.
    """

    is_for_comparison = True
    is_point = True
    default_iterations = FEW_DRAWS

    @abstractmethod
    def estimates(self, model: Model, private: PrivateData) -> np.ndarray:
        """Return the estimate of each run (runs, p)."""

    def needs(self, dimension: int) -> Needs:
        return Needs(ratios=0)

    def prepare(
        self, theta: np.ndarray, model: Model, private: PrivateData, generators: Generators
    ) -> np.ndarray:
        found = self.estimates(model, private)
        return found.repeat(len(theta) // len(found), axis=0)

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        p = state.carried.shape[1]
        proposal = np.column_stack([state.carried, state.theta[:, p:]])
        return settle(state, proposal, ~has_diverged(proposal))


def unweighted(model: Any, kind: type[R], name: str) -> R:
    """Return the regression that a model is; raise DpmcError unless it is of this kind, without weights."""
    own = getattr(model, "given", model)
    if not isinstance(own, kind) or own.design.weights:
        raise DpmcError(f"{name}: model: must be a {kind.__name__} without weights")
    return own
