"""Best, median and worst run of each algorithm against the exact posterior (Figure 2 of the DP-HMC paper)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dpmc.metrics.mmd import equally_spaced
from dpmc.plots import Given, layout, style
from dpmc.plots.frame import Cell, Floats, Results, files_of, kept_draws, methods_of, models_of, path_of
from dpmc.plots.maps import Surface, problem_of
from dpmc.problem import Problem
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

RUNS = ("best", "median", "worst")
SHARES = (0.95, 0.5)  # of the draws, in the regions shown
DRAWS = 1500  # of a run: more only make the kernels slower
GRID = 72
SHADES, WIDTHS = ("#D5E0EC", "#9DB8D4"), (0.7, 1.2)  # of these regions: fills, and lines
MARGINAL = "#D8D8D8"
LINES: dict[str, Any] = {"best": "solid", "median": (0, (4, 1.5)), "worst": (0, (1, 1))}


@dataclass(frozen=True)
class _Run:
    """One run: what it is called and its draws, or why there are none."""

    name: str
    mmd: float
    draws: Floats


def needs(study: Study, how: FigureKeys) -> list[Cell]:
    """Return the cells of the figure: every method on the first of the models at its largest budget."""
    model = models_of(study, how.models)[0]
    epsilon = max(study.models[model].epsilons, key=float)
    return [(model, method, epsilon) for method in methods_of(study, how.methods, [model])]


def files(study: Study, how: FigureKeys, results: Path) -> list[Path]:
    """Return the chain files that the figure reads."""
    return [file for cell in needs(study, how) for file in files_of(results, study, cell)]


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure, one column per method."""
    cells, values = needs(given.study, given.declared), Results.of_study(given.metrics, given.study)
    problem = problem_of(given.study, cells[0][0])
    styles = style.method_styles(given.study.methods)
    surface = Surface.of(problem, *_box(problem))
    figure, panels = layout.panels(5 * len(cells), len(cells), 1.4, sharex="row", sharey="row")
    axes = np.array(panels).reshape(5, len(cells))
    for column, cell in zip(axes.T, cells, strict=True):
        runs = [
            _Run(name, mmd, kept_draws(path_of(given.results, given.study, cell, seed)))
            for name, seed, mmd in chosen_runs(values, cell)
        ]
        look = styles[cell[1]]
        dark = style.mixed(look.colour, "#000000", 0.2)
        column[0].set_title(look.title)
        for component in range(2):
            _draw_marginal(column[component], surface, component, runs, dark)
        for one, name in zip(column[2:], RUNS, strict=True):
            run = next((run for run in runs if run.name == name), None)
            _draw_region(one, surface, problem, run, dark)
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


def straightened(problem: Problem, points: Floats) -> Floats:
    """Return points (m, 2) with the banana's bend taken out, a map of volume 1; others as they are."""
    if not hasattr(problem.model, "bend"):
        return points
    return np.column_stack([points[:, 0], problem.model.bend(points)])


def _kernels(points: Floats) -> Any:
    """Gaussian kernels on points (m, d) of Scott's width; None for points that span no volume."""
    from scipy.stats import gaussian_kde

    if len(np.unique(points, axis=0)) <= points.shape[1]:
        return None  # rounding would leave such points a volume
    try:
        return gaussian_kde(points.T)
    except (np.linalg.LinAlgError, ValueError):
        return None


def _usable(draws: Floats) -> Floats:
    """The finite ones of at most `DRAWS` equally spaced draws."""
    draws = equally_spaced(draws, DRAWS)
    return draws[np.isfinite(draws).all(axis=1)]


def _draw_marginal(axes: Axes, surface: Surface, component: int, runs: list[_Run], dark: str) -> None:
    """Draw a component's exact density and that of each run."""
    grid = surface.first if component == 0 else surface.second
    exact = np.exp(surface.values).sum(axis=component)
    exact /= exact.sum() * (grid[1] - grid[0])
    axes.fill_between(grid, exact, color=MARGINAL, linewidth=0.0, zorder=1)
    for run in runs:
        kernels = _kernels(_usable(run.draws)[:, component : component + 1])
        if kernels is not None:
            axes.plot(grid, kernels(grid), color=dark, linewidth=1.0, linestyle=LINES[run.name], zorder=3)


def _draw_region(axes: Axes, surface: Surface, problem: Problem, run: _Run | None, dark: str) -> None:
    """Draw the exact regions and those of one run, and write its MMD above."""
    levels = [*_levels_of_grid(surface.values), 1.0]
    axes.contourf(surface.first, surface.second, surface.values, levels=levels, colors=SHADES, zorder=1)
    axes.set_title(f"MMD {run.mmd:.3f}" if run else "no run has an MMD", fontsize=7.5)
    if run is None:
        return
    points = straightened(problem, _usable(run.draws))
    kernels = _kernels(points)
    if kernels is None:
        axes.plot(run.draws[:, 0], run.draws[:, 1], ".", color=dark, markersize=2.0, zorder=3)
    else:
        first = np.linspace(surface.first[0], surface.first[-1], GRID)
        second = np.linspace(surface.second[0], surface.second[-1], GRID)
        grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
        density = kernels(straightened(problem, grid).T).reshape(GRID, GRID)
        low, high = np.quantile(kernels(points.T), [1.0 - share for share in SHARES])
        if low < high:
            how: dict[str, Any] = {"levels": [low, high], "colors": [dark], "linewidths": WIDTHS}
            axes.contour(first, second, density, **how, zorder=3)


def _levels_of_grid(values: Floats) -> list[float]:
    """The log densities above which the exact posterior has the shares of `SHARES`, from a fine grid."""
    ranked = np.sort(values.ravel())[::-1]
    mass = np.cumsum(np.exp(ranked))
    return [float(ranked[np.searchsorted(mass, share * mass[-1])]) for share in SHARES]


def _finish(axes: Any) -> None:
    """Label the axes; every row has one scale, and the maps have θ₁ below the lowest."""
    names = ("density of θ₁", "density of θ₂", *(f"{run} run\nθ₂" for run in RUNS))
    for row, name in zip(axes, names, strict=True):
        row[0].set_ylabel(name)
    for one in axes.ravel():
        one.locator_params(axis="x", nbins=3)
    for one in axes[:2].ravel():
        one.set_ylim(bottom=0.0)
        one.margins(x=0.0)
        one.tick_params(axis="y", left=False, labelleft=False)
    for one in axes[2:].ravel():
        one.locator_params(axis="y", nbins=4)
    for one in axes[2:4].ravel():
        one.tick_params(axis="x", labelbottom=False)
    for row, name in ((0, "θ₁"), (1, "θ₂"), (4, "θ₁")):
        for one in axes[row]:
            one.set_xlabel(name)


def _entries() -> layout.Entries:
    """Return the legend's entries for lines and shades."""
    entries: layout.Entries = [
        (Line2D([], [], color=style.INK, linewidth=1.0, linestyle=LINES[name]), f"{name} run by MMD")
        for name in RUNS
    ]
    entries.append((Patch(facecolor=MARGINAL), "exact marginal"))
    for share, width, shade in zip(SHARES, WIDTHS, SHADES, strict=True):
        region = f"{100 * share:.0f} % region"
        entries.append((Line2D([], [], color=style.INK, linewidth=width), f"a run's {region}"))
        entries.append((Patch(facecolor=shade), f"exact {region}"))
    return entries
