"""The table of a study's metrics: read, checked, and looked up by cell."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import decimal, shown
from dpmc.metrics.names import TEXTS

if TYPE_CHECKING:  # pandas takes half a second, which a workflow that draws nothing need not wait
    from pandas import DataFrame

FEW_ITERATIONS = 10  # a box of chains shorter than this says how short they are
COLUMNS = ("study", "model", "method", "epsilon", "seed", "metric", "value")


class StudyNames(Protocol):
    """Of a study, what tells which rows are its own."""

    @property
    def name(self) -> str:
        """The study's name."""

    @property
    def methods(self) -> Mapping[str, Any]:
        """Methods by label, with the study `from_study` that ran each, if it is another."""


def read_metrics(*paths: Path) -> DataFrame:
    """Return metrics files as one data frame of text, nothing turned into NaN; without files it is empty.

    Raises DpmcError for a file that is missing, empty or has other columns, and for what is not a number.
    """
    import pandas as pd

    tables = [_read_metrics(path) for path in paths]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def _read_metrics(path: Path) -> DataFrame:
    table = read_table(path, COLUMNS, "a CSV table of metrics")
    rows = zip(table["metric"], table["value"], table["epsilon"], strict=True)
    for place, (metric, value, epsilon) in enumerate(rows, start=1):
        if metric not in TEXTS and not _is_value(metric, value):
            raise DpmcError(f"{path}: row {place}: value: {metric}: {shown(value)} is not a number")
        try:
            _epsilon(epsilon)
        except DpmcError:
            rule = "is not a number > 0, or inf"
            raise DpmcError(f"{path}: row {place}: epsilon: {shown(epsilon)} {rule}") from None
    return table


def _is_value(metric: str, text: str) -> bool:
    """Whether a text is a finite number, or any of an ε spent: infinite without a guarantee."""
    try:
        return math.isfinite(decimal(text)) or metric.startswith("epsilon")
    except ValueError:
        return False


def read_table(
    path: Path, columns: Sequence[str], what: str = "a CSV table", numbers: Mapping[str, type] | None = None
) -> DataFrame:
    """Return a CSV table with these columns, as text but for `numbers`.

    Raises DpmcError for a file that is missing or is not `what`.
    """
    import pandas as pd

    if not path.is_file():
        raise DpmcError(f"{path}: no such file")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        missing = [column for column in columns if column not in table.columns]
        if missing:
            raise DpmcError(f"{path}: column {missing[0]!r} is missing; needed: {', '.join(columns)}")
        if table.index.nlevels > 1 or table.index.dtype.kind != "i":  # what is too much becomes an index
            raise DpmcError(f"{path}: rows have more columns than the first line")
        return table.astype(numbers or {})
    except ValueError as error:
        raise DpmcError(f"{path}: not {what} ({error})") from None


@dataclass
class Results:
    """A study's metrics, looked up by cell."""

    # (model, method, epsilon, metric) -> seed -> value
    numbers: dict[tuple[str, str, str, str], dict[str, float]] = field(default_factory=dict)
    statuses: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)  # method -> how it departs from its name

    @classmethod
    def of(cls, metrics: DataFrame, study: str, elsewhere: Mapping[str, str] | None = None) -> Results:
        """Read the tidy table; rows of other studies are left out.

        `elsewhere`: method -> the study that ran it, for methods whose rows are another study's.
        """
        results = cls()
        columns = ("study", "model", "method", "epsilon", "metric", "value", "seed")
        for row in zip(*(metrics[column].tolist() for column in columns), strict=True):
            if row[0] != (elsewhere or {}).get(str(row[2]), study):
                continue
            model, method, metric = str(row[1]), str(row[2]), str(row[4])
            cell = (model, method, _epsilon(row[3]))
            if metric == "status":
                results.statuses.setdefault(cell, []).append(str(row[5]))
            elif metric == "variant":
                results.variants[method] = str(row[5])
            else:
                results.numbers.setdefault((*cell, metric), {})[str(row[6])] = float(row[5])
        return results

    @classmethod
    def of_study(cls, metrics: DataFrame, study: StudyNames) -> Results:
        """Read all rows that are the study's: of what it runs, and of what it takes from others."""
        elsewhere = {label: spec.from_study for label, spec in study.methods.items() if spec.from_study}
        return cls.of(metrics, study.name, elsewhere)

    def values(self, model: str, method: str, epsilon: str, metric: str) -> list[float]:
        """The metric's value for each seed that has one."""
        return list(self.by_seed(model, method, epsilon, metric).values())

    def by_seed(self, model: str, method: str, epsilon: str, metric: str) -> dict[str, float]:
        """The metric's values, by seed."""
        return self.numbers.get((model, method, epsilon, metric), {})

    def baselines(self, model: str, metric: str) -> list[float]:
        """The metric's value for exact samples."""
        return self.values(model, "baseline", "", metric)

    def seeds(self, model: str, method: str, epsilon: str) -> int:
        """How many chains the cell has, whatever could be computed of them."""
        return len(self.values(model, method, epsilon, "iterations"))

    def iterations(self, model: str, method: str, epsilon: str) -> int | None:
        """Iterations of the cell's shortest chain."""
        lengths = self.values(model, method, epsilon, "iterations")
        return int(min(lengths)) if lengths else None

    def remark(self, model: str, method: str, epsilon: str, metric: str) -> str:
        """Say why a cell has no values, or how many iterations if few, and how many chains have a value."""
        found, chains = len(self.values(model, method, epsilon, metric)), self.seeds(model, method, epsilon)
        if not found:
            return "no box: " + self.why_missing(model, method, epsilon, metric)
        length = self.iterations(model, method, epsilon)
        parts = [f"k = {length}"] if length is not None and length < FEW_ITERATIONS else []
        return ", ".join([*parts, f"{found} of {chains}"] if found < chains else parts)

    def why_missing(self, model: str, method: str, epsilon: str, metric: str) -> str:
        """Why there is no value, in a few words."""
        length = self.iterations(model, method, epsilon)
        if length is None:
            return "no results"
        if length < FEW_ITERATIONS:
            return f"{length} iteration{'' if length == 1 else 's'}"
        for status in self.statuses.get((model, method, epsilon), []):
            for reason in status.split("; "):
                names, _, text = reason.partition(": ")
                if metric in names.split(", "):
                    return _shortened(text)
        return "not computed"


@functools.lru_cache(maxsize=1024)  # a table has few, and tens of thousands of rows
def _epsilon(value: Any) -> str:
    """The canonical name of an epsilon read from a table; "" for none."""
    blank = value is None or value == "" or (isinstance(value, float) and math.isnan(value))
    return "" if blank else canonical_epsilon(value)


def _shortened(text: str) -> str:
    return text if len(text) <= 30 else text[:29].rstrip() + "…"
