"""Kind `traces`: metrics along the chains, medians over the runs, beside panels of kind `lines`.

The horizontal axis of such a panel is iterations, seconds (iterations times the CPU seconds of one, see
`costs`), rows looked at, or the total ε spent so far.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from pandas import DataFrame

from dpmc.base import Array
from dpmc.metrics import traces
from dpmc.metrics.table import read_table
from dpmc.reports.plots import ToDraw, costs, lines, style
from dpmc.reports.plots.lines import Curve, Shown
from dpmc.reports.plots.selection import models_of, private_models, selected
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

NEEDS_METRIC = True
PALEST = 0.6  # share of white in the smallest ε of a method, if it were the only one of infinitely many
TOGETHER = 1.2  # lines that begin at total ε closer than by this factor have one text


caption = lines.caption


def applies(study: Study, how: FigureKeys) -> bool:
    """Whether the study has a model of the figure: one whose data are unavailable is left out."""
    return bool(selected(study, how.models, private_models(study)))


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models whose metrics the figure reads, and tables along chains."""
    models = models_of(study, how.models)
    return models, [results / study.name / "traces" / f"{model}.csv" for model in models]


def draw(given: ToDraw) -> Figure:
    """Return the figure: panels and legend as of kind `lines`."""
    study = given.study
    models, paths = reads(study, given.declared, given.results)
    numbers: dict[str, type] = {"iteration": int, "value": float}
    tables = {
        model: read_table(path, traces.TRACE_COLUMNS, numbers=numbers)
        for model, path in zip(models, paths, strict=True)
    }
    seconds = costs.seconds_per_iteration(given)

    def along(panel: Shown) -> list[Curve]:
        if panel.x.of == "epsilon_total":
            return by_total(study, panel, tables[panel.model])
        return along_chains(panel, tables[panel.model], seconds)

    return lines.draw(given, along)


def along_chains(panel: Shown, table: DataFrame, seconds: Mapping[tuple[str, str], float]) -> list[Curve]:
    """Return curves of methods at the panel's ε, else without privacy; `seconds`: of one iteration."""
    curves = []
    for method, look in panel.methods.items():
        epsilon = panel.x.at if panel.x.at in set(table["epsilon"][table["method"] == method]) else "inf"
        across = "rows_used" if panel.x.of == "rows_used" else ""
        points = run_quartiles(table, method, epsilon, panel.metric, across)
        if panel.x.of == "seconds":
            points[0] *= seconds.get((panel.model, method), np.nan)
        if points.size and np.isfinite(points[0]).all():
            curves.append(Curve(look, points))
    return curves


def by_total(study: Study, panel: Shown, table: DataFrame) -> list[Curve]:
    """Return a panel's curves by total ε: of one method its chains, of several the least medians so far."""
    curves = []
    several = len(panel.methods) > 1
    for method, look in panel.methods.items():
        epsilons = sorted(study.epsilons(panel.model, method), key=float)
        chains = {e: run_quartiles(table, method, e, panel.metric, "epsilon_total") for e in epsilons}
        chains = {e: chain for e, chain in chains.items() if chain.size and np.isfinite(chain[0]).all()}
        if several and chains:
            every = np.hstack([*chains.values()])
            every = every[:, np.argsort(every[0], kind="stable")]
            chains = {"": every[:, every[1] == np.minimum.accumulate(every[1])]}
        for place, (epsilon, chain) in enumerate(chains.items(), start=1):
            near = [e for e, other in chains.items() if 1 / TOGETHER < other[0, 0] / chain[0, 0] < TOGETHER]
            text = " to ".join(dict.fromkeys([near[0], near[-1]])) if epsilon == near[0] else ""
            paler = style.mixed_colour(look.colour, "#FFFFFF", PALEST * (1.0 - place / len(chains)))
            curves.append(Curve(replace(look, colour=paler), chain, text))
    if several and curves:
        largest = max(curve.points[0, -1] for curve in curves)
        for index, curve in enumerate(curves):
            end = [largest, *curve.points[1:, -1]]
            curves[index] = replace(curve, points=np.column_stack([curve.points, end]))
    return curves


def run_quartiles(table: DataFrame, method: str, epsilon: str | None, metric: str, across: str = "") -> Array:
    """Return a cell's points (4, number): iteration or the median of `across`, and a metric's quartiles.

    At iterations that all runs have, without the first: on a logarithmic axis the part from 1 to 501 would be
    wider than that from 501 to 200,000.
    """
    cell = table[(table["method"] == method) & (table["epsilon"] == epsilon) & (table["iteration"] > 1)]
    cell = cell[cell["metric"].isin([metric, across])]
    runs = cell.pivot(index=["metric", "seed"], columns="iteration", values="value").dropna(axis="columns")
    if not {metric, across} - {""} <= set(cell["metric"]):
        return np.empty((4, 0))
    x = np.median(runs.loc[[across]], axis=0) if across else runs.columns.astype(float)
    return np.vstack([x, np.quantile(runs.loc[[metric]], [0.5, 0.25, 0.75], axis=0)])
