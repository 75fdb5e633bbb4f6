"""One leapfrog trajectory of DP-HMC on the circle, in frames (Figure 4.1)."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc.base import Draws, State
from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.data.problem import Problem
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise
from dpmc.privacy.runs import RunReleases
from dpmc.reports.plots import Given, layout, style
from dpmc.reports.plots.chains import Floats
from dpmc.reports.plots.maps import DARKEST, START, Surface
from dpmc.reports.plots.selection import models_of
from dpmc.sampling import loop
from dpmc.studies import Hyperparameters, Study, build_algorithm, pinned_hyperparameters, problem_of

METHOD = "dp-hmc"
EPSILON = 1.0
STEPS = 48
FRAMES = range(0, STEPS, 4)  # the thesis's: its last is four steps before the end
BEGINNING = (0.0, 1.0)  # of the chain
HALF_WIDTH = 3.9
LOOK = style.STYLES[METHOD]
PATH: dict[str, Any] = {"linewidth": 1.1, "marker": ".", "markersize": 2.6, "color": LOOK.edge}
PUBLISHED: dict[str, Any] = {"linewidth": 0.8, "color": style.INK}
LAST: dict[str, Any] = {**START, "marker": "D", "ms": 3.8, "mfc": LOOK.colour}

READS_NOTHING = True  # the trajectory is made anew


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: twelve frames of the trajectory on the study's circle, and of the published one."""
    label = models_of(given.study, ("circle",))[0]
    problem = problem_of(given.study, label, exact=True)
    points = trajectory(given.study, label, problem)
    path = given.published / "hmc_trajectory.csv"
    known = pd.read_csv(path) if given.declared.published and path.is_file() else None
    corner, limits = np.full(2, HALF_WIDTH), (-HALF_WIDTH, HALF_WIDTH)
    surface = Surface.of(problem, -corner, corner)
    figure, panels = layout.panels(len(FRAMES), 4, 1.6, sharex=True, sharey=True)
    for step, axes in zip(FRAMES, panels, strict=True):
        surface.draw(axes)
        axes.plot(*points[: step + 1].T, **PATH, zorder=3)
        if known is not None:  # the thesis's frame j has the first j - 1 points of its path
            rows = known[(known["frame"] == step + 1) & (known["object"] == "trajectory")]
            axes.plot(rows["theta_1"], rows["theta_2"], **PUBLISHED, zorder=3)
        if step > 0:
            axes.plot(*points[step], **LAST, zorder=4)
        axes.plot(*points[0], **START, zorder=4)
        axes.set(title=f"step {step}", xlim=limits, ylim=limits, box_aspect=1.0)
        axes.set(xticks=[-3, 0, 3], yticks=[-3, 0, 3])
    figure.supxlabel("θ₁")
    figure.supylabel("θ₂")
    entries: layout.Entries = {
        "start of the trajectory": START,
        "steps so far": PATH,
        "the step of the title": LAST,
        "posterior": Patch(facecolor=DARKEST),
    }
    if known is not None:
        entries[f"published path: {given.declared.published}"] = PUBLISHED
    layout.legend(figure, entries)
    return figure


class _Watched(PrivateData):
    """Private data that record where gradients are asked for: at each point of a trajectory."""

    points: list[Floats]

    def gradient(self, theta: Floats, clip: float, tau: float, stage: int) -> Floats:
        self.points.append(theta[0].copy())
        return super().gradient(theta, clip, tau, stage)


def trajectory(study: Study, label: str, problem: Problem) -> Floats:
    """Return the leapfrog points (L + 1, d) of the last proposal of a chain from (0, 1) at ε = 1."""
    values, source = pinned_hyperparameters(study, label, METHOD)
    d = problem.dimension
    algorithm = build_algorithm(study, METHOD, Hyperparameters({**values, "steps": STEPS}, source), d)
    releases = RunReleases.of(algorithm, problem.n)
    accountant = releases.accountant(study.methods[METHOD].accountant)
    k = releases.iterations(accountant, EPSILON, study.delta_for(problem.n))
    if k == 0:
        raise DpmcError(f"figure trajectory: epsilon {EPSILON:g} allows no iteration of {METHOD}")
    generator, no = stream("figure", "trajectory"), np.zeros(1, bool)
    normal = generator.standard_normal((k, 1, d))
    draws = Draws(normal, np.zeros((k, 1, 0)), np.log1p(-generator.random((k, 1))))
    ratio_noise = generator.standard_normal((k, 1))
    noise = LabNoise(ratio_noise, generator.standard_normal((k, 1, STEPS + 1, d)))
    private = _Watched(problem.evaluator, problem.temperature, noise, np.zeros((k, 1, 0), np.uint64))
    private.points = []
    state = State(np.array([BEGINNING]), np.zeros((1, 0)), no, no)
    for _ in loop.iterate(algorithm, problem.model, private, state, draws):
        pass
    return np.stack(private.points[-STEPS - 1 :])
