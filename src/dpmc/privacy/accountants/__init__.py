"""Accountants: from releases to (epsilon, delta), and from a budget to a number of iterations.

One accountant is one small module: a frozen subclass of `Accountant` that names the kinds of
releases it can bound (`handles`) and computes one function, delta at a given epsilon (`_delta`).
Everything else is written once, here. It is then listed in `ACCOUNTANTS`.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from dpmc.errors import DpmcError
from dpmc.privacy.events import NonPrivateRelease, Release, merge, repeat

MOST_ITERATIONS = 10**18
"""Where the search for iterations gives up: beyond it the noise multiplier cannot be meant."""


class Accountant(ABC):
    """Upper bounds on the privacy loss of adaptively composed releases.

    Attributes
    ----------
    name, version : written into every ledger; the version changes when any answer changes.
    neighbours : the neighbour relation that its statements are about.
    handles : the kinds of releases that it can bound. An exact answer (`NonPrivateRelease`) is
        accepted by all: it makes delta 1 and epsilon infinite.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    neighbours: ClassVar[str] = "substitute"
    handles: ClassVar[tuple[type[Release], ...]]

    @abstractmethod
    def _delta(self, events: tuple[Release, ...], epsilon: float) -> float:
        """Delta in [0, 1] at epsilon >= 0 for merged events, all of a kind in `handles`.

        It must not decrease when releases are added and not increase with epsilon.
        """

    def _first_guess(
        self,
        once: tuple[Release, ...],
        per_iteration: tuple[Release, ...],
        epsilon: float,
        delta: float,
    ) -> int:
        """Where the search for iterations starts: changes its time, not its answer."""
        return 1

    def delta(self, events: Iterable[Release], epsilon: float) -> float:
        """Smallest delta, in [0, 1], for which this accountant shows (epsilon, delta)-privacy.

        Raises DpmcError unless 0 < epsilon < inf, and for releases that it cannot bound.
        """
        return self._delta_of(self._checked(events), checked_epsilon(epsilon))

    def epsilon(self, events: Iterable[Release], delta: float) -> float:
        """Smallest epsilon with `delta(events, epsilon) <= delta`, rounded up; inf if none.

        0.0 if the events are private with this delta alone. Bisection down to neighbouring doubles,
        of which the upper one is returned. Raises DpmcError unless 0 < delta < 1, and for releases
        that it cannot bound.
        """
        merged, target = self._checked(events), checked_delta(delta)
        if self._delta_of(merged, 0.0) <= target:
            return 0.0
        low, high = 0.0, 1.0
        while self._delta_of(merged, high) > target:
            low, high = high, 2.0 * high
            if math.isinf(high):
                return math.inf
        while True:
            middle = low + 0.5 * (high - low)
            if not low < middle < high:
                return high
            if self._delta_of(merged, middle) <= target:
                high = middle
            else:
                low = middle

    def iterations(
        self,
        once: Iterable[Release],
        per_iteration: Iterable[Release],
        epsilon: float,
        delta: float,
    ) -> int:
        """Largest k for which `once` and k times `per_iteration` stay within (epsilon, delta).

        0 if not even one iteration fits. The answer k is exact for the computed curve: k passes
        `delta(...) <= delta` and k + 1 does not (Algorithm 2, with integers throughout).
        Raises DpmcError for a bad budget, for releases that it cannot bound, and if an iteration
        releases nothing (or so little that more than 10^18 fit): then no number is the largest.
        """
        first, each = self._checked(once), self._checked(per_iteration)
        budget = checked_epsilon(epsilon), checked_delta(delta)

        def fits(k: int) -> bool:
            return self._delta_of(merge(first + repeat(each, k)), budget[0]) <= budget[1]

        if not fits(0):
            return 0
        if not each:
            raise DpmcError("an iteration releases nothing: every number of iterations fits the budget")
        return _largest(fits, self._first_guess(first, each, *budget))

    def _delta_of(self, merged: tuple[Release, ...], epsilon: float) -> float:
        if not merged:
            return 0.0
        if any(isinstance(event, NonPrivateRelease) for event in merged):
            return 1.0
        return self._delta(merged, epsilon)

    def _checked(self, events: Iterable[Release]) -> tuple[Release, ...]:
        """The events, merged, if this accountant can bound all; else DpmcError says who can."""
        merged = merge(events)
        for event in merged:
            if isinstance(event, NonPrivateRelease):
                continue
            if not isinstance(event, self.handles):
                able = [a.name for a in ACCOUNTANTS.values() if isinstance(event, a.handles)]
                raise DpmcError(
                    f"release {event.name!r}: accountant {self.name!r} cannot bound a "
                    f"{type(event).__name__}; accountants that can: {', '.join(able) or 'none'}"
                )
            relation = getattr(event, "neighbours", self.neighbours)
            if relation != self.neighbours:
                raise DpmcError(
                    f"release {event.name!r}: neighbours = {relation!r}: accountant {self.name!r} "
                    f"is about the relation {self.neighbours!r}"
                )
        return merged


def _largest(fits: Callable[[int], bool], guess: int) -> int:
    """Largest k with fits(k), given fits(0), by doubling from `guess` and bisection in integers."""
    low, high = 0, min(max(1, guess), MOST_ITERATIONS)
    while fits(high):
        low, high = high, 2 * high
        if low >= MOST_ITERATIONS:
            raise DpmcError("more than 10^18 iterations fit the budget: check the noise multiplier")
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def checked_epsilon(value: Any) -> float:
    """`value` as a float; DpmcError unless it is a finite number greater than 0."""
    if not _is_number(value) or not 0.0 < float(value) < math.inf:
        raise DpmcError(f"epsilon = {value!r}: must be a finite number greater than 0")
    return float(value)


def checked_delta(value: Any) -> float:
    """`value` as a float; DpmcError unless it lies strictly between 0 and 1."""
    if not _is_number(value) or not 0.0 < float(value) < 1.0:
        raise DpmcError(f"delta = {value!r}: must be a number between 0 and 1, both excluded")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


# Below the base class, because these modules derive from it.
from dpmc.privacy.accountants.tight import TightGaussian  # noqa: E402
from dpmc.privacy.accountants.zcdp import ZeroConcentrated  # noqa: E402

ACCOUNTANTS: dict[str, Accountant] = {a.name: a for a in (TightGaussian(), ZeroConcentrated())}
"""Every accountant by its name."""


def get(name: str) -> Accountant:
    """The accountant of this name; DpmcError names the known ones."""
    if not isinstance(name, str) or name not in ACCOUNTANTS:
        raise DpmcError(f"accountant = {name!r}: must be one of {', '.join(sorted(ACCOUNTANTS))}")
    return ACCOUNTANTS[name]
