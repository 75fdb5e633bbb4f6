"""Draws of single runs over the exact posterior, in the plane of the first two parameters.

Of one model the best, median and worst run of each method (Figure 2 of the DP-HMC paper); of several models
the median run of the method whose median MMD is least.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc.data.problem import Problem
from dpmc.metrics.mmd import equally_spaced
from dpmc.metrics.table import Results
from dpmc.reports.plots import Given, layout, style
from dpmc.reports.plots.chains import chain_path, chain_paths, kept_draws
from dpmc.reports.plots.maps import Surface
from dpmc.reports.plots.selection import CellKey, methods_of, models_of
from dpmc.studies import Study, problem_of
from dpmc.studies.figures import FigureKeys

RUNS = {"best": 0.0, "median": 0.5, "worst": 1.0}  # by MMD -> rank, from 0 to 1
REGIONS = {0.95: "#DEDEDE", 0.5: "#B4B4B4"}  # share of the posterior in a region -> its shade
DRAWS = 400  # of a run
TAIL = 0.003  # of the exact draws, at either end of an axis, need not be shown
DOT: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 2.4, "markeredgewidth": 0.0}


def cells_of(study: Study, how: FigureKeys) -> list[CellKey]:
    """Return every method on every model of the figure, at the model's largest budget."""
    return [
        (model, method, max(study.models[model].epsilons, key=float))
        for model in models_of(study, how.models)
        for method in methods_of(study, how.methods, [model])
    ]


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models whose metrics the figure reads, and the chain files of all runs it may show."""
    files = [path for cell in cells_of(study, how) for path in chain_paths(results, study, cell)]
    return models_of(study, how.models), files


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: a panel for each run, a column for each method if there is one model only."""
    study, how, results = given.study, given.declared, Results.of_study(given.metrics, given.study)
    cells, models = cells_of(study, how), models_of(study, how.models)
    shown, columns = [(cell, run) for run in RUNS for cell in cells], len(cells)
    if several := len(models) > 1:
        medians = {cell: float(np.median(results.values(*cell, "mmd") or np.inf)) for cell in cells}
        ranked = sorted(cells, key=medians.__getitem__)
        shown = [(next(cell for cell in ranked if cell[0] == model), "median") for model in models]
        columns = how.columns or 3
    row, share = style.TEXT_WIDTH / columns + 0.1, not several
    figure, panels = layout.panels(len(shown), columns, row, sharex=share, sharey=share)
    problems = {model: problem_of(study, model, exact=True) for model in models}
    looks = style.method_styles(study.methods)
    for axes, (cell, run) in zip(panels, shown, strict=True):
        look, (seed, mmd) = looks[cell[1]], chosen_run(results, cell, run)
        draw_exact(axes, problems[cell[0]])
        if seed:
            draws = equally_spaced(kept_draws(chain_path(given.results, study, cell, seed)), DRAWS)
            axes.plot(*draws[:, :2].T, **DOT, color=style.mixed(look.colour, "#000000", 0.2), zorder=3)
        above = [style.model_name(study, cell[0], how.titles), look.title] if several else [look.title, run]
        says = f"MMD {mmd:.2f}" if seed else "no run has an MMD"
        axes.set_title(f"{above[0]}\n{above[1]}, {says}", fontsize=7.5)
        axes.set_box_aspect(1.0)
        axes.locator_params(nbins=12 // columns)  # as their numbers have room
    figure.supxlabel("θ₁")
    figure.supylabel("θ₂")
    shades = {f"{100 * part:.0f} % of the exact posterior": Patch(fc=REGIONS[part]) for part in REGIONS}
    big = {**DOT, "markersize": 5}
    exact = {"an exact draw (d > 2)": {**big, "color": REGIONS[0.5]}}
    deep = any(problem.dimension > 2 for problem in problems.values())
    run_draw = {"a draw of the private run": {**big, "color": style.INK}}
    layout.legend(figure, shades | (exact if deep else {}) | run_draw, columns=2)
    return figure


def chosen_run(results: Results, cell: CellKey, run: str) -> tuple[str, float]:
    """Return seed and MMD of a run of `RUNS` (of an even number the better median); "" without an MMD."""
    ranked = sorted((mmd, seed) for seed, mmd in results.by_seed(*cell, "mmd").items())
    mmd, seed = ranked[int(RUNS[run] * (len(ranked) - 1))] if ranked else (np.nan, "")
    return seed, mmd


def draw_exact(axes: Axes, problem: Problem) -> None:
    """Draw the exact posterior: of two parameters the regions of greatest density, of more exact draws."""
    if problem.dimension > 2:
        axes.plot(*problem.reference[:, :2].T, **DOT, color=REGIONS[0.5], zorder=1)
        return
    low, high = np.quantile(problem.reference, [TAIL, 1.0 - TAIL], axis=0)
    surface = Surface.of(problem, 1.1 * low - 0.1 * high, 1.1 * high - 0.1 * low)
    ranked = np.sort(surface.values, axis=None)[::-1]
    mass = np.cumsum(np.exp(ranked))
    levels = [*(ranked[np.searchsorted(mass, share * mass[-1])] for share in REGIONS), 0.0]
    axes.contourf(surface.first, surface.second, surface.values, levels=levels, colors=[*REGIONS.values()])
