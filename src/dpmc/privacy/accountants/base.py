"""The base of all accountants: the queries they bound, epsilon, and iterations for a budget.

An accountant computes one function, delta at a given epsilon (`_delta`). The searches for epsilon and for
iterations are here. Statements and proofs of each accountant: docs/explanation/accounting.md.
"""

import math
import numbers
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import ClassVar, TypeVar

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.privacy.events import NonPrivateQuery, Query, merge, repeat, total_mu

_Number = TypeVar("_Number", int, float)

MOST_ITERATIONS = 10**18
"""Largest number of iterations in a search: more indicate a wrong noise multiplier."""


class Accountant(ABC):
    """Upper bounds on the privacy loss of adaptively composed queries.

    A subclass is a frozen dataclass without fields; the package lists its instance in `ACCOUNTANTS`. Every
    accountant is valid for queries fixed before the first one, in any order and stopped at any time
    (docs/explanation/accounting.md). All accept an exact answer (`NonPrivateQuery`), for which delta is 1 and
    epsilon infinite.
    """

    name: ClassVar[str]  # with the version in every ledger
    version: ClassVar[str]  # changes with any result by more than rounding (epsilon: than its resolution)
    handles: ClassVar[tuple[type[Query], ...]]  # kinds of queries that it is meant for
    beside: ClassVar[tuple[type[Query], ...]] = ()  # that it can bound, too, in runs that mix kinds
    epsilon_resolution: ClassVar[float] = 0.0  # relative, by which epsilon is rounded up; 0: to a double
    #: Whether the total stays valid if kind and noise of the next query depend on earlier answers.
    is_filter: ClassVar[bool] = False

    @abstractmethod
    def _delta(self, events: tuple[Query, ...], epsilon: float) -> float:
        """Return delta in [0, 1] at epsilon >= 0 for merged events, all of which it can bound.

        It must not decrease when queries are added and not increase with epsilon.
        """

    def _mean_loss(self, events: tuple[Query, ...]) -> float:
        """Return about half the variance of the loss, 0 if unknown; it affects only the time of a search."""
        return total_mu(events) or 0.0

    def _obstacle(self, event: Query) -> str | None:
        """Return the reason why it cannot bound an event of a kind that it handles, else None."""
        return None

    def can_bound(self, events: Iterable[Query]) -> bool:
        """Return whether it can bound every one of these queries."""
        return all(self._why_not(event) is None for event in events)

    def is_meant_for(self, events: Iterable[Query]) -> bool:
        """Return whether it can bound all of these and is meant for one of the kinds, if there are any."""
        private = [event for event in events if not isinstance(event, NonPrivateQuery)]
        return self.can_bound(private) and (
            not private or any(isinstance(event, self.handles) for event in private)
        )

    def check(self, events: Iterable[Query]) -> None:
        """Raise DpmcError, naming accountants that can, unless it can bound all of these queries."""
        for event in events:
            reason = self._why_not(event)
            if reason is not None:
                able = [a.name for a in ACCOUNTANTS.values() if a.can_bound((event,))]
                raise DpmcError(
                    f"query {event.name!r}: {reason}; accountants that can: {', '.join(able) or 'none'}"
                )

    def delta(self, events: Iterable[Query], epsilon: float) -> float:
        """Return the smallest delta, in [0, 1], shown at epsilon; DpmcError for what it cannot bound."""
        return self._delta_of(self._merged(events), checked_epsilon(epsilon))

    def epsilon(self, events: Iterable[Query], delta: float, near: float | None = None) -> float:
        """Return the least epsilon found with `delta(events, epsilon) <= delta`, rounded up; inf if none is.

        0.0 if (0, delta)-DP is shown. The result is enclosed by neighbouring doubles, or to
        `epsilon_resolution`, and the upper end is returned. The search is faster if the result is close to
        `near` (> 0). Raises DpmcError unless 0 < delta < 1, and for queries that it cannot bound.
        """
        return self._epsilon_of(self._merged(events), checked_delta(delta), near)

    def iterations(
        self, once: Iterable[Query], per_iteration: Iterable[Query], epsilon: float, delta: float
    ) -> int:
        """Return the largest k for which `once` and k times `per_iteration` stay within (epsilon, delta).

        0 if not even one iteration fits. k is exact for the computed curve: k satisfies `delta(...) <= delta`
        and k + 1 does not (Algorithm 2, with integers throughout). Raises DpmcError for a bad budget, for
        queries that it cannot bound, and if an iteration asks nothing, or so little that more than 10^18
        fit.
        """
        first, each = self._merged(once), self._merged(per_iteration)
        epsilon, delta = checked_epsilon(epsilon), checked_delta(delta)

        def excess(k: int) -> float:
            return _excess(self._delta_of(merge(first + repeat(each, k)), epsilon), delta)

        if excess(0) > 0.0:
            return 0
        if not each:
            raise DpmcError("an iteration asks nothing: every number of iterations fits the budget")
        # Start at 1.5 times the iterations that zCDP allows for normal losses of these means.
        log_inverse, cost = -math.log(delta), self._mean_loss(each)
        # √mu of mu + 2 √(mu ln(1/delta)) = epsilon, without a difference of nearly equal roots.
        root = epsilon / (math.sqrt(epsilon + log_inverse) + math.sqrt(log_inverse))
        guess = (1.5 * root * root - self._mean_loss(first)) / cost if cost else 1.0
        start = int(min(max(guess, 1.0), MOST_ITERATIONS)) if math.isfinite(guess) else 1
        most = crossing(excess, start, MOST_ITERATIONS, rises=True)
        if most is None:
            raise DpmcError("more than 10^18 iterations fit the budget: check the noise multiplier")
        return most

    # Cached for the seeds of a cell: a composition of loss distributions takes tenths of a second.
    @lru_cache(maxsize=256)  # noqa: B019 - accountants are few, and live as long as the process
    def _delta_of(self, merged: tuple[Query, ...], epsilon: float) -> float:
        if not merged:
            return 0.0
        if any(isinstance(event, NonPrivateQuery) for event in merged):
            return 1.0
        return self._delta(merged, epsilon)

    @lru_cache(maxsize=256)  # noqa: B019
    def _epsilon_of(self, merged: tuple[Query, ...], delta: float, near: float | None) -> float:
        if any(isinstance(event, NonPrivateQuery) for event in merged):
            return math.inf
        if near:
            start = near
        else:  # the epsilon of a normal loss of this mean, by zCDP
            mean = self._mean_loss(merged)
            start = mean + 2.0 * math.sqrt(mean) * math.sqrt(-math.log(delta))
            start = start if 0.0 < start < math.inf else 1.0
        smallest = crossing(
            lambda epsilon: _excess(self._delta_of(merged, epsilon), delta),
            max(start, 1e-300),
            sys.float_info.max,
            rises=False,
            resolution=self.epsilon_resolution,
        )
        return math.inf if smallest is None else smallest

    def _merged(self, events: Iterable[Query]) -> tuple[Query, ...]:
        """Return the events, merged, after `check`."""
        merged = merge(events)
        self.check(merged)
        return merged

    def _why_not(self, event: Query) -> str | None:
        """Return the reason why it cannot bound a query, else None."""
        if isinstance(event, NonPrivateQuery):
            return None
        if not isinstance(event, self.handles + self.beside):
            return f"accountant {self.name!r} cannot bound a {type(event).__name__}"
        obstacle = self._obstacle(event)
        return None if obstacle is None else f"accountant {self.name!r} cannot bound it: {obstacle}"


ACCOUNTANTS: dict[str, Accountant] = {}
"""Every accountant by name. Filled by the package's `__init__`, since the accountants import this module."""


def checked_epsilon(value: object) -> float:
    """Return `value` as a float; raise DpmcError unless it is a finite number greater than 0."""
    return _below(math.inf, value, "epsilon", "a finite number greater than 0")


def checked_delta(value: object) -> float:
    """Return `value` as a float; raise DpmcError unless it is strictly between 0 and 1."""
    return _below(1.0, value, "delta", "a number between 0 and 1, both excluded")


def _below(limit: float, value: object, key: str, rule: str) -> float:
    # True is a number for Python, and a mistake here.
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        with suppress(OverflowError):  # of a whole number beyond all doubles
            if 0.0 < float(value) < limit:
                return float(value)
    raise DpmcError(f"{key} = {shown(value)}: must be {rule}")


def _excess(delta: float, allowed: float) -> float:
    """Return ln(delta / allowed), > 0 if and only if delta > allowed."""
    if delta <= allowed:
        return min(0.0, math.log(delta / allowed)) if delta else -math.inf
    # Greater than 0 even if the logarithm rounds to 0: the search trusts the sign.
    return max(math.ulp(0.0), math.log(delta / allowed))


def crossing(
    excess: Callable[[_Number], float], start: _Number, most: _Number, rises: bool, resolution: float = 0.0
) -> _Number | None:
    """Return the number in [0, most] with excess <= 0 next to the change of sign; None if beyond `most`.

    `excess` is monotone: it rises or falls. Integers are searched exactly, floats to `resolution` times the
    result, at least to neighbouring doubles. 0 if the sign does not change down to 0.
    """
    number, at_number, growth = start, excess(start), 1.125
    fits = at_number <= 0.0
    upwards = fits == rises
    while True:  # away from the start, in growing steps
        other = _further(number, growth, upwards, most)
        if other == number:
            return None if upwards else number
        at_other = excess(other)
        if (at_other <= 0.0) != fits:
            break
        # Steps grow doubly exponentially, so a poor start costs few evaluations.
        number, at_number, growth = other, at_other, growth * growth
    within, at_within, beyond, at_beyond = number, at_number, other, at_other
    if not fits:
        within, at_within, beyond, at_beyond = beyond, at_beyond, within, at_within
    # Between the two: false position (Illinois), after 24 steps bisection.
    steps, moved = 0, 0
    while True:
        steps += 1
        span = at_within - at_beyond
        # Bisection ends for any curve; false position can creep where the curve bends.
        part = at_within / span if span and math.isfinite(span) and steps < 24 else 0.5
        asked = _between(within, beyond, part, resolution)
        if asked is None:
            return within
        at_asked = excess(asked)
        if at_asked <= 0.0:
            within, at_within = asked, at_asked
            at_beyond *= 0.5 if moved > 0 else 1.0  # the other end stayed twice: its weight is halved
            moved = 1
        else:
            beyond, at_beyond = asked, at_asked
            at_within *= 0.5 if moved < 0 else 1.0
            moved = -1


def _further(number: _Number, growth: float, upwards: bool, most: _Number) -> _Number:
    """Return a number `growth` times as large or small, within [0, most]; a different one if possible."""
    if isinstance(number, int):
        # At least one further: 1.125 times a small integer is no step.
        return min(int(min(number * growth, most)) + 1, most) if upwards else max(int(number / growth) - 1, 0)
    return min(number * growth, most) if upwards else number / growth


def _between(within: _Number, beyond: _Number, part: float, resolution: float) -> _Number | None:
    """Return a number about `part` of the way from one to the other; None if they are close enough."""
    low, high = min(within, beyond), max(within, beyond)
    if isinstance(low, int):
        asked, middle = within + int(part * (beyond - within)), (low + high) // 2
        asked = min(max(asked, low + 1), high - 1)
    else:
        # A point closer to an end than half the resolution is useless.
        margin = max(0.5 * resolution * high, math.ulp(high))
        asked, middle = within + part * (beyond - within), low + 0.5 * (high - low)
        asked = min(max(asked, low + margin), high - margin)
    if high - low <= resolution * high or not low < middle < high:
        return None
    return asked if low < asked < high else middle
