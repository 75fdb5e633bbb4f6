"""Iterations that a budget buys by the thesis's accountants and by tight ones, batches of rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures.accountings import Curve, budget_axis, draw_curves, methods_in_pairs
from dpmc.plots import style
from dpmc.plots.frame import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per easy model of the study.

    Raises DpmcError where no algorithm is accounted for in both ways.
    """
    from matplotlib.lines import Line2D

    results = Results.of_study(metrics, study)
    methods = methods_in_pairs(study)
    caps = sorted({cap for m in methods if (cap := study.methods[m].most_iterations) is not None})

    def curve(model: str, method: str) -> Curve:
        points = [
            (float(epsilon), allowed)
            for epsilon in study.models[model].epsilons
            if (allowed := allowed_iterations(results, model, method, epsilon)) is not None
        ]
        return Curve([x for x, _ in points], [float(y) for _, y in points])

    def finish(axes: Axes, model: str) -> None:
        axes.set_yscale("symlog", linthresh=1.0, linscale=0.4)
        axes.set_ylim(bottom=0.0)
        axes.set_ylabel("iterations")
        budget_axis(axes, study, model)
        for cap in caps:
            axes.axhline(cap, color=style.GREY, linewidth=0.9, linestyle="dotted", zorder=1)

    dotted = Line2D([], [], color=style.GREY, linewidth=0.9, linestyle="dotted")
    extra = [(dotted, f"chains stop at {cap:,}") for cap in caps]
    return draw_curves(study, methods, curve, finish, extra)


def allowed_iterations(results: Results, model: str, method: str, epsilon: str) -> int | None:
    """Return the iterations that the budget allows a cell, or those that it made if that is not said."""
    allowed = results.by_seed(model, method, epsilon, "budget_iterations")
    return int(max(allowed.values())) if allowed else results.iterations(model, method, epsilon)
