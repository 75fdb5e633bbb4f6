"""What one run asks, and how many iterations a budget buys for it."""

import math
from typing import NamedTuple, Self

from dpmc.base import Algorithm
from dpmc.privacy import accountants
from dpmc.privacy.accountants import Accountant, checked_epsilon
from dpmc.privacy.accountants.persons import for_persons
from dpmc.privacy.events import Query, repeat


class RunQueries(NamedTuple):
    """The queries of one run, all its chains together: `once` before the first iteration, `each` in each."""

    once: tuple[Query, ...]
    each: tuple[Query, ...]

    @classmethod
    def of(cls, algorithm: Algorithm, n: int, chains: int = 1) -> Self:
        """Return the queries that an algorithm declares on n rows, for this number of chains."""
        declared = algorithm.queries(n)
        # All chains read the same rows, so their queries compose.
        once = (*declared.run, *repeat(declared.chain, chains))
        return cls(once, repeat(declared.each, chains))

    def total(self, iterations: int, first: bool = True) -> tuple[Query, ...]:
        """Return the queries of these iterations; `first`: with those before the first one."""
        return (self.once if first else ()) + repeat(self.each, iterations)

    def accountant(self, name: str) -> Accountant:
        """Return the accountant that a name or preset selects; raise DpmcError if it cannot bound them."""
        return accountants.resolve(name, self.once + self.each)

    def iterations(self, accountant: Accountant, epsilon: float, delta: float) -> int:
        """Return the iterations of each chain that (ε, δ) allows; raise DpmcError as the accountant does."""
        return accountant.iterations(self.once, self.each, epsilon, delta)

    def by_accountant(
        self,
        delta: float,
        *,
        epsilon: float | None = None,
        iterations: int | None = None,
        rows_per_person: int = 1,
    ) -> dict[str, int | float]:
        """Return by suitable accountant the iterations that ε allows, or the ε of iterations if given.

        Where iterations ask nothing, ε allows ∞, or 0 if it does not allow what is asked before them.
        """
        known, all_kinds = accountants.ACCOUNTANTS, self.once + self.each
        suitable = [
            (name, for_persons(accountant, rows_per_person))
            for name, accountant in known.items()
            if accountant.is_meant_for(all_kinds)
        ]
        if iterations is not None:
            events = self.total(iterations)
            return {name: accountant.epsilon(events, delta) for name, accountant in suitable}
        epsilon = checked_epsilon(epsilon)
        if not self.each:
            return {
                name: math.inf if accountant.delta(self.once, epsilon) <= delta else 0
                for name, accountant in suitable
            }
        return {name: self.iterations(accountant, epsilon, delta) for name, accountant in suitable}


def with_multiplier(algorithm: Algorithm, answers: dict[str, float]) -> dict[str, float]:
    """Return iterations by accountant; where ε sets a run's noise, that noise and the answer of `tight`."""
    multiplier = getattr(algorithm, "noise_multiplier", None) if algorithm.calibrates_run else None
    return answers if multiplier is None else {"noise_multiplier": multiplier, "tight": answers["tight"]}
