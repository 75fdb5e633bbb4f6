"""Kind `traces`: metrics along the chains, medians over the runs, beside panels of kind `lines`.

The horizontal axis of such a panel is iterations, seconds (iterations times the measured seconds of one),
rows looked at, or the total ε spent so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from dpmc.metrics import traces
from dpmc.metrics.table import read_table
from dpmc.reports.plots import Given, lines, style
from dpmc.reports.plots.lines import Curve, Shown
from dpmc.reports.plots.selection import models_of, private_models, selected
from dpmc.sampling import speed
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

if TYPE_CHECKING:  # pandas takes half a second
    from pandas import DataFrame


def applies(study: Study, how: FigureKeys) -> bool:
    """Whether the study has a model of the figure: one whose data are unavailable is left out."""
    return bool(selected(study, how.models, private_models(study)))


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models whose metrics the figure reads, and tables: along chains, and of run times."""
    models = models_of(study, how.models)
    folder = results / study.name
    return models, [*(folder / "traces" / f"{model}.csv" for model in models), folder / "speed.csv"]


def draw(given: Given) -> Figure:
    """Return the figure: panels and legend as of kind `lines`."""
    study = given.study
    models, (*paths, times) = reads(study, given.declared, given.results)
    numbers: dict[str, type] = {"iteration": int, "value": float}
    tables = {
        model: read_table(path, traces.COLUMNS, numbers=numbers)
        for model, path in zip(models, paths, strict=True)
    }
    speeds = read_table(times, speed.COLUMNS, numbers={"iterations": int, "seconds_per_iteration": float})

    def along(panel: Shown) -> list[Curve]:
        if panel.x.of == "epsilon_total":
            return by_total(study, panel, tables[panel.model])
        rows = speeds[speeds["model"] == panel.model]
        seconds = dict(zip(rows["method"], rows["seconds_per_iteration"], strict=True))
        return along_chains(panel, tables[panel.model], seconds)

    return lines.draw(given, along)


def along_chains(panel: Shown, table: DataFrame, seconds: Mapping[str, float]) -> list[Curve]:
    """Return a panel's curves along chains: of each method at the panel's ε, or without privacy.

    `seconds`: method -> measured seconds per iteration.
    """
    curves = []
    for method, look in panel.methods.items():
        own = table[table["method"] == method]
        epsilon = panel.x.at if panel.x.at in set(own["epsilon"]) else "inf"
        if panel.x.of == "rows_used":
            points = medians(own, method, epsilon, "rows_used", panel.metric)
        else:
            points = medians(own, method, epsilon, panel.metric)
            step = seconds.get(method, np.nan) if panel.x.of == "seconds" else 1.0
            points.insert(0, "x", points.index * step)
        points = points.dropna()
        if len(points):
            curves.append(Curve(look, points.to_numpy().T))
    return curves


def by_total(study: Study, panel: Shown, table: DataFrame) -> list[Curve]:
    """Return a panel's curves against the total ε spent so far, of methods that have a guarantee.

    Of a single method its chains, darker for larger ε per iteration; of several the least value of each
    within a total, up to the largest total of any.
    """
    import pandas as pd

    curves = []
    several = len(panel.methods) > 1
    for method, look in panel.methods.items():
        epsilons = sorted(study.epsilons(panel.model, method), key=float)
        chains = [medians(table, method, epsilon, "epsilon_total", panel.metric) for epsilon in epsilons]
        chains = [chain for chain in chains if len(chain) and np.isfinite(chain["epsilon_total"]).all()]
        if several and chains:
            every = pd.concat(chains).sort_values("epsilon_total")
            chains = [every[every[panel.metric] == every[panel.metric].cummin()]]
        for place, chain in enumerate(chains, start=1):
            paler = style.mixed(look.colour, "#FFFFFF", 0.6 * (1.0 - place / len(chains)))
            points = chain[["epsilon_total", panel.metric]].to_numpy().T
            curves.append(Curve(replace(look, colour=paler), points, steps=several))
    if not several:
        return curves
    largest = max((curve.points[0, -1] for curve in curves), default=0.0)
    return [
        replace(curve, points=np.column_stack([curve.points, (largest, curve.points[1, -1])]))
        for curve in curves
    ]


def medians(table: DataFrame, method: str, epsilon: str | None, *metrics: str) -> DataFrame:
    """Return medians over a cell's runs by iteration, at iterations that all of them have.

    Without the first: on a logarithmic axis it would take most of it.
    """
    cell = table[(table["method"] == method) & (table["epsilon"] == epsilon) & (table["iteration"] > 1)]
    runs = cell.groupby(["metric", "iteration"])["value"].agg(["median", "size"])
    everywhere = runs["size"] == runs.groupby("metric")["size"].transform("max")
    return runs.loc[everywhere, "median"].unstack("metric").reindex(columns=list(metrics)).dropna()
