"""Budgets as a table: the iterations of every cell of a study, and what they spend."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.privacy import accountants
from dpmc.privacy.accountants import Accountant
from dpmc.privacy.runs import RunReleases
from dpmc.sampling.cell import iterations_within
from dpmc.studies import (
    Hyperparameters,
    Study,
    build_algorithm,
    definition_of,
    number_of_rows,
    pinned_hyperparameters,
)

#: iterations: of each chain. budget_iterations: those that the budget allows by the cell's accountant; the
#: columns after it: by every accountant that is meant for the releases. epsilon_spent: by one run, according
#: to the cell's accountant, and according to tight accounting.
COLUMNS = (
    *("study", "model", "method", "epsilon", "delta", "accountant", "iterations", "budget_iterations"),
    *accountants.ACCOUNTANTS,
    *("epsilon_spent", "epsilon_spent_tight"),
)

Tuned = Mapping[tuple[str, str], dict[str, Any]]


class _Question(NamedTuple):
    """The releases and the budget of a cell, for an accountant."""

    releases: RunReleases
    epsilon: float | None  # None: no budget
    delta: float


def write(study: Study, path: Path, hyperparameters: Tuned | None = None) -> None:
    """Write the table of a study as CSV. Raises DpmcError as `rows` does."""
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows(study, hyperparameters))


def rows(study: Study, hyperparameters: Tuned | None = None) -> Iterator[dict[str, Any]]:
    """Yield one row per cell, by column; columns of accountants not meant for its releases are missing.

    `hyperparameters` are by (model, method); other cells have the pinned ones.

    Raises DpmcError if hyperparameters, the number of rows or the iterations are missing, and if the
    accountant cannot bound the releases.
    """
    for model, method, epsilon in study.cells():
        try:
            question = _question(study, model, method, epsilon, (hyperparameters or {}).get((model, method)))
            chosen = question.releases.accountant(study.method(method).accountant)
            by_accountant = _by_accountant(chosen, question)
            most, cap = by_accountant.get(chosen.name), study.method(method).most_iterations
            asked = study.iterations(model, method)
            iterations = iterations_within(most, asked, cap, epsilon, study.epsilon_kind)
            yield {
                "study": study.name,
                "model": model,
                "method": method,
                "epsilon": epsilon,
                "delta": question.delta,
                "accountant": chosen.name,
                "iterations": iterations,
                "budget_iterations": "inf" if most is None else most,
                **by_accountant,
                **_spent(chosen, question, iterations),
            }
        except DpmcError as error:
            raise type(error)(f"budget of {model} {method} epsilon {epsilon}: {error}") from None


def _question(
    study: Study, model: str, method: str, epsilon: str, values: dict[str, Any] | None
) -> _Question:
    """Return the releases of one run of a cell, all chains together, and its budget."""
    definition = definition_of(study, model)
    n = number_of_rows(study, model)
    if not n:
        raise DpmcError(f"n: needed, since {study.model(model).model} names no number of rows")
    given = Hyperparameters(values or {}, "hyperparameters")
    if values is None:
        given = pinned_hyperparameters(study, model, method)
    algorithm = build_algorithm(study, method, given, int(definition.model.dimension), epsilon, n)
    limited = study.epsilon_kind == "total" and epsilon != "inf"
    releases = RunReleases.of(algorithm, n, study.chains)
    return _Question(releases, float(epsilon) if limited else None, study.delta_for(n))


def _by_accountant(chosen: Accountant, question: _Question) -> dict[str, int]:
    """Return iterations by the chosen accountant and all meant for the releases; {} without a budget."""
    if question.epsilon is None:
        return {}
    releases, suitable = question.releases, question.releases.suitable()
    return {
        name: releases.iterations(accountant, question.epsilon, question.delta)
        for name, accountant in accountants.ACCOUNTANTS.items()
        if accountant is chosen or name in suitable
    }


def _spent(chosen: Accountant, question: _Question, iterations: int) -> dict[str, float | str]:
    """Return the ε spent by a run, by the cell's accountant and by tight accounting."""
    events = question.releases.total(iterations)
    # With the arguments of `Ledger.epsilon` at the end of a run, so that both have the same digits.
    spent = chosen.epsilon(events, question.delta, question.epsilon)
    try:
        best = accountants.resolve("tight", events)
        tight: float | str = spent if best is chosen else best.epsilon(events, question.delta)
    except DpmcError:  # no accountant of the preset can bound the releases
        tight = ""
    return {"epsilon_spent": spent, "epsilon_spent_tight": tight}
