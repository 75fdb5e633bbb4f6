"""Public rows: the posterior given public rows alone, which asks nothing: the end of the scale, ε = 0."""

from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.hyperparameters import integer, numbers
from dpmc.algorithms.noisy_statistics import summary_model
from dpmc.base import FREE_DRAWS, Algorithm, Draws, Model, Needs, NoisySum, PrivateData, Queries, State
from dpmc.common.errors import DpmcError


@dataclass(frozen=True, kw_only=True)
class PublicRows(Algorithm):
    """Draw from p(θ | public rows), given by the sum of their summaries and their number."""

    total: tuple[float, ...] = numbers("sum of the public rows' summaries")
    public: int = integer("number of public rows")

    is_for_comparison = True
    default_iterations = FREE_DRAWS

    def needs(self, dimension: int) -> Needs:
        return Needs(normals=dimension, uniforms=2, ratios=0)

    def queries(self, n: int) -> Queries:
        """Return what is asked: nothing."""
        return Queries()

    def check(self, model: Model, n: int, temperature: float = 1.0) -> None:
        """Raise DpmcError for a model without summaries, and for a sum of another size."""
        if len(self.total) != (k := summary_model(model, "public-rows").summary_count):
            raise DpmcError(
                f"hyperparameters: total: has {len(self.total)} values, must be {k}, the summaries"
            )

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        known = NoisySum(np.array(self.total), self.public, 0.0, private.temperature)
        theta = summary_model(model).posterior_given(known).at(draws.normal, draws.uniform)
        return settle(state, theta, np.ones(len(theta), np.bool_))
