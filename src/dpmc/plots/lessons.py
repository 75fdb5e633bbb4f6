"""What the searches of a study found: gain, length, acceptance, clipping and noise of the settings chosen."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc.plots import layout, marks, style
from dpmc.plots.style import MethodStyle
from dpmc.problem import Problem
from dpmc.studies import Study
from dpmc.studies.figures import Axis
from dpmc.tuning import CLIP_LIMIT, clip_fraction

#: A random walk that moves little against the posterior, and whose noise has sd s, is accepted with
#: probability 2Φ(−s/2). Its iterations grow as (s/step)², so that what it diffuses for its budget goes as
#: s² 2Φ(−s/2), which is greatest here.
BEST_NOISE_SD, BEST_ACCEPTANCE = 2.381, 0.234

LINEAR, LOG = Axis(), Axis(scale="log")
#: what is drawn, its name with its unit, and the scale
ROWS = (
    ("mmd", "median MMD", LINEAR),
    ("iterations", "iterations", LOG),
    ("acceptance_rate", "acceptance rate", LINEAR),
    ("ratio_clip_fraction", "fraction clipped", Axis(scale="symlog", linear_below=0.01)),
    ("noise_sd", "noise sd (nats)", LOG),
    ("reach", "reach (posterior sd)", LOG),
)
MARKER: dict[str, Any] = {"ls": "none", "ms": 4}
DASHED: dict[str, Any] = {**marks.REFERENCE, "zorder": 1}
DOTTED: dict[str, Any] = {**DASHED, "linestyle": ":"}


def add_reach(one: dict[str, Any], problem: Problem) -> None:
    """Add `reach` and `most_reach` to what a search of DP penalty wrote down; leave others as they are.

    A walk of step h_i that is accepted at rate a diffuses h_i √(k a) in k iterations. The noise's variance is
    s² = 4T²τ²n clip² Σ h_i², and k = μ² n τ² what a budget of μ (Gaussian differential privacy) allows. That
    makes μ h_i √(s² a) / (2T clip √Σ h_i²), and s² a ≤ s² 2Φ(−s/2) ≤ 1.33: n, τ and the length of the step
    drop out. Of normal steps the short ones are accepted more often; `_shortening` takes account of that.
    """
    if one["search"]["algorithm"] != "dp-penalty" or not {"tau", "clip"} <= set(one["search"]["free"]):
        return
    known = np.isfinite(problem.posterior_covariance).all()
    sd = np.sqrt(np.diag(problem.posterior_covariance)) if known else problem.reference.std(axis=0)
    best = BEST_NOISE_SD * math.sqrt(BEST_ACCEPTANCE)
    for which, setting in (("pinned", one["pinned"]), ("chosen", one["hyperparameters"])):
        summary = one["search"][which]
        if "acceptance_rate" not in summary:
            continue
        step = np.broadcast_to(np.asarray(setting["proposal_sd"], dtype=float), sd.shape)
        mu = math.sqrt(summary["iterations"] / problem.n) / setting["tau"]
        most = mu * best / (2.0 * problem.temperature * setting["clip"]) * step / np.linalg.norm(step)
        noise = 2.0 * problem.temperature * setting["tau"] * math.sqrt(problem.n) * setting["clip"]
        shorter = _shortening(noise * float(np.linalg.norm(step)), len(sd))
        made = step * math.sqrt(summary["iterations"] * summary["acceptance_rate"] * shorter)
        least = int(np.argmin(made / sd))
        summary["reach"], summary["most_reach"] = float((made / sd)[least]), float((most / sd)[least])


def _shortening(sd: float, dimension: int) -> float:
    """Mean square of the accepted ones of normal steps in units of that of all, small against the posterior.

    The square u of a step's length in units of its mean is χ²_d/d; noise of sd s√u accepts 2Φ(−s√u/2).
    """
    from scipy.stats import chi2, norm

    u = chi2.ppf((np.arange(400) + 0.5) / 400, dimension) / dimension
    accepted = norm.cdf(-0.5 * sd * np.sqrt(u))
    return float(np.mean(u * accepted) / np.mean(accepted))


@style.context()
def draw(found: Sequence[dict[str, Any]], study: Study) -> Figure:
    """Return the figure; `found` holds what searches wrote down, any number of a study's (model, method)."""
    found = sorted(found, key=lambda one: (one["search"]["dimension"], order(study, one["model"])))
    models = list(dict.fromkeys(one["model"] for one in found))
    methods = [label for label in study.methods if any(one["method"] == label for one in found)]
    every = style.method_styles(study.methods)
    styles = {label: every[label] for label in methods}
    figure, axes = layout.panels(len(ROWS), 1, 1.2, more=1.1, sharex=True)
    for one, (name, label, scale) in zip(axes, ROWS, strict=True):
        layout.groups(one, [tick(study, model) for model in models])
        _points(one, found, models, styles, name)
        one.set_ylabel(label)
        layout.scale_y(one, scale)
    axes[2].axhline(BEST_ACCEPTANCE, **DASHED)
    axes[3].axhline(CLIP_LIMIT, **DOTTED)
    axes[4].axhline(BEST_NOISE_SD, **DASHED)
    figure.align_ylabels()
    looks = {one.title: {**MARKER, "marker": one.marker, "color": one.colour} for one in styles.values()}
    looks["hollow: before the search"] = {**MARKER, "marker": "o", "mfc": "white", "mec": style.INK}
    looks["best for a walk of small steps"] = DASHED
    looks["limit of the search"] = DOTTED
    looks["most that a walk can reach"] = {"ls": "none", "marker": "_", "ms": 8, "color": style.INK}
    layout.legend(figure, [(Line2D([], [], **look), text) for text, look in looks.items()], columns=3)
    return figure


def order(study: Study, model: str) -> tuple[int, float]:
    """Where a model stands among those of its dimension: in the order of the study, then of ε."""
    ids = list(dict.fromkeys(spec.model for spec in study.models.values()))
    spec = study.model(model)
    return ids.index(spec.model), float(spec.tuning_epsilon)


def tick(study: Study, model: str) -> str:
    """A model's name in three short lines, with the ε tuned at."""
    spec = study.model(model)
    title = style.MODEL_TITLES.get(spec.model, spec.model)
    name, _, dimension = title.partition(", ")
    return "\n".join([*name.split(" ", 1), *([dimension] if dimension else []), f"ε = {spec.tuning_epsilon}"])


def _points(
    axes: Axes, found: Sequence[dict[str, Any]], models: list[str], styles: dict[str, MethodStyle], name: str
) -> None:
    """Draw one quantity: for each search the pinned setting, the chosen one, and a line between them."""
    for one in found:
        look, pinned, chosen = styles[one["method"]], one["search"]["pinned"], one["search"]["chosen"]
        x = marks.place(models.index(one["model"]), list(styles).index(one["method"]), len(styles))
        ends = [
            clip_fraction(summary) if name == "ratio_clip_fraction" else summary.get(name)
            for summary in (pinned, chosen)
        ]
        known = [end for end in ends if end is not None]
        axes.plot([x] * len(known), known, lw=0.8, color=look.colour, zorder=2)
        marker: dict[str, Any] = {**MARKER, "marker": look.marker, "mec": look.colour, "mew": 0.8}
        for end, face in zip(ends, ("white", look.colour), strict=True):
            if end is not None:
                axes.plot([x], [end], **marker, mfc=face, zorder=3, clip_on=False)
        if name == "reach" and "most_reach" in chosen:
            axes.plot([x], [chosen["most_reach"]], "_", ms=8, color=look.colour, zorder=2)
        if name == "mmd":
            error = chosen.get("mmd_error", 0.0)
            axes.errorbar([x], [chosen["mmd"]], [error], lw=0.8, color=look.colour, zorder=2)
