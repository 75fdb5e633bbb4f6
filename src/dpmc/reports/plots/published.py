"""Published box plots that stand beside ours."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpmc.common.streams import canonical_epsilon
from dpmc.metrics.table import read_table
from dpmc.reports.plots.selection import CellKey
from dpmc.studies import Study


class Quartiles(NamedTuple):
    """Quartiles of a published box plot, or of values drawn as slim as one."""

    q1: float
    median: float
    q3: float


def quartiles(values: Sequence[float]) -> Quartiles:
    """Return the quartiles of values."""
    return Quartiles(*np.quantile(values, [0.25, 0.5, 0.75]).tolist())


def published_boxes(folder: Path, metric: str, study: Study) -> dict[CellKey, Quartiles]:
    """Return cell -> published box of a study's models with as many rows; {} for ε per iteration."""
    path = folder / f"{metric}.csv"
    if not path.is_file() or study.epsilon_kind != "total":
        return {}
    columns = ["model", "method", "epsilon", "statistic", "value"]
    boxes = read_table(path, columns, "a table of published boxes", {"value": float})
    boxes = boxes[boxes["statistic"].isin(Quartiles._fields)]
    boxes = boxes.pivot_table("value", columns[:3], "statistic", aggfunc="first", sort=False)
    models = read_table(folder / "models.csv", ["model", "n"], "a table of models", {"n": int})
    rows = models.set_index("model")["n"]
    return {
        (model, method, canonical_epsilon(epsilon)): Quartiles(*box)
        for (model, method, epsilon), *box in boxes[list(Quartiles._fields)].itertuples()
        if model in study.models and study.models[model].n in (None, rows[model])
    }
