"""What the mistakes in the DP-HMC paper change: drift of DP-SGLD, order of DP-SGNHT, the banana's prior."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch

from dpmc import models
from dpmc.errors import DpmcError
from dpmc.plots import Given, layout, marks, style
from dpmc.plots.frame import Cell, Floats, Results, files_of, kept_draws, private_models
from dpmc.plots.maps import problem_of
from dpmc.plots.style import MethodStyle
from dpmc.problem import Problem
from dpmc.studies import Study
from dpmc.studies.figures import Axis, FigureKeys

COLUMNS = 3
SIDES = (-0.21, 0.21)
Side = tuple[Cell, MethodStyle]  # one half of a comparison
Groups = Mapping[str, tuple[Side, Side]]  # name -> what is compared, left and right


def ratio_cells(study: Study, pair: tuple[str, str]) -> list[Cell]:
    """Return the cells of a pair of methods whose variance ratios are shown: largest model and budget."""
    labels = [label for label in private_models(study) if _both_run(study, label, pair)]
    if not labels:
        return []
    label = max(labels, key=lambda one: len(models.definition(study.models[one].model).true_theta))
    epsilon = max(study.models[label].epsilons, key=float)
    return [(label, method, epsilon) for method in pair]


def needs(study: Study, how: FigureKeys) -> list[Cell]:
    """Return the cells whose chains the figure reads."""
    pairs = _pairs(how, study.methods)
    return [cell for pair in pairs for cell in ratio_cells(study, pair)]


def files(study: Study, how: FigureKeys, results: Path) -> list[Path]:
    """Return the chain files that the figure reads."""
    return [file for cell in needs(study, how) for file in files_of(results, study, cell)]


def _pairs(how: FigureKeys, labels: Iterable[str]) -> list[tuple[str, str]]:
    """Return the declared pairs of which both are among these labels."""
    return [pair for pair in how.pairs.items() if set(pair) <= set(labels)]


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: a row for each pair of methods, corrected and as published, and one for the priors.

    Raises DpmcError where it runs nothing in two ways.
    """
    study, how = given.study, given.declared
    methods, priors = _pairs(how, study.methods), _pairs(how, study.models)[:1]
    if not methods and not priors:
        raise DpmcError(f"study {study.name}: figure paper-errata needs a method or a prior in two versions")
    values = Results.of_study(given.metrics, study)
    exact = marks.exact_samples(max(len(values.baselines(label, "mmd")) for label in study.models))
    heights = [rows for rows in (len(methods), len(priors)) if rows]
    size = (style.TEXT_WIDTH, 1.85 * sum(heights) + 0.4 * len(heights))
    figure = Figure(figsize=size, layout="constrained")
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights).ravel()
    if methods:
        axes = parts[0].subplots(len(methods), COLUMNS, squeeze=False)
        for row, pair in zip(axes, methods, strict=True):
            _draw_method(row, pair, values, given)
        _legend(parts[0], {"as published": as_published, "corrected": _plain}, exact)
    for pair in priors:
        _draw_priors(parts[-1].subplots(1, COLUMNS), pair, values, given)
        names = [how.titles.get(label, label.replace("-", " ")) for label in pair]
        looks = dict(zip(names, (_plain, other_prior), strict=True))
        _legend(parts[-1], looks, [] if methods else exact)
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
    look = style.method_styles(study.methods)[pair[0]]
    looks = (as_published(look), _plain(look))
    labels = [label for label in how.models if label in study.models and _both_run(study, label, pair)]
    for one, label in zip(row[:-1], labels, strict=False):
        groups = {
            epsilon: (((label, pair[1], epsilon), looks[0]), ((label, pair[0], epsilon), looks[1]))
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
    if cells := ratio_cells(study, pair):
        _draw_ratios(row[-1], ((cells[1], looks[0]), (cells[0], looks[1])), study, given.results)
    else:
        row[-1].set_visible(False)


def _draw_ratios(axes: Axes, sides: tuple[Side, Side], study: Study, results: Path) -> None:
    """Draw boxes over runs of the variance ratio along each principal direction."""
    (label, _, epsilon), _ = sides[0]
    problem = problem_of(study, label)
    layout.groups(axes, [str(direction + 1) for direction in range(problem.dimension)])
    for shift, (cell, look) in zip(SIDES, sides, strict=True):
        runs = [kept_draws(path) for path in files_of(results, study, cell)]
        runs = [draws for draws in runs if len(draws) > 1 and np.isfinite(draws).all()]
        if not runs:
            marks.draw_note(axes, max(shift, 0.0), "no finite run")
            continue
        ratios = np.array([variance_ratios(draws, problem) for draws in runs])
        values = {direction + shift: its.tolist() for direction, its in enumerate(ratios.T)}
        marks.draw_boxes(axes, values, 0.36, look)
    axes.axhline(1.0, color="black", linewidth=0.6, zorder=1)
    axes.set_xlabel("direction, stiffest first")
    axes.set_ylabel("variance / exact")
    axes.set_title(f"{_name(study, label)}, ε = {epsilon}")
    layout.scale_y(axes, Axis(scale="log"), float(axes.dataLim.y1), room=1.3)


def _draw_priors(row: Sequence[Axes], pair: tuple[str, str], results: Results, given: Given) -> None:
    """Draw the metrics of every method that runs under either prior, at the largest ε of both."""
    study, looks = given.study, style.method_styles(given.study.methods)
    methods = [m for m in study.methods if m in given.declared.methods]
    methods = [m for m in methods if set(pair) <= set(study.methods[m].models)]
    common = set(study.models[pair[0]].epsilons) & set(study.models[pair[1]].epsilons)
    epsilon = max(common, key=float, default=study.models[pair[0]].epsilons[-1])
    for one, metric in zip(row, given.declared.metric, strict=False):
        groups = {
            looks[m].title: (
                ((pair[0], m, epsilon), _plain(looks[m])),
                ((pair[1], m, epsilon), other_prior(looks[m])),
            )
            for m in methods
        }
        _draw_groups(one, groups, metric, results, pair if metric == "mmd" else ())
        one.set_ylabel("")
        one.set_title(f"{style.metric_title(metric)}, ε = {epsilon}")


def _draw_groups(
    axes: Axes, groups: Groups, metric: str, results: Results, baselines_of: Sequence[str]
) -> None:
    """Draw pairs of boxes, a pair for each group."""
    layout.groups(axes, list(groups))
    for group, sides in enumerate(groups.values()):
        for shift, (cell, look) in zip(SIDES, sides, strict=True):
            if values := results.values(*cell, metric):
                marks.draw_boxes(axes, {group + shift: values}, 0.34, look)
            else:
                marks.draw_note(axes, group + shift, results.remark(*cell, metric))
    for label in baselines_of:
        marks.draw_baselines(axes, results.baselines(label, metric))
    axes.set_ylabel(style.metric_label(metric))
    layout.scale_y(axes, Axis(), float(axes.dataLim.y1))


def _name(study: Study, label: str) -> str:
    """A model's name in a word or two: panels are narrow."""
    return style.model_name(study, label).partition(",")[0]


def _both_run(study: Study, label: str, methods: tuple[str, str]) -> bool:
    """Whether a model has cells of both methods."""
    return all(label in study.methods[method].models for method in methods)


def _legend(
    part: SubFigure, looks: Mapping[str, Callable[[MethodStyle], MethodStyle]], others: layout.Entries
) -> None:
    """Explain the two halves of each comparison, in grey, above the rows of a part."""
    made = {name: look(MethodStyle(style.GREY, "", "o", "")) for name, look in looks.items()}
    entries: layout.Entries = [
        (Patch(facecolor=m.colour, edgecolor=style.INK, hatch=m.hatch, linewidth=0.7), name)
        for name, m in made.items()
    ]
    layout.legend(part, entries + others)
