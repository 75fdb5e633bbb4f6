"""What figures draw: a study's metrics by cell, tidy frames of them, published boxes, and whose they are."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.errors import DpmcError
from dpmc.randomness import canonical_epsilon
from dpmc.values import decimal, shown

if TYPE_CHECKING:
    from pandas import DataFrame

    from dpmc.studies import Study

FEW_ITERATIONS = 10  # a box of chains shorter than this says how short they are
TEXT_METRICS = ("status", "variant")  #: metrics whose value is a text
COLUMNS = ("study", "model", "method", "epsilon", "seed", "metric", "value")


def read_metrics(path: Path) -> Any:
    """Return a metrics file as a data frame of text, nothing turned into NaN.

    Raises DpmcError for a file that is missing, empty or has other columns.
    """
    import pandas as pd

    if not path.is_file():
        raise DpmcError(f"{path}: no such file")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, pd.errors.ParserError) as error:
        raise DpmcError(f"{path}: not a CSV table of metrics ({error})") from None
    check_columns(table, COLUMNS, path)
    check_numbers(table, "value", path, ~table["metric"].isin(TEXT_METRICS))
    for place, epsilon in enumerate(table["epsilon"]):
        if epsilon and not _is_epsilon(epsilon):
            raise DpmcError(f"{path}: row {place + 1}: epsilon: {shown(epsilon)} is not a number > 0, or inf")
    return table


def check_columns(table: Any, columns: Iterable[str], path: Path) -> None:
    """Raise DpmcError for a column that a table read from `path` lacks, and for rows with too many."""
    columns = tuple(columns)
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise DpmcError(f"{path}: column {missing[0]!r} is missing; needed: {', '.join(columns)}")
    if table.index.nlevels > 1 or table.index.dtype.kind != "i":  # what is too much becomes an index
        raise DpmcError(f"{path}: rows have more columns than the first line")


def check_numbers(table: Any, column: str, path: Path, chosen: Any = slice(None)) -> None:
    """Raise DpmcError for a value of a column, in the chosen rows, that is not a number."""
    for place, text in table[column][chosen].items():
        metric = str(table["metric"][place]) if "metric" in table.columns else column
        try:
            finite = math.isfinite(decimal(str(text))) or metric.startswith("epsilon")  # inf: no guarantee
        except ValueError:
            finite = False
        if not finite:
            raise DpmcError(
                f"{path}: row {place + 1}: {column}: {metric}: {shown(str(text))} is not a number"
            )


@functools.lru_cache(maxsize=1024)  # a table has few, and tens of thousands of rows
def _is_epsilon(text: str) -> bool:
    try:
        canonical_epsilon(text)
    except DpmcError:
        return False
    return True


@dataclass(frozen=True)
class PublishedBox:
    """Quartiles of one published box plot."""

    q1: float
    median: float
    q3: float


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
    def of_study(cls, metrics: DataFrame, study: Study) -> Results:
        """Read all rows that are the study's: of what it runs, and of what it takes from others."""
        elsewhere = {label: spec.from_study for label, spec in study.methods.items() if spec.from_study}
        return cls.of(metrics, study.name, elsewhere)

    def values(self, model: str, method: str, epsilon: str, metric: str) -> list[float]:
        """The metric's value for each seed that has one."""
        return list(self.by_seed(model, method, epsilon, metric).values())

    def by_seed(self, model: str, method: str, epsilon: str, metric: str) -> dict[str, float]:
        """The metric's values, by seed."""
        return self.numbers.get((model, method, epsilon, metric), {})

    def frame(self, model: str, methods: Sequence[str], epsilons: Sequence[str], metric: str) -> DataFrame:
        """A metric of a model's cells, tidy: one row (method, epsilon, seed, value) for each chain."""
        from pandas import DataFrame

        rows = [
            (method, epsilon, seed, value)
            for method in methods
            for epsilon in epsilons
            for seed, value in self.by_seed(model, method, epsilon, metric).items()
        ]
        return DataFrame(rows, columns=["method", "epsilon", "seed", "value"])

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


def _shortened(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def read_published(folder: Path, metric: str, study: Study) -> dict[tuple[str, str, str], PublishedBox]:
    """Return (model, method, epsilon) -> published box, for what the study runs as published.

    A label that is not published, or runs with another number of rows, has no box to compare with.

    Raises DpmcError for a file that is not a table of boxes.
    """
    path = folder / f"{metric}.csv"
    if not path.is_file() or study.epsilon_kind != "total":
        return {}
    parts: dict[tuple[str, str, str], dict[str, float]] = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                cell = (row["model"], row["method"], _epsilon(row["epsilon"]))
                if row["statistic"] in ("q1", "median", "q3"):
                    parts.setdefault(cell, {})[row["statistic"]] = float(row["value"])
        boxes = {cell: PublishedBox(**quartiles) for cell, quartiles in parts.items()}
        rows = _published_rows(folder)
    except (KeyError, TypeError, ValueError) as error:
        raise DpmcError(f"{path}: not a table of published boxes ({error!r})") from None
    return {
        cell: box
        for cell, box in boxes.items()
        if cell[0] in study.models and study.models[cell[0]].n in (None, rows[cell[0]])
    }


def _published_rows(folder: Path) -> dict[str, int]:
    """Model -> number of rows of the published experiment."""
    with open(folder / "models.csv", newline="", encoding="utf-8") as file:
        return {row["model"]: int(row["n"]) for row in csv.DictReader(file)}


def models_of(study: Study, ids: Sequence[str]) -> list[str]:
    """Return the study's labels of the given models, by label or catalogue id, in the order of `ids`.

    All for no ids. Models that run without privacy only (the clipping experiment) are left out: these
    figures have a budget on their axis. Raises DpmcError when there is none.
    """
    private = private_models(study)
    found = [label for wanted in ids for label in private if wanted in (label, study.models[label].model)]
    labels = list(dict.fromkeys(found)) if ids else private
    if not labels:
        raise DpmcError(
            f"study {study.name}: none of its models belongs to this figure, which shows {', '.join(ids)}"
        )
    return labels


def methods_of(study: Study, ids: Sequence[str], models: Sequence[str]) -> list[str]:
    """Return the study's labels of the given methods, by label or algorithm, that run on some of the models.

    All for no ids, in the study's order. Raises DpmcError when there is none.
    """
    wanted = ids or tuple(study.methods)
    found = [
        label
        for one in wanted
        for label, spec in study.methods.items()
        if (label == one or (one not in study.methods and spec.algorithm == one))
        and set(models).intersection(spec.models)
    ]
    if not found:
        raise DpmcError(f"study {study.name}: {', '.join(wanted)} runs on none of the models of this figure")
    return found


def private_models(study: Study) -> list[str]:
    """Return the study's model labels that have a finite budget."""
    return [label for label, spec in study.models.items() if set(spec.epsilons) != {"inf"}]
