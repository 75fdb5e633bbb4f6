"""Contours of the 2-d posteriors with the start points of the chains (Figure 5.1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.figures.contours import DARKEST, LEVELS, Floats, Surface
from dpmc.plots import style
from dpmc.plots.frame import models_of
from dpmc.plots.style import model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.problem import Problem
    from dpmc.studies import Study

MODELS = (
    "flat-banana-2d",
    "tempered-banana-2d",
    "narrow-banana",
    "correlated-gauss",
    "circle",
)
CIRCLE_LEVELS = 20
CIRCLE_HALF_WIDTH = 5.0
GAUSSIAN_HALF_WIDTH = 0.01
STRETCH, STRETCHED_DRAWS = 2.5, 40
START_COLOUR = "#E69F00"


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per 2-d model of the study; the data are made anew."""
    from matplotlib.figure import Figure

    labels = models_of(study, MODELS)
    columns = min(3, len(labels))
    rows = -(-len(labels) // columns)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 2.0 * rows + 0.3), layout="constrained", dpi=100)
        axes = figure.subplots(rows, columns, squeeze=False)
        for one, label in zip(axes.ravel(), labels, strict=False):
            _draw_panel(one, problem_of(study, label))
            one.set_title(model_title(label, study.models[label].model))
        for spare in axes.ravel()[len(labels) :]:
            spare.remove()
        for row in axes:
            row[0].set_ylabel("θ₂")
        for index in range(len(labels)):
            if index + columns >= len(labels):
                axes.ravel()[index].set_xlabel("θ₁")
        _legend(figure)
    return figure


def problem_of(study: Study, label: str) -> Problem:
    """Return the problem of a study's model: the same rows and start points as its chains have."""
    from dpmc import datasets

    spec = study.models[label]
    return datasets.build(label, spec.model, spec.data, spec.n)


def box_of(problem: Problem) -> tuple[Floats, Floats]:
    """Return the corners of the part of the plane to show: the thesis's, and all start points."""
    if problem.model_id == "circle":
        low, high = np.full(2, -CIRCLE_HALF_WIDTH), np.full(2, CIRCLE_HALF_WIDTH)
    elif problem.model_id == "correlated-gauss":
        low = problem.posterior_mean - GAUSSIAN_HALF_WIDTH
        high = problem.posterior_mean + GAUSSIAN_HALF_WIDTH
    else:
        draws = problem.reference[:STRETCHED_DRAWS]
        stretched = draws.mean(axis=0) + STRETCH * (draws - draws.mean(axis=0))
        low, high = stretched.min(axis=0), stretched.max(axis=0)
    margin = 0.03 * (high - low)
    return (
        np.minimum(low, problem.starts.min(axis=0) - margin),
        np.maximum(high, problem.starts.max(axis=0) + margin),
    )


def _draw_panel(axes: Axes, problem: Problem) -> None:
    """Draw the contours and the start points."""
    low, high = box_of(problem)
    circle = problem.model_id == "circle"
    Surface.of(problem, low, high).draw(axes, CIRCLE_LEVELS if circle else LEVELS)
    axes.plot(problem.starts[:, 0], problem.starts[:, 1], **_point())
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    if circle:
        axes.set_aspect("equal")
    axes.locator_params(axis="x", nbins=3)
    axes.locator_params(axis="y", nbins=4)


def _point() -> dict[str, Any]:
    """How a start point looks."""
    return {
        "linestyle": "none",
        "marker": "o",
        "markersize": 3.4,
        "markerfacecolor": START_COLOUR,
        "markeredgecolor": "black",
        "markeredgewidth": 0.4,
        "zorder": 3,
    }


def _legend(figure: Figure) -> None:
    """Explain points and lines above the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [Line2D([], [], **_point()), Patch(facecolor=DARKEST)]
    labels = ["start of a chain", "posterior: shades end at 1, 2, … standard deviations"]
    figure.legend(handles, labels, loc="outside upper left", ncols=2, frameon=False)
