"""The privacy that chains really spent, against the budget that they claim."""

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

TICKS = (0.03, 0.1, 0.3, 1.0, 3.0)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per easy model of the study.

    Raises DpmcError where no algorithm is accounted for in both ways.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    results = Results.of_study(metrics, study)

    def curve(model: str, method: str) -> Curve:
        points = [
            (float(epsilon), spent)
            for epsilon in study.models[model].epsilons
            if (spent := spent_epsilon(results, model, method, epsilon))
        ]
        return Curve([x for x, _ in points], [y for _, y in points])

    def finish(axes: Axes, model: str) -> None:
        claimed = [float(epsilon) for epsilon in study.models[model].epsilons]
        axes.plot(claimed, claimed, color=style.GREY, linewidth=2.2, alpha=0.45, zorder=1)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(FixedLocator(TICKS))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylabel("ε spent")
        budget_axis(axes, study, model)

    line = Line2D([], [], color=style.GREY, linewidth=2.2, alpha=0.45)
    return draw_curves(study, methods_in_pairs(study), curve, finish, [(line, "spent = claimed")])


def spent_epsilon(results: Results, model: str, method: str, epsilon: str) -> float | None:
    """Return what a cell's chains spent by tight accounting; None if that is not in the table."""
    values = results.by_seed(model, method, epsilon, "epsilon_spent_tight")
    return max(values.values()) if values else None
