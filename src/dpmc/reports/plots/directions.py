"""Variances of runs over the exact one, along the principal directions of the posterior, of pairs of methods.

The MMD is made of whole distances and hardly sees a stiff direction; this ratio does.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpmc.data.problem import Problem
from dpmc.reports.plots import Given, layout, marks, style
from dpmc.reports.plots.frame import Cell, Floats, Quartiles, files_of, kept_draws, models_of
from dpmc.reports.plots.maps import problem_of
from dpmc.reports.plots.pairs import Pairs
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import Axis, FigureKeys

Ratios = dict[int, list[float]]  # direction, stiffest first -> variance over the exact one, of each run


def _boxes(study: Study, how: FigureKeys) -> dict[Cell, Cell]:
    """Return the cells of the boxes, one a panel, at the largest ε of their models -> those of the slim bars.

    Raises DpmcError where the study has none of the pairs.
    """
    pairs = Pairs.of(study, how)
    shown = pairs.shown(study, models_of(study, how.models), list(pairs.methods))
    largest = {model: max(study.models[model].epsilons, key=float) for model in shown}
    cells = [(model, method, largest[model]) for model, methods in shown.items() for method in methods]
    return {cell: pairs.beside(cell) for cell in cells}


def cells_of(study: Study, how: FigureKeys) -> list[Cell]:
    """Return the cells whose chains the figure reads."""
    return [cell for pair in _boxes(study, how).items() for cell in pair]


def files(study: Study, how: FigureKeys, results: Path) -> list[Path]:
    """Return the chain files that the figure reads."""
    return [file for cell in cells_of(study, how) for file in files_of(results, study, cell)]


def models_read(study: Study, how: FigureKeys) -> list[str]:
    """Return no model: the figure reads no metrics."""
    return []


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: a panel for each pair on each of its models."""
    study, how = given.study, given.declared
    boxes = _boxes(study, how)
    styles = Pairs.of(study, how).styles(study, how.titles, [method for _, method, _ in boxes])
    figure, axes = layout.panels(len(boxes), min(2, len(boxes)), 2.3, more=0.3)
    for one, (cell, beside) in zip(axes, boxes.items(), strict=True):
        problem, look = problem_of(study, cell[0]), styles[cell[1]]
        layout.groups(one, [str(direction + 1) for direction in range(problem.dimension)])
        _draw_panel(one, _ratios(given, cell, problem), _ratios(given, beside, problem), look)
        model = style.model_name(study, cell[0], how.titles).partition(",")[0]
        one.set_title(f"{look.title}, ε = {cell[2]}")
        one.set_xlabel(f"direction of the {model}, stiffest first")
    entries: layout.Entries = [(marks.patch(look), look.title) for look in styles.values()]
    entries.append((Rectangle((0, 0), 1, 1), how.beside))
    layout.legend(figure, entries, handler_map={Rectangle: marks.PublishedInLegend()})
    return figure


def _ratios(given: Given, cell: Cell, problem: Problem) -> Ratios:
    """Return the variance ratios of the runs of a cell that are finite, by direction."""
    runs = [kept_draws(path) for path in files_of(given.results, given.study, cell)]
    runs = [draws for draws in runs if len(draws) > 1 and np.isfinite(draws).all()]
    return dict(enumerate(np.array([variance_ratios(draws, problem) for draws in runs]).T.tolist()))


def variance_ratios(draws: Floats, problem: Problem) -> Floats:
    """Return the draws' variance over the exact one along the exact principal directions, stiffest first."""
    values, directions = np.linalg.eigh(problem.posterior_covariance)
    projected = (draws - draws.mean(axis=0)) @ directions
    return np.asarray((projected**2).sum(axis=0) / (len(draws) - 1) / values)


def _draw_panel(axes: Axes, ours: Ratios, beside: Ratios, look: MethodStyle) -> None:
    """Draw the ratios over runs by direction: boxes, and slim bars beside them."""
    slim = {direction: Quartiles.of(its) for direction, its in beside.items()}
    marks.draw_in_groups(axes, (0, 1), ours, slim, look, beside=True)
    if not ours:
        marks.draw_note(axes, 0.0, "no finite run")
    axes.axhline(1.0, color="black", linewidth=0.6, zorder=1)
    axes.set_ylabel("variance / exact")
    layout.scale_y(axes, Axis(scale="log"), float(axes.dataLim.y1), room=1.1)
