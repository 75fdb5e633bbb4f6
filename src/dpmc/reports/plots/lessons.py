"""What the searches of a study found: gain, length, acceptance, clipping and noise of the settings chosen."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dpmc.reports.plots import layout, marks, style
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import Axis
from dpmc.tuning.pinned import CLIP_LIMIT, clip_fraction
from dpmc.tuning.reach import BEST_ACCEPTANCE, BEST_NOISE_SD

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


@style.context()
def draw(found: Sequence[dict[str, Any]], study: Study) -> Figure:
    """Return the figure; `found` holds what searches wrote down, any number of a study's (model, method)."""
    ids = [spec.model for spec in study.models.values()]

    def place(one: dict[str, Any]) -> tuple[int, int, float]:
        """By dimension, in the order of the study, and by ε."""
        spec = study.model(one["model"])
        return one["search"]["dimension"], ids.index(spec.model), float(spec.tuning_epsilon)

    found = sorted(found, key=place)
    models = list(dict.fromkeys(one["model"] for one in found))
    searched = {one["method"] for one in found}
    styles = {label: one for label, one in style.method_styles(study.methods).items() if label in searched}
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
        look, summaries = styles[one["method"]], [one["search"][which] for which in ("pinned", "chosen")]
        x = marks.place(models.index(one["model"]), list(styles).index(one["method"]), len(styles))
        clipped = name == "ratio_clip_fraction"
        ends = [clip_fraction(summary) if clipped else summary.get(name) for summary in summaries]
        known = [end for end in ends if end is not None]
        axes.plot([x] * len(known), known, lw=0.8, color=look.colour, zorder=2)
        marker: dict[str, Any] = {**MARKER, "marker": look.marker, "mec": look.colour, "mew": 0.8}
        for end, face in zip(ends, ("white", look.colour), strict=True):
            if end is not None:
                axes.plot([x], [end], **marker, mfc=face, zorder=3, clip_on=False)
        chosen = summaries[1]
        if name == "reach" and "most_reach" in chosen:
            axes.plot([x], [chosen["most_reach"]], "_", ms=8, color=look.colour, zorder=2)
        if name == "mmd":
            error = chosen.get("mmd_error", 0.0)
            axes.errorbar([x], [chosen["mmd"]], [error], lw=0.8, color=look.colour, zorder=2)
