"""The numbers of a study by cell, for claims. None: there is no such number."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from dpmc.common.streams import canonical_epsilon
from dpmc.metrics.statistics import median_error
from dpmc.metrics.table import Results
from dpmc.studies.pairs import clip_bounds, clipping_models

if TYPE_CHECKING:
    from pandas import DataFrame

    from dpmc.studies import Study

INF = "inf"
#: columns of budgets.csv that count iterations
ACCOUNTANTS = ("tight", "zcdp", "rdp", "replace-pld", "wor-pld", "barker-pld", "fast-mh-pld")


class Numbers:
    """A study's metrics; the iterations that an accountant allows are `<accountant>_iterations`."""

    def __init__(self, study: Study, metrics: DataFrame, budgets: DataFrame | None = None) -> None:
        self.study = study
        numbers = Results.of_study(metrics, study).numbers
        self._values = {cell: list(by_seed.values()) for cell, by_seed in numbers.items()}
        for row in [] if budgets is None else budgets.to_dict("records"):
            cell = (row["model"], row["method"], canonical_epsilon(row["epsilon"]))
            for name in ACCOUNTANTS:
                if row[name] != "":
                    self._values[(*cell, f"{name}_iterations")] = [float(row[name])]
        self._epsilons: dict[tuple[str, str], set[str]] = {}
        for model, method, epsilon, _ in self._values:
            self._epsilons.setdefault((model, method), set()).add(epsilon)

    def values(self, model: str, method: str, epsilon: str, metric: str) -> list[float]:
        """Return the metric's values over the runs of a cell."""
        return self._values.get((model, method, epsilon, metric), [])

    def median(self, model: str, method: str, epsilon: str, metric: str) -> float | None:
        """Return the median over the runs of a cell; for a metric of the whole cell, its value."""
        values = self.values(model, method, epsilon, metric)
        return median(values) if values else None

    def error(self, model: str, method: str, epsilon: str, metric: str) -> float:
        """Return the standard error of the median; NaN for fewer than two runs."""
        return median_error(self.values(model, method, epsilon, metric))

    def spread(self, model: str, method: str, epsilon: str, metric: str) -> float | None:
        """Return the interquartile range over the runs of a cell; None for fewer than four."""
        values = self.values(model, method, epsilon, metric)
        if len(values) < 4:
            return None
        low, high = np.quantile(values, (0.25, 0.75))
        return float(high - low)

    def epsilons(self, model: str, method: str) -> list[str]:
        """Return the budgets at which a method ran on a model, in ascending order."""
        return sorted(self._epsilons.get((model, method), set()) - {INF, ""}, key=float)

    def clipping_models(self, model_id: str = "") -> list[str]:
        """Return the model labels of the clipping experiment: no budget, several clip bounds."""
        labels = clipping_models(self.study)
        return [label for label in labels if model_id in ("", self.study.models[label].model)]

    def clip_bounds(self, model: str) -> dict[str, dict[float, str]]:
        """Return {algorithm without privacy: {clip bound, ascending: method label}} of a model."""
        return clip_bounds(self.study, model)
