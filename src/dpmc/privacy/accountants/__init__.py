"""Accountants: from releases to (epsilon, delta), and from a budget to a number of iterations.

One accountant is one small module: a frozen subclass of `Accountant` that names the kinds of
releases it can bound (`handles`) and computes one function, delta at a given epsilon (`_delta`).
Everything else is written once, here. It is then listed in `ACCOUNTANTS`. A *preset* chooses among
them by the kind of releases (`resolve`). What each one shows, and why: docs/accounting.md.
"""

from __future__ import annotations

import math
import numbers
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from dpmc.errors import DpmcError
from dpmc.privacy.events import (
    BarkerRelease,
    FastMetropolisRelease,
    GaussianRelease,
    NonPrivateRelease,
    Release,
    SubsampledGaussianRelease,
    merge,
    repeat,
)

Number = TypeVar("Number", int, float)

MOST_ITERATIONS = 10**18
"""Where the search for iterations gives up: beyond it the noise multiplier cannot be meant."""


class Accountant(ABC):
    """Upper bounds on the privacy loss of adaptively composed releases.

    Attributes
    ----------
    name, version : written into every ledger; the version changes when any answer does, by more than
        rounding (epsilon: than its resolution).
    neighbours : the neighbour relation that its statements are about.
    handles : the kinds of releases that it is for. An exact answer (`NonPrivateRelease`) is
        accepted by all: it makes delta 1 and epsilon infinite.
    beside : further kinds that it can bound too, for runs that mix kinds.
    epsilon_resolution : `epsilon` is rounded up by at most this relative amount; 0: to a double.
    is_filter : whether the total stays valid if the kind and noise of the next release are chosen by the
        answers so far. Every accountant is valid for releases fixed before the first one, in any order and
        stopped at any time (docs/accounting.md).
    """

    name: ClassVar[str]
    version: ClassVar[str]
    neighbours: ClassVar[str] = "substitute"
    handles: ClassVar[tuple[type[Release], ...]]
    beside: ClassVar[tuple[type[Release], ...]] = ()
    epsilon_resolution: ClassVar[float] = 0.0
    is_filter: ClassVar[bool] = False

    @abstractmethod
    def _delta(self, events: tuple[Release, ...], epsilon: float) -> float:
        """Delta in [0, 1] at epsilon >= 0 for merged events, all such as `can_bound` accepts.

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

    def _first_epsilon(self, events: tuple[Release, ...], delta: float) -> float:
        """Where the search for epsilon of merged events starts, > 0: changes its time, and last digits."""
        return 1.0

    def _obstacle(self, event: Release) -> str | None:
        """Why an event of a kind that it bounds has numbers for which it has no bound, if so."""
        return None

    def can_bound(self, events: Iterable[Release]) -> bool:
        """Whether it has a bound for every one of these releases."""
        return all(isinstance(event, NonPrivateRelease) or self._why_not(event) is None for event in events)

    def is_meant_for(self, events: Iterable[Release]) -> bool:
        """Whether it can bound all of these and is for at least one kind among them.

        False, for example, for a subsampling accountant and Gaussian releases on all rows alone: it
        could bound them, but another is exact. True if there is nothing to bound.
        """
        private = [event for event in merge(events) if not isinstance(event, NonPrivateRelease)]
        mine = not private or any(isinstance(event, self.handles) for event in private)
        return mine and self.can_bound(private)

    def delta(self, events: Iterable[Release], epsilon: float) -> float:
        """Smallest delta, in [0, 1], for which this accountant shows (epsilon, delta)-privacy.

        Raises DpmcError unless 0 < epsilon < inf, and for releases that it cannot bound.
        """
        return self._delta_of(self._checked(events), checked_epsilon(epsilon))

    def epsilon(self, events: Iterable[Release], delta: float, near: float | None = None) -> float:
        """Smallest epsilon with `delta(events, epsilon) <= delta`, rounded up; inf if none.

        0.0 if the events are private with this delta alone. The answer is enclosed by neighbouring
        doubles, or to `epsilon_resolution`; the upper end is returned. It is found sooner if it is
        close to `near` (> 0). Raises DpmcError unless 0 < delta < 1, and for releases that it cannot
        bound.
        """
        return self._epsilon_of(self._checked(events), checked_delta(delta), near)

    # All seeds of a cell ask the same; a composition of loss distributions takes tenths of a second.
    @lru_cache(maxsize=64)  # noqa: B019 - accountants are few, and live as long as the process
    def _epsilon_of(self, merged: tuple[Release, ...], target: float, near: float | None) -> float:
        def excess(epsilon: float) -> float:
            return _excess(self._delta_of(merged, epsilon), target)

        if any(isinstance(event, NonPrivateRelease) for event in merged):
            return math.inf

        def guess(log_factor: float) -> float:
            return self._first_epsilon(merged, _times(target, log_factor))

        return _smallest(excess, guess(0.0) if near is None else near, guess, self.epsilon_resolution)

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

        def excess(k: int) -> float:
            return _excess(self._delta_of(merge(first + repeat(each, k)), budget[0]), budget[1])

        if excess(0) > 0.0:
            return 0
        if not each:
            raise DpmcError("an iteration releases nothing: every number of iterations fits the budget")

        def guess(log_factor: float) -> int:
            return self._first_guess(first, each, budget[0], _times(budget[1], log_factor))

        return _largest(excess, guess)

    @lru_cache(maxsize=64)  # noqa: B019
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
            reason = self._why_not(event)
            if reason is not None:
                able = [a.name for a in ACCOUNTANTS.values() if a._why_not(event) is None]
                raise DpmcError(
                    f"release {event.name!r}: {reason}; accountants that can: {', '.join(able) or 'none'}"
                )
        return merged

    def _why_not(self, event: Release) -> str | None:
        """Why it cannot bound a release; None if it can."""
        if not isinstance(event, self.handles + self.beside):
            return f"accountant {self.name!r} cannot bound a {type(event).__name__}"
        relation = getattr(event, "neighbours", self.neighbours)
        if relation != self.neighbours:
            return (
                f"neighbours = {relation!r}: accountant {self.name!r} is about the relation "
                f"{self.neighbours!r}"
            )
        obstacle = self._obstacle(event)
        return None if obstacle is None else f"accountant {self.name!r} cannot bound it: {obstacle}"


def _excess(found: float, allowed: float) -> float:
    """ln (delta found / delta allowed), > 0 exactly if it is not within."""
    if found <= allowed:
        return min(0.0, math.log(found / allowed)) if found else -math.inf
    return max(math.ulp(0.0), math.log(found / allowed))


def _times(delta: float, log_factor: float) -> float:
    """delta e^log_factor, kept between 0 and 1, both excluded."""
    return math.exp(min(max(math.log(delta) + log_factor, -600.0), -1e-3))


def _smallest(
    excess: Callable[[float], float], start: float, guess: Callable[[float], float], resolution: float
) -> float:
    """Smallest x >= 0 with excess(x) <= 0, rounded up by at most resolution · x, or to a double; inf if none.

    The excess falls with x. `start` > 0, and `guess` as in `_enclosed`.
    """

    def between(high: float, low: float, part: float) -> float | None:
        middle = low + 0.5 * (high - low)
        if high - low <= resolution * high or not low < middle < high:
            return None
        # Nearer to an end than half of what they may be apart is wasted: so the other end follows at once.
        margin = max(0.5 * resolution * high, math.ulp(high))
        asked = min(max(high - part * (high - low), low + margin), high - margin)
        return asked if low < asked < high else middle

    def away(x: float, distance: float) -> float:
        there = x + distance
        if there == x:  # too near for a double, unless it is at the end
            there = math.nextafter(x, math.inf if distance > 0.0 else 0.0)
        return min(max(there, 0.0), sys.float_info.max)

    ends = _enclosed(excess, start, guess, away, rises=False)
    if not isinstance(ends, tuple):
        return math.inf if ends else 0.0
    return _last_within(excess, *ends, between)


def _largest(excess: Callable[[int], float], guess: Callable[[float], int]) -> int:
    """Largest k with excess(k) <= 0, given excess(0) <= 0 and an excess that rises with k.

    `guess` is as in `_enclosed`.
    """

    def between(low: int, high: int, part: float) -> int | None:
        if high - low <= 1:
            return None
        return min(max(low + int(part * (high - low)), low + 1), high - 1)

    def away(k: int, distance: float) -> int:
        step = math.ceil(min(abs(distance), MOST_ITERATIONS))
        return min(max(k + step if distance > 0.0 else k - step, 0), MOST_ITERATIONS)

    def bounded(log_factor: float) -> int:
        return min(max(1, guess(log_factor)), MOST_ITERATIONS)

    ends = _enclosed(excess, bounded(0.0), bounded, away, rises=True)
    if not isinstance(ends, tuple):
        raise DpmcError("more than 10^18 iterations fit the budget: check the noise multiplier")
    return _last_within(excess, *ends, between)


def _last_within(
    excess: Callable[[Number], float],
    within: Number,
    beyond: Number,
    at_within: float,
    at_beyond: float,
    between: Callable[[Number, Number, float], Number | None],
) -> Number:
    """The last number with excess <= 0 before those with more, given one of each and their excess.

    Inverse quadratic interpolation through the ends and the end before, or false position; bisection where
    these do not get on. `between(within, beyond, part)` is a number about that part of the way from one to
    the other; None if they are near enough.
    """
    left, at_left = beyond, at_beyond  # the end that was replaced last
    size, kept = abs(beyond - within), 0  # when it was last halved, and steps since
    while True:
        place = (left - within) / (beyond - within)
        part = 0.5 if kept >= 4 else _part(at_within, at_beyond, place, at_left)
        asked = between(within, beyond, part)
        if asked is None:
            return within
        found = excess(asked)
        if found <= 0.0:
            left, at_left, within, at_within = within, at_within, asked, found
        else:
            left, at_left, beyond, at_beyond = beyond, at_beyond, asked, found
        kept += 1
        if abs(beyond - within) <= 0.5 * size:
            size, kept = abs(beyond - within), 0


def _part(at_0: float, at_1: float, place: float, at_place: float) -> float:
    """Where in [0, 1] a function is 0 that is at_0 <= 0 at 0, at_1 > 0 at 1 and at_place elsewhere."""
    if math.isinf(at_0) or math.isinf(at_1):
        return 0.5
    if math.isfinite(at_place) and at_place not in (at_0, at_1):
        first = at_0 * at_place / ((at_1 - at_0) * (at_1 - at_place))
        second = at_0 * at_1 / ((at_place - at_0) * (at_place - at_1)) * place
        if 0.0 < first + second < 1.0:
            return first + second
    return at_0 / (at_0 - at_1)


def _enclosed(
    excess: Callable[[Number], float],
    start: Number,
    guess: Callable[[float], Number],
    away: Callable[[Number, float], Number],
    rises: bool,
) -> tuple[Number, Number, float, float] | bool:
    """A number with excess <= 0, one with more, and their excess; if there is but one kind from `start`
    to the end where the other should be, whether that is the upper end.

    `guess(x)` is where one would look for an excess of x if one knew nothing: how far to go from `start`
    is what it says, and a little more. `away(number, distance)` is a number about that far away, or an end.
    """
    number, found = start, excess(start)
    within = found <= 0.0
    distance = 1.0625 * abs(guess(-found) - guess(0.0)) or number / 32.0
    sign = 1.0 if within == rises else -1.0
    while True:
        other = away(number, sign * distance)
        if other == number:
            return sign > 0.0
        at_other = excess(other)
        if (at_other <= 0.0) != within:
            return (number, other, found, at_other) if within else (other, number, at_other, found)
        distance = 4.0 * abs(other - number)
        if math.isfinite(found) and 0.0 < abs(at_other) < abs(found):  # on the line through both
            distance = min(distance, 1.0625 * at_other / (found - at_other) * abs(other - number))
        number, found = other, at_other


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
from dpmc.privacy.accountants.barker_pld import BarkerPld  # noqa: E402
from dpmc.privacy.accountants.fast_mh_pld import FastMetropolisPld  # noqa: E402
from dpmc.privacy.accountants.rdp import RenyiDivergence  # noqa: E402
from dpmc.privacy.accountants.replace_pld import ReplacePld  # noqa: E402
from dpmc.privacy.accountants.tight import TightGaussian  # noqa: E402
from dpmc.privacy.accountants.wor_pld import WithoutReplacementPld  # noqa: E402
from dpmc.privacy.accountants.zcdp import ZeroConcentrated  # noqa: E402

ACCOUNTANTS: dict[str, Accountant] = {
    accountant.name: accountant
    for accountant in (
        TightGaussian(),
        ZeroConcentrated(),
        RenyiDivergence(),
        ReplacePld(),
        WithoutReplacementPld(),
        BarkerPld(),
        FastMetropolisPld(),
    )
}
"""Every accountant by its name."""

PRESETS: dict[str, dict[type[Release], str]] = {
    "thesis": {
        FastMetropolisRelease: "fast-mh-pld",
        BarkerRelease: "rdp",
        SubsampledGaussianRelease: "replace-pld",
        GaussianRelease: "tight",
    },
    "tight": {
        FastMetropolisRelease: "fast-mh-pld",
        BarkerRelease: "barker-pld",
        SubsampledGaussianRelease: "wor-pld",
        GaussianRelease: "tight",
    },
}
"""Preset -> kind of release -> accountant: what the thesis used, and the best that we have.

The thesis has no DP-Fast MH; both presets take its only accountant.
"""


def get(name: str) -> Accountant:
    """The accountant of this name; DpmcError names the known ones.

    "tight" is the exact accountant of Gaussian releases; `resolve` reads it as a preset.
    """
    if not isinstance(name, str) or name not in ACCOUNTANTS:
        raise DpmcError(f"accountant = {name!r}: must be one of {', '.join(ACCOUNTANTS)}")
    return ACCOUNTANTS[name]


def resolve(name: str, events: Iterable[Release]) -> Accountant:
    """The accountant that a preset or an accountant's name means for these releases.

    A preset takes the accountant of the first kind in its list that occurs among the events and
    whose accountant can bound them all: so "tight" is the exact Gaussian accountant for Gaussian
    releases, `wor-pld` for a batch's, `barker-pld` for Barker tests. An accountant's own name is
    that accountant.

    Raises DpmcError for an unknown name, and if the accountant cannot bound the events.
    """
    merged = merge(events)
    if name not in PRESETS:
        if name not in ACCOUNTANTS:
            raise DpmcError(f"accountant = {name!r}: must be one of {', '.join(sorted(names()))}")
        accountant = ACCOUNTANTS[name]
        accountant._checked(merged)
        return accountant
    preset = PRESETS[name]
    private = [event for event in merged if not isinstance(event, NonPrivateRelease)]
    chosen = [ACCOUNTANTS[preset[kind]] for kind in preset if any(isinstance(e, kind) for e in private)]
    for accountant in chosen:
        if accountant.can_bound(private):
            return accountant
    if private:
        able = [a.name for a in ACCOUNTANTS.values() if a.can_bound(private)]
        raise DpmcError(
            f"accountant = {name!r}: the preset's choice cannot bound these releases together "
            f"({', '.join(sorted({type(e).__name__ for e in private}))}); "
            f"accountants that can: {', '.join(able) or 'none'}"
        )
    return ACCOUNTANTS[preset[GaussianRelease]]


def names() -> set[str]:
    """All that `resolve` understands: accountants and presets."""
    return set(ACCOUNTANTS) | set(PRESETS)
