"""Iterations that each accountant allows, against epsilon (Figure 6.1)."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc.reports.plots import Given, layout, style
from dpmc.reports.plots.frame import methods_of, models_of, published_table
from dpmc.studies import Study, build_algorithm, pinned_hyperparameters
from dpmc.studies.figures import FigureKeys

EPSILONS = np.linspace(0.5, 6.0, 50)
AS_PUBLISHED = "rdp-as-published"
OF_ALL_ROWS, OF_BATCHES = ("tight", "zcdp"), ("replace-pld", "rdp", AS_PUBLISHED)
#: accountant -> line style, what the legend says, and the published curve to which it is compared
LOOKS: dict[str, tuple[Any, str, str]] = {
    "tight": ("solid", "exact, or loss distribution", "tight"),
    "replace-pld": ("solid", "", "fourier"),
    "zcdp": ((0, (5, 2)), "zCDP", "zcdp"),
    "rdp": ((0, (5, 2, 1, 2)), "RDP, Theorem 3.5", ""),
    AS_PUBLISHED: ((0, (1, 1)), "RDP, sum cut short", "rdp"),
}
# hollow, and every fourth of 50: the curve is seen in and between them
PUBLISHED: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 4.2, "mfc": "none", "mec": "k", "mew": 0.6}
Curves = dict[tuple[str, str], tuple[list[float], list[int]]]  # (method, accountant) -> ε, iterations


def models_read(study: Study, how: FigureKeys) -> list[str]:
    """Return no model: the figure reads no metrics."""
    return []


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure, one panel for each method, with the settings of the first model.

    Raises DpmcError where the study has none of them.
    """
    how, study = given.declared, given.study
    model = models_of(study, how.models)[0]
    methods = methods_of(study, how.methods, [model])
    known = read_published(given.published, model) if how.published else {}
    figure, axes = layout.panels(len(methods), len(methods), 2.7)
    for one, method in zip(axes, methods, strict=True):
        _draw_panel(one, model, method, study, known)
    axes[0].set_ylabel("iterations")
    shown = {accountant for method in methods for accountant in _accountants(study, method)}
    entries: layout.Entries = [
        (Line2D([], [], color=style.INK, linestyle=dashes, linewidth=1.2), name)
        for accountant, (dashes, name, _) in LOOKS.items()
        if name and accountant in shown
    ]
    if known:
        entries.append((Line2D([], [], **PUBLISHED), f"published: {how.published}"))
    layout.legend(figure, entries, handlelength=2.6)
    return figure


def iterations(study: Study, model: str, method: str, accountant: str) -> list[int]:
    """Return the iterations that an accountant allows at each of `EPSILONS`.

    `AS_PUBLISHED` is no accountant: Theorem 3.5 as the published curve has it.
    """
    from dpmc import models
    from dpmc.privacy import accountants
    from dpmc.privacy.accountants import rdp
    from dpmc.privacy.events import SubsampledGaussianRelease
    from dpmc.privacy.runs import RunReleases

    definition = models.definition(study.models[model].model)
    given = pinned_hyperparameters(study, model, method)
    algorithm = build_algorithm(study, method, given, len(definition.true_theta))
    releases = RunReleases.of(algorithm, definition.n)
    delta = study.delta_for(definition.n)
    if accountant == AS_PUBLISHED:
        (event,) = releases.total(1)
        assert isinstance(event, SubsampledGaussianRelease)
        return [rdp.published_iterations(event, float(epsilon), delta) for epsilon in EPSILONS]
    chosen = accountants.get(accountant)
    return [releases.iterations(chosen, float(epsilon), delta) for epsilon in EPSILONS]


def read_published(folder: Path, model: str) -> Curves:
    """Return the published curves of a model; empty without a file of them.

    Raises DpmcError for a file that is not such a table.
    """
    import pandas as pd

    path = folder / "accountants.csv"
    if not path.is_file():
        return {}
    with published_table(path, "curves"):
        table = pd.read_csv(path).astype({"epsilon": float, "iterations": int})
        curves = table[table["model"] == model].groupby(["method", "accountant"])
        return {key: (rows["epsilon"].tolist(), rows["iterations"].tolist()) for key, rows in curves}


def _accountants(study: Study, method: str) -> tuple[str, ...]:
    """Return the accountants that are compared for a method."""
    return OF_BATCHES if study.methods[method].algorithm.startswith("minibatch") else OF_ALL_ROWS


def _draw_panel(axes: Axes, model: str, method: str, study: Study, known: Curves) -> None:
    """Draw the curves of one method and the published points on them."""
    look = style.method_styles(study.methods)[method]
    for accountant in _accountants(study, method):
        dashes, _, name = LOOKS[accountant]
        counts = iterations(study, model, method, accountant)
        axes.plot(EPSILONS, counts, color=look.colour, linestyle=dashes, linewidth=1.4)
        axes.plot(*known.get((method, name), ([], [])), **PUBLISHED, markevery=4, zorder=3)
    axes.set(title=look.title, xlabel="privacy budget ε (total)", xlim=(0.0, 6.15))
    axes.set_ylim(bottom=0.0)
    layout.plain_numbers(axes.yaxis)
    axes.yaxis.grid(True)
