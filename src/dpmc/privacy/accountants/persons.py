"""The guarantee of a person with several rows, by the accountant of one row.

Proofs: docs/explanation/accounting.md.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dpmc.privacy.accountants.base import Accountant
from dpmc.privacy.events import GaussianQuery, Query

SUM_ROUNDED_UP = 1.0 + 2.0**-40  #: exceeds the relative rounding error of a sum of exponentials


@dataclass(frozen=True)
class OfPersons(Accountant):
    """The bounds of `base` for data sets that differ in up to `rows` rows, those of one person.

    Gaussian queries on all rows have `rows` times the sensitivity: exact. All others have group privacy,
    δ(ε) ≤ δ₁(ε/m)(1 + e^{ε/m} + … + e^{(m−1)ε/m}) with m rows and δ₁ the bound of one row. This bound may
    rise with ε where δ₁ no longer falls, so a smaller ε than the one found may be shown, too.
    """

    base: Accountant
    rows: int

    def __post_init__(self) -> None:
        # The dataclass is frozen; what a class says about itself is that of the base.
        for key in ("name", "version", "handles", "beside", "epsilon_resolution", "is_filter"):
            object.__setattr__(self, key, getattr(self.base, key))

    def _delta(self, events: tuple[Query, ...], epsilon: float) -> float:
        if all(isinstance(event, GaussianQuery) for event in events):
            return self.base._delta(of_persons(events, self.rows), epsilon)
        step = epsilon / self.rows
        if step > 700.0:  # the sum may overflow
            return 1.0
        paths = math.fsum(math.exp(min(j * step, 700.0)) for j in range(self.rows)) * SUM_ROUNDED_UP
        return min(1.0, paths * self.base._delta(events, step))

    def _mean_loss(self, events: tuple[Query, ...]) -> float:
        return self.rows**2 * self.base._mean_loss(events)

    def _obstacle(self, event: Query) -> str | None:
        return self.base._obstacle(event)


def of_persons(events: Iterable[Query], rows: int) -> tuple[Query, ...]:
    """Return Gaussian queries on all rows as they are for `rows` rows of a person: 1/rows the multiplier."""
    if rows == 1:
        return tuple(events)
    return tuple(
        replace(event, noise_multiplier=math.nextafter(event.noise_multiplier / rows, 0.0))
        if isinstance(event, GaussianQuery)
        else event
        for event in events
    )


def for_persons(accountant: Accountant, rows: int) -> Accountant:
    """Return the accountant for persons with up to this number of rows; itself for one."""
    return accountant if rows == 1 else OfPersons(accountant, rows)
