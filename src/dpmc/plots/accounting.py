"""Iterations that each accountant allows, against epsilon (Figure 6.1)."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

MODEL = "flat-banana-2d"
EPSILONS = np.linspace(0.5, 6.0, 50)
AS_PUBLISHED = "rdp-as-published"
PANELS = {
    "dp-penalty": ("tight", "zcdp"),
    "minibatch-penalty": ("replace-pld", "rdp", AS_PUBLISHED),
    "dp-hmc": ("tight", "zcdp"),
}
LOOKS: dict[str, tuple[Any, str]] = {
    "tight": ("solid", "exact, or loss distribution"),
    "replace-pld": ("solid", ""),
    "zcdp": ((0, (5, 2)), "zCDP"),
    "rdp": ((0, (5, 2, 1, 2)), "RDP, Theorem 3.5"),
    AS_PUBLISHED: ((0, (1, 1)), "RDP, sum cut short"),
}
PUBLISHED_NAMES = {"replace-pld": "fourier", AS_PUBLISHED: "rdp", "rdp": ""}
"""The published curve to which one of ours is compared, where the names differ; none for Theorem 3.5."""


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per method of the thesis's Figure 6.1 that the study has.

    Raises DpmcError where the study has none of them.
    """
    from matplotlib.figure import Figure

    methods = [method for method in PANELS if method in study.methods]
    if not methods:
        raise DpmcError(f"study {study.name}: it has none of the methods {', '.join(PANELS)}")
    known = read_published(published)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 2.9), layout="constrained", dpi=100)
        axes = figure.subplots(1, len(methods), squeeze=False)[0]
        for one, method in zip(axes, methods, strict=True):
            _draw_panel(one, method, study, known)
            one.set_xlabel("privacy budget ε (total)")
        axes[0].set_ylabel("iterations")
        _legend(figure, bool(known))
    return figure


def iterations(study: Study, method: str, accountant: str) -> list[int]:
    """Return the iterations that an accountant allows at each of `EPSILONS`.

    `AS_PUBLISHED` is no accountant: Theorem 3.5 as the published curve has it.
    """
    from dpmc import models
    from dpmc.privacy import accountants
    from dpmc.privacy.accountants import rdp
    from dpmc.privacy.events import SubsampledGaussianRelease

    definition = models.definition(MODEL)
    values, source = study.pinned_hyperparameters(MODEL, method)
    algorithm = study.algorithm(method, values, len(definition.true_theta), source)
    once, each = algorithm.releases(definition.n)
    delta = study.delta_for(definition.n)
    if accountant == AS_PUBLISHED:
        (event,) = once + each
        assert isinstance(event, SubsampledGaussianRelease)
        return [rdp.published_iterations(event, float(epsilon), delta) for epsilon in EPSILONS]
    chosen = accountants.get(accountant)
    return [chosen.iterations(once, each, float(epsilon), delta) for epsilon in EPSILONS]


def read_published(folder: Path) -> dict[tuple[str, str], list[tuple[float, int]]]:
    """Return (method, accountant) -> published (epsilon, iterations); empty without such a file.

    Raises DpmcError for a file that is not such a table.
    """
    path = folder / "accountants.csv"
    curves: dict[tuple[str, str], list[tuple[float, int]]] = {}
    if not path.is_file():
        return curves
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["model"] == MODEL:
                    point = float(row["epsilon"]), int(row["iterations"])
                    curves.setdefault((row["method"], row["accountant"]), []).append(point)
    except (KeyError, TypeError, ValueError) as error:
        raise DpmcError(f"{path}: not a table of published curves ({error!r})") from None
    return curves


def _draw_panel(
    axes: Axes, method: str, study: Study, known: dict[tuple[str, str], list[tuple[float, int]]]
) -> None:
    """Draw the curves of one method and the published points on them."""
    look = style.STYLES[method]
    for accountant in PANELS[method]:
        dashes, _ = LOOKS[accountant]
        counts = iterations(study, method, accountant)
        axes.plot(EPSILONS, counts, color=look.colour, linestyle=dashes, linewidth=1.6, zorder=2)
        points = known.get((method, PUBLISHED_NAMES.get(accountant, accountant)), [])
        axes.plot(
            [epsilon for epsilon, _ in points],
            [count for _, count in points],
            linestyle="none",
            marker="o",
            markersize=1.8,
            markevery=4,  # all of them would hide the curves
            color="black",
            markeredgewidth=0.0,
            zorder=3,
        )
    axes.set_title(look.title)
    axes.set_xlim(0.0, 6.15)
    axes.set_ylim(bottom=0.0)
    axes.yaxis.grid(True, color="#DDDDDD", linewidth=0.4)


def _legend(figure: Figure, with_published: bool) -> None:
    """Explain the lines above the panels."""
    from matplotlib.lines import Line2D

    named = [(dashes, name) for dashes, name in LOOKS.values() if name]
    handles = [Line2D([], [], color=style.INK, linestyle=dashes, linewidth=1.4) for dashes, _ in named]
    labels = [name for _, name in named]
    if with_published:
        handles.append(Line2D([], [], color="black", marker="o", markersize=1.8, linestyle="none"))
        labels.append("published curve")
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)
