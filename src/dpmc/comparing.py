"""Medians and means with their standard errors, and the cells that an experiment compares."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpmc.tables.formats import markdown

if TYPE_CHECKING:
    from dpmc.studies import Study

Row = dict[str, object]  # column -> value; None and NaN: unknown
WITHOUT_PRIVACY = ("rwmh", "hmc")  #: algorithms of the clipping experiment


def two_accountings(study: Study) -> dict[str, str]:
    """Map each method with the accountant `thesis` to the method of the same algorithm with `tight`."""
    tight = {spec.algorithm: label for label, spec in study.methods.items() if spec.accountant == "tight"}
    return {
        label: tight[spec.algorithm]
        for label, spec in study.methods.items()
        if spec.accountant == "thesis" and spec.algorithm in tight
    }


def partners(pairs: Mapping[str, str], labels: Collection[str]) -> dict[str, str]:
    """Map each of these labels that has a partner among them to it, as the key `pairs` of a figure says.

    `*` stands for any text, the same on both sides.
    """
    found = {}
    for one, other in pairs.items():
        before, star, after = one.partition("*")
        for label in labels:
            text = label.removeprefix(before).removesuffix(after) if star else ""
            if label == before + text + after and (partner := other.replace("*", text)) in labels:
                found[label] = partner
    return found


def tuned_pairs(study: Study) -> dict[str, str]:
    """Map each method to the one called `<its label>-tuned`, with hyperparameters that a search found."""
    found = partners({"*-tuned": "*"}, study.methods)
    return {before: tuned for tuned, before in found.items() if study.settings_are_tuned(tuned)}


def error_of_median(q1: float, q3: float, m: int) -> float:
    """Return the standard error of a median of m values.

    It is 1.2533 σ/√m, with σ of the normal distribution that has these quartiles; NaN for m < 2.
    """
    return 1.2533 * float(q3 - q1) / 1.349 / math.sqrt(m) if m > 1 else math.nan


def median_error(values: list[float]) -> float:
    """Return the standard error of the median of values; NaN for fewer than two."""
    if not values:
        return math.nan
    q1, q3 = np.quantile(values, [0.25, 0.75])
    return error_of_median(q1, q3, len(values))


def mean_with_error(values: list[float]) -> tuple[float, float]:
    """Return the mean and its standard error; NaN if there are too few values."""
    if not values:
        return math.nan, math.nan
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(np.mean(values)), error


def paired(one: dict[str, float], other: dict[str, float]) -> tuple[float, float]:
    """Return the mean over common seeds of `one` minus `other`, and its standard error."""
    return mean_with_error([one[seed] - other[seed] for seed in one if seed in other])


def is_known(value: object) -> bool:
    """Return whether a value of a row is neither None nor NaN."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def text(value: object, digits: int = 6) -> str:
    """Format a value for a table; "none" if it is unknown."""
    if not is_known(value):
        return "none"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def with_error(one: Row, name: str, sign: str = "") -> str:
    """Format the value of column `name` ± that of `<name>_error`."""
    value, error = one[name], one[f"{name}_error"]
    if not isinstance(value, float) or not is_known(value):
        return "none"
    return f"{value:{sign}.3f} ± {error:.3f}" if is_known(error) else f"{value:{sign}.3f}"


def write(path: Path, columns: Sequence[str], table: Sequence[Row]) -> None:
    """Write rows as CSV; a missing column is "none"."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([text(one.get(column)) for column in columns] for one in table)


def places(part: Sequence[Row], key: str, titles: Mapping[str, str], ways: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table of ranks by median MMD at each ε, `ways[0]` → `ways[1]`.

    `key` is the column of names, `titles` maps names to titles; medians are in the columns `<way>_mmd`.
    """
    who = list(dict.fromkeys(str(one[key]) for one in part))
    lines = []
    for epsilon in dict.fromkeys(str(one["epsilon"]) for one in part):
        cells = {str(one[key]): one for one in part if one["epsilon"] == epsilon}
        order = [_by_median(cells, way) for way in ways]
        entries = []
        for name in who:
            place = [str(way.index(name) + 1) if name in way else "none" for way in order]
            entries.append(" → ".join(place if len(set(place)) > 1 else place[:1]))
        lines.append([f"ε = {epsilon}", *entries])
    yield from markdown(["place by median MMD", *(titles[name] for name in who)], lines)


def _by_median(cells: Mapping[str, Row], way: str) -> list[str]:
    """Return names sorted by median MMD, best first; names without one are left out."""
    medians = {name: float(str(m)) for name, one in cells.items() if is_known(m := one[f"{way}_mmd"])}
    return sorted(medians, key=medians.__getitem__)


def clipping_models(study: Study) -> list[str]:
    """Return the labels of the models of a study's clipping experiment: no budget, several clip bounds."""
    return [
        label
        for label, spec in study.models.items()
        if set(spec.epsilons) == {"inf"} and clip_bounds(study, label)
    ]


def clip_bounds(study: Study, model: str) -> dict[str, dict[float, str]]:
    """Return {algorithm without privacy: {clip bound, ascending: method label}} of a model."""
    table: dict[str, dict[float, str]] = {name: {} for name in WITHOUT_PRIVACY}
    for label, spec in study.methods.items():
        if spec.algorithm in table and model in spec.models and "clip" in spec.options:
            table[spec.algorithm][float(spec.options["clip"])] = label
    return {name: dict(sorted(bounds.items())) for name, bounds in table.items() if bounds}
