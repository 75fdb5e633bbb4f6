"""Budgets as a table: the iterations of every cell of a study, and what they spend."""

from collections.abc import Iterator, Mapping
from typing import Any

from dpmc import studies
from dpmc.common.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.runs import RunReleases
from dpmc.sampling.cell import FREE, iterations_within
from dpmc.studies import Hyperparameters, Study

#: iterations: of each chain. budget_iterations: those that the budget allows by the cell's accountant; the
#: columns after it: by every accountant that is meant for the releases. epsilon_spent: by one run, according
#: to the cell's accountant, and according to tight accounting.
COLUMNS = (
    *("study", "model", "method", "epsilon", "delta", "accountant", "iterations", "budget_iterations"),
    *accountants.ACCOUNTANTS,
    *("epsilon_spent", "epsilon_spent_tight"),
)


def rows(
    study: Study, hyperparameters: Mapping[tuple[str, str], dict[str, Any]] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield one row per cell, by column; columns of accountants not meant for its releases are missing.

    `hyperparameters` are by (model, method); other cells have the pinned ones.

    Raises DpmcError if hyperparameters, the number of rows or the iterations are missing, and if the
    accountant cannot bound the releases.
    """
    for model, method, epsilon in study.cells():
        try:
            yield _row(study, model, method, epsilon, (hyperparameters or {}).get((model, method)))
        except DpmcError as error:
            raise type(error)(f"budget of {model} {method} epsilon {epsilon}: {error}") from None


def shape_of(study: Study, model: str) -> tuple[int, int]:
    """Return number of rows and dimension of a model; raise DpmcError if it names no number of rows."""
    if n := studies.number_of_rows(study, model):
        return n, int(studies.definition_of(study, model).model.dimension)
    raise DpmcError(f"n: needed, since {study.model(model).model} names no number of rows")


def _row(
    study: Study, model: str, method: str, epsilon: str, values: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the row of a cell: of one run, all its chains together."""
    (n, dimension), spec = shape_of(study, model), study.method(method)
    given = Hyperparameters(values, "hyperparameters") if values else None
    given = given or studies.pinned_hyperparameters(study, model, method)
    delta = study.delta_for(n)
    algorithm = studies.build_algorithm(study, method, given, dimension, epsilon, n)
    releases = RunReleases.of(algorithm, n, study.chains)
    chosen = releases.accountant(spec.accountant)
    row: dict[str, Any] = {"study": study.name, "model": model, "method": method, "epsilon": epsilon}
    row |= {"delta": delta, "accountant": chosen.name}
    budget = float(epsilon) if study.epsilon_kind == "total" and epsilon != "inf" else None
    if budget is not None and releases.each:
        meant = releases.suitable()
        row |= {
            name: releases.iterations(accountant, budget, delta)
            for name, accountant in accountants.ACCOUNTANTS.items()
            if accountant is chosen or name in meant
        }
    most, asked = row.get(chosen.name), study.iterations(model, method)
    kind = study.epsilon_kind if releases.each else FREE
    iterations = iterations_within(most, asked, spec.most_iterations, epsilon, kind)
    row |= {"iterations": iterations, "budget_iterations": "inf" if most is None else most}
    events = releases.total(iterations)
    # With the arguments of `Ledger.epsilon` at the end of a run, so that both have the same digits.
    row["epsilon_spent"] = row["epsilon_spent_tight"] = chosen.epsilon(events, delta, budget)
    try:
        best = accountants.resolve("tight", events)
        if best is not chosen:
            row["epsilon_spent_tight"] = best.epsilon(events, delta)
    except DpmcError:  # no accountant of the preset can bound the releases
        row["epsilon_spent_tight"] = ""
    return row
