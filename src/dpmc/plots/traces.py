"""Kind `traces`: metrics along the chains, medians over the runs, beside panels of kind `lines`.

The horizontal axis of such a panel is iterations, seconds (iterations times the measured seconds of one) or
rows looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from dpmc.errors import DpmcError
from dpmc.plots import Given, lines
from dpmc.plots.frame import Results, models_of, read_table
from dpmc.plots.lines import Curve, Shown
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

if TYPE_CHECKING:  # as in `frame`
    from pandas import DataFrame, Series


def applies(study: Study, declared: FigureKeys) -> bool:
    """Whether the study has a model of the figure: one whose data are unavailable is left out."""
    try:
        return bool(models_of(study, declared.models))
    except DpmcError:
        return False


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

    def curves(results: Results, panel: Shown) -> list[Curve]:
        if panel.x.of in lines.NAMES:
            return along(study, panel, tables[panel.model], seconds[panel.model])
        return lines.curves(results, study, panel)

    return lines.draw_panels(given, curves)


def along(study: Study, panel: Shown, table: DataFrame, seconds: dict[str, float]) -> list[Curve]:
    """Return a panel's curves along chains: of each method at the panel's ε, or without privacy."""
    found = []
    for method, look in panel.methods.items():
        epsilons = study.epsilons(panel.model, method)
        epsilon = panel.x.at if panel.x.at in epsilons else "inf"
        y = median(table, method, epsilon, panel.metric)
        if epsilon not in epsilons or y.empty or (panel.x.of == "seconds" and method not in seconds):
            continue
        y = y[y.index > 1]  # on a logarithmic axis the very first iteration would take most of it
        x = y.index.to_series()
        if panel.x.of == "seconds":
            x = x * seconds[method]
        if panel.x.of == "rows_used":
            x = median(table, method, epsilon, "rows_used")[y.index]
        found.append(Curve(look, x.tolist(), y.tolist()))
    return found


def median(table: DataFrame, method: str, epsilon: str, metric: str) -> Series:
    """Return the median over a cell's runs by iteration, at iterations that all of them have."""
    rows = (table["method"] == method) & (table["epsilon"] == epsilon) & (table["metric"] == metric)
    runs = table[rows].groupby("iteration")["value"]
    return runs.median()[runs.size() == runs.size().max()]


def read_traces(path: Path) -> DataFrame:
    """Return a table written by `dpmc trace`; DpmcError for a file that is none."""
    from dpmc.metrics.traces import COLUMNS

    return read_table(path, COLUMNS, numbers={"iteration": int, "value": float})


def speeds(path: Path, model: str) -> dict[str, float]:
    """Return method -> measured seconds per iteration on a model; DpmcError for a file that has none."""
    from dpmc.metrics.speed import COLUMNS

    table = read_table(path, COLUMNS, numbers={"iterations": int, "seconds_per_iteration": float})
    rows = table[table["model"] == model]
    return dict(zip(rows["method"], rows["seconds_per_iteration"], strict=True))
