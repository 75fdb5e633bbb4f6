"""The ledger: budget is reserved before anything is computed, so that nothing can overrun it.

With an accountant that is no filter (`Accountant.is_filter`) the total is a theorem only for releases that
were fixed before the first one. So the ledger then refuses all others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpmc.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.accountants import Accountant, checked_delta, checked_epsilon
from dpmc.privacy.events import Release, counts, from_counts, from_json, to_json, total_mu


class BudgetExceeded(DpmcError):
    """A reservation that does not fit the budget; nothing of it was recorded."""


@dataclass(frozen=True)
class Budget:
    """A total (epsilon, delta) to spend; DpmcError unless 0 < epsilon < inf, 0 < delta < 1."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        # Frozen for everyone else; NumPy scalars and integers become plain floats, for JSON.
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))


class Ledger:
    """What has been promised, told and given up about one data set, against one budget.

    A release goes through two steps: `reserve` before it is computed, `perform` once it has been.
    Whatever was reserved and never performed (a crash) stays reserved, or is written off with
    `forfeit`; it is never handed back. So no more than what has been reserved can ever be spent,
    and that fits the budget. Several chains on the same data share one
    ledger. Not for use by several threads at once.

    Unless the accountant is a filter, no more may be reserved than was foreseen; where nothing was, than had
    been reserved when the first release was performed.

    Parameters
    ----------
    budget : None means that no cost is refused (non-private chains); costs are still counted.
    accountant : what a set of releases costs.
    delta : at which a ledger without a budget says what was spent; None: it says nothing.
    """

    mode = "lab"
    """A reproducible chain is not a private release: who knows the seed can subtract the noise."""

    def __init__(self, budget: Budget | None, accountant: Accountant, delta: float | None = None) -> None:
        self.budget = budget
        self.told_delta = None if delta is None else checked_delta(delta)
        self.accountant = accountant
        # Events of count 1 -> how often. performed + forfeited <= reserved, entry by entry.
        self._reserved: dict[Release, int] = {}
        self._performed: dict[Release, int] = {}
        self._forfeited: dict[Release, int] = {}
        self._foreseen: dict[Release, int] | None = None
        # The latest total that was found to fit, so that no part of it is tested again.
        self._fitting: dict[Release, int] = {}

    @property
    def reserved_events(self) -> tuple[Release, ...]:
        """All that was ever reserved, whatever became of it."""
        return from_counts(self._reserved)

    @property
    def performed_events(self) -> tuple[Release, ...]:
        """All that was really released."""
        return from_counts(self._performed)

    @property
    def outstanding_events(self) -> tuple[Release, ...]:
        """Reserved, and neither performed nor forfeited yet."""
        return from_counts(self._outstanding())

    @property
    def spent_events(self) -> tuple[Release, ...]:
        """Performed or forfeited: what counts as told."""
        return from_counts(_sum(self._performed, self._forfeited))

    def foresee(self, events: Iterable[Release]) -> None:
        """Fix a whole run's releases, which must fit the budget.

        Reserving them piece by piece then needs no further test.

        Nothing is reserved. Raises BudgetExceeded if they do not fit. After the first release, and unless the
        accountant is a filter, nothing more can be foreseen: BudgetExceeded.
        """
        total = counts(events)
        if self._performed or self._forfeited:
            self._require_foreseen(total)
        self._require_within_budget(total)
        if not (self._performed or self._forfeited):
            self._foreseen = total

    def reserve(self, events: Iterable[Release]) -> None:
        """Set budget aside for these releases, before computing them.

        Raises BudgetExceeded, and records nothing, if they do not fit beside all reserved so far, or were not
        foreseen and the accountant is no filter.
        """
        total = _sum(self._reserved, counts(events))
        self._require_foreseen(total)
        self._require_within_budget(total)
        self._reserved = total

    def _require_foreseen(self, total: Mapping[Release, int]) -> None:
        fixed = self._foreseen
        if fixed is None and (self._performed or self._forfeited):
            fixed = self._reserved
        if fixed is None or self.accountant.is_filter:
            return
        for event, count in total.items():
            if count > fixed.get(event, 0):
                raise BudgetExceeded(
                    f"release {event.name!r}: {count} in all, {fixed.get(event, 0)} were fixed before the "
                    f"first release; accountant {self.accountant.name!r} is valid for these alone (what is "
                    "chosen by answers needs an accountant that is a filter: tight, zcdp)"
                )

    def perform(self, events: Iterable[Release]) -> None:
        """Record that these reserved releases took place.

        Raises DpmcError, and records nothing, if more is performed than is outstanding.
        """
        asked, outstanding = counts(events), self._outstanding()
        for event, count in asked.items():
            if count > outstanding.get(event, 0):
                raise DpmcError(
                    f"release {event.name!r}: {count} performed, but only "
                    f"{outstanding.get(event, 0)} of this kind reserved"
                )
        self._performed = _sum(self._performed, asked)

    def forfeit(self) -> None:
        """Write off what is reserved but not performed: it counts as spent for ever."""
        self._forfeited = _sum(self._forfeited, self._outstanding())

    def epsilon(self, delta: float | None = None) -> float:
        """Epsilon spent so far at `delta` (default: the budget's); inf if it cannot be bounded.

        Raises DpmcError if there is neither a delta nor a budget.
        """
        delta = self.own_delta if delta is None else delta
        if delta is None:
            raise DpmcError("a ledger without a budget has no delta of its own: give one")
        near = None if self.budget is None else self.budget.epsilon  # a whole run leaves little of it
        return _cost(self.accountant, self.spent_events, delta, near)

    @property
    def own_delta(self) -> float | None:
        """The budget's delta, or the one given in its place; None for neither."""
        return self.told_delta if self.budget is None else self.budget.delta

    def delta(self, epsilon: float | None = None) -> float:
        """Delta spent so far at `epsilon` (default: the budget's).

        Raises DpmcError if there is neither an epsilon nor a budget.
        """
        if epsilon is None:
            if self.budget is None:
                raise DpmcError("a ledger without a budget has no epsilon of its own: give one")
            epsilon = self.budget.epsilon
        return self.accountant.delta(self.spent_events, epsilon)

    def to_json(self, told: bool = True) -> dict[str, Any]:
        """All of the ledger as one JSON-able object; without what was spent unless `told`.

        `epsilon_spent` is at the budget's delta, or at `delta`, which is there without a budget only;
        null for neither. `mu` is null if a loss is not Gaussian; infinite numbers are the text "inf",
        which strict JSON can hold.
        """
        budget = self.budget
        limits = None if budget is None else {"epsilon": budget.epsilon, "delta": budget.delta}
        return {
            "mode": self.mode,
            "neighbours": self.accountant.neighbours,
            "accountant": {"name": self.accountant.name, "version": self.accountant.version},
            "budget": limits,
            **({} if self.told_delta is None else {"delta": self.told_delta}),
            "reserved": to_json(self.reserved_events),
            "performed": to_json(self.performed_events),
            "forfeited": to_json(from_counts(self._forfeited)),
            **self._foreseen_to_json(),
            "epsilon_spent": _finite_or_text(self.epsilon()) if told and self.own_delta is not None else None,
            "mu": _finite_or_text(total_mu(self.spent_events)),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ledger:
        """Inverse of `to_json`; what it derives (epsilon_spent, mu) is computed anew, not read.

        Raises DpmcError if a key is missing or wrong, if more was performed than reserved, and
        BudgetExceeded if what was reserved does not fit the budget.
        """
        try:
            budget = data["budget"]
            ledger = cls(
                None if budget is None else Budget(budget["epsilon"], budget["delta"]),
                accountants.get(data["accountant"]["name"]),
                data.get("delta"),
            )
            parts = {key: from_json(data[key]) for key in ("reserved", "performed", "forfeited")}
            foreseen = from_json(data["foreseen"]) if "foreseen" in data else None
            mode = data["mode"]
        except (KeyError, TypeError) as error:
            raise DpmcError(f"ledger: missing or malformed key ({error})") from error
        if mode != cls.mode:
            raise DpmcError(f"ledger: mode = {mode!r}: must be {cls.mode!r}")
        if foreseen is not None:
            ledger.foresee(foreseen)
        ledger.reserve(parts["reserved"])
        ledger.perform(parts["forfeited"])
        ledger._forfeited, ledger._performed = ledger._performed, {}
        ledger.perform(parts["performed"])
        return ledger

    def _foreseen_to_json(self) -> dict[str, Any]:
        """What was foreseen, unless all of it is reserved or nothing depends on it."""
        if self._foreseen in (None, self._reserved) or self.accountant.is_filter:
            return {}
        return {"foreseen": to_json(from_counts(self._foreseen))}

    def _outstanding(self) -> dict[Release, int]:
        done = _sum(self._performed, self._forfeited)
        left = {event: count - done.get(event, 0) for event, count in self._reserved.items()}
        return {event: count for event, count in left.items() if count}

    def _require_within_budget(self, total: Mapping[Release, int]) -> None:
        budget = self.budget
        if budget is None:
            return
        if all(count <= self._fitting.get(event, 0) for event, count in total.items()):
            return  # delta does not decrease when releases are added
        events = from_counts(total)
        # The very test by which Accountant.iterations counts, so that its answer can be reserved.
        if self.accountant.delta(events, budget.epsilon) <= budget.delta:
            self._fitting = dict(total)
            return
        would_be = self.accountant.epsilon(events, budget.delta)
        raise BudgetExceeded(
            f"budget exceeded: epsilon would be {would_be:.6g}; the budget is {budget.epsilon:.6g} "
            f"at delta = {budget.delta:.6g} (accountant {self.accountant.name})"
        )


@functools.lru_cache(maxsize=256)
def _cost(accountant: Accountant, events: tuple[Release, ...], delta: float, near: float | None) -> float:
    """Epsilon of these releases at `delta`: the runs of a cell release the same, and some take seconds."""
    return accountant.epsilon(events, delta, near)


def _sum(left: Mapping[Release, int], right: Mapping[Release, int]) -> dict[Release, int]:
    total = dict(left)
    for event, count in right.items():
        total[event] = total.get(event, 0) + count
    return total


def _finite_or_text(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value
