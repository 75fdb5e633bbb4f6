"""The numbers of a study's cells, on which claims are decided: our own, or those of a publication.

A missing number is NaN, and a number computed from it is NaN too, unless a function says otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmc.common.streams import canonical_epsilon
from dpmc.metrics.statistics import error_of_median
from dpmc.metrics.table import own_rows
from dpmc.privacy.accountants import ACCOUNTANTS
from dpmc.studies import Study
from dpmc.studies.pairs import clip_bounds, clipping_models

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = npt.NDArray[np.float64]

#: budgets, or the place of some among those at which a method ran: "all", "smallest", "largest", "lower half"
#: or "upper half"
At = str | Sequence[str]

#: files of data/published with box plots of a metric over the runs of each cell
PUBLISHED = ("mmd", "mean_error", "ratio_clip_fraction", "gradient_clip_fraction")
PUBLISHED_RUNS = 20
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
CELL = ["model", "method", "epsilon", "metric"]
TITLES = {"mmd": "MMD", "mean_error": "mean error", "covariance_error": "covariance error"}


@dataclass(frozen=True)
class Cells:
    """All combinations of these models, methods, metrics and budgets."""

    models: Sequence[str]
    methods: Sequence[str]
    metrics: Sequence[str] = ()
    at: At = "all"

    def each(self, *keys: str) -> Iterator[tuple[str, Cells]]:
        """Yield the parts that have one value of each of these keys, with their names."""
        for values in itertools.product(*(getattr(self, key) for key in keys)):
            part = replace(self, **{key: (value,) for key, value in zip(keys, values, strict=True)})
            shown = values[:-1] if keys[-1] == "metrics" and len(self.metrics) == 1 else values
            yield ", ".join(TITLES.get(value, value) for value in shown), part


class Table:
    """Numbers by cell: of single runs, and their median, interquartile range and error of the median.

    `runs`: rows of `CELL` and value. `boxes`: rows of `CELL`, q1, median, q3 and the number of runs, for
    cells of which no single runs are known.
    """

    def __init__(self, study: Study, runs: DataFrame, boxes: DataFrame | None = None) -> None:
        import pandas as pd

        self.study = study
        by_cell = runs.groupby(CELL, sort=False)["value"]
        self._runs = {cell: values.to_numpy() for cell, values in by_cell}
        quartiles = {name: by_cell.quantile(part) for name, part in QUARTILES.items()}
        table = pd.DataFrame({**quartiles, "runs": by_cell.size()})
        if boxes is not None:
            table = pd.concat([table, boxes.set_index(CELL)])
        table["spread"] = (table["q3"] - table["q1"]).where(table["runs"] >= 4)
        table["error"] = [
            error_of_median(*box) for box in table[["q1", "q3", "runs"]].itertuples(index=False)
        ]
        self._numbers = {name: table[name].to_dict() for name in ("median", "spread", "error")}
        self._epsilons: dict[tuple[str, str], set[str]] = {}
        for model, method, epsilon, _ in table.index:
            self._epsilons.setdefault((model, method), set()).add(epsilon)

    @classmethod
    def of_study(cls, study: Study, metrics: DataFrame, budgets: DataFrame | None = None) -> Table:
        """Return the table of typed metrics; from budgets.csv, iterations are `<accountant>_iterations`."""
        import pandas as pd

        runs = own_rows(metrics, study)[[*CELL, "value"]].dropna()
        if budgets is not None:
            allowed = budgets.melt(CELL[:3], [*ACCOUNTANTS], "metric").query("value != ''")
            allowed["epsilon"] = allowed["epsilon"].map(canonical_epsilon)
            allowed = allowed.assign(
                metric=allowed["metric"] + "_iterations", value=allowed["value"].astype(float)
            )
            runs = pd.concat([runs, allowed])
        return cls(study, runs)

    @classmethod
    def published(cls, study: Study, folder: Path) -> Table:
        """Return the table of published numbers: box plots, and single runs of exact samples.

        Only models that the study runs on as many rows as published are in it, and none if its ε is another.
        """
        import pandas as pd

        files = [folder / f"{metric}.csv" for metric in PUBLISHED]
        table = pd.concat(
            pd.read_csv(file, dtype={"epsilon": str}).assign(metric=file.stem) for file in files
        )
        rows = pd.read_csv(folder / "models.csv", index_col="model")["n"].to_dict()
        own = {label for label, spec in study.models.items() if spec.n in (None, rows.get(label))}
        table = table[table["model"].isin(own if study.epsilon_kind == "total" else ())]
        table = table.fillna({"epsilon": ""})
        boxes = table.pivot_table("value", CELL, "statistic")[[*QUARTILES]].dropna().reset_index()
        return cls(study, table[table["statistic"] == "baseline"], boxes.assign(runs=PUBLISHED_RUNS))

    def column(self, name: str, cells: Cells, metric: str = "") -> Floats:
        """Return `median`, `spread` or `error` of each of the cells; for a metric of a whole cell, its value.

        `metric`: another metric than that of the cells.
        """
        numbers = self._numbers[name]
        return np.array([numbers.get(cell, np.nan) for cell in self._cells(cells, metric)])

    def runs(self, cells: Cells, metric: str = "") -> list[Floats]:
        """Return the values of all runs of each of the cells."""
        return [self._runs.get(cell, np.empty(0)) for cell in self._cells(cells, metric)]

    def grid(self, model: str, method: str, at: At = "all") -> Sequence[str]:
        """Return the budgets `at` which a method is evaluated, in ascending order."""
        if not isinstance(at, str):
            return at
        grid = sorted(self._epsilons.get((model, method), set()) - {"inf", ""}, key=float)
        half = len(grid) // 2
        parts = {"all": grid, "smallest": grid[:1], "largest": grid[-1:]}
        return (parts | {"lower half": grid[:half], "upper half": grid[-half:]})[at]

    def experiments(self, model: str = "") -> Iterator[tuple[str, Floats, Cells]]:
        """Yield each part of the clipping experiment: an algorithm without privacy on one of the models.

        A part is its name, clip bounds in ascending order, and cells in the same order. `model`: only models
        with this id.
        """
        for label in clipping_models(self.study):
            if model in ("", self.study.models[label].model):
                for algorithm, methods in clip_bounds(self.study, label).items():
                    cells = Cells((label,), tuple(methods.values()), at=("inf",))
                    yield f"{algorithm}, {label}", np.array(list(methods)), cells

    def _cells(self, cells: Cells, metric: str) -> Iterator[tuple[str, str, str, str]]:
        metrics = (metric,) if metric else cells.metrics
        for model, method, name in itertools.product(cells.models, cells.methods, metrics):
            for epsilon in self.grid(model, method, cells.at):
                yield model, method, epsilon, name
