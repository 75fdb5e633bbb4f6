"""The books of a release file: whether dpmc could have written its hyperparameters and its ledger.

The algorithm is made from the hyperparameters by its own reader. Its queries in all iterations, those
that are forfeited included, must be those of the ledger. The ledger is built again, so that the queries are
held against its budget, its ε is computed again, and whatever else is in its text is found.
The price of discrete noise is computed again; budget and price must make the entry in the ledger of the data
set.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, Self

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import calibrated, checked, read
from dpmc.base import FREE_DRAWS
from dpmc.common.errors import DpmcError
from dpmc.common.values import DECIMAL, not_above_text, shown
from dpmc.privacy import accountants
from dpmc.privacy.events import Query, counts, from_counts, from_json
from dpmc.privacy.lattice import SUM, Price, noisy, numbers_in, price_of
from dpmc.privacy.ledger import Budget, ReleaseLedger
from dpmc.privacy.runs import RunQueries
from dpmc.releases import facts

CLOSE = 1e-12  #: relative difference up to which noise that two machines computed is equal
RESOLUTION = 2e-9  #: relative difference of ε by two machines, more than that of accountants' searches
EXACT_TO = 2**53  #: whole numbers up to this are doubles
LARGEST_BATCH = 10**7  #: rows for which `rdp` is computed again in seconds and little memory
LONGEST_NUMBER = 40  #: characters of a hyperparameter that is a text, such as 1e-5 in a file

Attributes = Mapping[str, Any]  #: of the root, as plain values


def problems(attrs: Attributes, entry: Mapping[str, Any], summaries: int | None = None) -> list[str]:
    """Return what is wrong with hyperparameters and ledger in a file's attributes; [] if nothing is.

    All attributes and the entry have passed their own checks. `summaries` is the number of a row's summaries;
    None if the model is not known.
    """
    try:
        values = json.loads(attrs["hyperparameters"])
        refuse_values(values, attrs["accountant"])
        books = _Books.of(json.loads(attrs["ledger"]))
        whole = Budget(entry["epsilon"], entry["delta"])
        run, full = _declared(attrs, values, books, whole)
        if found := _of_counts(run, attrs, entry):
            return [found]
        found = _of_text(run, attrs, books) or _of_price(full, books, attrs, entry, summaries)
        return [f"ledger: {found}"] if found else []
    except DpmcError as error:
        text = str(error)
        return [text if text.startswith(("ledger: ", "hyperparameters: ", "method: ")) else f"ledger: {text}"]
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        return [f"ledger: missing or malformed key ({type(error).__name__}: {shown(str(error))})"]


def refuse_values(values: Mapping[str, Any], accountant: str) -> None:
    """Raise DpmcError for hyperparameters that may hide more than numbers, words and lists of numbers.

    Also for batches so large that the accountant would take minutes and gigabytes.
    """
    for key, value in values.items():
        for item in value if isinstance(value, list) else [value]:
            right = isinstance(item, bool | float) or (isinstance(item, int) and abs(item) <= EXACT_TO)
            if isinstance(item, str):
                right = len(item) <= LONGEST_NUMBER and bool(DECIMAL.fullmatch(item) or item.isidentifier())
            if not right:
                rule = (
                    f"must be a number of at most {LONGEST_NUMBER} characters, a word, or a list of numbers"
                )
                raise DpmcError(f"hyperparameters: {shown(key)}: {shown(item)} {rule}")
            is_number = not isinstance(item, str) or DECIMAL.fullmatch(item)
            if (key, accountant) == ("batch_size", "rdp") and is_number and float(item) > LARGEST_BATCH:
                rule = f"must be at most {LARGEST_BATCH} with the accountant rdp"
                raise DpmcError(f"hyperparameters: batch_size: {shown(item)} {rule}")


class _Books(NamedTuple):
    """The parts of a run's ledger from which, with the algorithm, all of it follows."""

    budget: Budget
    reserved: Counter[Query]
    price: dict[str, Any]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read these parts of the JSON of a ledger; raise DpmcError or another error if one is wrong."""
        if not isinstance(data["budget"], dict):
            raise DpmcError("ledger: budget: must be that of a release")
        budget = Budget(data["budget"]["epsilon"], data["budget"]["delta"])
        kinds = {"for": "str", **{field.name: str(field.type) for field in fields(Price)}}
        if not isinstance(data["prices"], list) or len(data["prices"]) != 1:
            raise DpmcError("ledger: prices: must be one, of discrete noise")
        (price,) = data["prices"]
        if not isinstance(price, dict) or price.keys() != kinds.keys():
            raise DpmcError(f"ledger: prices: must be one, with the keys {', '.join(kinds)}")
        for key, kind in kinds.items():
            if type(price[key]).__name__ != kind:
                raise DpmcError(f"ledger: prices: {key}: {shown(price[key])} is of another type")
        return cls(budget, counts(from_json(data["reserved"])), price)


def algorithms_of(method: str, values: Mapping[str, Any], dimension: int) -> list[str]:
    """Return the algorithms that a method may be, by name or hyperparameters; DpmcError for none."""
    known = [name for name in ALGORITHMS if not algorithm_class(name).is_for_comparison]
    if method in known:
        checked(algorithm_class(method), values, "hyperparameters", dimension, partial=True)
        return [method]
    fitting = []
    for name in known:
        try:
            checked(algorithm_class(name), values, "hyperparameters", dimension, partial=True)
        except DpmcError:
            continue
        fitting.append(name)
    if not fitting:
        raise DpmcError(f"method: {shown(method)}: no algorithm has these hyperparameters")
    return fitting


def _declared(
    attrs: Attributes, values: Mapping[str, Any], books: _Books, whole: Budget
) -> tuple[RunQueries, RunQueries]:
    """Return the queries of the method that the ledger has, and those of which the price was computed.

    They differ if noise follows from the budget: from what prices leave, and from the whole. Raises DpmcError
    if no algorithm has these hyperparameters and these queries.
    """
    n, d, chains = attrs["n"], attrs["dimension"], attrs["chains"]
    names, refusal = algorithms_of(attrs["method"], values, d), DpmcError("")
    for name in names:
        try:
            cls: Any = algorithm_class(name)
            own, full = dict(values), dict(values)

            def run_of(made: Mapping[str, Any], cls: Any = cls) -> RunQueries:
                return RunQueries.of(read(cls, made, "hyperparameters", d), n, chains)

            if cls.calibrates_run:
                own, full = (
                    calibrated(cls, values, budget.epsilon, budget.delta, n)
                    for budget in (books.budget, whole)
                )
                own = _as_recorded(own, values, books, run_of)
            run, most = run_of(own), run_of(full)
            noisy(run.once + run.each)  # refuses what no release can have
        except DpmcError as error:
            refusal = error
            continue
        if books.reserved.keys() <= counts(run.once + run.each).keys():
            _refuse_centre(values, run, books)
            return run, most
        kinds = ", ".join(sorted({f"{event.name!r}" for event in books.reserved}))
        refusal = DpmcError(f"ledger: queries {shown(kinds)[1:-1]} are not those of {name}, with their noise")
    if len(names) > 1:
        raise DpmcError(f"method: {attrs['method']}: its hyperparameters have not the ledger's queries")
    text = str(refusal)
    raise DpmcError(text if text.startswith(("ledger", "hyperparameters")) else f"method: {names[0]}: {text}")


def _as_recorded(
    made: dict[str, Any],
    values: Mapping[str, Any],
    books: _Books,
    run_of: Callable[[Mapping[str, Any]], RunQueries],
) -> dict[str, Any]:
    """Return calibrated hyperparameters with the noise that the ledger has, if that is as computed here."""
    name = "noise_multiplier"
    first = next(iter(books.reserved), None)
    declared = run_of(made).once[:1]
    if name in values or first is None or not declared:
        return made
    ratio = getattr(first, name, math.nan) / getattr(declared[0], name, math.nan)
    near = [made[name] * (ratio if abs(ratio - 1.0) < CLOSE else 1.0)]
    near += [math.nextafter(near[0], end) for end in (0.0, math.inf)]  # what rounds to the ledger's
    fitting = (one for one in near if run_of({**made, name: one}).once[:1] == from_counts({first: 1}))
    return {**made, name: next(fitting, made[name])}


def _refuse_centre(values: Mapping[str, Any], run: RunQueries, books: _Books) -> None:
    """Raise DpmcError for a centre with more than one number for each summary that is asked for."""
    centre = values.get("centre", 0.0)
    given = len(centre) if isinstance(centre, list) else 1
    if any(event.name == SUM for event in run.once) and given not in (1, books.price["numbers"]):
        rule = f"must be one or {books.price['numbers']}, the numbers of the sum"
        raise DpmcError(f"hyperparameters: centre: has {given} values, {rule}")


def _of_counts(run: RunQueries, attrs: Attributes, entry: Mapping[str, Any]) -> str:
    """Return a problem of the numbers of iterations and of spare ones; "" if there is none."""
    done, spare, asked = attrs["iterations"], attrs["forfeited"], entry["about"]["iterations"]
    if asked not in (None, done) or (asked is None and not run.each and done != FREE_DRAWS):
        return f"ledger: entry in data_ledger: does not fit {done} iterations"
    if not run.each and done == 0:  # one sum serves all iterations
        return "iterations: 0 have no draw"
    # Of a run with all that the budget allows they were planned before they were taken from these.
    ends = (done, done if asked is not None else done + spare)
    least, most = (facts.spare_of(made, run) for made in ends)
    right = spare == 0 or spare in range(least, most + 1, facts.SPARE)  # without an output there are none
    return "" if right else f"forfeited: {spare} are not the spare iterations of {done}"


def _of_text(run: RunQueries, attrs: Attributes, books: _Books) -> str:
    """Return how a ledger differs from that of the declared run, with its budget and price; "" if not."""
    data, done, spare = json.loads(attrs["ledger"]), attrs["iterations"], attrs["forfeited"]
    ledger = ReleaseLedger(books.budget, accountants.get(attrs["accountant"]))
    ledger.prices = (books.price,)
    if books.reserved != counts(run.total(done + spare)):  # before ε is computed
        return f"counts: do not fit {done} iterations and {spare} forfeited ones"
    ledger.reserve(run.total(done + spare))
    ledger.perform(run.total(done))
    ledger.forfeit()
    rebuilt, spent = ledger.to_json(), data["epsilon_spent"]
    # What two machines compute may be rounded to two neighbours.
    allowed = {ledger.rounded(ledger.epsilon() * (1.0 + part)) for part in (-RESOLUTION, 0.0, RESOLUTION)}
    if type(spent) is not float or spent not in allowed:
        return f"epsilon_spent must be {rebuilt['epsilon_spent']}"
    same = json.dumps({**rebuilt, "epsilon_spent": spent}, sort_keys=True) == attrs["ledger"]
    return "" if same else "is not the text of a ledger of this version of dpmc, for this run"


def _of_price(
    full: RunQueries, books: _Books, attrs: Attributes, entry: Mapping[str, Any], summaries: int | None
) -> str:
    """Return a problem of the price: it is that of the planned run, and makes the entry with the budget."""
    price, n, d = books.price, attrs["n"], attrs["dimension"]
    epsilon, delta, iterations = entry["epsilon"], entry["delta"], entry["about"]["iterations"]
    summaries = price["numbers"] if summaries is None else summaries
    if iterations is None and not full.each:
        iterations = FREE_DRAWS
    elif iterations is None:  # all that the whole budget allows, or fewer if the study says so
        once, each = (
            sum(event.count * numbers_in(event, d, summaries) for event in events)
            for events in (full.once, full.each)
        )
        iterations, rest = divmod(price["numbers"] - once, each)
        accountant = full.accountant(attrs["accountant"])
        if rest or iterations < attrs["iterations"] + attrs["forfeited"]:
            return "prices: numbers: are not those of whole iterations"
        if accountant.delta(full.total(iterations), epsilon) > delta:
            return "prices: numbers: are more than the budget allows"
    else:
        iterations += attrs["forfeited"]
    own = price_of(full.total(iterations), n, d, summaries, epsilon, delta).to_json()
    for key, value in own.items():
        if price[key] != value:
            return f"prices: {key}: {shown(price[key])} must be {value}, as for the noise of its queries"
    # A run keeps to doubles that are not above the decimals of its entry.
    if books.budget.epsilon != not_above_text(epsilon):
        return f"epsilon: budget and price are not the {epsilon} of the entry in data_ledger"
    if books.budget.delta != math.nextafter(not_above_text(delta) - price["delta"], 0.0):
        return f"delta: budget and price are not the {delta} of the entry in data_ledger"
    return ""
