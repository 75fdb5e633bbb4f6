"""Figures of `dp-fast-mh` (`density`), `dp-hmc` (`directions`, `marginals`) and `rows` (`by_rows`)."""

from pathlib import Path

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from scipy.ndimage import gaussian_filter

from dpmc.base import Array
from dpmc.data import datasets
from dpmc.data.chain_files import read_chain
from dpmc.data.histogram import bin_counts, symmetric_kl_of_counts
from dpmc.data.problem import Problem, read_problem
from dpmc.reports.plots import ToDraw, layout, lines, marks, style
from dpmc.reports.plots.chains import (
    REGIONS,
    cells_of_runs,
    chain_path,
    chain_paths,
    chosen_run,
    exact_regions,
    kept_draws,
    single_runs_reads,
)
from dpmc.reports.plots.published import quartiles
from dpmc.reports.plots.selection import CellKey, methods_of, models_of, pairs_of
from dpmc.studies import Study, number_of_rows, problem_of
from dpmc.studies.figures import Axis, FigureKeys
from dpmc.studies.whole import Results

# densities and marginals
PAPER_EPSILON = "0.05"  # the main value of the DP-Fast MH paper
PAPER_ITERATIONS = 10_000  # the paper's
REGION = 0.95  # share of the posterior within the line
PANELS_PER_ROW = 5
WIDTH = 1.5  # of a density's kernel, in bins
RUN_LINES = {"best": style.SOLID, "median": style.DASHED, "worst": style.DOTTED}
BINS = 60  # a side, of a joint density

marginals_reads, by_rows_reads = single_runs_reads, lines.reads


def density_cells(study: Study, how: FigureKeys) -> list[CellKey]:
    """Return the cells whose first chain is shown: at the paper's main ε, or without privacy."""
    model = models_of(study, how.models)[0]
    return [
        (model, method, PAPER_EPSILON if PAPER_EPSILON in study.epsilons(model, method) else "inf")
        for method in methods_of(study, how.methods, [model])
    ]


def density_reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return no model, and files: data, which hold the exact draws' histogram, and the chains shown."""
    model = models_of(study, how.models)[0]
    data = results.parent / "data" / study.name / model / f"{study.models[model].data}.nc"
    return [], [data, *(chain_path(results, study, cell, 0) for cell in density_cells(study, how))]


def density(given: ToDraw) -> Figure:
    """Return the figure: densities of chains on the mixture and the exact one (DP-Fast MH, Figure 2)."""
    study, how = given.study, given.declared
    _, (data, *paths) = density_reads(study, how, given.results)
    problem = datasets.with_exact(read_problem(data))
    edges, exact = problem.exact.histogram_edges, problem.exact.histogram_counts
    panels = [("exact posterior", exact, "")]
    for (_, method, _), path in zip(density_cells(study, how), paths, strict=True):
        chain = read_chain(path)
        draws = np.asarray(chain.draws)[:, : PAPER_ITERATIONS // int(chain.attrs["thin"])]
        counts = bin_counts(draws.reshape(-1, draws.shape[-1]), edges)[0].astype(float)
        divergence = f"KL {symmetric_kl_of_counts(counts, exact):.2f}"
        panels.append((style.line_style(study, method).title, counts, divergence))
    ranked = np.sort(smoothed(exact).ravel())[::-1]
    edge = ranked[np.searchsorted(ranked.cumsum(), REGION)] / ranked[0]
    middles = [0.5 * (side[1:] + side[:-1]) for side in edges]
    figure, axes_of_panels = layout.panels(
        how.wide, len(panels), PANELS_PER_ROW, 1.5, sharex=True, sharey=True
    )
    for axes, (title, counts, text) in zip(axes_of_panels, panels, strict=True):
        axes.set_title(title.replace(", ", "\n"), fontsize=style.SMALL)
        axes.locator_params(nbins=4)
        shares = smoothed(counts).T / ranked[0]  # the first axis of the bins is θ₁
        mesh = axes.pcolormesh(*edges, shares, cmap="Blues", vmin=0.0, vmax=1.25, rasterized=True)
        region = smoothed(exact).T / ranked[0]
        axes.contour(*middles, region, levels=[edge], colors=[style.INK], linewidths=0.5)
        # the corner that no density of the mixture reaches
        axes.text(0.06, 0.05, text, transform=axes.transAxes, fontsize=style.SMALL)
    for axes in axes_of_panels[-PANELS_PER_ROW:]:
        axes.tick_params(labelbottom=True)
    figure.supxlabel("θ₁")
    figure.supylabel("θ₂")
    bar = figure.colorbar(mesh, ax=axes_of_panels, shrink=0.6, aspect=30, pad=0.01, extend="max")
    bar.set_label("density over the greatest exact one")
    return figure


def smoothed(counts: Array) -> Array:
    """Return counts of bins as shares, smoothed by a normal kernel, in their shape."""
    return gaussian_filter(counts / max(counts.sum(), 1.0), WIDTH, mode="constant")


def direction_cells(study: Study, how: FigureKeys) -> dict[CellKey, CellKey]:
    """Map the cells of the boxes, one a panel, at the largest ε of their models, to those beside them."""
    largest = {model: max(spec.epsilons, key=float) for model, spec in study.models.items()}
    return {
        (*shown, largest[shown[0]]): (*other, largest[shown[0]])
        for shown, other in pairs_of(study, how).items()
    }


def directions_reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return no model, and the chain files that the figure reads."""
    cells = [cell for pair in direction_cells(study, how).items() for cell in pair]
    return [], [path for cell in cells for path in chain_paths(results, study, cell)]


def directions(given: ToDraw) -> Figure:
    """Return the figure: variances of runs over the exact one, along the posterior's principal directions."""
    study, how = given.study, given.declared
    cells = direction_cells(study, how)
    looks = style.of_pairs(study, pairs_of(study, how), how.titles)
    figure, panels = layout.panels(how.wide, len(cells), how.columns or 1, 1.6, sharey=True)
    for axes, (cell, beside) in zip(panels, cells.items(), strict=True):
        problem, look = problem_of(study, cell[0], exact=True), looks[cell[1]]
        layout.set_groups(axes, [str(direction + 1) for direction in range(problem.dimension)])
        boxes = _ratios(given, cell, problem)
        bars = {direction: quartiles(ratios) for direction, ratios in _ratios(given, beside, problem).items()}
        marks.draw_boxes(axes, (0, 1), boxes, bars, look, marks.PARTNER)
        if not boxes:
            marks.draw_note(axes, 0.0, "no finite run")
        axes.axhline(1.0, color="black", linewidth=0.6, zorder=1)
        layout.scale_y(axes, Axis(scale="log"))
        axes.set_title(f"{look.title}, ε = {cell[2]}")
        model = style.model_name(study, cell[0], how.titles).partition(",")[0]
        axes.set(xlabel=f"direction of the {model}, stiffest first", ylabel="variance / exact")
    entries: layout.Entries = {look.title: marks.patch(look) for look in looks.values()}
    layout.add_legend(figure, entries | {how.beside: marks.PARTNER})
    return figure


def _ratios(given: ToDraw, cell: CellKey, problem: Problem) -> dict[int, list[float]]:
    """Return direction, stiffest first -> variance over the exact one, of each run that is finite."""
    runs = [kept_draws(path) for path in chain_paths(given.results, given.study, cell)]
    runs = [draws for draws in runs if len(draws) > 1 and np.isfinite(draws).all()]
    return dict(enumerate(np.array([variance_ratios(draws, problem) for draws in runs]).T.tolist()))


def variance_ratios(draws: Array, problem: Problem) -> Array:
    """Return the variance of draws (n, d) over the exact one on principal axes (d,), stiffest first."""
    values, directions = np.linalg.eigh(problem.exact.posterior_covariance)
    return np.asarray((draws @ directions).var(axis=0, ddof=1) / values)


def marginals(given: ToDraw) -> Figure:
    """Return the figure: joint densities of median runs, and marginals of the best, median and worst ones.

    Of one model of two parameters, a method a column (Figure 2 of the DP-HMC paper).
    """
    study, how, results = given.study, given.declared, Results(given.metrics, given.study)
    cells, looks = cells_of_runs(study, how), style.method_styles(study.methods)
    surface, levels = exact_regions(problem_of(study, cells[0][0], exact=True))
    sides = (surface.first, surface.second)
    edges = np.array([np.linspace(side[0], side[-1], BINS + 1) for side in sides])
    figure, panels = layout.panels(how.wide, 3 * len(cells), len(cells), 1.3, sharex="row", sharey="row")
    for column, cell in enumerate(cells):
        look, (joint, *below) = looks[cell[1]], panels[column :: len(cells)]
        joint.set_title((how.titles.get(cell[1]) or look.title).replace(", ", ",\n"), fontsize=style.SMALL)
        joint.contour(
            *sides, surface.values, levels=levels[:1], colors=[style.INK], linewidths=0.5, linestyles="solid"
        )
        joint.set(xlabel="θ₁", ylabel="" if column else "θ₂")
        for axis, axes in enumerate(below):
            exact = np.exp(surface.values).sum(axis=axis)
            axes.fill_between(sides[axis], exact / np.trapezoid(exact, sides[axis]), color=REGIONS[0.95])
            axes.set(xlabel=("θ₁", "θ₂")[axis], ylabel="" if column else "density")
        for run, line in RUN_LINES.items():
            if not (seed := chosen_run(results, cell, run)[0]):
                continue
            draws = kept_draws(chain_path(given.results, study, cell, seed))
            shares = smoothed(bin_counts(draws, edges)[0].astype(float))
            if run == "median":
                palette = LinearSegmentedColormap.from_list("", ["white", look.colour])
                joint.pcolormesh(*edges, shares.T, cmap=palette, rasterized=True)
            for axis, axes in enumerate(below):
                middles, density = 0.5 * (edges[axis][1:] + edges[axis][:-1]), shares.sum(axis=1 - axis)
                axes.plot(middles, density / np.diff(edges[axis]), color=look.edge, lw=0.8, ls=line)
    for axes in panels:
        axes.locator_params(axis="x", nbins=2)
        layout.set_plain_numbers(axes.xaxis)
    entries: layout.Entries = {
        **{f"{run} run": {"color": style.INK, "lw": 0.8, "ls": line} for run, line in RUN_LINES.items()},
        "95 % of the exact posterior": {"color": style.INK, "lw": 0.5},
        "exact marginal": Patch(facecolor=REGIONS[0.95]),
    }
    layout.add_legend(figure, entries)
    return figure


def by_rows(given: ToDraw) -> Figure:
    """Return the figure: medians with quartiles of models that differ in n, along n, by metric, at one ε."""
    study, how = given.study, given.declared
    results = Results(given.metrics, study)
    rows = {model: number_of_rows(study, model) for model in models_of(study, how.models)}
    models = sorted(rows, key=lambda model: rows[model])
    entries: layout.Entries = {}
    figure, places = layout.panels(how.wide, len(how.metric), how.columns or 1, 1.8)
    for axes, metric in zip(places, how.metric, strict=True):
        for method in methods_of(study, how.methods, models):
            look = style.line_style(study, method, how.titles.get(method, ""))
            for epsilon in study.epsilons(models[0], method):
                runs = {rows[model]: results.values(model, method, epsilon, metric) for model in models}
                if any(runs.values()):
                    lines.draw_cells(axes, lines.Curve(look, _points(runs)), aside=0.0)
                    entries[f"{look.title}, ε = {epsilon}"] = look.line2d
        exact = {rows[model]: results.baselines(model, metric) for model in models}
        if any(exact.values()):
            n, median, low, high = _points(exact, (0.5, 0.0, 1.0))
            axes.fill_between(n, low, high, **marks.EXACT_BAND, zorder=0.5)
            axes.plot(n, median, color="black", linewidth=0.4, zorder=1)
            entries |= marks.exact_samples(max(map(len, exact.values())))
        layout.set_logarithmic(axes, "x")
        layout.scale_y(axes, how.y)
        axes.set(xlabel="rows n", ylabel=style.metric_label(metric))
    layout.add_legend(figure, entries)
    return figure


def _points(runs: dict[int, list[float]], at: tuple[float, ...] = (0.5, 0.25, 0.75)) -> Array:
    """Return n and the quantiles `at` of the values of each n that has some, rows (1 + len(at), number)."""
    return np.array([(n, *np.quantile(values, at)) for n, values in runs.items() if values]).T
