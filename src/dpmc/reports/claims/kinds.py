"""Numbers that decide a claim: comparisons of cells.

A kind of number is a function of the table, the cells that an entry of a file of claims names, and the
entry's other keys. It yields the name and the number of each case; NaN: a number is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc.reports.claims.table import At, Cells, Floats, Table

Cases = Iterator[tuple[str, float]]
CASE = ("models", "methods", "metrics")  # most kinds have a case for each


def reduced(over: str, values: Iterable[float] | Floats) -> float:
    """Return the geometric mean, largest, smallest or range of the known numbers; NaN for none."""
    known = [float(value) for value in values if not np.isnan(value)]
    if over == "mean":
        known = [value for value in known if value > 0.0]
        return float(np.exp(np.mean(np.log(known)))) if known else np.nan
    if not known:
        return np.nan
    return {"largest": max(known), "smallest": min(known), "range": max(known) - min(known)}[over]


def quotient(above: Floats | float, below: Floats | float) -> Floats:
    """Divide; NaN where the divisor is 0."""
    return above / np.where(below == 0.0, np.nan, below)


def fraction(hits: Sequence[bool] | npt.NDArray[np.bool_]) -> float:
    """Return the fraction of true values; NaN for none."""
    return float(np.mean(hits)) if len(hits) else np.nan


def level(table: Table, cells: Cells, over: str = "largest") -> Cases:
    """Yield the largest or smallest median over the budgets, or their range."""
    for name, part in cells.each(*CASE):
        yield name, reduced(over, table.column("median", part))


def of_all(table: Table, cells: Cells, over: str = "largest") -> Cases:
    """Yield the same over all models, methods and budgets together."""
    name = cells.models[0] if len(cells.models) == 1 else f"{len(cells.models)} models"
    yield name, reduced(over, table.column("median", cells))


def ratios(
    table: Table,
    cells: Cells,
    to: Sequence[str] = (),
    to_models: Sequence[str] = (),
    to_metric: str = "",
    to_at: At = "",
    best: str = "least",
    of: str = "median",
    inverse: bool = False,
) -> Floats:
    """Return the ratio of a method's median or spread to the least or most of others, at each budget.

    `to`, `to_models`, `to_metric`, `to_at`: methods, models, metric and budget of the others, by default the
    same as the method's; `inverse`: the inverse ratio. A ratio to others of which one is missing is NaN.
    """
    [model], [method] = cells.models, cells.methods
    own, choose = table.column(of, cells), {"least": np.min, "most": np.max}[best]
    others, compared = Cells(to_models or cells.models, to or cells.methods, cells.metrics), []
    for epsilon in table.grid(model, method, cells.at):
        values = table.column(of, replace(others, at=to_at or (epsilon,)), to_metric)
        compared.append(choose(values) if len(values) else np.nan)
    return quotient(np.array(compared), own) if inverse else quotient(own, np.array(compared))


def ratio(table: Table, cells: Cells, over: str = "mean", **to: Any) -> Cases:
    """Yield the ratio of a method to others, over the budgets."""
    for name, part in cells.each(*CASE):
        yield name, reduced(over, ratios(table, part, **to))


def growth(table: Table, cells: Cells, **to: Any) -> Cases:
    """Yield the mean ratio over the upper half of the budgets over that of the lower half."""
    for name, part in cells.each(*CASE):
        low, high = (
            reduced("mean", ratios(table, replace(part, at=half), **to))
            for half in ("lower half", "upper half")
        )
        yield name, high / low


def over_models(table: Table, cells: Cells, which: str, **to: Any) -> Cases:
    """Yield the smallest or largest mean ratio of a method over the models."""
    for name, part in cells.each("methods"):
        means = [reduced("mean", ratios(table, model, **to)) for _, model in part.each("models")]
        yield f"{name}, {which} ratio", reduced(which, means)


def inconsistent(table: Table, cells: Cells, good: float, bad: float, **to: Any) -> Cases:
    """Yield the margin by which a method's ratio is `good` on one model and `bad` on another.

    The smaller of two quotients: `good` over the least ratio, and the largest ratio over `bad`.
    """
    for name, part in cells.each("methods"):
        means = [reduced("mean", ratios(table, model, **to)) for _, model in part.each("models")]
        yield name, float(np.min([good / np.min(means), np.max(means) / bad]))


def first_reached(table: Table, cells: Cells, to: Sequence[str]) -> Cases:
    """Yield the ratio of the least of `to` to a method, by the first of the metrics that both have."""
    for name, part in cells.each("models", "methods"):
        number = np.nan
        for _, cell in part.each("metrics"):
            if np.isnan(number):
                least = reduced("smallest", table.column("median", replace(cell, methods=to)))
                [number] = quotient(least, table.column("median", cell))
        yield name, number


def gain(table: Table, cells: Cells, to: Sequence[str]) -> Cases:
    """Yield the smallest gain over the budgets: a median minus the largest of those of `to` that ran."""
    for name, part in cells.each(*CASE):
        others = [
            reduced("largest", table.column("median", replace(part, methods=to, at=(epsilon,))))
            for epsilon in table.grid(part.models[0], part.methods[0], part.at)
        ]
        yield name, reduced("smallest", table.column("median", part) - np.array(others))


def in_errors(table: Table, cells: Cells, others: Cells) -> Floats:
    """Return differences of medians, in standard errors of the difference."""
    difference = table.column("median", cells) - table.column("median", others)
    return quotient(difference, np.hypot(table.column("error", cells), table.column("error", others)))


def fall(table: Table, cells: Cells) -> Cases:
    """Yield the decrease of the median from the smallest budget to the largest, in standard errors."""
    for name, part in cells.each(*CASE):
        decrease = in_errors(table, replace(part, at="smallest"), replace(part, at="largest"))
        yield name, reduced("largest", decrease)


def models_that_fall(table: Table, cells: Cells, errors: float) -> Cases:
    """Yield the share of the models on which the median falls by more than `errors` standard errors."""
    for name, part in cells.each("methods"):
        yield name, fraction([number > errors for _, number in fall(table, part) if not np.isnan(number)])


def apart(table: Table, cells: Cells, to: Sequence[str]) -> Cases:
    """Yield the largest difference over the budgets from the median of `to`, in standard errors."""
    for name, part in cells.each(*CASE):
        grid = table.grid(part.models[0], part.methods[0], part.at)
        yield name, reduced("largest", np.abs(in_errors(table, part, replace(part, methods=to, at=grid))))


def share(table: Table, cells: Cells, limit: float) -> Cases:
    """Yield the share of all runs of a model whose value is above `limit`."""
    for name, part in cells.each("models"):
        yield name, fraction([value > limit for runs in table.runs(part) for value in runs])


def above_floor(table: Table, cells: Cells) -> Cases:
    """Yield the least median of the methods minus that of the exact samples."""
    for name, part in cells.each("models"):
        [floor] = table.column("median", replace(part, methods=("baseline",), at=("",)))
        yield name, reduced("smallest", table.column("median", part)) - floor


def best_over_best(table: Table, cells: Cells, to_at: At) -> Cases:
    """Yield the least median of the methods at a budget over the least at `to_at`."""
    for name, part in cells.each("models"):
        below = reduced("smallest", table.column("median", replace(part, at=to_at)))
        for epsilon, there in part.each("at"):
            best = reduced("smallest", table.column("median", there))
            yield f"{name}, ε = {epsilon}", float(quotient(best, below))
