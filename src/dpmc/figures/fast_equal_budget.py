"""Divergence against the total ε spent along the chain, which ε per iteration does not show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpmc.errors import DpmcError
from dpmc.figures import fast
from dpmc.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

SENSIBLE = 10.0
METRIC = "symmetric_kl"


def files(study: Study, results: Path) -> list[Path]:
    """Return the table that the figure reads."""
    return [fast.trace_path(results, study, fast.models_like(study, "mixture")[0])]


def shown_labels(study: Study, model: str) -> list[str]:
    """Return the private main methods whose guarantee is true.

    Raises DpmcError where there is none.
    """
    labels = [
        label
        for label in fast.main_labels(study, model)
        if fast.is_private(study, model, label) and fast.has_guarantee(study, label)
    ]
    if not labels:
        raise DpmcError(f"study {study.name}: figure equal-budget: no method on {model} has a guarantee")
    return labels


def curve(traces: fast.Traces, method: str, epsilon: str) -> list[tuple[float, float]]:
    """Return (total ε, divergence) along a cell's chains."""
    spent = traces.median(method, epsilon, "epsilon_total")
    divergence = traces.median(method, epsilon, METRIC)
    return [(spent[i], divergence[i]) for i in divergence if i in spent and np.isfinite(spent[i])]


def best(curves: list[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """Return the least divergence within each total ε that occurs, over several curves."""
    points: list[tuple[float, float]] = []
    for spent, divergence in sorted(point for one in curves for point in one):
        if not points or divergence < points[-1][1]:
            points.append((spent, divergence))
    return points


def draw(metrics: DataFrame, study: Study, published: Path, results: Path) -> Figure:
    """Return the figure for the study's first mixture; `results` is the folder of all studies' results."""
    from matplotlib.figure import Figure

    model = fast.models_like(study, "mixture")[0]
    methods = shown_labels(study, model)
    traces = fast.Traces.read(fast.trace_path(results, study, model))
    rows = -(-(len(methods) + 1) // 2)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 2.3 * rows + 0.3), layout="constrained", dpi=100)
        axes = figure.subplots(rows, 2, squeeze=False, sharex=True, sharey=True).ravel()
        last = axes[len(methods)]
        for one, method in zip(axes, methods, strict=False):
            _draw_method(one, last, study, model, method, traces)
        last.set_title("best of each")
        for one in axes[: len(methods) + 1]:
            _finish(one)
        for spare in axes[len(methods) + 1 :]:
            spare.set_axis_off()
            fast.legend(spare, study, methods, loc="center", ncols=1)
        if len(axes) == len(methods) + 1:
            fast.legend(figure, study, methods)
    return figure


def _draw_method(axes: Axes, last: Axes, study: Study, model: str, method: str, traces: fast.Traces) -> None:
    """Draw a method's chains into its panel, and the best of them into the last one."""
    look, curves = fast.look(study, method), []
    epsilons = sorted(study.epsilons(model, method), key=float)
    for place, epsilon in enumerate(epsilons):
        points = curve(traces, method, epsilon)
        curves.append(points)
        paler = style.mixed(look.colour, "#FFFFFF", 0.7 * (1.0 - (place + 1) / len(epsilons)))
        x, y = [p[0] for p in points], [p[1] for p in points]
        axes.plot(x, y, color=paler, linewidth=1.0, zorder=3)
        if points:
            axes.annotate(
                epsilon, points[-1], xytext=(2, 0), textcoords="offset points", fontsize=6, va="center"
            )
    envelope = best(curves)
    x, y = [p[0] for p in envelope], [p[1] for p in envelope]
    last.step(x, y, where="post", color=look.colour, linewidth=1.2, marker=look.marker, markersize=3.0)
    axes.set_title(look.title)


def _finish(axes: Axes) -> None:
    """Scale and name the axes."""
    fast.logarithmic(axes.xaxis)
    fast.logarithmic(axes.yaxis)
    low, _ = axes.get_xlim()
    axes.axvspan(low, SENSIBLE, color=style.BAND, zorder=0)
    axes.set_xlim(left=low)
    axes.set_xlabel("total ε spent")
    axes.set_ylabel("symmetric KL")
    axes.tick_params(labelbottom=True, labelleft=True)
    fast.grid(axes)
