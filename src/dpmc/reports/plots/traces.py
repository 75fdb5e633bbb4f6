"""Kind `traces`: metrics along the chains, medians over the runs, beside panels of kind `lines`.

The horizontal axis of such a panel is iterations, seconds (iterations times the measured seconds of one),
rows looked at, or the total ε spent so far.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from dpmc.metrics.table import read_table
from dpmc.reports.plots import Given, lines, style
from dpmc.reports.plots.frame import models_of, private_models, selected
from dpmc.reports.plots.lines import Curve, Shown
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

if TYPE_CHECKING:  # as in `frame`
    from pandas import DataFrame


def applies(study: Study, declared: FigureKeys) -> bool:
    """Whether the study has a model of the figure: one whose data are unavailable is left out."""
    return bool(selected(study, declared.models, private_models(study)))


def models_read(study: Study, declared: FigureKeys) -> list[str]:
    """Return the models whose metrics the figure reads."""
    return models_of(study, declared.models)


def files(study: Study, declared: FigureKeys, results: Path) -> list[Path]:
    """Return the tables that the figure reads."""
    traces = [trace_path(results, study, label) for label in models_of(study, declared.models)]
    return [*traces, speed_path(results, study)]


def trace_path(results: Path, study: Study, model: str) -> Path:
    """Return the table of metrics along the chains of a model."""
    return results / study.name / "traces" / f"{model}.csv"


def speed_path(results: Path, study: Study) -> Path:
    """Return the table of seconds per iteration."""
    return results / study.name / "speed.csv"


def draw(given: Given) -> Figure:
    """Return the figure: panels and legend as of kind `lines`."""
    study = given.study
    models = models_of(study, given.declared.models)
    tables = {label: read_traces(trace_path(given.results, study, label)) for label in models}
    seconds = {label: speeds(speed_path(given.results, study), label) for label in models}

    def curves(panel: Shown) -> list[Curve]:
        table = tables[panel.model]
        if panel.x.of == "epsilon_total":
            return by_total(study, panel, table)
        return along(study, panel, table, seconds[panel.model])

    return lines.draw(given, curves)


def along(study: Study, panel: Shown, table: DataFrame, seconds: dict[str, float]) -> list[Curve]:
    """Return a panel's curves along chains: of each method at the panel's ε, or without privacy."""
    found = []
    for method, look in panel.methods.items():
        epsilons = study.epsilons(panel.model, method)
        epsilon = panel.x.at if panel.x.at in epsilons else "inf"
        by_rows = panel.x.of == "rows_used"
        points = medians(table, method, epsilon, panel.metric, *(["rows_used"] if by_rows else []))
        if epsilon not in epsilons or points.empty or (panel.x.of == "seconds" and method not in seconds):
            continue
        x = points["rows_used"] if by_rows else points.index.to_series()
        if panel.x.of == "seconds":
            x = x * seconds[method]
        found.append(Curve(look, [*zip(x, points[panel.metric], strict=True)], along=True))
    return found


def by_total(study: Study, panel: Shown, table: DataFrame) -> list[Curve]:
    """Return a panel's curves against the total ε spent so far, of methods that have a guarantee.

    Of a single method its chains, darker for larger ε per iteration; of several the least value of each
    within a total, up to the largest total of any.
    """
    import pandas as pd

    found: list[Curve] = []
    several = len(panel.methods) > 1
    for method, look in panel.methods.items():
        epsilons = sorted(study.epsilons(panel.model, method), key=float)
        chains = [medians(table, method, epsilon, "epsilon_total", panel.metric) for epsilon in epsilons]
        chains = [one for one in chains if len(one) and np.isfinite(one["epsilon_total"]).all()]
        if several and chains:
            both = pd.concat(chains).sort_values("epsilon_total")
            chains = [both[both[panel.metric] == both[panel.metric].cummin()]]
        for place, chain in enumerate(chains, start=1):
            paler = style.mixed(look.colour, "#FFFFFF", 0.6 * (1.0 - place / len(chains)))
            shade, x, y = replace(look, colour=paler), chain["epsilon_total"], chain[panel.metric]
            found.append(Curve(shade, [*zip(x, y, strict=True)], along=True, steps=several))
    largest = max((curve.points[-1][0] for curve in found), default=0.0)
    for curve in found if several else ():
        if curve.points[-1][0] < largest:
            curve.points.append((largest, curve.points[-1][1]))
    return found


def medians(table: DataFrame, method: str, epsilon: str, *metrics: str) -> DataFrame:
    """Return medians over a cell's runs by iteration, at iterations that all of them have.

    Without the first: on a logarithmic axis it would take most of it.
    """
    import pandas as pd

    cell = table[(table["method"] == method) & (table["epsilon"] == epsilon) & (table["iteration"] > 1)]
    columns = {}
    for metric in metrics:
        runs = cell[cell["metric"] == metric].groupby("iteration")["value"]
        columns[metric] = runs.median()[runs.size() == runs.size().max()]
    return pd.DataFrame(columns).dropna()


def read_traces(path: Path) -> DataFrame:
    """Return a table written by `dpmc trace`; DpmcError for a file that is none."""
    from dpmc.metrics.traces import COLUMNS

    return read_table(path, COLUMNS, numbers={"iteration": int, "value": float})


def speeds(path: Path, model: str) -> dict[str, float]:
    """Return method -> measured seconds per iteration on a model; DpmcError for a file that has none."""
    from dpmc.sampling.speed import COLUMNS

    table = read_table(path, COLUMNS, numbers={"iterations": int, "seconds_per_iteration": float})
    rows = table[table["model"] == model]
    return dict(zip(rows["method"], rows["seconds_per_iteration"], strict=True))
