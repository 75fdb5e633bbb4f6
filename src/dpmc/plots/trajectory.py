"""One leapfrog trajectory of DP-HMC on the circle, in frames (Figure 4.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.plots import style
from dpmc.plots.frame import models_of
from dpmc.plots.maps import DARKEST, START, Floats, Surface, problem_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpmc.plots import Given
    from dpmc.problem import Problem
    from dpmc.studies import Study

METHOD = "dp-hmc"
EPSILON = 1.0
STEPS = 48
FRAMES = range(0, STEPS, 4)  # the thesis's: its last is four steps before the end
BEGINNING = (0.0, 1.0)  # of the chain
SHADES, HALF_WIDTH = 20, 3.9
PATH: dict[str, Any] = {"linewidth": 1.1, "marker": ".", "markersize": 2.6}
LAST: dict[str, Any] = {**START, "marker": "D", "markersize": 3.8}


def draw(given: Given) -> Figure:
    """Return the figure: twelve frames of the trajectory on the study's circle.

    Raises DpmcError where the study has no circle, or no DP-HMC on it.
    """
    from matplotlib.figure import Figure

    label = models_of(given.study, ("circle",))[0]
    problem = problem_of(given.study, label)
    points = trajectory(given.study, label, problem)
    corner = np.full(2, HALF_WIDTH)
    limits = (-HALF_WIDTH, HALF_WIDTH)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 5.2), layout="constrained", dpi=100)
        axes = figure.subplots(3, 4, sharex=True, sharey=True)
        surface = Surface.of(problem, -corner, corner)
        for step, one in zip(FRAMES, axes.ravel(), strict=True):
            surface.draw(one, SHADES)
            _draw_path(one, points[: step + 1])
            one.set_title(f"step {step}")
            one.set(xlim=limits, ylim=limits, xticks=[-3, 0, 3], yticks=[-3, 0, 3], box_aspect=1.0)
        for one in axes[:, 0]:
            one.set_ylabel("θ₂")
        for one in axes[-1]:
            one.set_xlabel("θ₁")
        _legend(figure)
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

    before = iterate(STEPS, np.array(BEGINNING), range(k - 1), accept_all=False)
    last = range(k - 1, k)
    steps = [iterate(j, before, last, accept_all=True) for j in range(1, STEPS + 1)]
    return np.stack([before, *steps])


def _draw_path(axes: Axes, points: Floats) -> None:
    """Draw the trajectory so far, its start and its last step."""
    colour = style.STYLES[METHOD].colour
    axes.plot(points[:, 0], points[:, 1], **PATH, color=style.mixed(colour, "#000000", 0.45), zorder=3)
    if len(points) > 1:
        axes.plot(*points[-1], **{**LAST, "markerfacecolor": colour}, zorder=4)
    axes.plot(*points[0], **START, zorder=4)


def _legend(figure: Figure) -> None:
    """Explain points, path and shades above the frames."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour = style.STYLES[METHOD].colour
    entries: dict[str, Any] = {
        "start of the trajectory": Line2D([], [], **START),
        "steps so far": Line2D([], [], **PATH, color=style.mixed(colour, "#000000", 0.45)),
        "last step": Line2D([], [], **{**LAST, "markerfacecolor": colour}),
        "posterior": Patch(facecolor=DARKEST),
    }
    figure.legend(list(entries.values()), list(entries), loc="outside upper left", ncols=4, frameon=False)
