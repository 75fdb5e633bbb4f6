"""Figures of the study `thesis`: a trajectory (4.1), accountants (6.1), z scores, metrics by CPU seconds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dpmc import models
from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import searched
from dpmc.base import Array, Draws, State
from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.data.problem import Problem
from dpmc.metrics.table import read_table
from dpmc.privacy import accountants
from dpmc.privacy.accountants import rdp
from dpmc.privacy.events import SubsampledGaussianQuery
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise
from dpmc.privacy.runs import RunQueries
from dpmc.reports.plots import PUBLISHED_RESULTS, ToDraw, layout, lines, reads_nothing, style
from dpmc.reports.plots.costs import seconds_per_iteration
from dpmc.reports.plots.maps import DARKEST, START, Surface
from dpmc.reports.plots.marks import EXACT_BAND, REFERENCE
from dpmc.reports.plots.selection import methods_of, models_of
from dpmc.sampling import loop
from dpmc.studies import SourcedValues, Study, build_algorithm, pinned_hyperparameters, problem_of
from dpmc.studies.figures import FigureKeys
from dpmc.studies.whole import own_rows

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

# accountants
EPSILONS = np.linspace(0.5, 6.0, 50)
AS_PUBLISHED = "rdp-as-published"
OF_ALL_ROWS, OF_BATCHES = ("tight", "zcdp"), ("replace-pld", "rdp", AS_PUBLISHED)
EXACT_LABEL = "exact (minibatch: loss distribution)"
#: accountant -> line style, what the legend says, and the published curve to which it is compared
LOOKS: dict[str, tuple[Any, str, str]] = {
    "tight": ("solid", EXACT_LABEL, "tight"),
    "replace-pld": ("solid", EXACT_LABEL, "fourier"),
    "zcdp": ((0, (5, 2)), "zCDP", "zcdp"),
    "rdp": ((0, (5, 2, 1, 2)), "RDP, Theorem 3.5", ""),
    AS_PUBLISHED: ((0, (1, 1)), "RDP, sum cut short: no bound", "rdp"),
}
# hollow, and every fourth of 50: the curve is seen in and between them
CIRCLE: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 4.2, "mfc": "none", "mec": "k", "mew": 0.6}

# z scores
LIMIT = 3.0  # standard errors within which medians are said to agree
BLUE, RED = (style.STYLES[method].colour for method in ("dp-penalty", "minibatch-penalty"))
NEAR_MARK: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 2.6, "mfc": BLUE, "mew": 0.0}
FAR_MARK: dict[str, Any] = {**NEAR_MARK, "marker": "D", "ms": 3.6, "mfc": RED}

trajectory_reads = accounting_reads = reads_nothing
by_seconds_reads = lines.reads  # without the measurements, which may be missing


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


def accounting(given: ToDraw) -> Figure:
    """Return the figure, one panel for each method, with the settings of the first model."""
    how, study = given.declared, given.study
    model = models_of(study, how.models)[0]
    methods = methods_of(study, how.methods, [model])
    known = None
    if how.published:
        columns = ("model", "method", "accountant", "epsilon", "iterations")
        numbers = {"epsilon": float, "iterations": int}
        known = read_table(PUBLISHED_RESULTS / "accountants.csv", columns, "a table of curves", numbers)
        known = known[known["model"] == model]
    figure, panels = layout.panels(how.wide, len(methods), how.columns or 1, 1.5, sharex=True, sharey=True)
    entries: layout.Entries = {}
    for axes, method in zip(panels, methods, strict=True):
        look = style.method_styles(study.methods)[method]
        batches = "batch_size" in searched(algorithm_class(study.methods[method].algorithm))
        for accountant in OF_BATCHES if batches else OF_ALL_ROWS:
            dashes, name, published = LOOKS[accountant]
            counts = iterations_by(study, model, method, accountant)
            axes.plot(EPSILONS, counts, color=look.colour, linestyle=dashes, linewidth=1.4)
            entries[name] = {"color": style.INK, "linestyle": dashes, "linewidth": 1.2}
            if known is not None:
                rows = known[(known["method"] == method) & (known["accountant"] == published)]
                axes.plot(rows["epsilon"], rows["iterations"], **CIRCLE, markevery=4, zorder=3)
        axes.set(title=look.title, xlim=(0.0, 6.15), ylabel="iterations")
        axes.yaxis.grid(True)
    panels[-1].set_xlabel("privacy budget ε (total)")
    panels[0].set_ylim(bottom=0.0)  # of all panels, which share the axis
    layout.set_plain_numbers(panels[0].yaxis)
    if known is not None:
        entries[f"published, every fourth point: {how.published}"] = CIRCLE
    layout.add_legend(figure, entries)
    return figure


def iterations_by(study: Study, model: str, method: str, accountant: str) -> list[int]:
    """Return the iterations that an accountant, or the curve `AS_PUBLISHED`, allows at each of `EPSILONS`."""
    definition = models.definition(study.models[model].model)
    given = pinned_hyperparameters(study, model, method)
    algorithm = build_algorithm(study, method, given, len(definition.true_theta))
    queries = RunQueries.of(algorithm, definition.n)
    delta = study.delta_for(definition.n)
    if accountant == AS_PUBLISHED:
        (event,) = queries.total(1)
        assert isinstance(event, SubsampledGaussianQuery)
        return [rdp.published_iterations(event, float(epsilon), delta) for epsilon in EPSILONS]
    chosen = accountants.get(accountant)
    return [queries.iterations(chosen, float(epsilon), delta) for epsilon in EPSILONS]


def z_scores_reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return no model, and the table of the comparison."""
    return [], [results / study.name / "published_comparison.csv"]


def z_scores(given: ToDraw) -> Figure:
    """Return the figure: quantiles of all z, and of each metric's, against those of the standard normal."""
    how = given.declared
    path = z_scores_reads(given.study, how, given.results)[1][0]
    table = read_table(path, ["metric", "z"], "a comparison with published boxes", {"z": float})
    table = table.dropna(subset="z")  # without a standard error there is no z
    groups = {"all": table["z"], **dict(iter(table.groupby("metric", sort=False)["z"]))}
    figure, panels = layout.panels(how.wide, len(groups), how.columns or 2, 1.6, sharex=True, sharey=True)
    for axes, (metric, scores) in zip(panels, groups.items(), strict=True):
        normal, low, high = expected(len(scores))
        z = np.sort(scores)
        axes.fill_between(normal, low, high, **EXACT_BAND)
        axes.axline((0.0, 0.0), slope=1.0, **REFERENCE)
        for side in (-LIMIT, LIMIT):
            axes.axhline(side, color=style.GREY, linewidth=0.5)
        far = np.abs(z) > LIMIT
        axes.plot(normal[~far], z[~far], **NEAR_MARK, zorder=3)
        axes.plot(normal[far], z[far], **FAR_MARK, zorder=4)
        name = "all metrics" if metric == "all" else style.metric_title(metric)
        size = np.sqrt(np.mean(z**2))
        axes.set_title(f"{name}: {len(z)}\nrms {size:.2f}, {far.sum()} beyond {LIMIT:g}")
    figure.supxlabel("quantile of the standard normal")
    figure.supylabel("z, sorted")
    layout.add_legend(
        figure,
        {
            "a median of 20 chains": NEAR_MARK,
            f"more than {LIMIT:g} errors off": FAR_MARK,
            "equal quantiles": REFERENCE,
            "95 % of independent normal z": Patch(**EXACT_BAND),
        },
    )
    return figure


def expected(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return medians (count,) of sorted independent standard normal numbers, and bounds of 95 % of each."""
    from scipy.stats import beta, norm  # slow to import, and not needed to plan a run

    rank = np.arange(1, count + 1)
    # the i-th of n uniform numbers has the distribution Beta(i, n + 1 - i)
    low, median, high = (norm.ppf(beta.ppf(share, rank, count + 1 - rank)) for share in (0.025, 0.5, 0.975))
    return median, low, high


def by_seconds(given: ToDraw) -> Figure:
    """Return the figure of kind `lines` with `cpu_seconds` of each run."""
    rows = own_rows(given.metrics, given.study)
    runs = rows[rows["metric"] == "iterations"].set_index(["model", "method"])
    seconds = seconds_per_iteration(given)
    each = [seconds.get(cell, np.nan) for cell in runs.index]
    runs = runs.assign(metric="cpu_seconds", value=runs["value"] * each)
    metrics = pd.concat([given.metrics, runs.dropna(subset="value").reset_index()])
    return lines.draw(replace(given, metrics=metrics))
