"""What the mistakes in the DP-HMC paper change: drift of DP-SGLD, order of DP-SGNHT, the banana's prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.figures.labels import (
    compared_models,
    main_methods,
    prior_pairs,
    prior_variance,
    published_variant,
)
from dpmc.figures.posteriors import problem_of
from dpmc.plots import marks, style
from dpmc.plots.chains import Cell, Floats, files_of, kept_draws
from dpmc.plots.frame import Results
from dpmc.plots.style import MethodStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.problem import Problem
    from dpmc.studies import Study

TITLES = {"dp-sgld": "SGLD drift", "dp-sgnht": "SGNHT order"}
SHORT = {"dp-penalty": "penalty", "dp-hmc": "HMC", "dp-mala": "MALA", "dp-sgld": "SGLD", "dp-sgnht": "SGNHT"}
COLUMNS = 3


@dataclass(frozen=True)
class _Side:
    """One half of a comparison: a cell of the study and how it is drawn."""

    cell: Cell
    look: MethodStyle


def errata_methods(study: Study) -> list[tuple[str, str]]:
    """Return (corrected, as published) of the methods that the study runs in both ways."""
    pairs = [(method, published_variant(study, method)) for method in main_methods(study)]
    return [(method, other) for method, other in pairs if other is not None]


def ratio_cells(study: Study) -> list[tuple[Cell, Cell]]:
    """Return (corrected, as published) cells of the variance ratios: largest model, largest budget."""
    pairs = []
    for method, other in errata_methods(study):
        labels = [label for label in compared_models(study) if _both_run(study, label, (method, other))]
        if labels:
            label = max(labels, key=lambda one: _dimension(study, one))
            epsilon = max(study.models[label].epsilons, key=float)
            pairs.append(((label, method, epsilon), (label, other, epsilon)))
    return pairs


def needs(study: Study) -> list[Cell]:
    """Return the cells whose chains the figure reads."""
    return [cell for pair in ratio_cells(study) for cell in pair]


def draw(metrics: DataFrame, study: Study, published: Path, results: Path) -> Figure:
    """Return the figure, a row for each mistake that the study runs in both ways.

    `results` is the folder of all studies' results, in which the chains lie.

    Raises DpmcError where it runs none.
    """
    from matplotlib.figure import Figure

    methods, priors = errata_methods(study), prior_pairs(study)
    if not methods and not priors:
        raise DpmcError(f"study {study.name}: figure paper-errata needs a method or a prior in two versions")
    values = Results.of_study(metrics, study)
    looks = {label: style.STYLES.get(m.algorithm) for label, m in study.methods.items()}
    rows = len(methods) + bool(priors)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 2.0 * rows + 0.4), layout="constrained", dpi=100)
        axes = figure.subplots(rows, COLUMNS, squeeze=False)
        for row, (method, other) in zip(axes, methods, strict=False):
            look = looks[method] or style.method_styles(dict(study.methods))[method]
            _draw_method(row, (method, other), look, values, study)
            pair = next((cells for cells in ratio_cells(study) if cells[0][1] == method), None)
            if pair is None:
                row[-1].set_visible(False)
            else:
                _draw_ratios(row[-1], pair, look, study, results)
        if priors:
            _draw_priors(axes[-1], priors[0], looks, values, study)
        exact = max(len(values.baselines(label, "mmd")) for label in study.models)
        _legend(figure, exact)
    return figure


_GREY = MethodStyle(style.GREY, "", "o", "")


def as_published(look: MethodStyle) -> MethodStyle:
    """How the published version of a method looks: paler, hatched."""
    return MethodStyle(style.mixed(look.colour, "#FFFFFF", 0.6), "////", look.marker, look.title)


def variance_ratios(draws: Floats, problem: Problem) -> Floats:
    """Return the draws' variance over the exact one along the exact principal directions, stiffest first."""
    values, directions = np.linalg.eigh(problem.posterior_covariance)
    projected = (draws - draws.mean(axis=0)) @ directions
    return np.asarray((projected**2).sum(axis=0) / (len(draws) - 1) / values)


def _draw_method(
    row: Sequence[Axes], pair: tuple[str, str], look: MethodStyle, results: Results, study: Study
) -> None:
    """Draw MMD against ε for a method in both versions, a panel for each of the first two models."""
    labels = [label for label in compared_models(study) if _both_run(study, label, pair)][: COLUMNS - 1]
    name = TITLES.get(study.methods[pair[0]].algorithm, look.title)
    for one, label in zip(row, labels, strict=False):
        groups = {
            epsilon: (
                _Side((label, pair[1], epsilon), as_published(look)),
                _Side((label, pair[0], epsilon), look),
            )
            for epsilon in study.models[label].epsilons
        }
        _draw_groups(one, groups, "mmd", results, [label])
        one.set_title(f"{name}, {_name(study, label)}")
        one.set_xlabel("privacy budget ε")
    for spare in row[len(labels) : COLUMNS - 1]:
        spare.set_visible(False)


def _draw_ratios(axes: Axes, pair: tuple[Cell, Cell], look: MethodStyle, study: Study, results: Path) -> None:
    """Draw boxes over runs of the variance ratio along each principal direction."""
    problem = problem_of(study, pair[0][0])
    d = problem.dimension
    for group in range(0, d, 2):
        axes.axvspan(group - 0.5, group + 0.5, color=style.BAND, lw=0, zorder=0)
    for side, (cell, one) in enumerate(((pair[1], as_published(look)), (pair[0], look))):
        runs = [kept_draws(path) for path in files_of(results, study, cell)]
        runs = [draws for draws in runs if len(draws) > 1 and np.isfinite(draws).all()]
        if not runs:
            marks.draw_note(axes, 0.0 if side == 0 else 0.5, "no finite run")
            continue
        ratios = np.array([variance_ratios(draws, problem) for draws in runs])
        centres = (direction + (0.22 if side else -0.22) for direction in range(d))
        marks.draw_boxes(axes, dict(zip(centres, ratios.T.tolist(), strict=True)), 0.36, one)
    axes.axhline(1.0, color="black", linewidth=0.6, zorder=1)
    axes.set_xticks(range(d), [str(i + 1) for i in range(d)])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, d - 0.5)
    axes.set_xlabel("direction, stiffest first")
    axes.set_ylabel("variance / exact")
    axes.set_title(f"{_name(study, pair[0][0])}, ε = {pair[0][2]}")
    _from_zero(axes)


def _draw_priors(
    row: Sequence[Axes],
    pair: tuple[str, str],
    looks: dict[str, MethodStyle | None],
    results: Results,
    study: Study,
) -> None:
    """Draw three metrics of every main method at the largest ε, under either prior."""
    text, code = sorted(pair, key=lambda label: -prior_variance(study, label))
    methods = [m for m in main_methods(study) if all(label in study.methods[m].models for label in pair)]
    common = set(study.models[text].epsilons) & set(study.models[code].epsilons)
    epsilon = max(common, key=float, default=study.models[text].epsilons[-1])
    for one, metric in zip(row, ("mmd", "mean_error", "covariance_error"), strict=True):
        groups = {}
        for method in methods:
            look = looks[method] or _GREY
            name = SHORT.get(study.methods[method].algorithm, method)
            groups[name] = (
                _Side((code, method, epsilon), as_published(look)),
                _Side((text, method, epsilon), look),
            )
        _draw_groups(one, groups, metric, results, pair if metric == "mmd" else ())
        one.tick_params(axis="x", labelsize=7, rotation=40)
        one.set_title(f"banana's prior, ε = {epsilon}")
        one.set_ylabel("MMD" if metric == "mmd" else metric.replace("_", " "))


def _draw_groups(
    axes: Axes,
    groups: dict[str, tuple[_Side, _Side]],
    metric: str,
    results: Results,
    baselines_of: Sequence[str],
) -> None:
    """Draw pairs of boxes, a pair for each group."""
    for group, sides in enumerate(groups.values()):
        if group % 2 == 0:
            axes.axvspan(group - 0.5, group + 0.5, color=style.BAND, lw=0, zorder=0)
        for side, centre in zip(sides, (group - 0.21, group + 0.21), strict=True):
            if values := results.values(*side.cell, metric):
                marks.draw_boxes(axes, {centre: values}, 0.34, side.look)
            else:
                marks.draw_note(axes, centre, f"no box: {results.why_missing(*side.cell, metric)}")
    for label in baselines_of:
        for value in results.baselines(label, metric):
            axes.axhline(value, color="black", linewidth=0.3, zorder=1)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_ylabel(style.LABELS.get(metric, metric))
    _from_zero(axes)


def _from_zero(axes: Axes) -> None:
    """Let the vertical axis begin at 0."""
    top = float(axes.dataLim.y1)
    axes.set_ylim(0.0, 1.06 * top if 0.0 < top < math.inf else 1.0)
    axes.yaxis.grid(True, color="#DDDDDD", linewidth=0.4)


def _name(study: Study, label: str) -> str:
    """A model's name in one word: panels are narrow."""
    return style.model_title(label, study.models[label].model).partition(",")[0].removeprefix("paper's ")


def _both_run(study: Study, label: str, methods: tuple[str, str]) -> bool:
    """Whether a model has cells of both methods."""
    return all(label in study.methods[method].models for method in methods)


def _dimension(study: Study, label: str) -> int:
    """Number of parameters of a model."""
    from dpmc import models

    return len(models.definition(study.models[label].model).true_theta)


def _legend(figure: Figure, exact: int) -> None:
    """Explain shades and lines above the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=one.colour, edgecolor=style.INK, hatch=one.hatch, linewidth=0.7)
        for one in (as_published(_GREY), _GREY)
    ]
    labels = ["as published (prior: the code's)", "corrected (prior: the text's)"]
    if exact:
        handles.append(Line2D([], [], color="black", linewidth=0.6))
        labels.append(f"{exact} exact samples")
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)
