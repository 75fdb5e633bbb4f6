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

from dpmc.base import Array
from dpmc.common.streams import canonical_epsilon
from dpmc.metrics.table import RATIO_CLIPPED, error_of_median
from dpmc.studies import Study
from dpmc.studies.pairs import clip_bounds, clipping_models
from dpmc.studies.whole import own_rows

if TYPE_CHECKING:
    from pandas import DataFrame

#: budgets, or the place of some among those at which a method ran: "all", "smallest", "largest", "lower half"
#: or "upper half"
At = str | Sequence[str]

#: files of data/published with box plots of a metric over the runs of each cell
PUBLISHED_FILES = ("mmd", "mean_error", RATIO_CLIPPED, "gradient_clip_fraction")
PUBLISHED_RUNS = 20
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
RING = ("circle", "dp-hmc", "1", "ring_distance")  #: cell and metric of a trajectory (Figure 4.1)
CELL = ["model", "method", "epsilon", "metric"]
METRIC_TITLES = {"mmd": "MMD", "mean_error": "mean error", "covariance_error": "covariance error"}


@dataclass(frozen=True)
class Cells:
    """All combinations of these models, methods, metrics and budgets."""

    models: Sequence[str]
    methods: Sequence[str]
    metrics: Sequence[str] = ()
    at: At = "all"

    def each(self, *keys: str) -> Iterator[tuple[str, Cells]]:
        """Yield the parts that have one value of each of these keys, with their names; no key: the whole."""
        for values in itertools.product(*(getattr(self, key) for key in keys)):
            chosen = dict(zip(keys, values, strict=True))
            part = replace(self, **{key: (value,) for key, value in chosen.items()})
            if len(self.metrics) == 1:
                chosen.pop("metrics", None)
            names = [f"ε = {of}" if key == "at" else METRIC_TITLES.get(of, of) for key, of in chosen.items()]
            yield ", ".join(names) or f"{len(self.models)} models", part


class ClaimTable:
    """Numbers by cell: of single runs, and their median, interquartile range and error of the median.

    `runs`: rows of `CELL` and value. `boxes`: rows of `CELL`, q1, median, q3 and the number of runs, for
    cells of which no single runs are known.
    """

    def __init__(self, study: Study, runs: DataFrame, boxes: DataFrame | None = None) -> None:
        import pandas as pd

        self.study = study
        by_cell = runs.groupby(CELL, sort=False)["value"]
        self._runs = {cell: values.to_numpy() for cell, values in by_cell}
        table = pd.DataFrame({name: by_cell.quantile(part) for name, part in QUARTILES.items()})
        table["runs"] = by_cell.size()
        if boxes is not None:
            table = pd.concat([table, boxes.set_index(CELL)])
        table["spread"] = (table["q3"] - table["q1"]).where(table["runs"] >= 4)
        table["error"] = [error_of_median(*box) for box in table[["q1", "q3", "runs"]].to_numpy()]
        self._numbers = table.to_dict("index")
        budgets = table.index.to_frame(index=False).groupby(CELL[:2])["epsilon"]
        self._epsilons = {cell: sorted(set(names) - {"inf", ""}, key=float) for cell, names in budgets}

    @classmethod
    def of_study(cls, study: Study, metrics: DataFrame, budgets: DataFrame | None = None) -> ClaimTable:
        """Return the table of typed metrics; from budgets.csv, iterations are `<accountant>_iterations`."""
        import pandas as pd

        runs = own_rows(metrics, study)[[*CELL, "value"]].dropna()
        if budgets is not None:
            allowed = budgets.query("allowed != 'inf'").rename(columns={"allowed": "value"})
            allowed["epsilon"] = allowed["epsilon"].map(canonical_epsilon)
            allowed["metric"] = allowed["accountant"] + "_iterations"
            runs = pd.concat([runs, allowed[[*CELL, "value"]].astype({"value": float})])
        return cls(study, runs)

    @classmethod
    def published(cls, study: Study, folder: Path) -> ClaimTable:
        """Return the table of the thesis's numbers: box plots and some runs, of clipping as it was coded."""
        import pandas as pd

        files = [pd.read_csv(folder / f"{metric}.csv", dtype={"epsilon": str}) for metric in PUBLISHED_FILES]
        table = pd.concat(files, keys=PUBLISHED_FILES, names=["metric"]).reset_index("metric")
        table["epsilon"] = table["epsilon"].fillna("")
        boxes = table.pivot_table("value", CELL, "statistic")[[*QUARTILES]].dropna().reset_index()

        allowed = pd.read_csv(folder / "accountants.csv").query("epsilon >= 1")  # as the other budgets
        allowed["metric"] = allowed["accountant"].replace("fourier", "replace-pld") + "_iterations"
        allowed["epsilon"] = allowed["epsilon"].map(canonical_epsilon)
        allowed = allowed.rename(columns={"iterations": "value"})

        clipping = pd.read_csv(folder / "clipping_experiment.csv").replace("clip_fraction", RATIO_CLIPPED)
        clipping["id"] = "flat-banana-" + clipping["dimension"].astype(str) + "d"
        as_coded = [
            (study.models[model].model, spec.algorithm, float(spec.options["clip"]), model, method, "inf")
            for method, spec in study.methods.items()
            if spec.options.get("clip_distance") == "as_coded"
            for model in spec.models
        ]
        labels = pd.DataFrame(as_coded, columns=["id", "algorithm", "clip_bound", *CELL[:3]])
        clipping = clipping.merge(labels.astype({"clip_bound": float}))

        points = pd.read_csv(folder / "hmc_trajectory.csv")[["theta_1", "theta_2"]].to_numpy()
        trajectory = pd.DataFrame([(*RING, ring_distance(points))], columns=[*CELL, "value"])
        runs = [table[table["statistic"] == "baseline"], allowed, clipping, trajectory]
        return cls(study, pd.concat(runs), boxes.assign(runs=PUBLISHED_RUNS))

    def column(self, name: str, cells: Cells, metric: str = "") -> Array:
        """Return `median`, `spread` or `error` of each cell, (cells,), by its own metric or `metric`."""
        known = (self._numbers.get(cell, {}) for cell in self._cells(cells, metric))
        return np.array([numbers.get(name, np.nan) for numbers in known])

    def runs(self, cells: Cells, metric: str = "") -> list[Array]:
        """Return the values of all runs, (runs,), of each of the cells."""
        return [self._runs.get(cell, np.empty(0)) for cell in self._cells(cells, metric)]

    def grid(self, model: str, method: str, at: At = "all") -> Sequence[str]:
        """Return the budgets `at` which a method is evaluated, in ascending order."""
        if not isinstance(at, str):
            return at
        if method == "baseline":  # exact samples, of no budget
            return ("",)
        grid = self._epsilons.get((model, method), [])
        half = len(grid) // 2
        parts = {"all": grid, "smallest": grid[:1], "largest": grid[-1:]}
        return (parts | {"lower half": grid[:half], "upper half": grid[-half:]})[at]

    def experiments(self, model: str = "") -> Iterator[tuple[str, Cells]]:
        """Yield name and cells, by clip bound, of algorithms without privacy, on each model or `model`."""
        for label in clipping_models(self.study):
            if model in ("", self.study.models[label].model):
                for algorithm, methods in clip_bounds(self.study, label).items():
                    yield f"{algorithm}, {label}", Cells((label,), tuple(methods.values()), at=("inf",))

    def bounds(self, cells: Cells) -> Array:
        """Return the clip bounds of cells of the clipping experiment, (methods,)."""
        return np.array([float(self.study.methods[method].options["clip"]) for method in cells.methods])

    def _cells(self, cells: Cells, metric: str) -> Iterator[tuple[str, str, str, str]]:
        metrics = (metric,) if metric else cells.metrics
        for model, method, name in itertools.product(cells.models, cells.methods, metrics):
            for epsilon in self.grid(model, method, cells.at):
                yield model, method, epsilon, name


def ring_distance(points: Array) -> float:
    """Return the largest distance of points (steps, 2) from the ring of the circle model, of radius √10."""
    return float(abs(np.hypot(*points.T) - 10**0.5).max())
