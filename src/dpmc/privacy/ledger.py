"""The ledger: budget is reserved before anything is computed, so that it cannot be exceeded.

If the accountant is not a filter (`Accountant.is_filter`), the total is valid only for queries that were
fixed before the first answer. The ledger cannot know when that was: a query may be computed as soon as it
is reserved, and a crash may lose its record. So the first reservation fixes what may be asked: what was
foreseen, or if nothing was foreseen, that reservation alone.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from dpmc.common.errors import DpmcError
from dpmc.common.values import rounded_up
from dpmc.privacy import accountants
from dpmc.privacy.accountants import Accountant, checked_delta, checked_epsilon
from dpmc.privacy.accountants.persons import OfPersons, for_persons
from dpmc.privacy.events import NEIGHBOURS, Query, counts, from_counts, from_json, to_json, total_mu

SPENT_DIGITS = 6  #: of ε spent in a release: fewer than those in which machines differ


class BudgetExceeded(DpmcError):
    """A reservation that does not fit the budget; nothing of it was recorded."""


@dataclass(frozen=True)
class Budget:
    """A total (epsilon, delta) to spend; DpmcError unless 0 < epsilon < inf, 0 < delta < 1."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        # The dataclass is frozen; NumPy scalars and integers become plain floats, for JSON.
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        object.__setattr__(self, "delta", checked_delta(self.delta))


class Ledger:
    """Queries reserved, performed and forfeited on one data set, against one budget.

    A query takes two steps: `reserve` before it is computed, `perform` afterwards. A query that was reserved
    but never performed (a crash) stays reserved, or is written off with `forfeit`; its budget is never
    returned. So at most the reserved queries can be spent, and they fit the budget. Several chains on the
    same data share one ledger. Not thread-safe. With `budget` None no query is refused (non-private chains),
    but queries are counted, and `delta` is that at which ε spent is reported; None: it is not.
    """

    mode = "lab"
    """A reproducible chain is not a private release: its noise is computed, not secret."""

    def __init__(self, budget: Budget | None, accountant: Accountant, delta: float | None = None) -> None:
        self.budget = budget
        self.accountant = accountant
        self.given_delta = None if delta is None else checked_delta(delta)
        # Events of count 1 -> how often. performed + forfeited <= reserved, entry by entry.
        self._reserved: Counter[Query] = Counter()
        self._performed: Counter[Query] = Counter()
        self._forfeited: Counter[Query] = Counter()
        self._foreseen: Counter[Query] | None = None
        # The latest total that fits the budget: parts of it need no new test.
        self._fitting: Counter[Query] = Counter()

    @property
    def outstanding_events(self) -> tuple[Query, ...]:
        """Return the queries that are reserved but neither performed nor forfeited."""
        return from_counts(self._outstanding())

    @property
    def spent_events(self) -> tuple[Query, ...]:
        """Return the queries that were performed or forfeited."""
        return from_counts(self._spent())

    @property
    def rows_per_person(self) -> int:
        """Return the most rows of a person whom the budget protects; queries are listed for one row."""
        return self.accountant.rows if isinstance(self.accountant, OfPersons) else 1

    @property
    def own_delta(self) -> float | None:
        """Return the budget's delta, else the given one; None for neither."""
        return self.given_delta if self.budget is None else self.budget.delta

    def foresee(self, events: Iterable[Query]) -> None:
        """Fix a whole run's queries, which must fit the budget; parts of them need no further test.

        Nothing is reserved. Raises BudgetExceeded if they do not fit. After the first reservation nothing
        more can be foreseen unless the accountant is a filter: this raises BudgetExceeded too.
        """
        total = counts(events)
        begun = bool(self._reserved)
        if begun:
            self._require_foreseen(total)
        self._require_within_budget(total)
        if not begun:
            self._foreseen = total

    def reserve(self, events: Iterable[Query]) -> None:
        """Reserve budget for these queries before they are computed.

        Raises BudgetExceeded, and records nothing, if they do not fit together with all reserved so far, or
        if they were not foreseen and the accountant is not a filter.
        """
        # With forfeited queries: what a crash interrupted may have been seen.
        total = self._reserved + counts(events)
        self._require_foreseen(total)
        self._require_within_budget(total)
        # Last, so that a refusal leaves the ledger as it was.
        self._reserved = total

    def perform(self, events: Iterable[Query]) -> None:
        """Record that reserved queries took place; DpmcError, and no record, for more than outstanding."""
        asked, outstanding = counts(events), self._outstanding()
        for event, count in asked.items():
            if count > outstanding[event]:
                raise DpmcError(
                    f"query {event.name!r}: {count} performed, but only {outstanding[event]} of this kind "
                    "reserved"
                )
        self._performed = self._performed + asked

    def forfeit(self) -> None:
        """Write off the outstanding queries: they count as spent permanently."""
        self._forfeited = self._forfeited + self._outstanding()

    def epsilon(self, delta: float | None = None) -> float:
        """Return ε spent at `delta` (default: its own, or DpmcError); inf if it cannot be bounded."""
        delta = self.own_delta if delta is None else delta
        if delta is None:
            raise DpmcError("a ledger without a budget has no delta of its own: give one")
        near = None if self.budget is None else self.budget.epsilon  # a full run spends nearly all of it
        return self.accountant.epsilon(self.spent_events, delta, near)

    def to_json(self, with_spent: bool = True) -> dict[str, Any]:
        """Return the whole ledger as one JSON-compatible object.

        `epsilon_spent` is at the budget's delta, or without a budget at `delta`; it is null if there is
        neither, or without `with_spent`. `mu` is null if a loss is not Gaussian. Infinite numbers are the
        text "inf", for strict JSON.
        """
        budget, foreseen = self.budget, self._foreseen
        # Only what still allows more than is reserved, and only if that is a limit.
        matters = foreseen not in (None, self._reserved) and not self.accountant.is_filter
        spent = self.epsilon() if with_spent and self.own_delta is not None else None
        return {
            "mode": self.mode,
            "neighbours": NEIGHBOURS,
            "accountant": {"name": self.accountant.name, "version": self.accountant.version},
            **({} if self.rows_per_person == 1 else {"rows_per_person": self.rows_per_person}),
            "budget": None if budget is None else {"epsilon": budget.epsilon, "delta": budget.delta},
            **({} if self.given_delta is None else {"delta": self.given_delta}),
            "reserved": to_json(from_counts(self._reserved)),
            "performed": to_json(from_counts(self._performed)),
            "forfeited": to_json(from_counts(self._forfeited)),
            **({"foreseen": to_json(from_counts(foreseen or {}))} if matters else {}),
            "epsilon_spent": _finite_or_text(spent),
            "mu": _finite_or_text(total_mu(self.spent_events)),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return a ledger from JSON; DpmcError for wrong keys or counts, BudgetExceeded beyond the budget."""
        try:
            budget = data["budget"]
            ledger = cls(
                None if budget is None else Budget(budget["epsilon"], budget["delta"]),
                for_persons(accountants.get(data["accountant"]["name"]), data.get("rows_per_person", 1)),
                data.get("delta"),
            )
            reserved, performed, forfeited = (
                from_json(data[key]) for key in ("reserved", "performed", "forfeited")
            )
            foreseen = from_json(data["foreseen"]) if "foreseen" in data else None
            mode = data["mode"]
        except (KeyError, TypeError) as error:
            raise DpmcError(f"ledger: missing or malformed key ({error})") from error
        if mode != cls.mode:
            raise DpmcError(f"ledger: mode = {mode!r}: must be {cls.mode!r}")
        # In the order of their lives, so that each step is checked: the first reservation fixes the rest, and
        # what was forfeited or performed must have been reserved.
        if foreseen is not None:
            ledger.foresee(foreseen)
        ledger.reserve(reserved)
        ledger.perform(forfeited)
        ledger._forfeited, ledger._performed = ledger._performed, Counter()
        ledger.perform(performed)
        return ledger

    def _spent(self) -> Counter[Query]:
        return self._performed + self._forfeited

    def _outstanding(self) -> Counter[Query]:
        # Counters: the difference has no entries of 0 and none below.
        return self._reserved - self._spent()

    def _require_foreseen(self, total: Counter[Query]) -> None:
        """Raise BudgetExceeded for more than the first reservation fixed, unless it is a filter."""
        fixed = self._reserved if self._foreseen is None and self._reserved else self._foreseen
        if fixed is None or self.accountant.is_filter:
            return
        for event, count in total.items():
            if count > fixed[event]:
                filters = [known.name for known in accountants.ACCOUNTANTS.values() if known.is_filter]
                raise BudgetExceeded(
                    f"query {event.name!r}: {count} in all, {fixed[event]} were fixed by the first "
                    f"reservation; accountant {self.accountant.name!r} is valid for these alone (queries "
                    f"chosen by earlier answers need an accountant that is a filter: {', '.join(filters)})"
                )

    def _require_within_budget(self, total: Counter[Query]) -> None:
        """Raise BudgetExceeded if these do not fit, by the cached test of `Accountant.iterations`."""
        budget = self.budget
        if budget is None or total <= self._fitting:  # delta does not decrease when queries are added
            return
        events = from_counts(total)
        # Delta, not epsilon: an epsilon is rounded up and could refuse a run that `iterations` allows.
        if self.accountant.delta(events, budget.epsilon) > budget.delta:
            would_be = self.accountant.epsilon(events, budget.delta)
            raise BudgetExceeded(
                f"budget exceeded: epsilon would be {would_be:.6g}; the budget is {budget.epsilon:.6g} "
                f"at delta = {budget.delta:.6g} (accountant {self.accountant.name})"
            )
        self._fitting = total


class ReleaseLedger(Ledger):
    """The ledger of a release; `prices` (JSON) are what was reserved for discrete noise (`lattice`)."""

    mode = "release"
    prices: tuple[Mapping[str, Any], ...] = ()

    def to_json(self, with_spent: bool = True) -> dict[str, Any]:
        """Return the ledger with its prices, and ε spent rounded up: its low digits could say more."""
        own = super().to_json(with_spent)
        if isinstance(own["epsilon_spent"], float):
            own["epsilon_spent"] = self.rounded(own["epsilon_spent"])
        return {**own, "prices": list(self.prices)}

    def rounded(self, spent: float) -> float:
        """Return an ε spent rounded up, at most that of the budget."""
        most = math.inf if self.budget is None else self.budget.epsilon
        return min(rounded_up(spent, SPENT_DIGITS), most)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return a ledger with its prices from JSON."""
        ledger = super().from_json(data)
        ledger.prices = tuple(data.get("prices", ()))
        return ledger


def _finite_or_text(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value
