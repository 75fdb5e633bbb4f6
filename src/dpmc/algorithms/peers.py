"""Base of what a person would pick instead, for comparison only (docs/reference/algorithms/peers.md)."""

from dataclasses import dataclass
from typing import ClassVar

from dpmc.algorithms.answers import multiplier_of_each
from dpmc.algorithms.hyperparameters import positive
from dpmc.base import Algorithm, Values


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
