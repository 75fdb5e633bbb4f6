"""Rows, CSV and Markdown of the tables that compare methods in pairs."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dpmc.reports.tables.formats import markdown

Row = dict[str, object]  # column -> value; None and NaN: unknown


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
