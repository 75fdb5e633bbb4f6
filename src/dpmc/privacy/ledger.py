"""The ledger: budget is reserved before anything is computed, so that nothing can overrun it.

With an accountant that is no filter (`Accountant.is_filter`) the total is a theorem only for releases that
were fixed before the first one. So the ledger then refuses all others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpmc.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.accountants import Accountant, checked_delta, checked_epsilon
from dpmc.privacy.events import NEIGHBOURS, Release, counts, from_counts, from_json, to_json, total_mu


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
    """What is reserved, performed and forfeited on one data set, against one budget.

    A release goes through two steps: `reserve` before it is computed, `perform` once it has been.
    What was reserved and never performed (a crash) stays reserved, or is written off with `forfeit`; it is
    never handed back. So no more than what has been reserved can ever be spent, and that fits the budget.
    Several chains on the same data share one ledger. Not for use by several threads at once.

    Unless the accountant is a filter, no more may be reserved than was foreseen; where nothing was, than had
    been reserved when the first release was performed.

    Parameters
    ----------
    budget : None means that no cost is refused (non-private chains); costs are still counted.
    accountant : what a set of releases costs.
    delta : at which a ledger without a budget states the epsilon spent; None: it states none.
    """

    mode = "lab"
    """A reproducible chain is not a private release: who knows the seed can subtract the noise."""

    def __init__(self, budget: Budget | None, accountant: Accountant, delta: float | None = None) -> None:
        self.budget = budget
        self.accountant = accountant
        self.given_delta = None if delta is None else checked_delta(delta)
        # Events of count 1 -> how often. performed + forfeited <= reserved, entry by entry.
        self._reserved: Counter[Release] = Counter()
        self._performed: Counter[Release] = Counter()
        self._forfeited: Counter[Release] = Counter()
        self._foreseen: Counter[Release] | None = None
        # The latest total that was found to fit, so that no part of it is tested again.
        self._fitting: Counter[Release] = Counter()

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
        """Performed or forfeited."""
        return from_counts(self._spent())

    @property
    def own_delta(self) -> float | None:
        """The budget's delta, or the one given in its place; None for neither."""
        return self.given_delta if self.budget is None else self.budget.delta

    def foresee(self, events: Iterable[Release]) -> None:
        """Fix a whole run's releases, which must fit the budget; their parts need no further test.

        Nothing is reserved. Raises BudgetExceeded if they do not fit. After the first release, and unless the
        accountant is a filter, nothing more can be foreseen: BudgetExceeded.
        """
        total = counts(events)
        begun = bool(self._spent())
        if begun:
            self._require_foreseen(total)
        self._require_within_budget(total)
        if not begun:
            self._foreseen = total

    def reserve(self, events: Iterable[Release]) -> None:
        """Set budget aside for these releases, before computing them.

        Raises BudgetExceeded, and records nothing, if they do not fit beside all reserved so far, or were not
        foreseen and the accountant is no filter.
        """
        total = self._reserved + counts(events)
        self._require_foreseen(total)
        self._require_within_budget(total)
        self._reserved = total

    def perform(self, events: Iterable[Release]) -> None:
        """Record that these reserved releases took place.

        Raises DpmcError, and records nothing, if more is performed than is outstanding.
        """
        asked, outstanding = counts(events), self._outstanding()
        for event, count in asked.items():
            if count > outstanding[event]:
                raise DpmcError(
                    f"release {event.name!r}: {count} performed, but only {outstanding[event]} of this kind "
                    "reserved"
                )
        self._performed = self._performed + asked

    def forfeit(self) -> None:
        """Write off what is reserved but not performed: permanently counted as spent."""
        self._forfeited = self._forfeited + self._outstanding()

    def epsilon(self, delta: float | None = None) -> float:
        """Epsilon spent so far at `delta` (default: the budget's); inf if it cannot be bounded.

        Raises DpmcError if there is neither a delta nor a budget.
        """
        delta = self.own_delta if delta is None else delta
        if delta is None:
            raise DpmcError("a ledger without a budget has no delta of its own: give one")
        near = None if self.budget is None else self.budget.epsilon  # a whole run leaves little of it
        return self.accountant.epsilon(self.spent_events, delta, near)

    def delta(self, epsilon: float | None = None) -> float:
        """Delta spent so far at `epsilon` (default: the budget's).

        Raises DpmcError if there is neither an epsilon nor a budget.
        """
        if epsilon is None:
            if self.budget is None:
                raise DpmcError("a ledger without a budget has no epsilon of its own: give one")
            epsilon = self.budget.epsilon
        return self.accountant.delta(self.spent_events, epsilon)

    def to_json(self, with_spent: bool = True) -> dict[str, Any]:
        """All of the ledger as one JSON-able object; `epsilon_spent` is null unless `with_spent`.

        It is at the budget's delta, or at `delta`, which is there without a budget only; null for neither.
        `mu` is null if a loss is not Gaussian; infinite numbers are the text "inf", for strict JSON.
        """
        budget, foreseen = self.budget, self._foreseen
        matters = foreseen not in (None, self._reserved) and not self.accountant.is_filter
        spent = self.epsilon() if with_spent and self.own_delta is not None else None
        return {
            "mode": self.mode,
            "neighbours": NEIGHBOURS,
            "accountant": {"name": self.accountant.name, "version": self.accountant.version},
            "budget": None if budget is None else {"epsilon": budget.epsilon, "delta": budget.delta},
            **({} if self.given_delta is None else {"delta": self.given_delta}),
            "reserved": to_json(self.reserved_events),
            "performed": to_json(self.performed_events),
            "forfeited": to_json(from_counts(self._forfeited)),
            **({"foreseen": to_json(from_counts(foreseen or {}))} if matters else {}),
            "epsilon_spent": _finite_or_text(spent),
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
            reserved, performed, forfeited = (
                from_json(data[key]) for key in ("reserved", "performed", "forfeited")
            )
            foreseen = from_json(data["foreseen"]) if "foreseen" in data else None
            mode = data["mode"]
        except (KeyError, TypeError) as error:
            raise DpmcError(f"ledger: missing or malformed key ({error})") from error
        if mode != cls.mode:
            raise DpmcError(f"ledger: mode = {mode!r}: must be {cls.mode!r}")
        if foreseen is not None:
            ledger.foresee(foreseen)
        ledger.reserve(reserved)
        ledger.perform(forfeited)
        ledger._forfeited, ledger._performed = ledger._performed, Counter()
        ledger.perform(performed)
        return ledger

    def _spent(self) -> Counter[Release]:
        return self._performed + self._forfeited

    def _outstanding(self) -> Counter[Release]:
        return self._reserved - self._spent()

    def _require_foreseen(self, total: Counter[Release]) -> None:
        """Raise BudgetExceeded for more than was fixed before the first release, where that matters."""
        fixed = self._reserved if self._foreseen is None and self._spent() else self._foreseen
        if fixed is None or self.accountant.is_filter:
            return
        for event, count in total.items():
            if count > fixed[event]:
                raise BudgetExceeded(
                    f"release {event.name!r}: {count} in all, {fixed[event]} were fixed before the "
                    f"first release; accountant {self.accountant.name!r} is valid for these alone (what is "
                    "chosen by answers needs an accountant that is a filter: tight, zcdp)"
                )

    def _require_within_budget(self, total: Counter[Release]) -> None:
        """Raise BudgetExceeded if these releases do not fit.

        The very test by which `Accountant.iterations` counts, so that its answer can be reserved. Runs of a
        cell ask the same, and the accountant keeps its answers: the first run's test is the only one.
        """
        budget = self.budget
        if budget is None or total <= self._fitting:  # delta does not decrease when releases are added
            return
        events = from_counts(total)
        if self.accountant.delta(events, budget.epsilon) > budget.delta:
            would_be = self.accountant.epsilon(events, budget.delta)
            raise BudgetExceeded(
                f"budget exceeded: epsilon would be {would_be:.6g}; the budget is {budget.epsilon:.6g} "
                f"at delta = {budget.delta:.6g} (accountant {self.accountant.name})"
            )
        self._fitting = total


def _finite_or_text(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value
