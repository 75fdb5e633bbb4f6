"""The ledger in a release file: whether dpmc could have written it, and whether it fits the other parts.

It is rebuilt, so that its releases are held against its budget again, its ε is computed again, and a key or a
text that is not part of a ledger is found. What the budget and the prices of discrete noise add up to is
compared with the entry in the ledger of the data set, the counts of releases with the numbers of iterations.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from dpmc.common.errors import DpmcError
from dpmc.privacy.events import Release, counts
from dpmc.privacy.lattice import SUM, Price, price_of
from dpmc.privacy.ledger import ReleaseLedger

NAMES = {"log-ratio", "batch log-ratio", "gradient", "batch gradient", SUM}  #: of what algorithms release
PRICE = {"for", *(field.name for field in fields(Price))}
BOUNDS = {"total variation", "probability ratio"}
CLOSE = 1e-6  #: relative difference up to which numbers of two machines are equal


def problems(attrs: Mapping[str, Any], entry: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the ledger in a file's attributes; [] if nothing is."""
    try:
        data = json.loads(attrs["ledger"])
        ledger = ReleaseLedger.from_json(data)
        if ledger.budget is None:
            return ["budget: must be that of a release"]
        rebuilt = ledger.to_json()
        if len(ledger.prices) != 1 or set(ledger.prices[0]) != PRICE:
            return ["prices: must be one, of discrete noise"]
        spent = data["epsilon_spent"]
        if not math.isclose(spent, rebuilt["epsilon_spent"], rel_tol=CLOSE):
            return [f"epsilon_spent must be {rebuilt['epsilon_spent']}"]
        if json.dumps({**rebuilt, "epsilon_spent": spent}) != attrs["ledger"]:
            return ["is not the text of a ledger of this version of dpmc"]
        n, found = attrs["n"], list[str]()
        if ledger.accountant.name != attrs["accountant"]:
            found.append("its accountant is another one")
        for event in ledger.reserved_events:
            if event.name not in NAMES or getattr(event, "n", n) != n:
                found.append(f"release {event.name!r} is not one of an algorithm on {n} rows")
        found += _of_price(ledger.prices[0], ledger, attrs, entry)
        return found + _of_counts(ledger, attrs, entry)
    except (DpmcError, AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        return [str(error).removeprefix("ledger: ")]


def _of_price(
    price: Mapping[str, Any], ledger: ReleaseLedger, attrs: Mapping[str, Any], entry: Mapping[str, Any]
) -> list[str]:
    """Return problems of a price: budget and price make the entry, and it covers the reserved releases."""
    budget, found = ledger.budget, []
    assert budget is not None  # `problems` has looked
    for key, left in (("epsilon", budget.epsilon), ("delta", budget.delta)):
        whole = Fraction(left) + Fraction(price[key])
        if not (price[key] >= 0.0 and (1.0 - CLOSE) * entry[key] <= whole <= entry[key]):
            found.append(f"{key}: budget and price are not the {entry[key]} of the entry in data_ledger")
    n, d = int(attrs["n"]), int(attrs["dimension"])
    # A file does not say how many summaries a row has: at least one.
    own = price_of(ledger.reserved_events, n, d, 1, entry["epsilon"], entry["delta"])

    def share(epsilon: float, delta: float) -> float:
        return epsilon / entry["epsilon"] + delta / entry["delta"]

    if (
        price["for"] != "discrete noise"
        or not 0.0 < price["least_scale"] <= own.least_scale  # noise from what the price leaves is more
        or price["bound"] not in BOUNDS
        or type(price["numbers"]) is not int
        or price["numbers"] < own.numbers
        or share(price["epsilon"], price["delta"]) < (1.0 - CLOSE) * share(own.epsilon, own.delta)
    ):
        found.append("prices: are not that of the discrete noise of its releases")
    return found


def _of_counts(ledger: ReleaseLedger, attrs: Mapping[str, Any], entry: Mapping[str, Any]) -> list[str]:
    """Return problems of counts, by the numbers of iterations and of those that are forfeited."""
    chains, done, lost = (int(attrs[key]) for key in ("chains", "iterations", "forfeited"))
    performed, spent = counts(ledger.performed_events), counts(ledger.spent_events)
    if entry["about"]["iterations"] not in (None, done):
        return [f"entry in data_ledger: does not fit {done} iterations"]
    # One sum serves all iterations, which are made again after a kill.
    if {event.name for event in spent} == {SUM}:
        right = sum(performed.values()) == sum(spent.values()) == 1 and done > 0 and lost == 0
        return [] if right else [f"counts: do not fit {done} iterations and {lost} forfeited ones"]
    fits = not ledger.outstanding_events and bool(performed) == (done > 0)
    fits &= bool(spent - performed) == (lost > 0)
    right = fits and _are_counts(performed, spent - performed, chains, done, lost)
    return [] if right else [f"counts: do not fit {done} iterations and {lost} forfeited ones"]


def _are_counts(
    performed: Counter[Release], forfeited: Counter[Release], chains: int, done: int, lost: int
) -> bool:
    """Return whether counts are those of `done` iterations and `lost` ones, which are the same in every run.

    A release has one count in all iterations of all chains, and one more in each chain if it also comes
    before the first iteration.
    """
    if done < 2:  # what comes before the first iteration cannot be told from what is in it
        return all(count % chains == 0 for count in (performed + forfeited).values())
    parts = {event: divmod(performed[event], chains * done) for event in performed | forfeited}
    return all(
        each >= 1 and once in (0, chains) and forfeited[event] == chains * each * lost
        for event, (each, once) in parts.items()
    )
