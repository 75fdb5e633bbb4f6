"""What several runs on the same rows spend together."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpmc.common.errors import DpmcError
from dpmc.data.chain_files import ResultOrFile
from dpmc.privacy import accountants
from dpmc.privacy.accountants import basic
from dpmc.privacy.accountants.persons import of_persons
from dpmc.privacy.events import GaussianQuery, from_json
from dpmc.results import as_tree

if TYPE_CHECKING:
    import xarray


class Joint(NamedTuple):
    """The (ε, δ) of several runs together, of a person with at most `rows_per_person` rows."""

    epsilon: float
    delta: float
    rows_per_person: int


def joint_epsilon(*runs: ResultOrFile, delta: float | None = None) -> Joint:
    """Return the (ε, δ) that runs on the same rows spend together, rounded up; ε is inf if none is shown.

    Runs that only repeat an earlier one (equal arguments, equal chains) tell nothing new; leave them out.

    Parameters
    ----------
    runs
        Chain files or releases, or results of `dpmc.sample` and `dpmc.release`, all on the same rows and
        for persons with equally many of them.
    delta
        None: ε and δ of the runs are added, which holds for every algorithm. A number: ε of all queries
        together at this δ, for queries with Gaussian noise on all rows. At the sum of the runs' δ it is
        smaller than the sum of their ε.

    Raises
    ------
    DpmcError
        Without runs, for a file that cannot be read, and for runs with different `rows_per_person`. With
        `delta`: if it is not between 0 and 1; for discrete noise, whose price has a δ of its own; for
        batches, whose accountants do not cover runs that were chosen by earlier results
        (docs/explanation/accounting.md); and for `objective-perturbation` beside others, or for persons.
    """
    ledgers = [json.loads(str(as_tree(run).attrs["ledger"])) for run in runs]
    units = sorted({int(ledger.get("rows_per_person", 1)) for ledger in ledgers})
    if len(units) != 1:
        raise DpmcError(
            f"rows_per_person: must be the same in all runs, is {', '.join(map(str, units)) or 'of no run'}: "
            "ε of a row and ε of a person do not add up"
        )
    (unit,) = units
    if delta is None:
        spent = [_spent(ledger) for ledger in ledgers]
        epsilons, deltas = zip(*spent, strict=True)
        return Joint(*basic.total(epsilons, deltas), unit)
    if any(ledger.get("prices") for ledger in ledgers):
        raise DpmcError("delta: discrete noise of a release has a price; leave delta out to add ε and δ")
    queries = [query for ledger in ledgers for query in from_json(ledger["performed"] + ledger["forfeited"])]
    events = of_persons(queries, unit)
    accountant = accountants.resolve("tight", events)
    if not accountant.is_filter:
        raise DpmcError(
            f"delta: accountant {accountant.name!r} does not cover runs chosen by earlier results; "
            "leave delta out to add ε and δ of the runs"
        )
    if unit > 1 and not all(isinstance(query, GaussianQuery) for query in queries):
        raise DpmcError(
            "delta: of persons with several rows only Gaussian queries on all rows compose; leave delta out"
        )
    return Joint(accountant.epsilon(events, delta), delta, unit)


def joint_ledger(trees: Sequence["xarray.DataTree"]) -> str:
    """Return one ledger, as JSON, with all that runs on the same rows spent; of one run its own."""
    ledgers = [json.loads(str(tree.attrs["ledger"])) for tree in trees]
    if len(ledgers) == 1:
        return str(trees[0].attrs["ledger"])
    joint = joint_epsilon(*trees)
    parts = ("performed", "forfeited", "prices")
    merged: dict[str, Any] = {
        key: [one for ledger in ledgers for one in ledger.get(key, [])] for key in parts
    }
    merged |= {"rows_per_person": joint.rows_per_person, "epsilon_spent": None, "budget": None}
    if joint.delta:
        pairs = [_spent({**ledger, "prices": []}) for ledger in ledgers]
        epsilon, delta = basic.total(*zip(*pairs, strict=True))
        merged |= {"epsilon_spent": epsilon, "budget": {"epsilon": epsilon, "delta": delta}}
    return json.dumps(merged, sort_keys=True)


def _spent(ledger: dict[str, Any]) -> tuple[float, float]:
    """Return the (ε, δ) that the ledger of a run reports, with its prices; (inf, 0) without privacy."""
    delta = (ledger["budget"] or ledger).get("delta")
    if delta is None:
        return float("inf"), 0.0
    prices = ledger.get("prices", [])
    epsilons = [float(ledger["epsilon_spent"]), *(price["epsilon"] for price in prices)]
    return basic.total(epsilons, [delta, *(price["delta"] for price in prices)])
