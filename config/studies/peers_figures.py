"""The figure `growth` of the study `peers-coverage`: answers at ε = 1 as n and d grow."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dpmc.metrics.coverage import share_interval
from dpmc.reports.plots import ModelsAndFiles, ToDraw, layout, marks, style
from dpmc.reports.plots.repeated import EXACT_LINE, reads
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys
from dpmc.studies.whole import Results, read_whole

BANANAS = {
    10**3: "banana-n-1000",
    10**4: "banana-n-10000",
    10**5: "flat-banana-2d",
    10**6: "banana-n-1000000",
}
FLAT = {2: "flat-banana-2d", 10: "flat-banana-10d", 30: "gauss-30d"}
#: Axis -> name -> method, and its repeated runs by n or d.
GROWING = {
    "rows n": {
        "exact draws": ("baseline", BANANAS),
        "one sum": ("sum", BANANAS),
        "noisy scores": ("noisy-scores", {
            10**3: "logistic-n-1000", 5000: "logistic", 10**4: "logistic-n-10000", 10**5: "logistic-n-100000",
            10**6: "logistic-n-1000000",
        }),
    },
    "parameters d": {
        "exact draws": ("baseline", FLAT),
        "one sum": ("sum", FLAT),
        "noisy scores": ("noisy-scores", {
            2: "logistic-d-2", 10: "logistic-d-10", 20: "logistic-d-20", 50: "logistic-d-50",
        }),
    },
}  # fmt: skip


def growth_reads(study: Study, how: FigureKeys, results: Path) -> ModelsAndFiles:
    """Return no model, and the table of repeated runs."""
    return reads(study, how, results)


def growth(given: ToDraw) -> Figure:
    """Return coverage of 90 % intervals and error of means, with 95 % bars and quartiles over data sets."""
    table = read_whole(given.study, *reads(given.study, given.declared, given.results)[1])
    figure, places = layout.panels(given.declared.wide, 4, 2, 1.6, sharex="col")
    entries: layout.Entries = {"nominal": marks.REFERENCE}
    for column, (label, series) in enumerate(GROWING.items()):
        for name, (method, runs) in series.items():
            exact = method == "baseline"
            look = EXACT_LINE if exact else style.line_style(given.study, method, name).line2d
            for axes, metric in ((places[column], "coverage_90"), (places[column + 2], "error_true")):
                found = {}
                for size, run in runs.items():
                    results = Results(table, given.study.repeated[run][0])
                    values = results.values(run, method, "" if exact else "1", metric)
                    found[size] = share_interval(values) if metric == "coverage_90" else quartiles(values)
                middle, low, high = np.array(list(found.values())).T
                spread = np.maximum([middle - low, high - middle], 0.0)
                axes.errorbar(list(found), middle, yerr=None if exact else spread, elinewidth=0.9, **look)
            entries[name] = look
        places[column].axhline(0.9, **marks.REFERENCE, zorder=1)
        places[column].set(xscale="log", ylim=(0.5, 1.03), ylabel="coverage, 90 %")
        places[column + 2].set(xlabel=label, ylim=(0.0, 3.0), ylabel="error (sds)")
        if column:
            places[3].set_xticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
            places[3].minorticks_off()
    layout.add_legend(figure, entries)
    return figure


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Return the median and the quartiles."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return middle, low, high
