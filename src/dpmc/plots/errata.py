"""What the mistakes in the DP-HMC paper change: drift of DP-SGLD, order of DP-SGNHT, the banana's prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.plots import marks, style
from dpmc.plots.chains import Cell, Floats, files_of, kept_draws
from dpmc.plots.frame import Results, private_models
from dpmc.plots.labels import main_methods, published_variant
from dpmc.plots.maps import problem_of
from dpmc.plots.style import MethodStyle
from dpmc.studies.figures import Axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from dpmc.plots import Given
    from dpmc.problem import Problem
    from dpmc.studies import Study

COLUMNS = 3
SIDES = (-0.21, 0.21)
LINEAR, LOGARITHMIC = Axis(), Axis(scale="log")
AS_PUBLISHED, CORRECTED = "as published", "corrected"


@dataclass(frozen=True)
class _Side:
    """One half of a comparison: a cell of the study and how it is drawn."""

    cell: Cell
    look: MethodStyle


Groups = Mapping[str, tuple[_Side, _Side]]  # name -> what is compared, left and right


def errata_methods(study: Study) -> list[tuple[str, str]]:
    """Return (corrected, as published) of the methods that the study runs in both ways."""
    pairs = [(method, published_variant(study, method)) for method in main_methods(study)]
    return [(method, other) for method, other in pairs if other is not None]


def ratio_cells(study: Study) -> list[tuple[Cell, Cell]]:
    """Return (corrected, as published) cells of the variance ratios: largest model, largest budget."""
    pairs = []
    for method, other in errata_methods(study):
        labels = [label for label in private_models(study) if _both_run(study, label, (method, other))]
        if labels:
            label = max(labels, key=lambda one: _dimension(study, one))
            epsilon = max(study.models[label].epsilons, key=float)
            pairs.append(((label, method, epsilon), (label, other, epsilon)))
    return pairs


def needs(study: Study) -> list[Cell]:
    """Return the cells whose chains the figure reads."""
    return [cell for pair in ratio_cells(study) for cell in pair]


def draw(given: Given) -> Figure:
    """Return the figure: a row for each method that the study runs in both ways, and one for the priors.

    Raises DpmcError where it runs nothing in two ways.
    """
    from matplotlib.figure import Figure

    study = given.study
    methods = errata_methods(study)
    priors = [pair for pair in given.declared.pairs.items() if set(pair) <= set(study.models)][:1]
    if not methods and not priors:
        raise DpmcError(f"study {study.name}: figure paper-errata needs a method or a prior in two versions")
    values = Results.of_study(given.metrics, study)
    exact = marks.exact_samples(max(len(values.baselines(label, "mmd")) for label in study.models))
    heights = [rows for rows in (len(methods), len(priors)) if rows]
    with style.context():
        size = (style.TEXT_WIDTH, 1.85 * sum(heights) + 0.4 * len(heights))
        figure = Figure(figsize=size, layout="constrained", dpi=100)
        parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights).ravel()
        if methods:
            axes = parts[0].subplots(len(methods), COLUMNS, squeeze=False)
            for row, pair in zip(axes, methods, strict=True):
                _draw_method(row, pair, values, given)
            _legend(parts[0], (as_published, _plain), (AS_PUBLISHED, CORRECTED), exact)
        for pair in priors:
            _draw_priors(parts[-1].subplots(1, COLUMNS), pair, values, given)
            names = [given.declared.titles.get(label, label.replace("-", " ")) for label in pair]
            _legend(parts[-1], (_plain, other_prior), names, [] if methods else exact)
    return figure


def as_published(look: MethodStyle) -> MethodStyle:
    """Return how the published version of a method looks: paler, hatched."""
    return replace(look, colour=style.mixed(look.colour, "#FFFFFF", 0.6), hatch="////")


def other_prior(look: MethodStyle) -> MethodStyle:
    """Return how a method looks under the prior that other figures do not have: nearly white."""
    return replace(look, colour=style.mixed(look.colour, "#FFFFFF", 0.85), hatch="\\\\\\\\")


def _plain(look: MethodStyle) -> MethodStyle:
    return replace(look, hatch="")


def variance_ratios(draws: Floats, problem: Problem) -> Floats:
    """Return the draws' variance over the exact one along the exact principal directions, stiffest first."""
    values, directions = np.linalg.eigh(problem.posterior_covariance)
    projected = (draws - draws.mean(axis=0)) @ directions
    return np.asarray((projected**2).sum(axis=0) / (len(draws) - 1) / values)


def _draw_method(row: Sequence[Axes], pair: tuple[str, str], results: Results, given: Given) -> None:
    """Draw a method in both versions: MMD against ε on the first two models, and variance ratios."""
    study, how = given.study, given.declared
    look = style.method_styles(dict(study.methods))[pair[0]]
    looks = (as_published(look), _plain(look))
    labels = [label for label in how.models if label in study.models and _both_run(study, label, pair)]
    for one, label in zip(row[:-1], labels, strict=False):
        groups = {
            epsilon: (_Side((label, pair[1], epsilon), looks[0]), _Side((label, pair[0], epsilon), looks[1]))
            for epsilon in study.models[label].epsilons
        }
        _draw_groups(one, groups, how.metric[0], results, [label])
        one.set_title(_name(study, label))
        one.set_xlabel("privacy budget ε (total)")
    row[0].set_title(f"{how.titles.get(pair[0], look.title)}: {row[0].get_title(loc='left')}")
    top = max(one.get_ylim()[1] for one in row[: len(labels)]) if labels else 1.0
    for one in row[: len(labels)]:
        one.set_ylim(0.0, top)
    for spare in row[len(labels) : COLUMNS - 1]:
        spare.set_visible(False)
    cells = next((cells for cells in ratio_cells(study) if cells[0][1] == pair[0]), None)
    if cells is None:
        row[-1].set_visible(False)
    else:
        sides = (_Side(cells[1], looks[0]), _Side(cells[0], looks[1]))
        _draw_ratios(row[-1], sides, study, given.results)


def _draw_ratios(axes: Axes, sides: tuple[_Side, _Side], study: Study, results: Path) -> None:
    """Draw boxes over runs of the variance ratio along each principal direction."""
    label, _, epsilon = sides[0].cell
    problem = problem_of(study, label)
    marks.draw_groups(axes, [str(direction + 1) for direction in range(problem.dimension)])
    for shift, side in zip(SIDES, sides, strict=True):
        runs = [kept_draws(path) for path in files_of(results, study, side.cell)]
        runs = [draws for draws in runs if len(draws) > 1 and np.isfinite(draws).all()]
        if not runs:
            marks.draw_note(axes, max(shift, 0.0), "no finite run")
            continue
        ratios = np.array([variance_ratios(draws, problem) for draws in runs])
        values = {direction + shift: its.tolist() for direction, its in enumerate(ratios.T)}
        marks.draw_boxes(axes, values, 0.36, side.look)
    axes.axhline(1.0, color="black", linewidth=0.6, zorder=1)
    axes.set_xlabel("direction, stiffest first")
    axes.set_ylabel("variance / exact")
    axes.set_title(f"{_name(study, label)}, ε = {epsilon}")
    marks.scale_y(axes, LOGARITHMIC, float(axes.dataLim.y1), room=1.3)


def _draw_priors(row: Sequence[Axes], pair: tuple[str, str], results: Results, given: Given) -> None:
    """Draw the metrics of every method that runs under either prior, at the largest ε of both."""
    study, looks = given.study, style.method_styles(dict(given.study.methods))
    methods = [m for m in main_methods(study) if all(label in study.methods[m].models for label in pair)]
    common = set(study.models[pair[0]].epsilons) & set(study.models[pair[1]].epsilons)
    epsilon = max(common, key=float, default=study.models[pair[0]].epsilons[-1])
    for one, metric in zip(row, given.declared.metric, strict=False):
        groups = {
            looks[m].title: (
                _Side((pair[0], m, epsilon), _plain(looks[m])),
                _Side((pair[1], m, epsilon), other_prior(looks[m])),
            )
            for m in methods
        }
        _draw_groups(one, groups, metric, results, pair if metric == "mmd" else ())
        one.set_ylabel("")
        one.set_title(f"{style.METRIC_TITLES.get(metric, metric.replace('_', ' '))}, ε = {epsilon}")


def _draw_groups(
    axes: Axes, groups: Groups, metric: str, results: Results, baselines_of: Sequence[str]
) -> None:
    """Draw pairs of boxes, a pair for each group."""
    marks.draw_groups(axes, list(groups))
    for group, sides in enumerate(groups.values()):
        for side, shift in zip(sides, SIDES, strict=True):
            if values := results.values(*side.cell, metric):
                marks.draw_boxes(axes, {group + shift: values}, 0.34, side.look)
            else:
                marks.draw_note(axes, group + shift, f"no box: {results.why_missing(*side.cell, metric)}")
    for label in baselines_of:
        marks.draw_baselines(axes, results.baselines(label, metric))
    axes.set_ylabel(style.LABELS.get(metric, metric.replace("_", " ")))
    marks.scale_y(axes, LINEAR, float(axes.dataLim.y1))


def _name(study: Study, label: str) -> str:
    """A model's name in a word or two: panels are narrow."""
    return style.model_title(label, study.models[label].model).partition(",")[0]


def _both_run(study: Study, label: str, methods: tuple[str, str]) -> bool:
    """Whether a model has cells of both methods."""
    return all(label in study.methods[method].models for method in methods)


def _dimension(study: Study, label: str) -> int:
    """Number of parameters of a model."""
    from dpmc import models

    return len(models.definition(study.models[label].model).true_theta)


def _legend(
    part: SubFigure, looks: Sequence[Any], names: Sequence[str], others: list[tuple[Any, str]]
) -> None:
    """Explain the two halves of each comparison, in grey, above the rows of a part."""
    from matplotlib.patches import Patch

    made = [look(MethodStyle(style.GREY, "", "o", "")) for look in looks]
    patches = [Patch(facecolor=m.colour, edgecolor=style.INK, hatch=m.hatch, linewidth=0.7) for m in made]
    marks.draw_legend(part, [*zip(patches, names, strict=True), *others])
