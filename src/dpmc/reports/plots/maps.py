"""Kind `maps`: shades of the exact posterior of models of two parameters, and where the chains start."""

from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc.base import AffineModel, Array
from dpmc.common.errors import DpmcError
from dpmc.data.problem import Problem
from dpmc.reports.plots import ToDraw, layout, reads_nothing, style
from dpmc.reports.plots.selection import models_of
from dpmc.studies import problem_of

GRID = 300  # points a side: a narrow ridge stays smooth at 300 dots per inch
SHADES = 6
DARKEST = "#6F9AC3"
STRETCH, STRETCHED_DRAWS = 2.5, 40
COMPARABLE = 2.0  # axes whose ranges differ by less get one scale
START: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 3.4, "mfc": "#E69F00", "mec": "black", "mew": 0.4}

NEEDS_METRIC = False

reads = reads_nothing


def draw(given: ToDraw) -> Figure:
    """Return the figure: one panel for each model of two parameters that has exact draws."""
    how, study = given.declared, given.study
    problems = [problem_of(study, label, exact=True) for label in models_of(study, how.models)]
    problems = [
        p for p in problems if p.dimension == 2 and hasattr(p.model, "ratio_form") and len(p.exact.reference)
    ]
    if not problems:
        needed = "a model of two parameters that has a ratio_form and exact posterior draws"
        raise DpmcError(f"study {study.name}: kind maps needs {needed}")
    columns = min(how.columns or 2, len(problems))
    figure, axes_of_panels = layout.panels(how.wide, len(problems), columns, 1.75)
    for axes, problem in zip(axes_of_panels, problems, strict=True):
        half_width = how.half_widths.get(problem.label, how.half_widths.get(problem.model_id))
        low, high = box_of(problem, half_width)
        Surface(problem, low, high).draw(axes)
        axes.plot(*problem.starts.T, **START, zorder=3)
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="θ₁", ylabel="θ₂", box_aspect=1.0)
        axes.locator_params(axis="x", nbins=3)
        axes.locator_params(axis="y", nbins=4)
        axes.set_title(style.model_name(study, problem.label, how.titles))
    layout.add_legend(figure, {"start of a chain": START, "exact posterior": Patch(facecolor=DARKEST)})
    return figure


def box_of(problem: Problem, half_width: float | None = None) -> tuple[Array, Array]:
    """Return the corners (2,) of the plane's part to show, with all starts; a square if it nearly is."""
    if half_width:
        low, high = problem.exact.posterior_mean - half_width, problem.exact.posterior_mean + half_width
    else:
        draws = problem.exact.reference[:STRETCHED_DRAWS]
        stretched = draws.mean(axis=0) + STRETCH * (draws - draws.mean(axis=0))
        low, high = stretched.min(axis=0), stretched.max(axis=0)
    first, last = problem.starts.min(axis=0), problem.starts.max(axis=0)
    margin = 0.05 * (np.maximum(high, last) - np.minimum(low, first))  # no start on the frame
    low, high = np.minimum(low, first - margin), np.maximum(high, last + margin)
    if (high - low).max() < COMPARABLE * (high - low).min():
        lacking = 0.5 * ((high - low).max() - (high - low))
        low, high = low - lacking, high + lacking
    return low, high


def log_posterior(problem: Problem, points: Array) -> Array:
    """Return T Σ_j ln p(x_j|θ) + ln p(θ) of points (m, d), (m,) up to a constant, by statistics' totals."""
    model = cast(AffineModel, problem.model)
    totals = model.statistics(problem.rows).sum(axis=0)
    points = np.ascontiguousarray(points, dtype=float)
    origin = np.broadcast_to(np.array(problem.true_theta, dtype=float), points.shape)
    slopes, offsets = model.ratio_form(origin, points)
    ratios = (slopes * totals).sum(axis=1) + problem.n * offsets
    return problem.temperature * ratios + model.log_prior(points)


class Surface:
    """A 2-d log posterior, 0 at its maximum, on a grid in the box from `low` (2,) to `high` (2,)."""

    def __init__(self, problem: Problem, low: Array, high: Array) -> None:
        self.first, self.second = (np.linspace(low[i], high[i], GRID) for i in range(2))
        grid = np.stack(np.meshgrid(self.first, self.second), axis=-1)
        values = log_posterior(problem, grid.reshape(-1, 2))
        # The peak may lie between grid points; some exact draw is always near it.
        peak = max(values.max(), log_posterior(problem, problem.exact.reference).max())
        self.values = (values - peak).reshape(GRID, GRID)  # second component down

    def draw(self, axes: Axes) -> None:
        """Fill between contours k²/2 nats below the maximum, k = 1 … `SHADES`; inside is darker."""
        import seaborn

        drops = [-0.5 * k**2 for k in range(SHADES, -1, -1)]
        colours = seaborn.light_palette(DARKEST, SHADES + 1)[1:]
        axes.contourf(self.first, self.second, self.values, levels=drops, colors=colours, zorder=1)
