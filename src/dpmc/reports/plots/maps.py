"""Kind `maps`: shades of the exact posterior of models of two parameters, and where the chains start.

And one leapfrog trajectory of DP-HMC on the circle, in frames (Figure 4.1).
"""

from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dpmc.base import AffineModel, Array, Draws, State
from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.data.problem import Problem
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise
from dpmc.privacy.runs import RunQueries
from dpmc.reports.plots import PUBLISHED_RESULTS, ToDraw, layout, reads_nothing, style
from dpmc.reports.plots.selection import models_of
from dpmc.sampling import loop
from dpmc.studies import SourcedValues, Study, build_algorithm, pinned_hyperparameters, problem_of

GRID = 300  # points a side: a narrow ridge stays smooth at 300 dots per inch
SHADES = 6
DARKEST = "#6F9AC3"
STRETCH, STRETCHED_DRAWS = 2.5, 40
COMPARABLE = 2.0  # axes whose ranges differ by less get one scale
START: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 3.4, "mfc": "#E69F00", "mec": "black", "mew": 0.4}

# the trajectory
METHOD = "dp-hmc"
TRAJECTORY_EPSILON = 1.0
LEAPFROGS = 48
FRAMES = range(0, LEAPFROGS, 4)  # the thesis's: its last is four steps before the end
START_POSITION = (0.0, 1.0)  # of the chain
AROUND = 0.9  # around both paths
LOOK = style.STYLES[METHOD]
PATH: dict[str, Any] = {"linewidth": 1.1, "marker": ".", "markersize": 2.6, "color": LOOK.edge}
PUBLISHED_PATH: dict[str, Any] = {"linewidth": 0.8, "color": style.INK}
PUBLISHED_START: dict[str, Any] = {**START, "marker": "s", "mfc": "white", "ms": 3.0}
LAST: dict[str, Any] = {**START, "marker": "D", "ms": 3.8, "mfc": LOOK.colour}

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


def trajectory(given: ToDraw) -> Figure:
    """Return the figure: twelve frames of the trajectory on the study's circle, and of the published one."""
    label = models_of(given.study, ("circle",))[0]
    problem = problem_of(given.study, label, exact=True)
    points = leapfrog_points(given.study, label, problem)
    known = pd.read_csv(PUBLISHED_RESULTS / "hmc_trajectory.csv") if given.declared.published else None
    paths = points if known is None else np.vstack([points, known[["theta_1", "theta_2"]]])
    low, high = paths.min(axis=0) - AROUND, paths.max(axis=0) + AROUND
    low = high - (high - low).max()  # a square
    surface = Surface(problem, low, high)
    figure, panels = layout.panels(given.declared.wide, len(FRAMES), 6, 1.15, sharex=True, sharey=True)
    for step, axes in zip(FRAMES, panels, strict=True):
        surface.draw(axes)
        axes.plot(*points[: step + 1].T, **PATH, zorder=3)
        if known is not None:  # the thesis's frame j has the first j - 1 points of its path
            for kind, look in (("trajectory", PUBLISHED_PATH), ("start", PUBLISHED_START)):
                rows = known[(known["frame"] == step + 1) & (known["object"] == kind)]
                axes.plot(rows["theta_1"], rows["theta_2"], **look, zorder=3)
        if step > 0:
            axes.plot(*points[step], **LAST, zorder=4)
        axes.plot(*points[0], **START, zorder=4)
        axes.set(title=f"step {step}", xlim=(low[0], high[0]), ylim=(low[1], high[1]), box_aspect=1.0)
        axes.locator_params(nbins=4, integer=True)
    figure.supxlabel("θ₁")
    figure.supylabel("θ₂")
    entries: layout.Entries = {
        "our start": START,
        "our steps so far": PATH,
        "our step of the title": LAST,
        "posterior": Patch(facecolor=DARKEST),
    }
    if known is not None:
        path = Line2D([], [], **PUBLISHED_PATH), Line2D([], [], **PUBLISHED_START)
        entries[f"published path, its start: {given.declared.published}"] = path
    layout.add_legend(figure, entries)
    return figure


class _Watched(PrivateData):
    """Private data that record where gradients are asked for: at each point of a trajectory."""

    points: list[Array]

    def gradient(self, theta: Array, clip: float, tau: float, stage: int) -> Array:
        self.points.append(theta[0].copy())
        return super().gradient(theta, clip, tau, stage)


def leapfrog_points(study: Study, label: str, problem: Problem) -> Array:
    """Return the leapfrog points (L + 1, d) of the last proposal of a chain from (0, 1) at ε = 1."""
    values, source = pinned_hyperparameters(study, label, METHOD)
    d = problem.dimension
    algorithm = build_algorithm(study, METHOD, SourcedValues({**values, "steps": LEAPFROGS}, source), d)
    queries = RunQueries.of(algorithm, problem.n)
    accountant = queries.accountant(study.methods[METHOD].accountant)
    k = queries.iterations(accountant, TRAJECTORY_EPSILON, study.delta_for(problem.n))
    if k == 0:
        raise DpmcError(f"figure trajectory: epsilon {TRAJECTORY_EPSILON:g} allows no iteration of {METHOD}")
    generator, no = stream("figure", "trajectory"), np.zeros(1, bool)
    normal = generator.standard_normal((k, 1, d))
    draws = Draws(normal, np.zeros((k, 1, 0)), np.log1p(-generator.random((k, 1))))
    ratio_noise = generator.standard_normal((k, 1))
    noise = LabNoise(ratio_noise, generator.standard_normal((k, 1, LEAPFROGS + 1, d)))
    private = _Watched(problem.evaluator, problem.temperature, noise, np.zeros((k, 1, 0), np.uint64))
    private.points = []
    state = State(np.array([START_POSITION]), np.zeros((1, 0)), no, no)
    for _ in loop.iterate(algorithm, problem.model, private, state, draws):
        pass
    return np.stack(private.points[-LEAPFROGS - 1 :])
