"""Best, median and worst run of each algorithm against the exact posterior (Figure 2 of the DP-HMC paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.metrics.mmd import equally_spaced
from dpmc.plots import style
from dpmc.plots.chains import Cell, Floats, kept_draws, path_of
from dpmc.plots.frame import Results, private_models
from dpmc.plots.labels import main_methods
from dpmc.plots.maps import Surface, problem_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpmc.plots import Given
    from dpmc.problem import Problem
    from dpmc.studies import Study

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


def needs(study: Study) -> list[Cell]:
    """Return the cells of the figure: every main method on the 2-d model at its largest budget.

    Raises DpmcError where no model of the study has two dimensions and a budget.
    """
    label = _model_label(study)
    epsilon = max(study.models[label].epsilons, key=float)
    return [(label, m, epsilon) for m in main_methods(study) if label in study.methods[m].models]


def draw(given: Given) -> Figure:
    """Return the figure, one column per method."""
    from matplotlib.figure import Figure

    cells, values = needs(given.study), Results.of_study(given.metrics, given.study)
    problem = problem_of(given.study, cells[0][0])
    styles = style.method_styles(dict(given.study.methods))
    surface = Surface.of(problem, *_box(problem))
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 7.0), layout="constrained", dpi=100)
        axes = figure.subplots(5, len(cells), squeeze=False, sharex="row", sharey="row")
        for column, cell in zip(axes.T, cells, strict=True):
            runs = [
                _Run(name, mmd, kept_draws(path_of(given.results, given.study, cell, seed)))
                for name, seed, mmd in chosen_runs(values, cell)
            ]
            look = styles[cell[1]]
            column[0].set_title(look.title)
            for component in range(2):
                _draw_marginal(column[component], surface, component, runs, look.colour)
            for one, name in zip(column[2:], RUNS, strict=True):
                run = next((run for run in runs if run.name == name), None)
                _draw_region(one, surface, problem, run, look.colour)
        _finish(axes)
        _legend(figure)
    return figure


def chosen_runs(results: Results, cell: Cell) -> list[tuple[str, str, float]]:
    """Return (name, seed, MMD) of a cell's best, median (of an even number the better) and worst run."""
    ranked = sorted(results.by_seed(*cell, "mmd").items(), key=lambda item: (item[1], item[0]))
    if not ranked:
        return []
    places = (0, (len(ranked) - 1) // 2, len(ranked) - 1)
    return [(name, *ranked[place]) for name, place in zip(RUNS, places, strict=True)]


def _model_label(study: Study) -> str:
    """The first model of the comparison with two parameters."""
    from dpmc import models

    for label in private_models(study):
        if len(models.definition(study.models[label].model).true_theta) == 2:
            return label
    raise DpmcError(
        f"study {study.name}: figure paper-posteriors needs a model of two dimensions that has a budget"
    )


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


def _draw_marginal(axes: Axes, surface: Surface, component: int, runs: list[_Run], colour: str) -> None:
    """Draw a component's exact density and that of each run."""
    grid = surface.first if component == 0 else surface.second
    exact = np.exp(surface.values).sum(axis=component)
    exact /= exact.sum() * (grid[1] - grid[0])
    axes.fill_between(grid, exact, color=MARGINAL, linewidth=0.0, zorder=1)
    dark = style.mixed(colour, "#000000", 0.2)
    for run in runs:
        kernels = _kernels(_usable(run.draws)[:, component : component + 1])
        if kernels is not None:
            axes.plot(grid, kernels(grid), color=dark, linewidth=1.0, linestyle=LINES[run.name], zorder=3)


def _draw_region(axes: Axes, surface: Surface, problem: Problem, run: _Run | None, colour: str) -> None:
    """Draw the exact regions and those of one run, and write its MMD above."""
    axes.contourf(
        surface.first,
        surface.second,
        surface.values,
        levels=[*_levels_of_grid(surface.values), 1.0],
        colors=SHADES,
        zorder=1,
    )
    axes.set_title(f"MMD {run.mmd:.3f}" if run else "no run has an MMD", fontsize=7.5)
    if run is None:
        return
    dark = style.mixed(colour, "#000000", 0.2)
    points = straightened(problem, _usable(run.draws))
    kernels = _kernels(points)
    if kernels is None:
        axes.plot(run.draws[:, 0], run.draws[:, 1], ".", color=dark, markersize=2.0, zorder=3)
    else:
        first = np.linspace(surface.first[0], surface.first[-1], GRID)
        second = np.linspace(surface.second[0], surface.second[-1], GRID)
        grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
        density = kernels(straightened(problem, grid).T).reshape(GRID, GRID)
        levels = np.quantile(kernels(points.T), [1.0 - share for share in SHARES])
        if levels[0] < levels[1]:
            axes.contour(first, second, density, levels=levels, colors=[dark], linewidths=WIDTHS, zorder=3)


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


def _legend(figure: Figure) -> None:
    """Explain lines and shades above the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: dict[str, Any] = {
        f"{name} run by MMD": Line2D([], [], color=style.INK, linewidth=1.0, linestyle=LINES[name])
        for name in RUNS
    }
    entries["exact marginal"] = Patch(facecolor=MARGINAL)
    for share, width, shade in zip(SHARES, WIDTHS, SHADES, strict=True):
        entries[f"a run's {100 * share:.0f} % region"] = Line2D([], [], color=style.INK, linewidth=width)
        entries[f"exact {100 * share:.0f} % region"] = Patch(facecolor=shade)
    figure.legend(list(entries.values()), list(entries), loc="outside upper left", ncols=4, frameon=False)
