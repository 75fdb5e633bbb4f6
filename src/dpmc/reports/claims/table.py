"""The numbers of a study's cells, on which claims are decided: our own, or those of a publication.

Each number is an array of `1 + RESAMPLES` numbers: first itself, then what it would be for runs drawn anew,
with replacement, from those of its cell. Their standard deviation is its standard error. A missing number is
NaN, and a number computed from it is NaN too, unless a function says otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpmc.base import Array
from dpmc.common.streams import canonical_epsilon, stream
from dpmc.metrics.table import RATIO_CLIPPED, error_of_median
from dpmc.studies import Study
from dpmc.studies.pairs import clip_bounds, clipping_models
from dpmc.studies.whole import own_rows

if TYPE_CHECKING:
    from pandas import DataFrame

#: budgets, or the place of some among those at which a method ran: "all", "smallest", "largest", "lower half"
#: or "upper half"
At = str | Sequence[str]

RESAMPLES = 400
#: files of data/published with box plots of a metric over the runs of each cell
PUBLISHED_FILES = ("mmd", "mean_error", RATIO_CLIPPED, "gradient_clip_fraction")
PUBLISHED_RUNS = 20
QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
RING = ("circle", "dp-hmc", "1", "ring_distance")  #: cell and metric of a trajectory (Figure 4.1)
CELL = ["model", "method", "epsilon", "metric"]
METRIC_TITLES = {
    **{"mmd": "MMD", "mean_error": "mean error", "covariance_error": "covariance error"},
    "symmetric_kl": "symmetric KL",
}


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
            yield (
                ", ".join(METRIC_TITLES.get(of, of) for of in chosen.values())
                or f"{len(self.models)} models",
                part,
            )


class ClaimTable:
    """Numbers by cell: of single runs, and their median, interquartile range and error of the median.

    `runs`: rows of `CELL` and value. `boxes`: rows of `CELL`, q1, median, q3 and the number of runs, for
    cells of which no single runs are known.
    """

    def __init__(self, study: Study, runs: DataFrame, boxes: DataFrame | None = None) -> None:
        self.study = study
        self._runs = {cell: values.to_numpy() for cell, values in runs.groupby(CELL, sort=False)["value"]}
        self._boxes = {} if boxes is None else boxes.set_index(CELL).to_dict("index")
        self._numbers: dict[tuple[str, ...], dict[str, Array]] = {}
        budgets: dict[tuple[str, str], set[str]] = {}
        for model, method, epsilon, _ in (*self._runs, *self._boxes):
            budgets.setdefault((model, method), set()).add(epsilon)
        self._epsilons = {cell: sorted(names - {"inf", ""}, key=float) for cell, names in budgets.items()}

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
        """Return `median`, `spread` or `error` of cells by `metric` or their own, (cells, 1 + RESAMPLES)."""
        found = [self._of(cell)[name] for cell in self._cells(cells, metric)]
        return np.array(found).reshape(len(found), 1 + RESAMPLES)

    def runs(self, cells: Cells, metric: str = "") -> list[Array]:
        """Return the values of all runs of each of the cells, (runs, 1 + RESAMPLES)."""
        return [self._drawn(cell) for cell in self._cells(cells, metric)]

    def _drawn(self, cell: tuple[str, ...]) -> Array:
        values = self._runs.get(cell, np.empty(0))
        if not len(values):
            return np.empty((0, 1 + RESAMPLES))
        again = _stream(cell).integers(len(values), size=(len(values), RESAMPLES))
        return np.column_stack([values, values[again]])

    def _of(self, cell: tuple[str, ...]) -> dict[str, Array]:
        """Return median, spread and error of a cell; computed once."""
        if cell not in self._numbers:
            low, middle, high, count = self._quartiles(cell)
            error = error_of_median(0.0, 1.0, count) * (high - low)
            self._numbers[cell] = {"median": middle, "spread": high - low, "error": error}
        return self._numbers[cell]

    def _quartiles(self, cell: tuple[str, ...]) -> tuple[Array, Array, Array, int]:
        """Return quartiles and number of runs; of fewer than four, and of R-hat, the median alone."""
        nothing, count = np.full(1 + RESAMPLES, np.nan), len(self._runs.get(cell, ()))
        if count and cell[3] == "rhat_max":
            # One number of all chains: R-hat − 1 goes as the variance of their means.
            chains = max(len(self._runs.get((*cell[:3], "iterations"), ())) * self.study.chains, 2)
            value = self._runs[cell][0]
            error = (value - 1.0) * (2.0 / (chains - 1)) ** 0.5
            return nothing, value + error * _chance(cell), nothing, count
        if count:
            low, middle, high = np.quantile(self._drawn(cell), [*QUARTILES.values()], axis=0)
            return (low, middle, high, count) if count >= 4 else (nothing, middle, nothing, count)
        if cell not in self._boxes:
            return nothing, nothing, nothing, count
        low, middle, high, count = (self._boxes[cell][name] for name in (*QUARTILES, "runs"))
        # Of normal numbers the error of a quartile range is 1.17 of it over the root of the runs.
        half = 0.5 * (high - low) * (1.0 + 1.17 / count**0.5 * _chance((*cell, "spread")))
        middle = middle + error_of_median(low, high, count) * _chance(cell)
        return middle - half, middle, middle + half, count

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

    def parts(self, cells: Cells, by: Sequence[str]) -> Iterator[tuple[str, Cells]]:
        """Yield parts as `Cells.each`, with names; `at` among the keys is each budget of a method."""
        for name, part in cells.each(*(key for key in by if key != "at")):
            grid = self.grid(part.models[0], part.methods[0], part.at) if "at" in by else ()
            for epsilon in grid or [""]:
                names = filter(None, (name, f"ε = {epsilon}" if epsilon else ""))
                yield ", ".join(names), replace(part, at=(epsilon,)) if epsilon else part

    def experiments(self, model: str = "") -> Iterator[tuple[str, Cells]]:
        """Yield name and cells, by clip bound, of algorithms without privacy, on each model or `model`."""
        for label in clipping_models(self.study):
            if model in ("", self.study.models[label].model):
                for algorithm, methods in clip_bounds(self.study, label).items():
                    yield f"{algorithm}, {label}", Cells((label,), tuple(methods.values()), at=("inf",))

    def bounds(self, cells: Cells) -> Array:
        """Return the clip bounds (methods,) of cells of the clipping experiment."""
        return np.array([float(self.study.methods[method].options["clip"]) for method in cells.methods])

    def _cells(self, cells: Cells, metric: str) -> Iterator[tuple[str, str, str, str]]:
        metrics = (metric,) if metric else cells.metrics
        for model, method, name in itertools.product(cells.models, cells.methods, metrics):
            for epsilon in self.grid(model, method, cells.at):
                yield model, method, epsilon, name


def _stream(cell: tuple[str, ...]) -> np.random.Generator:
    return stream("claims", *cell)


def _chance(cell: tuple[str, ...]) -> Array:
    """Return standard normal numbers, after a 0 for the number itself."""
    return np.append(0.0, _stream(cell).standard_normal(RESAMPLES))


def ring_distance(points: Array) -> float:
    """Return the largest distance of points (steps, 2) from the ring of the circle model, of radius √10."""
    return float(abs(np.hypot(*points.T) - 10**0.5).max())
