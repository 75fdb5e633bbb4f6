"""Densities of single chains on the mixture beside the exact posterior (Figure 2 of the DP-Fast MH paper)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmc.plots import fast_mh as fast
from dpmc.plots import style
from dpmc.plots.chains import Cell, path_of
from dpmc.plots.series import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

    from dpmc.plots import Given
    from dpmc.problem import Problem
    from dpmc.studies import Study

Floats = npt.NDArray[np.float64]

ITERATIONS = 10_000  # the paper's
WIDTH = 1.5  # of the kernel, in bins
COLUMNS = 5


def needs(study: Study) -> list[Cell]:
    """Return the cells whose chains the figure reads."""
    model = fast.models_like(study, "mixture")[0]
    cells = [(model, m, fast.epsilon_shown(study, model, m)) for m in fast.compared_labels(study, model)]
    return [cell for cell in cells if cell[2] in (fast.SHOWN_EPSILON, fast.INF)]


def files(study: Study, results: Path) -> list[Path]:
    """Return the data file, which holds the exact draws' histogram."""
    model = fast.models_like(study, "mixture")[0]
    return [results.parent / "data" / study.name / model / f"{study.models[model].data}.nc"]


def draw(given: Given) -> Figure:
    """Return the figure, one panel a method beside that of the exact posterior."""
    from matplotlib.figure import Figure

    from dpmc.problem import read_problem

    study, results = given.study, given.results
    problem = read_problem(files(study, results)[0])
    panels = [("exact posterior", problem.histogram_counts, "")]
    for cell in needs(study):
        counts, divergence = _of_chain(path_of(results, study, cell, 0), problem)
        panels.append((look(study, cell[1]).title, counts, f"KL {divergence:.2f}"))
    most = float(smoothed(problem.histogram_counts).max())
    rows = -(-len(panels) // COLUMNS)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 1.9 * rows + 0.2), layout="constrained", dpi=100)
        axes = figure.subplots(rows, COLUMNS, squeeze=False, sharex=True, sharey=True)
        for one, (title, counts, text) in zip(axes.ravel(), panels, strict=False):
            mesh = _draw_panel(one, problem.histogram_edges, smoothed(counts) / most, title)
            _write(one, text)
        for index, one in enumerate(axes.ravel()):
            if index >= len(panels):
                one.remove()
            elif index + COLUMNS >= len(panels):
                one.set_xlabel("θ₁")
                one.tick_params(labelbottom=True)
        for row in axes:
            row[0].set_ylabel("θ₂")
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
    from dpmc.metrics.histogram import bin_counts, symmetric_kl_of_counts
    from dpmc.storage import read_chain

    chain = read_chain(path)
    kept = ITERATIONS // int(chain.attrs["thin"])
    draws = np.asarray(chain.draws)[:, :kept].reshape(-1, chain.draws.shape[-1])
    counts, _ = bin_counts(draws, problem.histogram_edges)
    return counts.astype(float), symmetric_kl_of_counts(counts, problem.histogram_counts)


def _draw_panel(axes: Axes, edges: Floats, densities: Floats, title: str) -> QuadMesh:
    """Draw one density; the first axis of the bins is θ₁."""
    axes.set_title(title.replace(", ", "\n"), fontsize=7.5)
    axes.locator_params(nbins=4)
    how: dict[str, Any] = {"cmap": "Blues", "vmin": 0.0, "vmax": 1.25, "rasterized": True}
    return axes.pcolormesh(edges[0], edges[1], densities.T, **how)


def _write(axes: Axes, text: str) -> None:
    """Write into the corner of a panel that no density of the mixture reaches."""
    axes.text(0.06, 0.05, text, transform=axes.transAxes, fontsize=7, color=style.INK)
