"""Best, median and worst run of each algorithm against the exact posterior (Figure 2 of the DP-HMC paper)."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dpmc.data.problem import Problem
from dpmc.metrics.mmd import equally_spaced
from dpmc.metrics.table import Results
from dpmc.reports.plots import Given, layout, style
from dpmc.reports.plots.frame import (
    Cell,
    Floats,
    files_of,
    kept_draws,
    methods_of,
    models_of,
    path_of,
)
from dpmc.reports.plots.maps import Surface, problem_of
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

#: run by MMD -> its line
RUNS: dict[str, Any] = {"best": style.SOLID, "median": style.DASHED, "worst": style.DOTTED}
SHARES, WIDTHS = (0.95, 0.5), (0.5, 1.0)  # of the posterior, in the regions shown; of their lines
REGION: dict[str, Any] = {"colors": [style.INK], "linewidths": WIDTHS, "linestyles": "solid"}
DRAWS = 400  # of a run
MARGINAL = "#D8D8D8"
DOT: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 2.0, "markeredgewidth": 0.0}


def cells_of(study: Study, how: FigureKeys) -> list[Cell]:
    """Return the cells of the figure: every method on the first of the models at its largest budget."""
    model = models_of(study, how.models)[0]
    epsilon = max(study.models[model].epsilons, key=float)
    return [(model, method, epsilon) for method in methods_of(study, how.methods, [model])]


def models_read(study: Study, how: FigureKeys) -> list[str]:
    """Return the model whose metrics the figure reads."""
    return models_of(study, how.models)[:1]


def files(study: Study, how: FigureKeys, results: Path) -> list[Path]:
    """Return the chain files that the figure reads."""
    return [file for cell in cells_of(study, how) for file in files_of(results, study, cell)]


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure, one column per method."""
    cells, values = cells_of(given.study, given.declared), Results.of_study(given.metrics, given.study)
    problem = problem_of(given.study, cells[0][0])
    surface = Surface.of(problem, *_box(problem))
    figure, panels = layout.panels(5 * len(cells), len(cells), 1.4, sharex="row", sharey="row")
    axes = np.array(panels).reshape(5, len(cells))
    levels = _levels_of_grid(surface.values)
    for column, cell in zip(axes.T, cells, strict=True):
        look = style.method_styles(given.study.methods)[cell[1]]
        dark = style.mixed(look.colour, "#000000", 0.2)
        column[0].set_title(look.title)
        for one in column[2:]:
            one.contour(surface.first, surface.second, surface.values, levels=levels, **REGION, zorder=3)
            one.set_title("no run has an MMD", fontsize=7.5)
        _draw_exact_marginals(column[:2], surface)
        for one, (run, seed, mmd) in zip(column[2:], chosen_runs(values, cell), strict=False):
            draws = equally_spaced(kept_draws(path_of(given.results, given.study, cell, seed)), DRAWS)
            one.plot(*draws.T, **DOT, color=dark)
            one.set_title(f"MMD {mmd:.3f}", fontsize=7.5)
            _draw_marginals(column[:2], draws, color=dark, linestyle=RUNS[run])
    _finish(axes)
    layout.legend(figure, _entries(), columns=4, **layout.LOOSE)
    return figure


def chosen_runs(results: Results, cell: Cell) -> list[tuple[str, str, float]]:
    """Return (name, seed, MMD) of a cell's best, median (of an even number the better) and worst run."""
    ranked = sorted(results.by_seed(*cell, "mmd").items(), key=lambda item: (item[1], item[0]))
    if not ranked:
        return []
    places = (0, (len(ranked) - 1) // 2, len(ranked) - 1)
    return [(name, *ranked[place]) for name, place in zip(RUNS, places, strict=True)]


def _box(problem: Problem) -> tuple[Floats, Floats]:
    """The corners of the part of the plane to show: all exact draws and a margin."""
    low, high = problem.reference.min(axis=0), problem.reference.max(axis=0)
    margin = 0.12 * (high - low)
    return low - margin, high + margin


def _draw_exact_marginals(axes: Iterable[Axes], surface: Surface) -> None:
    """Draw the exact density of both components."""
    for component, (one, grid) in enumerate(zip(axes, (surface.first, surface.second), strict=True)):
        exact = np.exp(surface.values).sum(axis=component)
        one.fill_between(grid, exact / exact.sum() / (grid[1] - grid[0]), color=MARGINAL, linewidth=0.0)


def _draw_marginals(axes: Iterable[Axes], draws: Floats, **how: Any) -> None:
    """Draw densities of both components of a run by normal kernels; none of a chain that never moved."""
    import seaborn

    for one, values in zip(axes, draws.T, strict=True):
        finite = values[np.isfinite(values)]
        if np.unique(finite).size > 1:
            seaborn.kdeplot(x=finite, ax=one, linewidth=1.0, **how)


def _levels_of_grid(values: Floats) -> list[float]:
    """The log densities above which the exact posterior has the shares of `SHARES`, from a fine grid."""
    ranked = np.sort(values.ravel())[::-1]
    mass = np.cumsum(np.exp(ranked))
    return [float(ranked[np.searchsorted(mass, share * mass[-1])]) for share in SHARES]


def _finish(axes: Any) -> None:
    """Label the axes; every row has one scale, and the planes have θ₁ below the lowest."""
    names = ("density of θ₁", "density of θ₂", *(f"{run} run\nθ₂" for run in RUNS))
    for row, name in zip(axes, names, strict=True):
        row[0].set_ylabel(name)
    for one in axes.ravel():
        one.locator_params(nbins=3)
    for one in axes[:2].ravel():
        one.set_ylim(bottom=0.0)
        one.tick_params(axis="y", left=False, labelleft=False)
    for one in axes[2:4].ravel():
        one.tick_params(axis="x", labelbottom=False)
    for row, name in ((0, "θ₁"), (1, "θ₂"), (4, "θ₁")):
        for one in axes[row]:
            one.set_xlabel(name)


def _entries() -> layout.Entries:
    """Return the legend's entries for lines, points and shades."""
    entries: layout.Entries = [
        (Line2D([], [], color=style.INK, linewidth=1.0, linestyle=line), f"{run} run by MMD")
        for run, line in RUNS.items()
    ]
    entries.append((Line2D([], [], **{**DOT, "markersize": 5}, color=style.INK), "a draw of the run"))
    entries.append((Patch(facecolor=MARGINAL), "exact marginal"))
    for share, width in zip(SHARES, WIDTHS, strict=True):
        line = Line2D([], [], color=style.INK, linewidth=width)
        entries.append((line, f"exact {100 * share:.0f} % region"))
    return entries
