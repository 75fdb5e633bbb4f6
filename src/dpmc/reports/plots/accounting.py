"""Iterations that each accountant allows, against epsilon (Figure 6.1)."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dpmc import models
from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import searched
from dpmc.metrics.table import read_table
from dpmc.privacy import accountants
from dpmc.privacy.accountants import rdp
from dpmc.privacy.events import SubsampledGaussianQuery
from dpmc.privacy.runs import RunQueries
from dpmc.reports.plots import PUBLISHED_RESULTS, ToDraw, layout, reads_nothing, style
from dpmc.reports.plots.selection import methods_of, models_of
from dpmc.studies import Study, build_algorithm, pinned_hyperparameters

EPSILONS = np.linspace(0.5, 6.0, 50)
AS_PUBLISHED = "rdp-as-published"
OF_ALL_ROWS, OF_BATCHES = ("tight", "zcdp"), ("replace-pld", "rdp", AS_PUBLISHED)
EXACT_LABEL = "exact (minibatch: loss distribution)"
#: accountant -> line style, what the legend says, and the published curve to which it is compared
LOOKS: dict[str, tuple[Any, str, str]] = {
    "tight": ("solid", EXACT_LABEL, "tight"),
    "replace-pld": ("solid", EXACT_LABEL, "fourier"),
    "zcdp": ((0, (5, 2)), "zCDP", "zcdp"),
    "rdp": ((0, (5, 2, 1, 2)), "RDP, Theorem 3.5", ""),
    AS_PUBLISHED: ((0, (1, 1)), "RDP, sum cut short: no bound", "rdp"),
}
# hollow, and every fourth of 50: the curve is seen in and between them
CIRCLE: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 4.2, "mfc": "none", "mec": "k", "mew": 0.6}

reads = reads_nothing  # the figure follows from the study's settings


def draw(given: ToDraw) -> Figure:
    """Return the figure, one panel for each method, with the settings of the first model."""
    how, study = given.declared, given.study
    model = models_of(study, how.models)[0]
    methods = methods_of(study, how.methods, [model])
    known = None
    if how.published:
        columns = ("model", "method", "accountant", "epsilon", "iterations")
        numbers = {"epsilon": float, "iterations": int}
        known = read_table(PUBLISHED_RESULTS / "accountants.csv", columns, "a table of curves", numbers)
        known = known[known["model"] == model]
    figure, panels = layout.panels(how.wide, len(methods), how.columns or 1, 1.5, sharex=True, sharey=True)
    entries: layout.Entries = {}
    for axes, method in zip(panels, methods, strict=True):
        look = style.method_styles(study.methods)[method]
        batches = "batch_size" in searched(algorithm_class(study.methods[method].algorithm))
        for accountant in OF_BATCHES if batches else OF_ALL_ROWS:
            dashes, name, published = LOOKS[accountant]
            counts = iterations(study, model, method, accountant)
            axes.plot(EPSILONS, counts, color=look.colour, linestyle=dashes, linewidth=1.4)
            entries[name] = {"color": style.INK, "linestyle": dashes, "linewidth": 1.2}
            if known is not None:
                rows = known[(known["method"] == method) & (known["accountant"] == published)]
                axes.plot(rows["epsilon"], rows["iterations"], **CIRCLE, markevery=4, zorder=3)
        axes.set(title=look.title, xlim=(0.0, 6.15), ylabel="iterations")
        axes.yaxis.grid(True)
    panels[-1].set_xlabel("privacy budget ε (total)")
    panels[0].set_ylim(bottom=0.0)  # of all panels, which share the axis
    layout.set_plain_numbers(panels[0].yaxis)
    if known is not None:
        entries[f"published, every fourth point: {how.published}"] = CIRCLE
    layout.add_legend(figure, entries)
    return figure


def iterations(study: Study, model: str, method: str, accountant: str) -> list[int]:
    """Return the iterations that an accountant, or the curve `AS_PUBLISHED`, allows at each of `EPSILONS`."""
    definition = models.definition(study.models[model].model)
    given = pinned_hyperparameters(study, model, method)
    algorithm = build_algorithm(study, method, given, len(definition.true_theta))
    queries = RunQueries.of(algorithm, definition.n)
    delta = study.delta_for(definition.n)
    if accountant == AS_PUBLISHED:
        (event,) = queries.total(1)
        assert isinstance(event, SubsampledGaussianQuery)
        return [rdp.published_iterations(event, float(epsilon), delta) for epsilon in EPSILONS]
    chosen = accountants.get(accountant)
    return [queries.iterations(chosen, float(epsilon), delta) for epsilon in EPSILONS]
