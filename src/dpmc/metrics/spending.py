"""The ε spent by a cell's chains: by the ledger's accountant, and by tight accounting."""

import functools
import json
from collections.abc import Sequence

from dpmc.common.errors import DpmcError
from dpmc.data.chain_files import Chains
from dpmc.privacy import accountants
from dpmc.privacy.accountants.persons import for_persons
from dpmc.privacy.events import Query, from_json, merge


def spending(chains: Sequence[Chains]) -> tuple[dict[str, float], list[str]]:
    """Return a cell's values by metric, the largest of its chains, and the reasons for missing ones.

    With a budget the iterations that it allows (`budget_iterations`), and ε by the cell's accountant and by
    the preset "tight", at the budget's δ. With ε per iteration `epsilon_total`, of all together at the δ of
    one, inf without a guarantee.
    """
    values: dict[str, float] = {}
    reasons: list[str] = []
    for chain in chains:
        ledger = json.loads(str(chain.attrs.get("ledger", "{}")))
        own: dict[str, float] = {}
        if "delta" in ledger:
            own["epsilon_total"] = float(ledger["epsilon_spent"])
        if ledger.get("budget"):
            own["epsilon_spent"] = float(ledger["epsilon_spent"])
            # "inf" if iterations ask nothing.
            if chain.attrs.get("budget_iterations", "inf") != "inf":
                own["budget_iterations"] = int(chain.attrs["budget_iterations"])
            rows = int(ledger.get("rows_per_person", 1))
            events = merge(from_json([*ledger["performed"], *ledger["forfeited"]]))
            try:
                best = accountants.resolve("tight", events)
                # With the same accountant the ledger has the answer already.
                same = ledger["accountant"] == {"name": best.name, "version": best.version}
                delta = float(ledger["budget"]["delta"])
                own["epsilon_spent_tight"] = (
                    own["epsilon_spent"] if same else tight_epsilon(events, delta, rows)
                )
            except DpmcError as error:
                reasons = ["epsilon_spent_tight: " + str(error).replace(";", ",")]
        values |= {name: max(value, values.get(name, value)) for name, value in own.items()}
    return values, reasons


@functools.lru_cache(maxsize=256)
def tight_epsilon(events: tuple[Query, ...], delta: float, rows: int = 1) -> float:
    """Return ε at `delta` by tight accounting, of a person with these rows; cached, as it takes long."""
    return for_persons(accountants.resolve("tight", events), rows).epsilon(events, delta)
