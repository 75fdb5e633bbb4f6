"""Metrics against the number of rows: models of a study that differ in n alone, one panel a metric."""

import numpy as np
from matplotlib.figure import Figure

from dpmc.metrics.table import Results
from dpmc.reports.plots import Given, layout, lines, marks, style
from dpmc.reports.plots.selection import methods_of, models_of
from dpmc.studies import number_of_rows

reads = lines.reads


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: medians over runs with quartiles, joined along n, and the range of exact samples."""
    study, how = given.study, given.declared
    results = Results.of_study(given.metrics, study)
    rows = {model: number_of_rows(study, model) for model in models_of(study, how.models)}
    models = sorted(rows, key=lambda model: rows[model])
    entries: layout.Entries = {}
    figure, places = layout.panels(len(how.metric), len(how.metric), 2.4)
    for axes, metric in zip(places, how.metric, strict=True):
        exact = [results.baselines(model, metric) for model in models]
        across = [rows[model] for model in models]
        axes.fill_between(across, [min(e) for e in exact], [max(e) for e in exact], **marks.EXACT, zorder=0.5)
        axes.plot(across, [np.median(e) for e in exact], color="black", linewidth=0.4, zorder=1)
        for method in methods_of(study, how.methods, models):
            for epsilon in study.epsilons(models[0], method):
                values = [results.values(model, method, epsilon, metric) for model in models]
                low, median, high = np.quantile(values, [0.25, 0.5, 0.75], axis=1)
                look = style.line_style(study, method, how.titles.get(method, ""))
                spread = (median - low, high - median)
                axes.errorbar(across, median, yerr=spread, elinewidth=0.9, **look.line2d)
                entries[f"{look.title}, ε = {epsilon}"] = look.line2d
        layout.logarithmic(axes, "x")
        layout.scale_y(axes, how.y)
        axes.set(xlabel="rows n", ylabel=style.metric_label(metric))
    entries |= marks.exact_samples(len(exact[0]))
    layout.legend(figure, entries)
    return figure
