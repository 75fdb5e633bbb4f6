"""Accuracy and cost on the truncated mixture (Figures 1 and 4 of the DP-Fast MH paper)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpmc.figures import fast
from dpmc.plots import style
from dpmc.plots.frame import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

KL = "symmetric KL"


def files(study: Study, results: Path) -> list[Path]:
    """Return the tables that the figure reads."""
    model = fast.models_like(study, "mixture")[0]
    return [fast.trace_path(results, study, model), fast.speed_path(results, study)]


def draw(metrics: DataFrame, study: Study, published: Path, results: Path) -> Figure:
    """Return the figure for the study's first mixture; `results` is the folder of all studies' results."""
    from matplotlib.figure import Figure

    model = fast.models_like(study, "mixture")[0]
    methods = fast.compared_labels(study, model)
    values = Results.of_study(metrics, study)
    traces = fast.Traces.read(fast.trace_path(results, study, model))
    seconds = fast.speeds(fast.speed_path(results, study), model)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 7.0), layout="constrained", dpi=100)
        axes = figure.subplots(3, 2)
        fast.draw_against_epsilon(axes[0, 0], values, study, model, methods, "symmetric_kl")
        fast.draw_against_epsilon(axes[0, 1], values, study, model, methods, "rows_per_iteration")
        for method in methods:
            _draw_along(axes[1:].ravel(), study, model, method, traces, seconds)
        _finish(axes)
        fast.legend(axes[2, 1], study, methods, loc="center", ncols=1)
    return figure


def _draw_along(
    axes: np.ndarray, study: Study, model: str, method: str, traces: fast.Traces, seconds: dict[str, float]
) -> None:
    """Draw one method's divergence along its chains against iterations, time and rows."""
    epsilon = fast.epsilon_shown(study, model, method)
    if epsilon not in (fast.SHOWN_EPSILON, fast.INF):
        return
    divergence = traces.median(method, epsilon, "symmetric_kl")
    rows = traces.median(method, epsilon, "rows_used")
    iterations = list(divergence)
    look, y = fast.look(study, method), list(divergence.values())
    fast.plot(axes[0], iterations, y, look)
    # On a logarithmic axis the very first iteration would take most of it.
    later, y = iterations[1:], y[1:]
    if method in seconds:
        fast.plot(axes[1], [seconds[method] * i for i in later], y, look)
    fast.plot(axes[2], [rows[i] for i in later], y, look)


def _finish(axes: np.ndarray) -> None:
    """Name and scale the axes."""
    titles = (
        "(a) after all iterations",
        "(b) cost of an iteration",
        "(c) ε = 0.05: along the chain",
        "(d) ε = 0.05: in time, as measured",
        "(e) ε = 0.05: by rows looked at",
    )
    for one, title in zip(axes.ravel(), titles, strict=False):  # the sixth place is the legend's
        one.set_title(title)
        fast.logarithmic(one.yaxis)
        one.set_ylabel(KL)
        fast.grid(one)
    axes[0, 1].set_ylabel("rows per iteration")
    for one, name in zip(axes[1:].ravel(), ("iterations", "seconds", "rows used"), strict=False):
        one.set_xlabel(name)
    for one in (axes[1, 1], axes[2, 0]):
        fast.logarithmic(one.xaxis)
    axes[2, 1].set_axis_off()
