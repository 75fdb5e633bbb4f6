"""What a cell's chains spent: the ledger's own reading, and the tight one of the same releases."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpmc.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.events import Release, from_json, merge

if TYPE_CHECKING:
    from dpmc.storage import ChainFile


def spending(chains: Sequence[ChainFile]) -> tuple[dict[str, float], list[str]]:
    """Return a cell's values by metric, and the reasons for what is missing; the largest of its chains.

    budget_iterations: what the budget allows; more than the iterations made if a cap stopped the chain.
    epsilon_spent: by the accountant that allowed the iterations, at the budget's delta.
    epsilon_spent_tight: what the same releases cost by the preset "tight", whoever allowed them.
    epsilon_total, where epsilon is per iteration: of all iterations together, at the delta of one; inf
    where nothing is guaranteed.
    Nothing for other chains without a budget.
    """
    values: dict[str, float] = {}
    reasons: list[str] = []
    for chain in chains:
        ledger = json.loads(str(chain.attrs.get("ledger", "{}")))
        if "delta" in ledger:
            total = float(ledger["epsilon_spent"])
            values["epsilon_total"] = max(total, values.get("epsilon_total", total))
        if not ledger.get("budget"):
            continue
        found = {"epsilon_spent": float(ledger["epsilon_spent"])}
        if "budget_iterations" in chain.attrs:
            found["budget_iterations"] = int(chain.attrs["budget_iterations"])
        events = merge(from_json([*ledger["performed"], *ledger["forfeited"]]))
        try:
            best = accountants.resolve("tight", events)
            if ledger["accountant"] == {"name": best.name, "version": best.version}:
                found["epsilon_spent_tight"] = found["epsilon_spent"]  # the same question
            else:
                found["epsilon_spent_tight"] = tight_epsilon(events, float(ledger["budget"]["delta"]))
        except DpmcError as error:
            reasons = ["epsilon_spent_tight: " + str(error).replace(";", ",")]
        for name, value in found.items():
            values[name] = max(value, values.get(name, value))
    return values, reasons


@functools.lru_cache(maxsize=256)
def tight_epsilon(events: tuple[Release, ...], delta: float) -> float:
    """Epsilon of these releases at `delta` by the best accountant that we have.

    Raises DpmcError for releases that it cannot bound. The chains of a cell released the same, so
    that the search for it (tenths of a second for batches) is made once.
    """
    return accountants.resolve("tight", events).epsilon(events, delta)
