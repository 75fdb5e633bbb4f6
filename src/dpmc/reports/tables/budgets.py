"""Budgets as a table: the iterations of every cell of a study, and what they spend."""

from collections.abc import Iterator, Mapping
from typing import Any

from dpmc import studies
from dpmc.common.errors import DpmcError
from dpmc.privacy.accountants import ACCOUNTANTS
from dpmc.privacy.events import NonPrivateQuery
from dpmc.privacy.runs import RunQueries
from dpmc.sampling.cell import FREE, iterations_within
from dpmc.studies import SourcedValues, Study

#: accountant: one that is meant for the queries, and that of the study, whose row says `yes` in `chosen`; of
#: exact answers the study's alone. iterations: of each chain. allowed: those that the budget allows by this
#: accountant, or inf. epsilon_spent: by one run, according to it.
BUDGET_COLUMNS = "study model method epsilon delta iterations accountant chosen allowed epsilon_spent".split()


def rows(
    study: Study, hyperparameters: Mapping[tuple[str, str], dict[str, Any]] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a row per cell and accountant; hyperparameters by (model, method), else pinned; or DpmcError."""
    for model, method, epsilon in study.cells():
        try:
            yield from _rows(study, model, method, epsilon, (hyperparameters or {}).get((model, method)))
        except DpmcError as error:
            raise type(error)(f"budget of {model} {method} epsilon {epsilon}: {error}") from None


def shape_of(study: Study, model: str) -> tuple[int, int]:
    """Return number of rows and dimension of a model; raise DpmcError if it names no number of rows."""
    if n := studies.number_of_rows(study, model):
        return n, int(studies.definition_of(study, model).model.dimension)
    raise DpmcError(f"n: needed, since {study.model(model).model} names no number of rows")


def _rows(
    study: Study, model: str, method: str, epsilon: str, values: dict[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a cell: of one run, all its chains together."""
    (n, dimension), spec = shape_of(study, model), study.method(method)
    given = SourcedValues(values, "hyperparameters") if values else None
    given = given or studies.pinned_hyperparameters(study, model, method)
    delta = study.delta_for(n)
    algorithm = studies.build_algorithm(study, method, given, dimension, epsilon, n)
    queries = RunQueries.of(algorithm, n, study.chains)
    chosen, events = queries.accountant(spec.accountant), queries.total(1)
    exact = any(isinstance(event, NonPrivateQuery) for event in events)
    used = [one for one in ACCOUNTANTS.values() if one is chosen or (one.is_meant_for(events) and not exact)]
    budget = float(epsilon) if study.epsilon_kind == "total" and epsilon != "inf" else None
    most: dict[str, int] = {}
    if budget is not None and queries.each:
        most = {one.name: queries.iterations(one, budget, delta) for one in used}
    kind = study.epsilon_kind if queries.each else FREE
    asked = study.iterations(model, method) or algorithm.default_iterations or None
    iterations = iterations_within(most.get(chosen.name), asked, spec.most_iterations, epsilon, kind)
    cell, events = (study.name, model, method, epsilon, delta, iterations), queries.total(iterations)
    for one in used:
        # With the arguments of `Ledger.epsilon` at the end of a run, so that both have the same digits.
        spent = one.epsilon(events, delta, budget if one is chosen else None)
        own = (one.name, "yes" if one is chosen else "", most.get(one.name, "inf"), spent)
        yield dict(zip(BUDGET_COLUMNS, cell + own, strict=True))
