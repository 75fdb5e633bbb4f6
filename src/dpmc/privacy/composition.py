"""Basic composition: the (ε, δ) of several runs on the same rows is at most the sum of theirs."""

import math
from collections.abc import Iterable
from fractions import Fraction


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
