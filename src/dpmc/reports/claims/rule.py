"""The rule of verdicts: from the numbers of a claim's cases, their standard errors, limits and quantifier.

A case is decided by its distance from the limit in standard errors. How many are asked for follows from the
number of cases: a claim whose numbers are all at their limits gets a wrong verdict, holds or fails, with a
chance of at most `LUCK`, for normal and independent errors. So a universal claim fails by one case beyond
chance, holds if each case is beyond its limit by 1.64 errors, and cannot be told otherwise. A claim whose own
words allow exceptions, and one of `some`, fails only if all cases do; the former depends if some do.
"""

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.special import ndtr, ndtri

LUCK = 0.05
HOLDS, FAILS, DEPENDS, UNTOLD = "holds", "fails", "depends", "cannot be told at this number of runs"
NO_NUMBER = "undecided"

#: word -> (whether an exact number holds, its distance from the limit, above 0 where it holds)
LIMITS: dict[str, tuple[Callable[..., bool], Callable[..., float]]] = {
    "below": (operator.lt, lambda number, limit: limit - number),
    "above": (operator.gt, lambda number, limit: number - limit),
    "at most": (operator.le, lambda number, limit: limit - number),
    "at least": (operator.ge, lambda number, limit: number - limit),
    "between": (
        lambda number, low, high: low <= number <= high,
        lambda number, low, high: min(number - low, high - number),
    ),
}
#: words about chance itself, which hold unless a number is beyond it -> distance from 0
BY_CHANCE: dict[str, Callable[[float], float]] = {
    "not beyond chance above 0": lambda number: -number,
    "not beyond chance apart from 0": lambda number: -abs(number),
}
#: words about what was seen, of runs or of differences beyond chance: without error
SEEN: dict[str, Callable[[float], bool]] = {
    "none": lambda number: number == 0.0,
    "some": lambda number: number > 0.0,
    "more than half": lambda number: number > 0.5,
}


@dataclass(frozen=True)
class Limit:
    """What is asked of a case, `text`; how many cases decide alone that the claim holds, or that it fails.

    `ratio`: the number is one, whose logarithm is about normal.
    """

    text: str
    to_hold: int = 1
    to_fail: int = 1
    ratio: bool = False

    def errors(self, among: int) -> float:
        """Return how many standard errors decide, for a chance of `LUCK` that one of so many does wrongly."""
        tails = 2.0 if self.text.endswith("apart from 0") else 1.0
        return float(-ndtri((1.0 - (1.0 - LUCK) ** (1.0 / among)) / tails))

    def decide(self, number: float, error: float) -> bool | None:
        """Return whether the case holds; None: it cannot be told."""
        word, limits = self._parts()
        if word in SEEN:
            return SEEN[word](number)
        if word in BY_CHANCE:
            return BY_CHANCE[word](number) >= -self.errors(self.to_fail) * error
        if error == 0.0:
            return LIMITS[word][0](number, *limits)
        errors = self._distance(number) / error
        return (
            True
            if errors > self.errors(self.to_hold)
            else False
            if errors < -self.errors(self.to_fail)
            else None
        )

    def luck(self, number: float, error: float) -> float:
        """Return P(the case fails though it holds), it being where it is seen, or at its limit if beyond."""
        word, _ = self._parts()
        if word in SEEN or error == 0.0:
            return 0.0
        if word in BY_CHANCE:  # the truth is 0
            tails = 2.0 if word.endswith("apart from 0") else 1.0
            return float(tails * ndtr(-self.errors(self.to_fail)))
        return float(ndtr(-self.errors(self.to_fail) - max(self._distance(number), 0.0) / error))

    def _distance(self, number: float) -> float:
        """Return the distance from the limit, above 0 where the case holds, on the scale of the number."""
        word, limits = self._parts()
        if self.ratio and number > 0.0:
            return number * LIMITS[word][1](math.log(number), *map(math.log, limits))
        return LIMITS[word][1](number, *limits)

    def _parts(self) -> tuple[str, list[float]]:
        if self.text in (*SEEN, *BY_CHANCE):
            return self.text, []
        word, *limits = re.split(r" (?=[-\d])| and ", self.text)
        return word, [float(limit) for limit in limits]


def verdict(cases: Sequence[bool | None], some: bool = False, exceptions: bool = False) -> str:
    """Return the verdict on a claim from its cases that have a number; `exceptions`: its words allow them."""
    if not cases:
        return NO_NUMBER
    if all(cases) or (some and any(cases)):
        return HOLDS
    if all(holds is False for holds in cases) or (False in cases and not some and not exceptions):
        return FAILS
    return DEPENDS if exceptions and False in cases and True in cases else UNTOLD


def luck(chances: Sequence[float], some: bool) -> float:
    """Return P(a claim fails though it is true) from that of its cases: one fails, or all if `some`."""
    return math.prod(chances) if some else 1.0 - math.prod(1.0 - chance for chance in chances)
