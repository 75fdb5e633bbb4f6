"""Divergence against the total ε spent along the chain, which ε per iteration does not show."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dpmc.errors import DpmcError
from dpmc.plots import Given, layout, style
from dpmc.plots.frame import methods_of, models_of
from dpmc.plots.series import Look
from dpmc.plots.traces import median, read_traces, trace_path
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

if TYPE_CHECKING:  # as in `frame`
    from pandas import DataFrame

SENSIBLE = 10.0
METRIC = "symmetric_kl"
ROOM = 0.38  # of the least divergence, for labels below
NEAR = 1.3  # curves whose ends are within this factor of each other share a label

Points = list[tuple[float, float]]  # (total ε, divergence)


def files(study: Study, declared: FigureKeys, results: Path) -> list[Path]:
    """Return the table that the figure reads."""
    return [trace_path(results, study, models_of(study, declared.models)[0])]


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure for the first of the models: a panel a method, and the best of each in the last.

    Raises DpmcError where no method's total is finite.
    """
    study, how = given.study, given.declared
    model = models_of(study, how.models)[0]
    table = read_traces(trace_path(given.results, study, model))
    curves = curves_of(table, study, model, methods_of(study, how.methods, [model]))
    if not curves:
        raise DpmcError(f"study {study.name}: figure equal-budget: no method on {model} has a guarantee")
    looks = [style.line_style(study, method) for method in curves]
    spare = len(curves) % 2 == 0  # the legend stands there
    figure, axes = layout.panels(len(curves) + 1 + spare, 2, 2.1, sharex=True, sharey=True)
    free = axes.pop() if spare else None
    *of_methods, last = axes
    for one, look, of_method in zip(of_methods, looks, curves.values(), strict=True):
        _draw_method(one, look, of_method)
        envelope = best(list(of_method.values()))
        last.step(*zip(*envelope, strict=True), where="post", **look.line2d)
    last.set_title("the best of each")
    for one in axes:
        _finish(one)
    least = min(y for of_method in curves.values() for points in of_method.values() for _, y in points)
    last.set_ylim(bottom=ROOM * least)
    entries: layout.Entries = [(Line2D([], [], **look.line2d), look.title) for look in looks]
    band = Patch(facecolor=style.BAND, edgecolor=style.GREY, linewidth=0.4)
    series.legend(figure, [*entries, (band, "total ε up to 10")], free)
    return figure


def curves_of(table: DataFrame, study: Study, model: str, methods: list[str]) -> dict[str, dict[str, Points]]:
    """Return method -> ε per iteration -> points along the chains, of those whose total ε is finite."""
    found: dict[str, dict[str, Points]] = {}
    for method in methods:
        for epsilon in sorted(study.epsilons(model, method), key=float):
            spent = median(table, method, epsilon, "epsilon_total")
            reached = median(table, method, epsilon, METRIC)
            points = [(spent[i], reached[i]) for i in reached.index.intersection(spent.index)]
            if points := [point for point in points if math.isfinite(point[0])]:
                found.setdefault(method, {})[epsilon] = points
    return found


def best(curves: list[Points]) -> Points:
    """Return the least divergence within each total ε that occurs, over several curves."""
    points: Points = []
    for spent, divergence in sorted(point for one in curves for point in one):
        if not points or divergence < points[-1][1]:
            points.append((spent, divergence))
    return points


def _draw_method(axes: Axes, look: Look, curves: dict[str, Points]) -> None:
    """Draw a method's chains, with ε per iteration at their ends."""
    for place, points in enumerate(curves.values(), start=1):
        paler = style.mixed(look.colour, "#FFFFFF", 0.6 * (1.0 - place / len(curves)))
        how = {**look.line2d, "color": paler, "markerfacecolor": paler}
        axes.plot(*zip(*points, strict=True), **how, markevery=(0.05 * place, 0.25), zorder=3)
    for number, (text, point) in enumerate(labels(curves)):
        below = (0, -2 - 10 * (number % 2))  # neighbours' do not meet
        how = {"textcoords": "offset points", "fontsize": 7, "ha": "center", "va": "top"}
        axes.annotate(text, point, xytext=below, **how)
    axes.set_title(look.title)


def labels(curves: dict[str, Points]) -> list[tuple[str, tuple[float, float]]]:
    """Return (ε, end) of the curves; those that end close together share one."""
    groups: list[list[str]] = []
    for epsilon in sorted(curves, key=lambda one: curves[one][-1][0]):
        if groups and curves[epsilon][-1][0] < NEAR * curves[groups[-1][0]][-1][0]:
            groups[-1].append(epsilon)
        else:
            groups.append([epsilon])
    found = []
    for group in groups:
        text = " to ".join(dict.fromkeys([min(group, key=float), max(group, key=float)]))
        found.append((text, min((curves[epsilon][-1] for epsilon in group), key=lambda end: end[1])))
    return found


def _finish(axes: Axes) -> None:
    """Scale and name the axes."""
    layout.logarithmic(axes, "x")
    layout.logarithmic(axes, "y")
    low, high = axes.get_xlim()
    axes.axvspan(low, SENSIBLE, color=style.BAND, zorder=0)
    axes.set_xlim(low, high)
    axes.set_xlabel("total ε spent")
    axes.set_ylabel(style.metric_label(METRIC))
    axes.tick_params(labelbottom=True, labelleft=True)
    axes.grid(True)
