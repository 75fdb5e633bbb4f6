"""Densities of single chains on the mixture beside the exact posterior (Figure 2 of the DP-Fast MH paper)."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter

from dpmc.data import datasets
from dpmc.data.chain_files import read_chain
from dpmc.data.histogram import bin_counts, symmetric_kl_of_counts
from dpmc.data.problem import read_problem
from dpmc.reports.plots import Given, layout, style
from dpmc.reports.plots.chains import Floats, chain_path
from dpmc.reports.plots.selection import CellKey, methods_of, models_of
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

EPSILON = "0.05"  # the paper's main value
ITERATIONS = 10_000  # the paper's
WIDTH = 1.5  # of the kernel, in bins
REGION = 0.95  # share of the posterior within the line
COLUMNS = 5


def cells_of(study: Study, how: FigureKeys) -> list[CellKey]:
    """Return the cells whose first chain is shown: at the paper's main ε, or without privacy."""
    model = models_of(study, how.models)[0]
    return [
        (model, method, EPSILON if EPSILON in study.epsilons(model, method) else "inf")
        for method in methods_of(study, how.methods, [model])
    ]


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return no model, and files: data, which hold the exact draws' histogram, and the chains shown."""
    model = models_of(study, how.models)[0]
    data = results.parent / "data" / study.name / model / f"{study.models[model].data}.nc"
    return [], [data, *(chain_path(results, study, cell, 0) for cell in cells_of(study, how))]


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure, one panel a method beside that of the exact posterior."""
    study, how = given.study, given.declared
    _, (data, *paths) = reads(study, how, given.results)
    problem = datasets.with_exact_posterior(read_problem(data))
    edges, exact = problem.histogram_edges, problem.histogram_counts
    panels = [("exact posterior", exact, "")]
    for (_, method, _), path in zip(cells_of(study, how), paths, strict=True):
        chain = read_chain(path)
        draws = np.asarray(chain.draws)[:, : ITERATIONS // int(chain.attrs["thin"])]
        counts = bin_counts(draws.reshape(-1, draws.shape[-1]), edges)[0].astype(float)
        divergence = f"KL {symmetric_kl_of_counts(counts, exact):.2f}"
        panels.append((style.line_style(study, method).title, counts, divergence))
    ranked = np.sort(smoothed(exact).ravel())[::-1]
    edge = ranked[np.searchsorted(ranked.cumsum(), REGION)] / ranked[0]
    middles = [0.5 * (side[1:] + side[:-1]) for side in edges]
    figure, axes_of_panels = layout.panels(len(panels), COLUMNS, 1.9, sharex=True, sharey=True)
    for axes, (title, counts, text) in zip(axes_of_panels, panels, strict=True):
        axes.set_title(title.replace(", ", "\n"), fontsize=7.5)
        axes.locator_params(nbins=4)
        shares = smoothed(counts).T / ranked[0]  # the first axis of the bins is θ₁
        mesh = axes.pcolormesh(*edges, shares, cmap="Blues", vmin=0.0, vmax=1.25, rasterized=True)
        region = smoothed(exact).T / ranked[0]
        axes.contour(*middles, region, levels=[edge], colors=[style.INK], linewidths=0.5)
        # the corner that no density of the mixture reaches
        axes.text(0.06, 0.05, text, transform=axes.transAxes, fontsize=7, color=style.INK)
    for axes in axes_of_panels[-COLUMNS:]:
        axes.tick_params(labelbottom=True)
    figure.supxlabel("θ₁")
    figure.supylabel("θ₂")
    bar = figure.colorbar(mesh, ax=axes_of_panels, shrink=0.6, aspect=30, pad=0.01, extend="max")
    bar.set_label("density over the greatest exact one")
    return figure


def smoothed(counts: Floats) -> Floats:
    """Return counts as shares, smoothed by a normal kernel."""
    shares: Floats = gaussian_filter(counts / max(counts.sum(), 1.0), WIDTH, mode="constant")
    return shares
