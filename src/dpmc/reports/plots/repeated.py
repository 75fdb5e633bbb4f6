"""Coverage and width of intervals in repeated runs, against ε, one panel for each label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.base import Array
from dpmc.metrics.coverage import LEVELS, share_interval
from dpmc.metrics.table import read_metrics
from dpmc.reports.plots import ModelsAndFiles, ToDraw, layout, lines, marks, style
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys
from dpmc.studies.whole import Results

Between = Callable[[Sequence[float]], tuple[float, float, float]]  #: values -> point and ends of its bar
NORMAL_WIDTHS = {50: 1.349, 90: 3.290}  #: of a normal posterior, in its sds
EXACT_LINE: dict[str, Any] = {"color": "black", "linewidth": 0.9, "linestyle": (0, (1, 1))}
LEVEL_NOTE: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": style.SMALL}


def reads(study: Study, how: FigureKeys, results: Path) -> ModelsAndFiles:
    """Return no model, and the table of repeated runs."""
    return [], [results / study.name / "repeated.csv"]


def applies(study: Study, how: FigureKeys) -> bool:
    """Return whether the study has repeated runs that the figure may show."""
    return any(label in study.repeated for label in how.models or study.repeated)


def coverage(given: ToDraw) -> Figure:
    """Return the figure of the shares of intervals that hold the true θ, with 95 % bars over data sets."""
    return _draw(given, "coverage", share_interval, {level: level / 100.0 for level in LEVELS})


def width(given: ToDraw) -> Figure:
    """Return the figure of medians of the widths of intervals, with quartiles over the data sets."""

    def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
        return median, low, high

    return _draw(given, "width", quartiles, NORMAL_WIDTHS)


def _draw(given: ToDraw, metric: str, between: Between, nominal: dict[int, float]) -> Figure:
    """Return the figure of a metric at both levels: 50 % dotted, nominal values dashed."""
    study, how = given.study, given.declared
    table = read_metrics(*reads(study, how, given.results)[1])
    labels = [label for label in how.models or study.repeated if label in study.repeated]
    figure, places = layout.panels(how.wide, len(labels), min(how.columns or 2, len(labels)), 1.6)
    entries: layout.Entries = {}
    for axes, label in zip(places, labels, strict=True):
        of = study.repeated[label][0]
        methods = [method for method in of.methods if method in (how.methods or of.methods)]
        results = Results(table, of)
        for level in LEVELS:
            axes.axhline(nominal[level], **marks.REFERENCE, zorder=1)
            axes.text(1.0, nominal[level], f"{level} %", **LEVEL_NOTE, transform=axes.get_yaxis_transform())
            if exact := results.baselines(label, f"{metric}_{level}"):
                axes.axhline(between(exact)[0], **EXACT_LINE, zorder=1.5)
                entries["exact posterior"] = EXACT_LINE
            for index, method in enumerate(methods):
                look = style.line_style(study, method, how.titles.get(method, ""))
                entries[look.title] = look.line2d
                points = _points(results, of, (label, method, f"{metric}_{level}"), between)
                drawn = look if level == 90 else replace(look, line=style.DOTTED)
                aside = lines.ASIDE * (index - (len(methods) - 1) / 2)
                if points.size:
                    lines.draw_cells(axes, lines.Curve(drawn, points), aside)
        _finish(axes, of, label, how)
        axes.set_ylim(*((-0.03, 1.03) if metric == "coverage" else (0.0, None)))
        axes.set_ylabel(metric if metric == "coverage" else f"{metric} (sds)")
    entries["nominal" if metric == "coverage" else "normal posterior"] = marks.REFERENCE
    layout.add_legend(figure, entries)
    return figure


def _points(results: Results, of: Study, names: tuple[str, str, str], between: Between) -> Array:
    """Return ε, point and ends of the bar of each cell that has values, (4, cells)."""
    label, method, metric = names
    cells = {
        epsilon: results.values(label, method, epsilon, metric) for epsilon in of.epsilons(label, method)
    }
    return np.array([(float(epsilon), *between(values)) for epsilon, values in cells.items() if values]).T


def _finish(axes: Axes, of: Study, label: str, how: FigureKeys) -> None:
    """Give a panel its title and its axis of ε."""
    budgets = sorted(float(epsilon) for epsilon in of.models[label].epsilons if epsilon != "inf")
    axes.set(title=style.model_name(of, label, how.titles), xlabel=style.budget_label(of), xscale="log")
    axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
    axes.minorticks_off()
    axes.margins(x=0.1)
    axes.grid(True)
