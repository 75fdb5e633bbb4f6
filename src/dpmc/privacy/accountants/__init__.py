"""Accountants: from releases to (epsilon, delta), and from a budget to a number of iterations.

One accountant is one small module: a frozen subclass of `Accountant` that names the kinds of
releases it can bound (`handles`) and computes one function, delta at a given epsilon (`_delta`).
Everything else is written once, here. It is then listed in `ACCOUNTANTS`. A *preset* chooses among
them by the kind of releases (`resolve`). What each one shows, and why: docs/accounting.md.
"""

from __future__ import annotations

import math
import numbers
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
    name, version : written into every ledger; the version changes when any answer does (epsilon: by
        more than its resolution, or its last digits).
    neighbours : the neighbour relation that its statements are about.
    handles : the kinds of releases that it is for. An exact answer (`NonPrivateRelease`) is
        accepted by all: it makes delta 1 and epsilon infinite.
    beside : further kinds that it can bound too, for runs that mix kinds.
    epsilon_resolution : `epsilon` is rounded up by at most this relative amount; 0: to a double.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    neighbours: ClassVar[str] = "substitute"
    handles: ClassVar[tuple[type[Release], ...]]
    beside: ClassVar[tuple[type[Release], ...]] = ()
    epsilon_resolution: ClassVar[float] = 0.0

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
        doubles, or to `epsilon_resolution`; the upper end is returned. It is found sooner if it is at
        most `near` (> 0), by a hundredth or less. Raises DpmcError unless 0 < delta < 1, and for
        releases that it cannot bound.
        """
        return self._epsilon_of(self._checked(events), checked_delta(delta), near)

    # All seeds of a cell ask the same; a composition of loss distributions takes tenths of a second.
    @lru_cache(maxsize=64)  # noqa: B019 - accountants are few, and live as long as the process
    def _epsilon_of(self, merged: tuple[Release, ...], target: float, near: float | None) -> float:
        def excess(epsilon: float) -> float:
            return _excess(self._delta_of(merged, epsilon), target)

        if near is not None:
            low, high = 0.99 * near, near
            at_low, at_high = excess(low), excess(high)
            if at_high <= 0.0 < at_low:
                return _smallest(excess, low, high, at_low, at_high, self.epsilon_resolution)
        low, at_low = 0.0, excess(0.0)
        if at_low <= 0.0:
            return 0.0
        high = 1.0
        while (at_high := excess(high)) > 0.0:
            low, at_low, high = high, at_high, 2.0 * high
            if math.isinf(high):
                return math.inf
        return _smallest(excess, low, high, at_low, at_high, self.epsilon_resolution)

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
        return _largest(excess, self._first_guess(first, each, *budget))

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


def _smallest(
    excess: Callable[[float], float],
    low: float,
    high: float,
    at_low: float,
    at_high: float,
    resolution: float,
) -> float:
    """Smallest x with excess(x) <= 0, rounded up by at most resolution · x, or to a double.

    Given excess(low) > 0 >= excess(high) and an excess that falls with x.
    """

    def between(high: float, low: float, part: float) -> float | None:
        middle = low + 0.5 * (high - low)
        if high - low <= resolution * high or not low < middle < high:
            return None
        # Nearer to an end than half of what they may be apart is wasted: so the other end follows at once.
        margin = max(0.5 * resolution * high, math.ulp(high))
        guess = min(max(high - part * (high - low), low + margin), high - margin)
        return guess if low < guess < high else middle

    return _last_within(excess, high, low, at_high, at_low, between)


def _largest(excess: Callable[[int], float], guess: int) -> int:
    """Largest k with excess(k) <= 0, given excess(0) <= 0 and an excess that rises with k.

    Steps of growing size away from the guess enclose the answer.
    """

    def between(low: int, high: int, part: float) -> int | None:
        if high - low <= 1:
            return None
        return min(max(low + int(part * (high - low)), low + 1), high - 1)

    low, high, at_low, at_high = _enclosed(excess, min(max(1, guess), MOST_ITERATIONS))
    return _last_within(excess, low, high, at_low, at_high, between)


def _last_within(
    excess: Callable[[Number], float],
    within: Number,
    beyond: Number,
    at_within: float,
    at_beyond: float,
    between: Callable[[Number, Number, float], Number | None],
) -> Number:
    """The last number with excess <= 0 before those with more, given one of each and their excess.

    False position (Illinois variant), every fourth step a bisection. `between(within, beyond, part)` is a
    number about that part of the way from one to the other; None if they are near enough.
    """
    turn, moved = 1, None
    while True:
        halve = turn % 4 == 0 or math.isinf(at_within) or at_within == at_beyond  # both 0, of weights
        asked = between(within, beyond, 0.5 if halve else at_within / (at_within - at_beyond))
        if asked is None:
            return within
        found = excess(asked)
        fits = found <= 0.0
        # An end that stays twice is given less weight, or it would stay for ever.
        weight = 0.5 if fits is moved else 1.0
        if fits:
            within, at_within, at_beyond = asked, found, weight * at_beyond
        else:
            beyond, at_beyond, at_within = asked, found, weight * at_within
        turn, moved = turn + 1, fits


def _enclosed(excess: Callable[[int], float], guess: int) -> tuple[int, int, float, float]:
    """(low, high, excess(low) <= 0, excess(high) > 0); excess(0) counts as -inf."""
    step = max(1, guess // 32)
    found = excess(guess)
    if found <= 0.0:
        low, at_low = guess, found
        while (found := excess(low + step)) <= 0.0:
            low, at_low, step = low + step, found, 4 * step
            if low >= MOST_ITERATIONS:
                raise DpmcError("more than 10^18 iterations fit the budget: check the noise multiplier")
        return low, low + step, at_low, found
    high, at_high = guess, found
    while high > step:
        found = excess(high - step)
        if found <= 0.0:
            return high - step, high, found, at_high
        high, at_high, step = high - step, found, 4 * step
    return 0, high, -math.inf, at_high


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
