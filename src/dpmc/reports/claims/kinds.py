"""Numbers that decide a claim: comparisons of cells, and of clip bounds.

A kind of number is a function of the table, the cells of a case, and the other keys of an entry of a file of
claims. It returns (..., 1 + RESAMPLES): the number of the case, and what it would be for runs drawn anew
(`table`); NaN: a number is missing.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmc.base import Array
from dpmc.metrics.table import RATIO_CLIPPED
from dpmc.reports.claims.table import RESAMPLES, At, Cells, ClaimTable
from dpmc.studies import pinned_hyperparameters

Cases = Iterator[tuple[str, Array]]
Methods = Sequence[str]
CASE = ("models", "methods", "metrics")  #: most kinds have a case for each
#: Kinds with a case for each of something else. In an entry, the key `by` says so.
BY = {
    **dict.fromkeys(("share", "best"), ("models",)),
    **dict.fromkeys(("over-models", "inconsistent", "models-that-fall"), ("methods",)),
    "first-reached": ("models", "methods"),
}
RATIO_KINDS = ("step", "ratio", "growth", "over-models", "inconsistent", "first-reached", "best")
NAMING = ("chosen-bound", "in-gap")  #: kinds that yield the names of their cases, too
REDUCTIONS: dict[str, Callable[[Array], Array]] = {
    "mean": lambda values: np.exp(np.nanmean(np.log(np.where(values > 0.0, values, np.nan)), axis=0)),
    "share": lambda values: np.nanmean(values, axis=0),
    "largest": lambda values: np.nanmax(values, axis=0),
    "smallest": lambda values: np.nanmin(values, axis=0),
    "range": lambda values: np.nanmax(values, axis=0) - np.nanmin(values, axis=0),
}
UNKNOWN = np.full(1 + RESAMPLES, np.nan)


def reduced(over: str, values: Iterable[Array] | Array) -> Array:
    """Return the geometric mean (of those above 0), share, largest … of the known numbers; NaN for none."""
    numbers = np.array([*values], float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of none: NaN
        return REDUCTIONS[over](numbers) if len(numbers) else UNKNOWN


def quotient(above: Array, below: Array) -> Array:
    """Divide; NaN where the divisor is 0."""
    return above / np.where(below == 0.0, np.nan, below)


def where_known(hits: Array, numbers: Array) -> Array:
    """Return hits as numbers, NaN where the number is missing."""
    return np.where(np.isnan(numbers), np.nan, hits)


def level(table: ClaimTable, cells: Cells, over: str = "largest") -> Array:
    """Return the largest or smallest median over the budgets, or their range."""
    return reduced(over, table.column("median", cells))


def step(table: ClaimTable, cells: Cells) -> Array:
    """Return the smallest ratio of the median at a budget to that at the next larger one."""
    medians = table.column("median", cells)
    return reduced("smallest", quotient(medians[:-1], medians[1:]))


def ratios(
    table: ClaimTable,
    cells: Cells,
    to: Methods = (),
    to_models: Sequence[str] = (),
    to_metric: str = "",
    to_at: At = "",
    best: str = "least",
    of: str = "median",
    inverse: bool = False,
) -> Array:
    """Return the ratio of a method's median or spread to the least or most of others, at each budget.

    `to`, `to_models`, `to_metric`, `to_at`: methods, models, metric and budget of the others, by default the
    same as the method's; `inverse`: the inverse ratio. A ratio to others of which one is missing is NaN.
    """
    [model], [method] = cells.models, cells.methods
    own, choose = table.column(of, cells), {"least": np.min, "most": np.max}[best]
    others, compared = Cells(to_models or cells.models, to or cells.methods, cells.metrics), []
    for epsilon in table.grid(model, method, cells.at):
        values = table.column(of, replace(others, at=to_at or (epsilon,)), to_metric)
        compared.append(choose(values, axis=0) if len(values) else UNKNOWN)
    pair = own, np.array(compared).reshape(own.shape)
    return quotient(*pair[::-1]) if inverse else quotient(*pair)


def ratio(table: ClaimTable, cells: Cells, over: str = "mean", **to: Any) -> Array:
    """Return the ratio of a method to others: over the budgets the geometric mean, or by `over`."""
    return reduced(over, ratios(table, cells, **to))


def within(table: ClaimTable, cells: Cells, low: float, high: float, **to: Any) -> Array:
    """Return the share of the budgets at which the ratio of a method to others is between two limits."""
    each = ratios(table, cells, **to)
    return reduced("share", where_known((low <= each) & (each <= high), each))


def growth(table: ClaimTable, cells: Cells, **to: Any) -> Array:
    """Return the mean ratio over the upper half of the budgets over that of the lower half."""
    halves = (replace(cells, at=half) for half in ("lower half", "upper half"))
    low, high = (ratio(table, half, **to) for half in halves)
    return high / low


def over_models(table: ClaimTable, cells: Cells, which: str, **to: Any) -> Array:
    """Return the smallest, largest or mean of a method's mean ratios on the models."""
    return reduced(which, [ratio(table, part, **to) for _, part in cells.each("models")])


def inconsistent(table: ClaimTable, cells: Cells, good: float, bad: float, **to: Any) -> Array:
    """Return the smaller of `good` over the least mean ratio on the models, and the largest over `bad`."""
    means = [ratio(table, part, **to) for _, part in cells.each("models")]
    return np.minimum(good / np.min(means, axis=0), np.max(means, axis=0) / bad)


def first_reached(table: ClaimTable, cells: Cells, to: Methods) -> Array:
    """Return the ratio of the least of `to` to a method, by the first of the metrics that both have."""
    others = [table.column("median", replace(part, methods=to)) for _, part in cells.each("metrics")]
    least = np.array([reduced("smallest", medians) for medians in others])
    numbers = quotient(least, table.column("median", cells))
    return next((number for number in numbers if not np.isnan(number[0])), UNKNOWN)


def gain(table: ClaimTable, cells: Cells, to: Methods = (), to_at: At = "") -> Array:
    """Return the smallest gain over the budgets: a median minus the largest of those of `to` that ran."""
    budgets = table.grid(cells.models[0], cells.methods[0], cells.at)
    others = replace(cells, methods=to or cells.methods)
    compared = [table.column("median", replace(others, at=to_at or (epsilon,))) for epsilon in budgets]
    largest = [reduced("largest", medians) for medians in compared]
    return reduced("smallest", table.column("median", cells) - np.reshape(largest, (-1, 1 + RESAMPLES)))


def models_that_fall(table: ClaimTable, cells: Cells, errors: float) -> Array:
    """Return the share of the models on which the median falls, by more than `errors` standard errors.

    It falls from the smallest budget to the largest.
    """
    falls = []
    for _, part in cells.each("models"):
        ends = [replace(part, at=end) for end in ("smallest", "largest")]
        (low, high), units = ([table.column(of, end) for end in ends] for of in ("median", "error"))
        falls += [*quotient(low - high, np.hypot(*units))]
    return reduced("share", [where_known(fall > errors, fall) for fall in falls])


def share(table: ClaimTable, cells: Cells, limit: float) -> Array:
    """Return the share of all runs whose value is above `limit`."""
    return reduced("share", [run > limit for runs in table.runs(cells) for run in runs])


def best(
    table: ClaimTable, cells: Cells, to: Methods = (), to_at: At = "all", free: str = "", less: bool = False
) -> Array:
    """Return the least median of the methods over another least median, or if `less` minus it.

    The other is that of `to` at `to_at`, by default of the same methods; or, given `free`, that of the
    samplers without privacy at the largest clip bound on models with this id.
    """
    compared = replace(cells, methods=to or cells.methods, at=to_at)
    without_privacy = [at_largest_bound(table, part, cells.metrics[0]) for _, part in table.experiments(free)]
    other = reduced("smallest", without_privacy if free else table.column("median", compared))
    least = reduced("smallest", table.column("median", cells))
    return least - other if less else quotient(least, other)


def increase(table: ClaimTable, cells: Cells) -> Array:
    """Return the median MMD at each clip bound less that at the largest."""
    distance = table.column("median", cells, "mmd")
    return distance - distance[-1]


def at_largest_bound(table: ClaimTable, cells: Cells, metric: str) -> Array:
    """Return a metric's median at the largest clip bound."""
    return table.column("median", cells, metric)[-1]


def most_increase(
    table: ClaimTable, cells: Cells, least: float = 0.0, last: int = 0, clipped: float = 2.0
) -> Array:
    """Return the largest increase of the MMD over `last` bounds ≥ `least`, clipped below `clipped`."""
    few = table.column("median", cells, RATIO_CLIPPED)[:, 0] < clipped
    chosen = (table.bounds(cells) >= least) & few
    return reduced("largest", np.where(chosen[:, None], increase(table, cells), np.nan)[:-1][-last:])


def late_bounds(table: ClaimTable, cells: Cells, limit: float) -> Array:
    """Return the share of bounds without convergence in the lower half, less that in the upper half."""
    ran = ~np.isnan(table.column("median", cells, "iterations")[:, 0])
    rhat = table.column("median", cells, "rhat_max")[ran]
    late, half = ~(rhat < limit), len(rhat) // 2  # late without an R-hat, too: chains that never moved
    known = half > 0 and not np.isnan(rhat).all()
    return late[:half].mean(axis=0) - late[-half:].mean(axis=0) if known else UNKNOWN


def stray_bounds(table: ClaimTable, cells: Cells, far: float, last: int = 0) -> Array:
    """Return the share of the `last` bounds (0: all) with a run `far` above the largest bound's median."""
    largest = table.column("median", cells, "mmd")[-1]
    runs = table.runs(cells, "mmd")[-last:]
    known = all(map(len, runs)) and not np.isnan(largest[0])
    return reduced("share", [values.max(axis=0) > largest + far for values in runs]) if known else UNKNOWN


def chosen_bound(table: ClaimTable, methods: Mapping[str, tuple[str, str]]) -> Cases:
    """Yield the increase of the MMD at the largest bound not above that of a method of the comparison."""
    study = table.study
    for name, cells in table.experiments():
        model = study.models[cells.models[0]].model
        method, key = methods[name.partition(",")[0]]
        if method not in study.methods or model not in study.models:
            yield f"{method}, {model}", UNKNOWN
            continue
        chosen = float(pinned_hyperparameters(study, model, method).values[key])
        below = increase(table, cells)[table.bounds(cells) <= chosen]
        yield f"{method}, {model}, bound {chosen:g}", below[-1] if len(below) else UNKNOWN


def in_gap(table: ClaimTable, model: str, low: float, high: float) -> Cases:
    """Yield the share of the model's runs whose fraction clipped lies between two limits."""
    cells = [runs for _, part in table.experiments(model) for runs in table.runs(part, RATIO_CLIPPED)]
    yield model, reduced("share", [(low < run) & (run < high) for runs in cells for run in runs])
