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


def with_error(row: Row, name: str, sign: str = "") -> str:
    """Format the value of column `name` ± that of `<name>_error`."""
    value, error = row[name], row[f"{name}_error"]
    if not isinstance(value, float) or not is_known(value):
        return "none"
    return f"{value:{sign}.3f} ± {error:.3f}" if is_known(error) else f"{value:{sign}.3f}"


def write(path: Path, columns: Sequence[str], table: Sequence[Row]) -> None:
    """Write rows as CSV; a missing column is "none"."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([text(row.get(column)) for column in columns] for row in table)


def places(part: Sequence[Row], key: str, titles: Mapping[str, str], ways: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a Markdown table of ranks by median MMD at each ε, `ways[0]` → `ways[1]`.

    `key` is the column of names, `titles` maps names to titles; medians are in the columns `<way>_mmd`.
    """
    import pandas as pd

    table = pd.DataFrame(part)
    for way in ways:
        ranks = table[f"{way}_mmd"].astype(float).groupby(table["epsilon"]).rank(method="first")
        table[way] = ["none" if math.isnan(rank) else f"{rank:.0f}" for rank in ranks]
    # A place that is the same in all ways is written once.
    table["place"] = [" → ".join(dict.fromkeys(row)) for row in table[[*ways]].itertuples(index=False)]
    names = table[key].unique()
    by_epsilon = table.pivot(index="epsilon", columns=key, values="place")
    # `pivot` sorts both; the order of the study is kept.
    by_epsilon = by_epsilon.reindex(index=table["epsilon"].unique(), columns=names).fillna("none")
    lines = [[f"ε = {epsilon}", *cells] for epsilon, *cells in by_epsilon.itertuples()]
    yield from markdown(["place by median MMD", *(titles[name] for name in names)], lines)
