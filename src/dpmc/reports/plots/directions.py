"""Variances of runs over the exact one, along the principal directions of the posterior, of pairs of methods.

The MMD is made of whole distances and hardly sees a stiff direction; this ratio does.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dpmc.data.problem import Problem
from dpmc.reports.plots import Given, layout, marks, style
from dpmc.reports.plots.chains import Floats, chain_paths, kept_draws
from dpmc.reports.plots.published import quartiles
from dpmc.reports.plots.selection import CellKey, pairs_of
from dpmc.studies import Study, problem_of
from dpmc.studies.figures import Axis, FigureKeys


def cells_of(study: Study, how: FigureKeys) -> dict[CellKey, CellKey]:
    """Map the cells of the boxes, one a panel, at the largest ε of their models, to those of the slim bars.

    Raises DpmcError where the study has none of the pairs.
    """
    largest = {model: max(spec.epsilons, key=float) for model, spec in study.models.items()}
    return {
        (*shown, largest[shown[0]]): (*other, largest[shown[0]])
        for shown, other in pairs_of(study, how).items()
    }


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return no model, and the chain files that the figure reads."""
    cells = [cell for pair in cells_of(study, how).items() for cell in pair]
    return [], [path for cell in cells for path in chain_paths(results, study, cell)]


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: a panel for each pair on each of its models."""
    study, how = given.study, given.declared
    cells = cells_of(study, how)
    looks = style.of_pairs(study, pairs_of(study, how), how.titles)
    figure, panels = layout.panels(len(cells), min(2, len(cells)), 2.3, sharey=True)
    for axes, (cell, beside) in zip(panels, cells.items(), strict=True):
        problem, look = problem_of(study, cell[0], exact=True), looks[cell[1]]
        layout.groups(axes, [str(direction + 1) for direction in range(problem.dimension)])
        boxes = _ratios(given, cell, problem)
        bars = {direction: quartiles(ratios) for direction, ratios in _ratios(given, beside, problem).items()}
        marks.draw_boxes(axes, (0, 1), boxes, bars, look, marks.PARTNER)
        if not boxes:
            marks.draw_note(axes, 0.0, "no finite run")
        axes.axhline(1.0, color="black", linewidth=0.6, zorder=1)
        layout.scale_y(axes, Axis(scale="log"))
        axes.set_title(f"{look.title}, ε = {cell[2]}")
        model = style.model_name(study, cell[0], how.titles).partition(",")[0]
        axes.set_xlabel(f"direction of the {model}, stiffest first")
    panels[0].set_ylabel("variance / exact")
    entries: layout.Entries = {look.title: marks.patch(look) for look in looks.values()}
    layout.legend(figure, entries | {how.beside: marks.PARTNER})
    return figure


def _ratios(given: Given, cell: CellKey, problem: Problem) -> dict[int, list[float]]:
    """Return direction, stiffest first -> variance over the exact one, of each run that is finite."""
    runs = [kept_draws(path) for path in chain_paths(given.results, given.study, cell)]
    runs = [draws for draws in runs if len(draws) > 1 and np.isfinite(draws).all()]
    return dict(enumerate(np.array([variance_ratios(draws, problem) for draws in runs]).T.tolist()))


def variance_ratios(draws: Floats, problem: Problem) -> Floats:
    """Return the draws' variance over the exact one along the exact principal directions, stiffest first."""
    values, directions = np.linalg.eigh(problem.posterior_covariance)
    return np.asarray((draws @ directions).var(axis=0, ddof=1) / values)
