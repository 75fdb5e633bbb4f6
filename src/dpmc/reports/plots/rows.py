"""Metrics against the number of rows: models of a study that differ in n alone, one panel a metric."""

import numpy as np
from matplotlib.figure import Figure

from dpmc.base import Array
from dpmc.metrics.table import Results
from dpmc.reports.plots import Given, layout, lines, marks, style
from dpmc.reports.plots.selection import methods_of, models_of
from dpmc.studies import number_of_rows

reads = lines.reads


def draw(given: Given) -> Figure:
    """Return the figure: medians over runs with quartiles, joined along n, and the range of exact samples.

    Methods are shown at the ε of the first model. What has no values has no point.
    """
    study, how = given.study, given.declared
    results = Results.of_study(given.metrics, study)
    rows = {model: number_of_rows(study, model) for model in models_of(study, how.models)}
    models = sorted(rows, key=lambda model: rows[model])
    entries: layout.Entries = {}
    figure, places = layout.panels(len(how.metric), len(how.metric), 2.4)
    for axes, metric in zip(places, how.metric, strict=True):
        for method in methods_of(study, how.methods, models):
            look = style.line_style(study, method, how.titles.get(method, ""))
            for epsilon in study.epsilons(models[0], method):
                runs = {rows[model]: results.values(model, method, epsilon, metric) for model in models}
                if any(runs.values()):
                    lines.draw_cells(axes, lines.Curve(look, _points(runs)), aside=0.0)
                    entries[f"{look.title}, ε = {epsilon}"] = look.line2d
        exact = {rows[model]: results.baselines(model, metric) for model in models}
        if any(exact.values()):
            n, median, low, high = _points(exact, (0.5, 0.0, 1.0))
            axes.fill_between(n, low, high, **marks.EXACT, zorder=0.5)
            axes.plot(n, median, color="black", linewidth=0.4, zorder=1)
            entries |= marks.exact_samples(max(map(len, exact.values())))
        layout.logarithmic(axes, "x")
        layout.scale_y(axes, how.y)
        axes.set(xlabel="rows n", ylabel=style.metric_label(metric))
    layout.legend(figure, entries)
    return figure


def _points(runs: dict[int, list[float]], at: tuple[float, ...] = (0.5, 0.25, 0.75)) -> Array:
    """Return n and the quantiles `at` of the values of each n that has some, rows (1 + len(at), number)."""
    return np.array([(n, *np.quantile(values, at)) for n, values in runs.items() if values]).T
