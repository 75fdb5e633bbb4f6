"""Budgets as a table: the iterations of every cell of a study, and what they spend."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dpmc import models
from dpmc.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.accountants import Accountant
from dpmc.privacy.events import Release, repeat
from dpmc.storage import replacing
from dpmc.values import shown, whole

if TYPE_CHECKING:
    from dpmc.studies import Study

#: iterations: of each chain. budget_iterations: what the budget allows, by the cell's accountant; then what
#: it allows by every accountant that is meant for the releases. epsilon_spent: by one run's iterations, by
#: the cell's accountant and by tight accounting.
COLUMNS = (
    *("study", "model", "method", "epsilon", "delta", "accountant", "iterations", "budget_iterations"),
    *accountants.ACCOUNTANTS,
    *("epsilon_spent", "epsilon_spent_tight"),
)
#: What is read of a table.
NEEDED = ("study", "model", "method", "epsilon", "iterations", "budget_iterations")

Hyperparameters = Mapping[tuple[str, str], dict[str, Any]]


class Allowed(NamedTuple):
    """The length of a cell's chains."""

    iterations: int
    budget_iterations: int | None  # None: there is no budget


class _Question(NamedTuple):
    """What a cell asks of an accountant."""

    once: tuple[Release, ...]
    each: tuple[Release, ...]
    epsilon: float | None  # None: no budget
    delta: float

    def events(self, iterations: int) -> tuple[Release, ...]:
        """The releases of a run."""
        return self.once + repeat(self.each, iterations)


def write(study: Study, path: Path, hyperparameters: Hyperparameters | None = None) -> None:
    """Write the table of a study as CSV. Raises DpmcError as `rows` does."""
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows(study, hyperparameters))


def rows(study: Study, hyperparameters: Hyperparameters | None = None) -> Iterator[dict[str, Any]]:
    """One row a cell, by column; columns of accountants that are not meant for its releases are missing.

    `hyperparameters` are those by (model, method); a cell that is not among them has the pinned ones.

    Raises DpmcError where hyperparameters, the number of rows or of iterations are missing, and where the
    accountant cannot bound the releases.
    """
    for model, method, epsilon in study.cells():
        try:
            question = _question(study, model, method, epsilon, (hyperparameters or {}).get((model, method)))
            chosen = accountants.resolve(study.method(method).accountant, question.once + question.each)
            yield {
                "study": study.name,
                "model": model,
                "method": method,
                "epsilon": epsilon,
                "delta": question.delta,
                **_answers(study, model, method, chosen, question),
            }
        except DpmcError as error:
            raise type(error)(f"budget of {model} {method} epsilon {epsilon}: {error}") from None


def _question(
    study: Study, model: str, method: str, epsilon: str, values: dict[str, Any] | None
) -> _Question:
    """The releases of one run of a cell, all chains together, and its budget."""
    spec = study.model(model)
    definition = models.definition(spec.model)
    n = spec.n or definition.n
    if not n:
        raise DpmcError(f"n: needed, since {spec.model} names no number of rows")
    source = "hyperparameters"
    if values is None:
        values, source = study.pinned_hyperparameters(model, method)
    algorithm = study.algorithm(method, values, int(definition.model.dimension), source, epsilon, n)
    once, each = (repeat(events, study.chains) for events in algorithm.releases(n))
    limited = study.epsilon_kind == "total" and epsilon != "inf"
    return _Question(once, each, float(epsilon) if limited else None, study.delta_for(n))


def _answers(
    study: Study, model: str, method: str, chosen: Accountant, question: _Question
) -> dict[str, Any]:
    """Iterations and what they spend."""
    asked = study.iterations(model, method)
    by_accountant: dict[str, int] = {}
    if question.epsilon is None:
        if asked is None:
            raise DpmcError("iterations: needed, since no budget limits the chain")
        iterations = asked
    else:
        by_accountant = _by_accountant(chosen, question, question.epsilon)
        most, cap = by_accountant[chosen.name], study.method(method).most_iterations
        iterations = asked or (most if cap is None else min(most, cap))
    events = question.events(iterations)
    # Asked as the ledger asks at the end of a run, so that both have the same digits.
    spent = chosen.epsilon(events, question.delta, question.epsilon)
    try:
        best = accountants.resolve("tight", events)
        tight: float | str = spent if best is chosen else best.epsilon(events, question.delta)
    except DpmcError:  # releases that no accountant of the preset bounds
        tight = ""
    return {
        "accountant": chosen.name,
        "iterations": iterations,
        "budget_iterations": by_accountant.get(chosen.name, "inf"),
        **by_accountant,
        "epsilon_spent": spent,
        "epsilon_spent_tight": tight,
    }


def _by_accountant(chosen: Accountant, question: _Question, epsilon: float) -> dict[str, int]:
    """Iterations by every accountant that is meant for the releases, and by the chosen one."""
    found = {}
    for name, accountant in accountants.ACCOUNTANTS.items():
        if accountant is chosen or accountant.is_meant_for(question.once + question.each):
            found[name] = accountant.iterations(question.once, question.each, epsilon, question.delta)
    return found


def read(path: Path, study: str) -> dict[tuple[str, str, str], Allowed]:
    """The iterations of every cell (model, method, epsilon) in a table.

    Raises DpmcError, naming file and line, for what is no such table, or that of another study.
    """
    found: dict[tuple[str, str, str], Allowed] = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            missing = [name for name in NEEDED if name not in (table.fieldnames or ())]
            if missing:
                raise DpmcError(f"{path}: not a table of budgets: column {missing[0]!r} is missing")
            for row in table:
                key, allowed = _row(row, f"{path}: line {table.line_num}", study)
                if key in found:
                    raise DpmcError(f"{path}: line {table.line_num}: {' '.join(key)} stands twice")
                found[key] = allowed
    except FileNotFoundError:
        raise DpmcError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DpmcError(f"{path}: cannot be read ({error})") from None
    return found


def allowed(path: Path, study: str, model: str, method: str, epsilon: str) -> Allowed:
    """The iterations of one cell in a table; `epsilon` is canonical. Raises DpmcError as `read` does."""
    table = read(path, study)
    if (model, method, epsilon) not in table:
        raise DpmcError(f"{path}: has no row for {model} {method} epsilon {epsilon}")
    return table[model, method, epsilon]


def _row(row: dict[str, str], where: str, study: str) -> tuple[tuple[str, str, str], Allowed]:
    """The cell and the iterations of one line."""
    if None in row or None in row.values():
        raise DpmcError(f"{where}: must have as many values as there are columns")
    if row["study"] != study:
        raise DpmcError(f"{where}: study: {shown(row['study'])} must be {study!r}")
    numbers = {}
    for key in ("iterations", "budget_iterations"):
        try:
            numbers[key] = math.inf if (key, row[key]) == ("budget_iterations", "inf") else whole(row[key])
        except ValueError as error:
            raise DpmcError(f"{where}: {key}: {error}") from None
        if numbers[key] < 0:
            raise DpmcError(f"{where}: {key}: {row[key]} must be at least 0")
    most = numbers["budget_iterations"]
    cell = row["model"], row["method"], row["epsilon"]
    return cell, Allowed(int(numbers["iterations"]), None if most == math.inf else int(most))
