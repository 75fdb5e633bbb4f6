"""Best, median and worst run of each algorithm against the exact posterior (Figure 2 of the DP-HMC paper)."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc.data.problem import Problem
from dpmc.metrics.mmd import equally_spaced
from dpmc.metrics.table import Results
from dpmc.reports.plots import Given, layout, style
from dpmc.reports.plots.chains import Floats, chain_path, chain_paths, kept_draws
from dpmc.reports.plots.maps import Surface
from dpmc.reports.plots.selection import CellKey, methods_of, models_of
from dpmc.studies import Study, problem_of
from dpmc.studies.figures import FigureKeys

#: run by MMD -> its line
RUNS: dict[str, Any] = {"best": style.SOLID, "median": style.DASHED, "worst": style.DOTTED}
REGIONS = {0.95: 0.5, 0.5: 1.0}  # share of the posterior in a region -> width of its line
DRAWS = 400  # of a run
MARGINAL = "#D8D8D8"
DOT: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 2.0, "markeredgewidth": 0.0}


def cells_of(study: Study, how: FigureKeys) -> list[CellKey]:
    """Return the cells of the figure: every method on the first of the models at its largest budget."""
    model = models_of(study, how.models)[0]
    epsilon = max(study.models[model].epsilons, key=float)
    return [(model, method, epsilon) for method in methods_of(study, how.methods, [model])]


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the model whose metrics the figure reads, and the chain files."""
    cells = cells_of(study, how)
    return [cells[0][0]], [path for cell in cells for path in chain_paths(results, study, cell)]


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure, one column per method: two marginals, and the plane for each of three runs."""
    import seaborn  # takes more than a second

    cells, results = cells_of(given.study, given.declared), Results.of_study(given.metrics, given.study)
    surface = exact_surface(problem_of(given.study, cells[0][0], exact=True))
    density = np.exp(surface.values)
    region = {"colors": [style.INK], "linewidths": list(REGIONS.values()), "linestyles": "solid"}
    figure, panels = layout.panels(5 * len(cells), len(cells), 1.3, sharex="row", sharey="row")
    table = np.array(panels).reshape(5, len(cells))
    for (*marginals, best, median, worst), cell in zip(table.T, cells, strict=True):
        look = style.method_styles(given.study.methods)[cell[1]]
        dark = style.mixed(look.colour, "#000000", 0.2)
        marginals[0].set_title(look.title)
        for component, (axes, grid) in enumerate(
            zip(marginals, (surface.first, surface.second), strict=True)
        ):
            exact = density.sum(axis=component)
            axes.fill_between(grid, exact / exact.sum() / (grid[1] - grid[0]), color=MARGINAL, linewidth=0.0)
        for axes in (best, median, worst):
            levels = region_levels(surface.values)
            axes.contour(surface.first, surface.second, surface.values, levels=levels, **region, zorder=3)
            axes.set_title("no run has an MMD", fontsize=7.5)
        for axes, (run, seed, mmd) in zip((best, median, worst), chosen_runs(results, cell), strict=False):
            draws = equally_spaced(kept_draws(chain_path(given.results, given.study, cell, seed)), DRAWS)
            axes.plot(*draws.T, **DOT, color=dark)
            axes.set_title(f"MMD {mmd:.3f}", fontsize=7.5)
            for marginal, values in zip(marginals, draws.T, strict=True):
                finite = values[np.isfinite(values)]
                if np.unique(finite).size > 1:  # a chain that never moved has no density
                    seaborn.kdeplot(x=finite, ax=marginal, linewidth=1.0, color=dark, linestyle=RUNS[run])

    names = ("density of θ₁", "density of θ₂", *(f"{run} run\nθ₂" for run in RUNS))
    for row, name, below in zip(table, names, ("θ₁", "θ₂", "", "", "θ₁"), strict=True):
        row[0].set_ylabel(name)
        for axes in row:
            axes.locator_params(nbins=3)
            axes.set_xlabel(below)
            axes.tick_params(axis="x", labelbottom=bool(below))
    for axes in table[:2].ravel():
        axes.set_ylim(bottom=0.0)
        axes.tick_params(axis="y", left=False, labelleft=False)
    line: dict[str, Any] = {"color": style.INK, "linewidth": 1.0}
    entries: layout.Entries = {
        f"{run} run by MMD": line | {"linestyle": dashes} for run, dashes in RUNS.items()
    }
    entries["a draw of the run"] = {**DOT, "markersize": 5, "color": style.INK}
    entries["exact marginal"] = Patch(facecolor=MARGINAL)
    entries |= {f"exact {100 * share:.0f} % region": line | {"linewidth": w} for share, w in REGIONS.items()}
    layout.legend(figure, entries, columns=4)
    return figure


def chosen_runs(results: Results, cell: CellKey) -> list[tuple[str, str, float]]:
    """Return (name, seed, MMD) of a cell's best, median (of an even number the better) and worst run."""
    ranked = sorted(results.by_seed(*cell, "mmd").items(), key=lambda item: (item[1], item[0]))
    if not ranked:
        return []
    places = (0, (len(ranked) - 1) // 2, len(ranked) - 1)
    return [(name, *ranked[place]) for name, place in zip(RUNS, places, strict=True)]


def exact_surface(problem: Problem) -> Surface:
    """Return the exact posterior on a box of all its draws and a margin."""
    low, high = problem.reference.min(axis=0), problem.reference.max(axis=0)
    margin = 0.12 * (high - low)
    return Surface.of(problem, low - margin, high + margin)


def region_levels(values: Floats) -> list[float]:
    """Return the log densities on a fine grid above which the exact posterior has the shares of `REGIONS`."""
    ranked = np.sort(values.ravel())[::-1]
    mass = np.cumsum(np.exp(ranked))
    return [float(ranked[np.searchsorted(mass, share * mass[-1])]) for share in REGIONS]
