"""One leapfrog trajectory of DP-HMC on the circle, in frames (Figure 4.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.figures.contours import Floats, Surface
from dpmc.figures.posteriors import (
    CIRCLE_HALF_WIDTH,
    CIRCLE_LEVELS,
    START_COLOUR,
    problem_of,
)
from dpmc.plots import style
from dpmc.plots.frame import models_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.problem import Problem
    from dpmc.studies import Study

METHOD = "dp-hmc"
EPSILON = 1.0
STEPS = 48
EVERY = 4
START = (0.0, 1.0)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure: twelve frames of the trajectory on the study's circle.

    Raises DpmcError where the study has no circle, or no DP-HMC on it.
    """
    from matplotlib.figure import Figure

    label = models_of(study, ("circle",))[0]
    problem = problem_of(study, label)
    points = trajectory(study, label, problem)
    low, high = np.full(2, -CIRCLE_HALF_WIDTH), np.full(2, CIRCLE_HALF_WIDTH)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 4.9), layout="constrained", dpi=100)
        axes = figure.subplots(3, 4, sharex=True, sharey=True)
        surface = Surface.of(problem, low, high)
        for frame, one in enumerate(axes.ravel(), start=1):
            surface.draw(one, CIRCLE_LEVELS)
            _draw_path(one, points[: EVERY * frame + 1])
            one.set_title(f"step {EVERY * frame}")
            one.set_aspect("equal")
            one.set_xlim(low[0], high[0])
            one.set_ylim(low[1], high[1])
            one.set_xticks([-4, 0, 4])
            one.set_yticks([-4, 0, 4])
        for row in axes:
            row[0].set_ylabel("θ₂")
        for one in axes[-1]:
            one.set_xlabel("θ₁")
    return figure


def trajectory(study: Study, label: str, problem: Problem) -> Floats:
    """Return the leapfrog points (L + 1, d) of the last proposal of a chain from (0, 1) at ε = 1.

    The sampler tells proposals only, so step j is the proposal, always accepted, of the same
    iteration with j steps in place of L: the same momentum and the same noise in each gradient.
    """
    from dpmc.base import Draws, State
    from dpmc.privacy import accountants
    from dpmc.privacy.mechanisms import PrivateData
    from dpmc.privacy.noise import LabNoise
    from dpmc.randomness import stream

    values, source = study.pinned_hyperparameters(label, METHOD)
    d = problem.dimension
    algorithm = study.algorithm(METHOD, {**values, "steps": STEPS}, d, source)
    delta = study.delta_for(problem.n)
    once, each = algorithm.releases(problem.n)
    accountant = accountants.resolve(study.methods[METHOD].accountant, once + each)
    k = accountant.iterations(once, each, EPSILON, delta)
    if k == 0:
        raise DpmcError(f"figure trajectory: epsilon {EPSILON:g} allows no iteration of {METHOD}")
    generator = stream("figure", "trajectory")
    normal = generator.standard_normal((k, 1, d))
    log_uniform = np.log1p(-generator.random((k, 1)))
    ratio_noise = generator.standard_normal((k, 1))
    gradient_noise = generator.standard_normal((k, 1, STEPS + 1, d))
    noise, words = LabNoise(ratio_noise, gradient_noise), np.zeros((k, 1, 0), np.uint64)
    private = PrivateData(problem.evaluator, problem.temperature, noise, words)
    no = np.zeros(1, bool)

    def iterate(steps: int, theta: Floats, iterations: range, accept_all: bool) -> Floats:
        """Return where the chain stands after some iterations with this many leapfrog steps."""
        state = State(theta[np.newaxis].copy(), np.zeros((1, 0)), no, no)
        sampler = replace(algorithm, steps=steps)
        for i in iterations:
            private.begin(i)
            log_u = np.full(1, -np.inf) if accept_all else log_uniform[i]
            state = sampler.step(state, problem.model, private, Draws(normal[i], np.zeros((1, 0)), log_u))
        return np.array(state.theta[0])

    before = iterate(STEPS, np.array(START), range(k - 1), accept_all=False)
    last = range(k - 1, k)
    steps = [iterate(j, before, last, accept_all=True) for j in range(1, STEPS + 1)]
    return np.stack([before, *steps])


def _draw_path(axes: Axes, points: Floats) -> None:
    """Draw the trajectory so far, its start and its end."""
    colour = style.STYLES[METHOD].colour
    dark = style.mixed(colour, "#000000", 0.45)
    axes.plot(points[:, 0], points[:, 1], color=dark, linewidth=1.1, zorder=3)
    axes.plot(points[1:-1, 0], points[1:-1, 1], ".", color=dark, markersize=2.0, zorder=3)
    ends: dict[str, Any] = {"markeredgecolor": "black", "markeredgewidth": 0.4, "zorder": 4}
    axes.plot(*points[-1], marker="D", markersize=3.6, markerfacecolor=colour, **ends)
    axes.plot(*points[0], marker="o", markersize=4.2, markerfacecolor=START_COLOUR, **ends)
