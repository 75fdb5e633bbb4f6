"""MMD against the privacy really spent: all algorithms, whoever accounts for them, on one axis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpmc.figures.accountings import Curve, draw_curves, methods_in_pairs
from dpmc.figures.tight_spent import spent_epsilon
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

    methods_in_pairs(study)
    results = Results.of_study(metrics, study)

    def curve(model: str, method: str) -> Curve:
        points = []
        for epsilon in study.models[model].epsilons:
            spent = spent_epsilon(results, model, method, epsilon)
            values = results.values(model, method, epsilon, "mmd")
            if spent and values:
                low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
                points.append((spent, float(middle), float(low), float(high)))
        # Sorted, for a capped chain's points are not in the order of the budgets.
        x, y, low, high = ([point[i] for point in sorted(points)] for i in range(4))
        return Curve(x, y, low, high)

    def finish(axes: Axes, model: str) -> None:
        for value in results.baselines(model, "mmd"):
            axes.axhline(value, color="black", linewidth=0.3, zorder=1)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(TICKS))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylim(bottom=0.0)
        axes.set_ylabel("MMD")
        axes.set_xlabel("ε spent (tight accounting)")

    methods = [label for label in study.methods if set(study.methods[label].models) & set(study.models)]
    lines = max(len(results.baselines(model, "mmd")) for model in study.models)
    extra = [(Line2D([], [], color="black", linewidth=0.6), f"{lines} exact samples")] if lines else []
    return draw_curves(study, methods, curve, finish, extra)
