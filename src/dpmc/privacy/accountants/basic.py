"""Basic composition: ε and δ of queries are added (Dwork, Kenthapadi et al. 2006)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dpmc.privacy.accountants.base import Accountant
from dpmc.privacy.events import ApproximateQuery, Query


@dataclass(frozen=True)
class BasicComposition(Accountant):
    """(Σε, Σδ), rounded up; nothing is shown of a smaller ε."""

    name = "basic"
    version = "1"
    handles = (ApproximateQuery,)
    is_filter = True

    def _delta(self, events: tuple[Query, ...], epsilon: float) -> float:
        known = [event for event in events if isinstance(event, ApproximateQuery)]
        least, delta = total(
            (_times(event.count, event.epsilon) for event in known),
            (_times(event.count, event.delta) for event in known),
        )
        return min(1.0, delta) if epsilon >= least else 1.0


def total(epsilons: Iterable[float], deltas: Iterable[float]) -> tuple[float, float]:
    """Return (Σε, Σδ), rounded up: a bound for any runs, also if earlier results choose them (accounting)."""
    return _sum(epsilons), _sum(deltas)


def _sum(numbers: Iterable[float]) -> float:
    """Return the smallest double that is not below the sum of numbers ≥ 0."""
    values = list(numbers)
    if math.inf in values:
        return math.inf
    nearest = math.fsum(values)
    return nearest if Fraction(nearest) >= sum(map(Fraction, values)) else math.nextafter(nearest, math.inf)


def _times(count: int, value: float) -> float:
    """Return count · value, rounded up."""
    return value if count == 1 else math.nextafter(count * value, math.inf)
