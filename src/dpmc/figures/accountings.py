"""Curves of two accountings of the same algorithms: hollow and dashed the thesis's, full the tight one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpmc.errors import DpmcError
from dpmc.plots import style
from dpmc.plots.frame import models_of
from dpmc.plots.style import MethodStyle, model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpmc.studies import Study

MODELS = ("flat-banana-2d", "flat-banana-10d", "tempered-banana-2d", "tempered-banana-10d")
THESIS, TIGHT = "thesis", "tight"
WAYS = {THESIS: "the thesis's accounting", TIGHT: "tight accounting"}


@dataclass(frozen=True)
class Curve:
    """One method's values in a panel; `low` and `high`, if given, bound each value."""

    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None


def pairs(study: Study) -> dict[str, str]:
    """Return method with the thesis's accountant -> method of the same algorithm with the tight one."""
    tight = {spec.algorithm: label for label, spec in study.methods.items() if spec.accountant == TIGHT}
    return {
        label: tight[spec.algorithm]
        for label, spec in study.methods.items()
        if spec.accountant == THESIS and spec.algorithm in tight
    }


def methods_in_pairs(study: Study) -> list[str]:
    """Return the methods of `pairs`, each beside its partner.

    Raises DpmcError where the study has none.
    """
    found = pairs(study)
    if not found:
        raise DpmcError(f"study {study.name}: no algorithm runs both with accountant thesis and with tight")
    return [label for pair in found.items() for label in pair]


def draw_curves(
    study: Study,
    methods: Sequence[str],
    curve: Callable[[str, str], Curve],
    finish: Callable[[Axes, str], None],
    extra: Sequence[tuple[Any, str]] = (),
) -> Figure:
    """Return a figure with one panel per easy model of the study, two side by side, and a legend.

    `curve(model, method)` gives what is drawn; `finish(axes, model)` sets axes and adds marks;
    `extra` are further entries of the legend: (handle, label).
    """
    from matplotlib.figure import Figure

    labels = models_of(study, MODELS)
    columns = min(2, len(labels))
    rows = math.ceil(len(labels) / columns)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, rows * 2.3 + 0.6), layout="constrained", dpi=100)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for one, model in zip(axes, labels, strict=False):
            for method in methods:
                if model in study.methods[method].models:
                    _draw(one, curve(model, method), look(study, method), is_tight(study, method))
            one.set_title(model_title(model, study.models[model].model))
            one.grid(True, color="#DDDDDD", linewidth=0.4)
            finish(one, model)
        for spare in axes[len(labels) :]:
            spare.remove()
        _legend(figure, study, methods, extra)
    return figure


def budget_axis(axes: Axes, study: Study, model: str) -> None:
    """Label the horizontal axis with the budgets of a model."""
    epsilons = study.models[model].epsilons
    axes.set_xticks([float(epsilon) for epsilon in epsilons], list(epsilons))
    axes.set_xlabel("privacy budget ε (total)")


def look(study: Study, method: str) -> MethodStyle:
    """Return the style of a method's algorithm, whoever accounts for it."""
    algorithm = study.methods[method].algorithm
    return style.STYLES.get(algorithm, style.method_styles(dict(study.methods))[method])


def is_tight(study: Study, method: str) -> bool:
    """Whether a method is drawn full: it is not accounted for as in the thesis's minibatch algorithms."""
    return study.methods[method].accountant != THESIS


def _draw(axes: Axes, curve: Curve, look: MethodStyle, tight: bool) -> None:
    """Draw one curve with its markers and, where given, bars from low to high."""
    if curve.low is not None and curve.high is not None:
        axes.vlines(curve.x, curve.low, curve.high, color=look.colour, linewidth=0.6, alpha=0.6, zorder=2)
    axes.plot(
        curve.x,
        curve.y,
        color=look.colour,
        linestyle="solid" if tight else (0, (4, 2)),
        linewidth=1.1,
        marker=look.marker,
        markersize=4.0,
        markerfacecolor=look.colour if tight else "white",
        markeredgecolor=look.colour,
        markeredgewidth=0.9,
        zorder=4 if tight else 3,
    )


def _legend(figure: Figure, study: Study, methods: Sequence[str], extra: Sequence[tuple[Any, str]]) -> None:
    """Explain algorithms by colour and marker, the two accountings by line and filling."""
    from matplotlib.lines import Line2D

    looks = {study.methods[method].algorithm: look(study, method) for method in methods}
    entries: list[tuple[Any, str]] = [
        (
            Line2D([], [], color=one.colour, marker=one.marker, markersize=4.0, linestyle="none"),
            one.title,
        )
        for one in looks.values()
    ]
    for tight, name in ((False, WAYS[THESIS]), (True, WAYS[TIGHT])):
        if any(is_tight(study, method) == tight for method in methods):
            line = Line2D(
                [],
                [],
                color=style.INK,
                marker="o",
                markersize=4.0,
                markerfacecolor=style.INK if tight else "white",
                linestyle="solid" if tight else (0, (4, 2)),
                linewidth=1.1,
            )
            entries.append((line, name))
    entries += extra
    figure.legend(
        [handle for handle, _ in entries],
        [label for _, label in entries],
        loc="outside upper left",
        ncols=3,
        frameon=False,
        handlelength=2.6,
        columnspacing=1.2,
    )
