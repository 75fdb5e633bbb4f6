"""Kind `lines`: medians over the runs of each cell with quartiles, joined along ε, a metric or an option.

What is drawn at ε = ∞ has no place on the axis: a line across.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from dpmc.base import Array
from dpmc.reports.plots import ToDraw, captions, layout, marks, style
from dpmc.reports.plots.selection import methods_of, models_of
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import Across, Axis, FigureKeys, Panel
from dpmc.studies.whole import Results

NEEDS_METRIC = True
ALONG = ("iterations", "seconds", "rows_used", "epsilon_total")  # horizontal axes along chains
#: metrics that a cell has one value of
OF_CELLS = {"budget_iterations", "epsilon_spent_tight", "rhat_max", "ess_bulk_min"}
DIAGONAL: dict[str, Any] = {"color": style.GREY, "linewidth": 2.6, "alpha": 0.4}
ASIDE = 3.0  # points between the marks of two methods at one value


@dataclass(frozen=True)
class Shown:
    """One panel: what it shows of which model."""

    model: str
    metric: str
    title: str
    methods: dict[str, MethodStyle]  # label -> how its line looks
    x: Across
    y: Axis


@dataclass(frozen=True, eq=False)
class Curve:
    """The line of a method in a panel; `points` (4, number) has rows x, median, lower and upper quartile."""

    look: MethodStyle
    points: Array
    text: str = ""  # above its begin


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models whose metrics the figure reads; no files."""
    return models_of(study, how.models), []


def caption(study: Study, how: FigureKeys) -> list[str]:
    """Return what holds for all figures of the kind: points of cells, lines along chains, dashes."""
    sentences, across = [], {panel.x.of if panel.x else how.x.of for panel in how.panels} or {how.x.of}
    runs, methods = f"{study.seeds} independent runs", captions.methods_in(study, how)
    if captions.metrics_of(how) - OF_CELLS and across - {*ALONG}:
        beside = ", beside each other at one ε" if "epsilon" in across else ""
        sentences.append(f"Points: medians over {runs}; upright bars: their quartiles{beside}.")
    if across & {*ALONG}:
        bands = "; bands: their quartiles" if "epsilon_total" in across else ""
        sentences.append(f"Lines along chains: medians over {runs}{bands}.")
    # A method that the figure names itself is not told by its variant.
    for way in dict.fromkeys(style.line_way(study, label) for label in methods if label not in how.titles):
        if (line := style.LINES.get(way, style.SOLID)) != style.SOLID:
            dashes = "Dashed" if line == style.DASHED else "Dotted"
            sentences.append(f"{dashes}, hollow: {style.VARIANTS[way.replace('_', '-')]}.")
    runs_on = {(label, on) for label in methods for on in study.methods[label].models}
    shown = models_of(study, how.models)
    if across - {*ALONG} and any("inf" in study.epsilons(on, label) for label, on in runs_on if on in shown):
        sentences.append("Lines across: without privacy.")
    return [*sentences, *captions.of_exact_samples(how), *captions.of_methods(study, how)]


def panels_of(study: Study, how: FigureKeys) -> list[Shown]:
    """Return the panels of a figure, model by model; raise DpmcError if it has no model or method."""
    models, panels = models_of(study, how.models), []
    for model in models:
        name = style.model_name(study, model, how.titles)
        for panel in how.panels or [Panel(metric=metric) for metric in how.metric]:
            labels = methods_of(study, panel.methods or how.methods, [model])
            looks = {label: style.line_style(study, label, how.titles.get(label, "")) for label in labels}
            title = panel.title if len(models) == 1 or not panel.title else f"{name}: {panel.title}"
            metric, x, y = panel.metric or how.metric[0], panel.x or how.x, panel.y or how.y
            panels.append(Shown(model, metric, title or name, looks, x, y))
    return panels


def curves(results: Results, study: Study, panel: Shown) -> list[Curve]:
    """Return a panel's curves; labels that look alike share one, whose cells are pooled if at one place."""
    cells: dict[MethodStyle, list[tuple[float, list[float]]]] = {}
    for method, look in panel.methods.items():
        option = study.methods[method].options.get(panel.x.of)
        for epsilon in study.epsilons(panel.model, method):
            cell = (panel.model, method, epsilon)
            if panel.x.of == "epsilon":
                x = float(epsilon)
            elif panel.x.at is not None:
                x = float(option) if option is not None and epsilon == panel.x.at else np.nan
            else:
                x = max(results.values(*cell, panel.x.of), default=np.nan)
            values = results.values(*cell, panel.metric)
            if panel.metric == "ess_bulk_min":  # the estimate is at most n log₁₀ n, above n it means nothing
                kept = sum(length // 2 + 1 for length in results.values(*cell, "iterations"))
                values = [value for value in values if value <= kept * study.chains]
            if values and not np.isnan(x):
                cells.setdefault(look, []).append((x, values))
    shown = []
    for look, places in cells.items():
        places.sort(key=lambda place: place[0])
        if places[-1][0] < 1.01 * places[0][0]:
            places = [(places[0][0], [value for _, values in places for value in values])]
        points = [(x, *np.quantile(values, [0.5, 0.25, 0.75])) for x, values in places]
        shown.append(Curve(look, np.array(points).T))
    return shown


def draw(given: ToDraw, along: Callable[[Shown], list[Curve]] | None = None) -> Figure:
    """Return the figure; `along` gives curves of panels along chains."""
    study, how = given.study, given.declared
    panels = panels_of(study, how)
    results = Results(given.metrics, study)
    columns = min(how.columns or 2, len(panels))
    figure, places = layout.panels(how.wide, len(panels), columns, 1.6)
    first: dict[object, Axes] = {}  # panels whose axes others share
    same_x = len({panel.x for panel in panels}) == 1
    entries: layout.Entries = {}
    for index, (axes, panel) in enumerate(zip(places, panels, strict=True)):
        if panel.y.share:
            layout.share_axis(axes, "y", panel.metric, first)
        if panel.x.of in ALONG:
            layout.share_axis(axes, "x", panel.x.of, first)
        shown = along(panel) if along and panel.x.of in ALONG else curves(results, study, panel)
        _draw_panel(axes, panel, shown, given)
        entries |= {curve.look.title: curve.look.line2d for curve in shown}
        marks.draw_baselines(axes, results.baselines(panel.model, panel.metric))
        layout.scale_y(axes, panel.y)
        axes.set_title(panel.title)
        left = panels[index - 1] if index % columns else None
        if not (left and panel.y.share and panel.metric == left.metric):
            axes.set_ylabel(panel.y.label or style.metric_label(panel.metric))
        if not same_x or index + columns >= len(panels):
            name = style.budget_label(study) if panel.x.of == "epsilon" else style.metric_label(panel.x.of)
            axes.set_xlabel(panel.x.label or name)
    entries |= marks.exact_samples(max(len(results.baselines(p.model, p.metric)) for p in panels))
    entries |= {line.label: marks.REFERENCE for line in how.lines}
    if how.diagonal:
        entries[how.diagonal] = DIAGONAL
    layout.add_legend(figure, entries)
    return figure


def _draw_chains(axes: Axes, curve: Curve, index: int, band: bool, steps: bool) -> None:
    """Draw a curve along chains: many points, and sparse markers, kept apart by the curve's index."""
    x, median, low, high = curve.points
    # One number is slanted, as starts may be near each other.
    where: dict[str, Any] = {
        "textcoords": "offset points",
        "va": "bottom",
        "rotation": 0 if " " in curve.text else 55,
    }
    axes.annotate(curve.text, (x[0], median[0]), (0, 3), fontsize=style.SMALL, **where)
    drawn = "steps-post" if steps else "default"
    axes.plot(x, median, **curve.look.line2d, drawstyle=drawn, markevery=(0.03 * (index % 7), 0.24))
    if band:
        step: Literal["post"] | None = "post" if steps else None
        axes.fill_between(x, low, high, step=step, color=curve.look.colour, alpha=0.15, lw=0.0, zorder=1)


def draw_cells(axes: Axes, curve: Curve, aside: float) -> None:
    """Draw a curve of cells with upright bars, so many points aside; at ε = ∞ a line across."""
    # a dashed line on a full one: both are seen
    look = {**curve.look.line2d, "zorder": 3 if curve.look.line == style.SOLID else 4}
    finite = np.isfinite(curve.points[0])
    for across in curve.points[1, ~finite]:
        axes.axhline(across, **{**look, "zorder": 2}, markevery=[1], clip_on=False)
    if finite.any():
        x, median, low, high = curve.points[:, finite]
        spread = (median - low, high - median)
        drawn = axes.errorbar(x, median, yerr=spread, elinewidth=0.9, ecolor=curve.look.colour, **look)
        shift = ScaledTranslation(aside / 72, 0, axes.figure.dpi_scale_trans)
        for artist in drawn.get_children():  # the data keep their values
            artist.set_transform(axes.transData + shift)


def _draw_panel(axes: Axes, panel: Shown, shown: list[Curve], given: ToDraw) -> None:
    """Draw the curves of a panel and its reference lines; set its horizontal scale and ticks."""
    along, total = panel.x.of in ALONG, panel.x.of == "epsilon_total"
    at_values = panel.x.of == "epsilon" or (panel.x.at is not None and not along)
    spreads = any((curve.points[3] > curve.points[2]).any() for curve in shown)
    # marks at one value stand beside each other, where there are bars that would cover each other
    placed = [curve for curve in shown if np.isfinite(curve.points[0]).any()] if at_values and spreads else []
    for index, curve in enumerate(shown):
        if along:  # of several methods the best so far
            _draw_chains(axes, curve, index, band=total, steps=total and len(panel.methods) > 1)
        else:
            place = placed.index(curve) - (len(placed) - 1) / 2 if curve in placed else 0.0
            draw_cells(axes, curve, ASIDE * place)
    if not shown:
        axes.text(0.5, 0.5, "no results", transform=axes.transAxes, ha="center", fontsize=style.SMALL)
    for line in given.declared.lines:
        if line.upright == panel.x.of:
            axes.axvline(line.at, **marks.REFERENCE, zorder=1)
        elif not line.upright and line.metric in ("", panel.metric):
            axes.axhline(line.at, **marks.REFERENCE, zorder=1)
    places = sorted({x for curve in shown for x in curve.points[0] if np.isfinite(x)})
    if given.declared.diagonal and places:
        both = np.linspace(places[0], places[-1], 100)
        axes.plot(both, both, **DIAGONAL, zorder=1)
    default = "linear" if given.study.epsilon_kind == "total" else "log"
    if (panel.x.scale or default) == "log" and places:
        layout.set_logarithmic(axes, "x")
    else:
        layout.set_plain_numbers(axes.xaxis)
    width = 72.0 * axes.get_window_extent().width / axes.figure.dpi
    beside = 0.5 * ASIDE * (len(placed) + 1)  # points that the outermost marks need
    axes.margins(x=max(0.1, beside / (width - 2.0 * beside)) if at_values else 0.03)
    if at_values:
        axes.set_xticks(places, [f"{place:,.7g}" for place in places])
        axes.minorticks_off()
    axes.grid(True)
