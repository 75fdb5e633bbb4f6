"""Densities of single chains on the mixture beside the exact posterior (Figure 2 of the DP-Fast MH paper)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmc.plots import fast_mh as fast
from dpmc.plots import style
from dpmc.plots.chains import Cell, path_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.problem import Problem
    from dpmc.studies import Study

Floats = npt.NDArray[np.float64]

ITERATIONS = 10_000
WIDTH = 1.5  # of the kernel, in bins
COLUMNS = 4


def needs(study: Study) -> list[Cell]:
    """Return the cells whose chains the figure reads."""
    model = fast.models_like(study, "mixture")[0]
    cells = [(model, m, fast.epsilon_shown(study, model, m)) for m in fast.compared_labels(study, model)]
    return [cell for cell in cells if cell[2] in (fast.SHOWN_EPSILON, fast.INF)]


def files(study: Study, results: Path) -> list[Path]:
    """Return the data file, which holds the exact draws' histogram."""
    model = fast.models_like(study, "mixture")[0]
    return [results.parent / "data" / study.name / model / f"{study.models[model].data}.nc"]


def draw(metrics: DataFrame, study: Study, published: Path, results: Path) -> Figure:
    """Return the figure, one panel a method; `results` is the folder of all studies' results."""
    from matplotlib.figure import Figure

    from dpmc.problem import read_problem

    problem = read_problem(files(study, results)[0])
    panels = [("exact posterior", problem.histogram_counts, "")]
    for cell in needs(study):
        counts, divergence = _of_chain(path_of(results, study, cell, 0), problem)
        panels.append((fast.look(study, cell[1]).title, counts, f"{divergence:.2g}"))
    most = float(smoothed(problem.histogram_counts).max())
    rows = -(-len(panels) // COLUMNS)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 1.75 * rows + 0.2), layout="constrained", dpi=100)
        axes = figure.subplots(rows, COLUMNS, squeeze=False, sharex=True, sharey=True)
        for one, (title, counts, text) in zip(axes.ravel(), panels, strict=False):
            _draw_panel(one, problem.histogram_edges, smoothed(counts), most, title, text)
        for spare in axes.ravel()[len(panels) :]:
            spare.remove()
        for row in axes:
            row[0].set_ylabel("θ₂")
        for index in range(len(panels)):
            if index + COLUMNS >= len(panels):
                axes.ravel()[index].set_xlabel("θ₁")
                axes.ravel()[index].tick_params(labelbottom=True)
    return figure


def smoothed(counts: Floats) -> Floats:
    """Return counts as shares, smoothed by a normal kernel."""
    from scipy.ndimage import gaussian_filter

    shares: Floats = gaussian_filter(counts / max(counts.sum(), 1.0), WIDTH, mode="constant")
    return shares


def _of_chain(path: Path, problem: Problem) -> tuple[Floats, float]:
    """The bins of a chain's draws up to `ITERATIONS`, and their divergence from the exact ones."""
    from dpmc.metrics.histogram import bin_counts, symmetric_kl_of_counts
    from dpmc.storage import read_chain

    chain = read_chain(path)
    kept = ITERATIONS // int(chain.attrs["thin"])
    draws = np.asarray(chain.draws)[:, :kept].reshape(-1, chain.draws.shape[-1])
    counts, _ = bin_counts(draws, problem.histogram_edges)
    return counts.astype(float), symmetric_kl_of_counts(counts, problem.histogram_counts)


def _draw_panel(axes: Axes, edges: Floats, shares: Floats, most: float, title: str, text: str) -> None:
    """Draw one density; the first axis of the bins is θ₁."""
    axes.pcolormesh(edges[0], edges[1], shares.T, cmap="Blues", vmin=0.0, vmax=1.25 * most, rasterized=True)
    name, _, kind = title.partition(", ")
    axes.set_title(f"{name}\n{kind}", fontsize=7.5)
    axes.text(0.05, 0.05, text, transform=axes.transAxes, fontsize=7, color=style.INK)
    axes.locator_params(nbins=4)
