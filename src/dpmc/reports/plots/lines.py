"""Kind `lines`: medians over the runs of each cell with quartiles, joined along ε, a metric or an option.

What is drawn at ε = ∞ has no place on the axis: a line across.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc.metrics.table import Results
from dpmc.reports.plots import Given, layout, marks, style
from dpmc.reports.plots.frame import Cell, check_metrics, methods_of, models_of
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import Across, Axis, FigureKeys, Panel

DIAGONAL: dict[str, Any] = {"color": style.GREY, "linewidth": 2.6, "alpha": 0.4}
LEGEND: dict[str, Any] = {"handlelength": 2.8, "handleheight": 0.7}
LEGEND_ROW = 0.17  # inches
APART = 0.02  # share by which the lines of two methods are moved apart on a logarithmic axis of ε
#: what stands on a horizontal axis along chains -> its name
NAMES = {
    "iterations": "iterations",
    "seconds": "seconds, as measured",
    "rows_used": "rows looked at",
    "epsilon_total": "total ε spent",
}


@dataclass(frozen=True)
class Shown:
    """One panel: what it shows of which model."""

    model: str
    metric: str
    title: str
    methods: dict[str, MethodStyle]  # label -> how its line looks
    x: Across
    y: Axis


@dataclass
class Curve:
    """The line of a method in a panel: (x, y), or (x, y, down, up) with the distances to the quartiles."""

    look: MethodStyle
    points: list[tuple[float, ...]] = field(default_factory=list)
    along: bool = False  # chains: many points, without quartiles
    steps: bool = False


def models_read(study: Study, how: FigureKeys) -> list[str]:
    """Return the models whose metrics the figure reads."""
    return models_of(study, how.models)


def panels_of(study: Study, how: FigureKeys) -> list[Shown]:
    """Return the panels of a figure, model by model.

    Raises DpmcError where the study has none of its models or methods.
    """
    models = models_of(study, how.models)
    wanted = how.panels or [Panel(metric=metric) for metric in how.metric]
    found = []
    for model in models:
        name = style.model_name(study, model, how.titles)
        for panel in wanted:
            metric = panel.metric or how.metric[0]
            labels = methods_of(study, panel.methods or how.methods, [model])
            methods = {label: style.line_style(study, label, how.titles.get(label, "")) for label in labels}
            title = panel.title if len(models) == 1 or not panel.title else f"{name}: {panel.title}"
            found.append(Shown(model, metric, title or name, methods, panel.x or how.x, panel.y or how.y))
    return found


def curves(results: Results, study: Study, panel: Shown) -> list[Curve]:
    """Return a panel's curves; labels that look alike, such as those of a sweep, share one."""
    found: dict[MethodStyle, Curve] = {}
    for method, look in panel.methods.items():
        for epsilon in study.epsilons(panel.model, method):
            cell = (panel.model, method, epsilon)
            values, x = results.values(*cell, panel.metric), position(results, study, panel.x, cell)
            if values and x is not None:
                low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
                point = (x, middle, middle - low, high - middle)
                found.setdefault(look, Curve(look)).points.append(point)
    return list(found.values())


def position(results: Results, study: Study, x: Across, cell: Cell) -> float | None:
    """Return where a cell stands on a horizontal axis; None if nowhere."""
    _, method, epsilon = cell
    if x.of == "epsilon":
        return float(epsilon)
    if x.at is not None:
        size = study.methods[method].options.get(x.of)
        return float(size) if size is not None and epsilon == x.at else None
    return max(results.values(*cell, x.of), default=None)


@style.context()
def draw(given: Given, along: Callable[[Shown], list[Curve]] | None = None) -> Figure:
    """Return the figure: one panel for each model and metric, or those declared, and a legend.

    `along` returns the curves of a panel whose horizontal axis is one of `NAMES`.
    """
    study, how = given.study, given.declared
    panels = panels_of(study, how)
    results = Results.of_study(given.metrics, study)
    check_metrics(results, (panel.metric for panel in panels))
    columns = min(how.columns or 2, len(panels))
    spare = len(panels) % columns > 0  # the legend stands there
    row = 2.1 if len(panels) <= 3 * columns else 1.75
    figure, axes = layout.panels(len(panels) + spare, columns, row)
    free = axes.pop() if spare else None
    drawn: dict[str, MethodStyle] = {}  # by title: shades of a colour share one
    exact = 0
    for one, panel in zip(axes, panels, strict=True):
        exact = max(exact, marks.draw_baselines(one, results.baselines(panel.model, panel.metric)))
        of_chains = along if panel.x.of in NAMES else None
        found = of_chains(panel) if of_chains else curves(results, study, panel)
        _draw_panel(one, panel, found, given)
        drawn |= {curve.look.title: curve.look for curve in found}
    _finish_all(axes, panels, columns, study)
    entries: layout.Entries = [(Line2D([], [], **look.line2d), title) for title, look in drawn.items()]
    entries += marks.exact_samples(exact) + marks.references(line.label for line in how.lines)
    if how.diagonal:
        entries.append((Line2D([], [], **DIAGONAL), how.diagonal))
    if free is None:
        rows = layout.legend(figure, entries, **LEGEND)
        figure.set_figheight(figure.get_figheight() + LEGEND_ROW * rows)
    else:
        free.set_axis_off()
        free.legend(*zip(*entries, strict=True), loc="center", **LEGEND)
    return figure


def _draw_panel(axes: Axes, panel: Shown, found: Sequence[Curve], given: Given) -> None:
    """Draw the curves of a panel and its reference lines; set its horizontal scale and ticks."""
    default = "linear" if given.study.epsilon_kind == "total" else "log"
    logarithmic = (panel.x.scale or default) == "log"
    for index, curve in enumerate(found):
        apart = 1.0 + APART * (index - (len(found) - 1) / 2) if logarithmic and panel.x.of == "epsilon" else 1
        _draw_curve(axes, curve, apart, index)
    if not found:
        axes.text(0.5, 0.5, "no results", transform=axes.transAxes, ha="center", fontsize=7, color=style.INK)
    for line in given.declared.lines:
        if line.upright == panel.x.of:
            axes.axvline(line.at, **marks.REFERENCE, zorder=1)
        elif not line.upright and line.metric in ("", panel.metric):
            axes.axhline(line.at, **marks.REFERENCE, zorder=1)
    if given.declared.diagonal:
        along = np.linspace(axes.dataLim.x0, axes.dataLim.x1, 100)
        axes.plot(along, along, **DIAGONAL, zorder=1)
    axes.set_title(panel.title)
    places = sorted({x for curve in found for x, *_ in curve.points if math.isfinite(x)})
    if logarithmic and places:
        layout.logarithmic(axes, "x")
    else:
        layout.plain_numbers(axes.xaxis)
    if panel.x.of == "epsilon" or (panel.x.at and panel.x.of not in NAMES):
        axes.set_xticks(places, [f"{place:,.7g}" for place in places])
        axes.minorticks_off()
    else:
        axes.margins(x=0.03)
    axes.grid(True)


def _draw_curve(axes: Axes, curve: Curve, apart: float, index: int) -> None:
    """Draw one curve; `index`, its number, keeps sparse markers of curves that coincide apart."""
    how = {**curve.look.line2d, "zorder": 4 if curve.look.line == style.SOLID else 3}
    if curve.along:
        how["drawstyle"] = "steps-post" if curve.steps else "default"
        axes.plot(*zip(*curve.points, strict=True), **how, markevery=(0.03 * (index % 7), 0.24))
        return
    for point in curve.points:
        if math.isinf(point[0]):
            axes.axhline(point[1], **{**how, "zorder": 2}, markevery=[1], clip_on=False)
    points = sorted(point for point in curve.points if math.isfinite(point[0]))
    if not points:
        return
    x, y, *away = np.array(points).T
    if x[-1] < 1.01 * x[0]:
        how["linestyle"] = "none"  # one place: the cells differ by chance alone
    paler = style.mixed(curve.look.colour, "#FFFFFF", 0.35)
    axes.errorbar(apart * x, y, yerr=away, elinewidth=0.6, ecolor=paler, **how)


def _finish_all(axes: Sequence[Axes], panels: Sequence[Shown], columns: int, study: Study) -> None:
    """Name and scale the axes; share those of a metric where that is declared."""
    same = len({panel.x for panel in panels}) == 1
    for index, (one, panel) in enumerate(zip(axes, panels, strict=True)):
        layout.scale_y(one, panel.y)
        one.set_ylabel(panel.y.label or style.metric_label(panel.metric))
        if not same or index + columns >= len(panels):
            name = style.budget_label(study) if panel.x.of == "epsilon" else style.metric_label(panel.x.of)
            one.set_xlabel(panel.x.label or NAMES.get(panel.x.of) or name)
    for metric in {panel.metric for panel in panels if panel.y.share}:
        layout.alike([one for one, panel in zip(axes, panels, strict=True) if panel.metric == metric], "y")
    for of in NAMES:
        layout.alike([one for one, panel in zip(axes, panels, strict=True) if panel.x.of == of], "x")
