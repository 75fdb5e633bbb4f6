"""Figures of single chains, which read chain files: coefficients, single runs."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc.base import Array
from dpmc.data.chain_files import read_chain
from dpmc.data.problem import Problem
from dpmc.metrics.cell import second_half_of
from dpmc.metrics.mmd import equally_spaced
from dpmc.reports.plots import ToDraw, layout, style
from dpmc.reports.plots.maps import Surface
from dpmc.reports.plots.selection import CellKey, methods_of, models_of
from dpmc.studies import Study, problem_of
from dpmc.studies.figures import FigureKeys
from dpmc.studies.whole import Results

RUNS = {"best": 0.0, "median": 0.5, "worst": 1.0}  # by MMD -> rank, from 0 to 1
REGIONS = {0.95: "#DEDEDE", 0.5: "#B4B4B4"}  # share of the posterior in a region -> its shade
DRAWS_SHOWN = 400  # of a run
INTERVAL = (0.05, 0.95)  # ends of an interval of 90 %, as quantiles
MOST_PANELS = 12  # of a model, a panel each
TAIL = 0.003  # of the exact draws, at either end of an axis, need not be shown
DOT: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 2.4, "markeredgewidth": 0.0}


def chain_path(results: Path, study: Study, cell: CellKey, seed: int | str) -> Path:
    """Return the chain file of one run; `results` is the folder of all studies' results."""
    model, method, epsilon = cell
    of = study.methods[method].from_study or study.name
    return results / of / "chains" / model / method / f"eps-{epsilon}" / f"seed-{seed}.nc"


def chain_paths(results: Path, study: Study, cell: CellKey) -> list[Path]:
    """Return the chain files of all runs of a cell."""
    return [chain_path(results, study, cell, seed) for seed in range(study.seeds)]


def kept_draws(path: Path) -> Array:
    """Return the second halves of a run's chains, pooled: (draws, d)."""
    kept = second_half_of(read_chain(path))
    return np.ascontiguousarray(kept.reshape(-1, kept.shape[-1]))


def coefficients_reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return no metrics, and the chain files of all runs of the figure's models."""
    shown = [cell for cell in study.cells() if cell[0] in models_of(study, how.models)]
    return [], [path for cell in shown for path in chain_paths(results, study, cell)]


def coefficients(given: ToDraw) -> Figure:
    """Return the figure: mean and 90 % interval of each parameter against ε, a bar for each run.

    They are those of the chains, so no exact posterior is needed; a panel shows one parameter of a model.
    """
    study, how = given.study, given.declared
    runs: dict[tuple[str, str], list[tuple[float, str, Array]]] = {}  # model, parameter -> bars
    models, entries = models_of(study, how.models), dict[str, Any]()
    looks = {method: style.line_style(study, method) for method in methods_of(study, how.methods, models)}
    groups: dict[str, list[str]] = {}  # model -> its ε, in the order of the study
    for model, _, epsilon in study.cells():
        groups[model] = list(dict.fromkeys([*groups.get(model, ()), epsilon]))
    for model, method, epsilon in study.cells():
        if model in models and method in looks:
            entries[looks[method].title] = looks[method].line2d
            for seed in range(study.seeds):
                aside = (list(looks).index(method) + (seed + 0.5) / study.seeds) / len(looks) - 0.5
                place = groups[model].index(epsilon) + 0.7 * aside
                chains = read_chain(chain_path(given.results, study, (model, method, epsilon), seed))
                kept = np.concatenate([*second_half_of(chains)])
                for number in range(min(kept.shape[1], MOST_PANELS)):
                    name = chains.parameters[number] if chains.parameters else f"θ[{number}]"
                    of_one = np.array([kept[:, number].mean(), *np.quantile(kept[:, number], INTERVAL)])
                    runs.setdefault((model, name), []).append((place, method, of_one))
    figure, panels = layout.panels(how.wide, len(runs), min(len(runs), how.columns or 2), 1.6)
    for axes, ((model, name), bars) in zip(panels, runs.items(), strict=True):
        for place, method, (mean, low, high) in bars:
            axes.vlines(place, low, high, color=looks[method].colour, linewidth=1.0)
            axes.plot(place, mean, marker="o", markersize=2.5, color=looks[method].colour)
        layout.set_groups(axes, [f"ε = {epsilon}" for epsilon in groups[model]])
        axes.set_title(f"{style.model_name(study, model, how.titles)}: {name}", fontsize=style.SMALL)
    layout.add_legend(figure, entries)
    return figure


def cells_of_runs(study: Study, how: FigureKeys) -> list[CellKey]:
    """Return every method on every model of the figure, at the model's largest budget."""
    return [
        (model, method, max(study.models[model].epsilons, key=float))
        for model in models_of(study, how.models)
        for method in methods_of(study, how.methods, [model])
    ]


def single_runs_reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models whose metrics the figure reads, and the chain files of all runs it may show."""
    files = [path for cell in cells_of_runs(study, how) for path in chain_paths(results, study, cell)]
    return models_of(study, how.models), files


def single_runs(given: ToDraw) -> Figure:
    """Return the figure: draws of runs over the exact posterior, in the plane of the first two parameters.

    Of one model the best, median and worst run of each method (Figure 2 of the DP-HMC paper), a method a
    column; of several models the median run of the method whose median MMD is least.
    """
    study, how, results = given.study, given.declared, Results(given.metrics, given.study)
    cells, models = cells_of_runs(study, how), models_of(study, how.models)
    shown, columns = [(cell, run) for run in RUNS for cell in cells], len(cells)
    if several := len(models) > 1:
        medians = {cell: float(np.median(results.values(*cell, "mmd") or np.inf)) for cell in cells}
        ranked = sorted(cells, key=medians.__getitem__)
        shown = [(next(cell for cell in ranked if cell[0] == model), "median") for model in models]
        columns = how.columns or 2
    row, share = (style.TWO_COLUMNS if how.wide else style.COLUMN) / columns + 0.1, not several
    figure, panels = layout.panels(how.wide, len(shown), columns, row, sharex=share, sharey=share)
    problems = {model: problem_of(study, model, exact=True) for model in models}
    looks, dots = style.method_styles(study.methods), layout.Entries()
    for axes, (cell, run) in zip(panels, shown, strict=True):
        title, (seed, mmd) = how.titles.get(cell[1]) or looks[cell[1]].title, chosen_run(results, cell, run)
        dot = {**DOT, "color": style.mixed_colour(looks[cell[1]].colour, "#000000", 0.2)}
        dots[f"a draw of {title}"] = {**dot, "markersize": 5}
        draw_exact(axes, problems[cell[0]])
        if seed:
            draws = equally_spaced(kept_draws(chain_path(given.results, study, cell, seed)), DRAWS_SHOWN)
            axes.plot(*draws[:, :2].T, **dot, zorder=3)
        number = f"{mmd:.2f}" if seed else "none"
        says = f"{title}, MMD {number}" if several else f"{run}, {number}"
        if several or run == next(iter(RUNS)):  # a method's name is above its column
            above = style.model_name(study, cell[0], how.titles) if several else title.replace(", ", ",\n")
            says = f"{above}\n{says}"
        axes.set_title(says, fontsize=style.SMALL)
        axes.set_box_aspect(1.0)
        axes.locator_params(nbins=max(2, 12 // columns))  # as their numbers have room
    figure.supxlabel("θ₁")
    figure.supylabel("θ₂")
    shades = {f"{100 * part:.0f} % of the exact posterior": Patch(fc=REGIONS[part]) for part in REGIONS}
    exact = {"an exact draw (d > 2)": {**DOT, "markersize": 5, "color": REGIONS[0.5]}}
    deep = any(problem.dimension > 2 for problem in problems.values())
    layout.add_legend(figure, shades | (exact if deep else {}) | dots)
    return figure


def chosen_run(results: Results, cell: CellKey, run: str) -> tuple[str, float]:
    """Return seed and MMD of a run of `RUNS` (of an even number the better median); "" without an MMD."""
    ranked = sorted((mmd, seed) for seed, mmd in results.by_seed(*cell, "mmd").items())
    mmd, seed = ranked[int(RUNS[run] * (len(ranked) - 1))] if ranked else (np.nan, "")
    return seed, mmd


def draw_exact(axes: Axes, problem: Problem) -> None:
    """Draw the exact posterior: of two parameters the regions of greatest density, of more exact draws."""
    if problem.dimension > 2:
        axes.plot(*problem.exact.reference[:, :2].T, **DOT, color=REGIONS[0.5], zorder=1)
        return
    surface, levels = exact_regions(problem)
    axes.contourf(surface.first, surface.second, surface.values, levels=levels, colors=[*REGIONS.values()])


def exact_regions(problem: Problem) -> tuple[Surface, list[float]]:
    """Return the log posterior of two parameters, and its levels at the edges of `REGIONS` and its peak."""
    low, high = np.quantile(problem.exact.reference, [TAIL, 1.0 - TAIL], axis=0)
    surface = Surface(problem, 1.1 * low - 0.1 * high, 1.1 * high - 0.1 * low)
    ranked = np.sort(surface.values, axis=None)[::-1]
    mass = np.cumsum(np.exp(ranked))
    return surface, [*(float(ranked[np.searchsorted(mass, share * mass[-1])]) for share in REGIONS), 0.0]
