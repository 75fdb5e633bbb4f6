"""What figures draw: a study's metrics by cell, files of chains, published boxes, and whose they are."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import decimal, shown
from dpmc.metrics.names import TEXTS
from dpmc.reports.plots import style
from dpmc.studies import Study

if TYPE_CHECKING:  # pandas takes half a second, which a workflow that draws nothing need not wait
    from pandas import DataFrame

Floats = npt.NDArray[np.float64]
Cell = tuple[str, str, str]  # model, method, epsilon

FEW_ITERATIONS = 10  # a box of chains shorter than this says how short they are
COLUMNS = ("study", "model", "method", "epsilon", "seed", "metric", "value")


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


@contextmanager
def published_table(path: Path, of: str) -> Iterator[None]:
    """Turn what goes wrong while a published table is read into one line that names it."""
    try:
        yield
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise DpmcError(f"{path}: not a table of published {of} ({error!r})") from None


@dataclass(frozen=True)
class Quartiles:
    """Quartiles of a published box plot, or of values drawn as slim as one."""

    q1: float
    median: float
    q3: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Quartiles:
        """Return the quartiles of values."""
        return cls(*np.quantile(values, [0.25, 0.5, 0.75]).tolist())


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

    def check_metrics(self, metrics: Iterable[str]) -> None:
        """Raise DpmcError for a metric that no chain of the study has and whose name is unknown."""
        known = {cell[3] for cell in self.numbers}
        for metric in metrics:  # one of dpmc's own may lack values where no chain is long enough
            if known and metric not in known | style.METRIC_TITLES.keys():
                there = ", ".join(sorted(known))
                raise DpmcError(f"metric: {metric!r} has no values in this study; there are {there}")

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


def read_published(folder: Path, metric: str, study: Study) -> dict[Cell, Quartiles]:
    """Return cell -> published box, for what the study runs as published.

    A label that is not published, or runs with another number of rows, has no box to compare with.

    Raises DpmcError for a file that is not a table of boxes.
    """
    import pandas as pd

    path = folder / f"{metric}.csv"
    if not path.is_file() or study.epsilon_kind != "total":
        return {}
    with published_table(path, "boxes"):
        table = pd.read_csv(path, dtype={"epsilon": str})
        boxes = table[table["statistic"].isin(("q1", "median", "q3"))]
        cells = ["model", "method", "epsilon"]
        boxes = boxes.pivot_table("value", cells, "statistic", aggfunc="first", sort=False)
        rows = pd.read_csv(folder / "models.csv", index_col="model")["n"]
        return {
            (model, method, _epsilon(epsilon)): Quartiles(float(q1), float(median), float(q3))
            for (model, method, epsilon), q1, median, q3 in boxes[["q1", "median", "q3"]].itertuples()
            if model in study.models and study.models[model].n in (None, rows[model])
        }


def models_of(study: Study, ids: Sequence[str]) -> list[str]:
    """Return the study's labels of the given models, by label or catalogue id, in the order of `ids`.

    All for no ids. Models that run without privacy only (the clipping experiment) are left out: these
    figures have a budget on their axis. Raises DpmcError when there is none.
    """
    labels = selected(study, ids, private_models(study))
    if not labels:
        raise DpmcError(
            f"study {study.name}: none of its models belongs to this figure, which shows {', '.join(ids)}"
        )
    return labels


def selected(study: Study, ids: Sequence[str], labels: list[str]) -> list[str]:
    """Return those of a study's model labels that are given by label or catalogue id; all for no ids."""
    found = [label for wanted in ids for label in labels if wanted in (label, study.models[label].model)]
    return list(dict.fromkeys(found)) if ids else labels


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


def path_of(results: Path, study: Study, cell: Cell, seed: int | str) -> Path:
    """Return the chain file of one run; `results` is the folder of all studies' results."""
    model, method, epsilon = cell
    of = study.methods[method].from_study or study.name
    return results / of / "chains" / model / method / f"eps-{epsilon}" / f"seed-{seed}.nc"


def files_of(results: Path, study: Study, cell: Cell) -> list[Path]:
    """Return the chain files of all runs of a cell."""
    return [path_of(results, study, cell, seed) for seed in range(study.seeds)]


def kept_draws(path: Path) -> Floats:
    """Return the second halves of a run's chains, pooled: (draws, d).

    Raises DpmcError for a file that is missing or not a chain file.
    """
    from dpmc.data.chain_files import read_chain
    from dpmc.metrics.cell import second_half

    chain = read_chain(path)
    iterations, thin = int(chain.attrs["iterations"]), int(chain.attrs.get("thin", 1))
    kept = second_half(np.asarray(chain.draws), iterations, thin)
    return np.ascontiguousarray(kept.reshape(-1, kept.shape[-1]))
