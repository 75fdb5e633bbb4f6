"""Densities of single chains on the mixture beside the exact posterior (Figure 2 of the DP-Fast MH paper)."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dpmc.data.problem import Problem, read_problem
from dpmc.reports.plots import Given, layout, style
from dpmc.reports.plots.frame import Cell, Floats, methods_of, models_of, path_of
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

EPSILON = "0.05"  # the paper's main value
ITERATIONS = 10_000  # the paper's
WIDTH = 1.5  # of the kernel, in bins
COLUMNS = 5


def cells_of(study: Study, declared: FigureKeys) -> list[Cell]:
    """Return the cells whose first chain is shown: at the paper's main ε, or without privacy."""
    model = models_of(study, declared.models)[0]
    return [
        (model, method, EPSILON if EPSILON in study.epsilons(model, method) else "inf")
        for method in methods_of(study, declared.methods, [model])
    ]


def data_file(study: Study, declared: FigureKeys, results: Path) -> Path:
    """Return the data file, which holds the exact draws' histogram."""
    model = models_of(study, declared.models)[0]
    return results.parent / "data" / study.name / model / f"{study.models[model].data}.nc"


def files(study: Study, declared: FigureKeys, results: Path) -> list[Path]:
    """Return the files that the figure reads: data, and the chains of its cells."""
    chains = [path_of(results, study, cell, 0) for cell in cells_of(study, declared)]
    return [data_file(study, declared, results), *chains]


def models_read(study: Study, how: FigureKeys) -> list[str]:
    """Return no model: the figure reads no metrics."""
    return []


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure, one panel a method beside that of the exact posterior."""
    from dpmc.data import datasets

    study, how, results = given.study, given.declared, given.results
    problem = datasets.with_exact_posterior(read_problem(data_file(study, how, results)))
    panels = [("exact posterior", problem.histogram_counts, "")]
    for cell in cells_of(study, how):
        counts, divergence = _of_chain(path_of(results, study, cell, 0), problem)
        panels.append((style.line_style(study, cell[1]).title, counts, f"KL {divergence:.2f}"))
    most = float(smoothed(problem.histogram_counts).max())
    figure, axes = layout.panels(len(panels), COLUMNS, 1.9, more=0.2, sharex=True, sharey=True)
    for one, (title, counts, text) in zip(axes, panels, strict=True):
        one.set_title(title.replace(", ", "\n"), fontsize=7.5)
        one.locator_params(nbins=4)
        shares = smoothed(counts).T / most  # the first axis of the bins is θ₁
        mesh = one.pcolormesh(
            *problem.histogram_edges, shares, cmap="Blues", vmin=0.0, vmax=1.25, rasterized=True
        )
        # the corner that no density of the mixture reaches
        one.text(0.06, 0.05, text, transform=one.transAxes, fontsize=7, color=style.INK)
    for one in axes[-COLUMNS:]:
        one.tick_params(labelbottom=True)
    figure.supxlabel("θ₁")
    figure.supylabel("θ₂")
    bar = figure.colorbar(mesh, ax=axes, shrink=0.6, aspect=30, pad=0.01, extend="max")
    bar.set_label("density over the greatest exact one")
    return figure


def smoothed(counts: Floats) -> Floats:
    """Return counts as shares, smoothed by a normal kernel."""
    from scipy.ndimage import gaussian_filter

    shares: Floats = gaussian_filter(counts / max(counts.sum(), 1.0), WIDTH, mode="constant")
    return shares


def _of_chain(path: Path, problem: Problem) -> tuple[Floats, float]:
    """The bins of a chain's draws up to `ITERATIONS`, and their divergence from the exact ones."""
    from dpmc.data.chain_files import read_chain
    from dpmc.data.histogram import bin_counts, symmetric_kl_of_counts

    chain = read_chain(path)
    kept = ITERATIONS // int(chain.attrs["thin"])
    draws = np.asarray(chain.draws)[:, :kept].reshape(-1, chain.draws.shape[-1])
    counts, _ = bin_counts(draws, problem.histogram_edges)
    return counts.astype(float), symmetric_kl_of_counts(counts, problem.histogram_counts)
