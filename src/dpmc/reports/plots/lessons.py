"""What the searches of a study found: gain, length, acceptance, clipping and noise of the settings chosen."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from dpmc.reports.plots import layout, marks, style
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
def draw(searches: Sequence[dict[str, Any]], study: Study) -> Figure:
    """Return the figure; `searches`: the results of searches, any number of a study's (model, method)."""
    ids = [spec.model for spec in study.models.values()]

    def place(search: dict[str, Any]) -> tuple[int, int, float]:
        """By dimension, in the order of the study, and by ε."""
        spec = study.model(search["model"])
        return search["search"]["dimension"], ids.index(spec.model), float(spec.tuning_epsilon)

    searches = sorted(searches, key=place)
    models = list(dict.fromkeys(search["model"] for search in searches))
    searched = {search["method"] for search in searches}
    looks = {label: look for label, look in style.method_styles(study.methods).items() if label in searched}
    names = []  # of a model, in three short lines with the ε tuned at
    for label in models:
        spec = study.model(label)
        name, _, dimension = style.MODEL_TITLES.get(spec.model, spec.model).partition(", ")
        lines = [*name.split(" ", 1), dimension, f"ε = {spec.tuning_epsilon}"]
        names.append("\n".join(filter(None, lines)))
    figure, panels = layout.panels(len(ROWS), 1, 1.2, sharex=True)
    for axes, (quantity, label, scale) in zip(panels, ROWS, strict=True):
        layout.groups(axes, names)
        for search in searches:
            look, summaries = looks[search["method"]], search["search"]
            x = marks.place(models.index(search["model"]), list(looks).index(search["method"]), len(looks))
            marker = {**MARKER, "marker": look.marker, "mec": look.colour, "mew": 0.8}
            # the pinned setting, hollow, the chosen one, and a line between them
            ends = []
            for summary, face in ((summaries["pinned"], "white"), (summaries["chosen"], look.colour)):
                clipped = quantity == "ratio_clip_fraction"
                end = clip_fraction(summary) if clipped else summary.get(quantity)
                if end is not None:
                    ends.append(end)
                    axes.plot([x], [end], **marker, mfc=face, zorder=3, clip_on=False)
            axes.plot([x] * len(ends), ends, lw=0.8, color=look.colour, zorder=2)
            chosen = summaries["chosen"]
            if quantity == "reach" and "most_reach" in chosen:
                axes.plot([x], [chosen["most_reach"]], "_", ms=8, color=look.colour, zorder=2)
            if quantity == "mmd":
                error = chosen.get("mmd_error", 0.0)
                axes.errorbar([x], [chosen["mmd"]], [error], lw=0.8, color=look.colour, zorder=2)
        axes.set_ylabel(label)
        layout.scale_y(axes, scale)
    panels[2].axhline(BEST_ACCEPTANCE, **DASHED)
    panels[3].axhline(CLIP_LIMIT, **DOTTED)
    panels[4].axhline(BEST_NOISE_SD, **DASHED)
    figure.align_ylabels()
    entries = {look.title: {**MARKER, "marker": look.marker, "color": look.colour} for look in looks.values()}
    entries["hollow: before the search"] = {**MARKER, "marker": "o", "mfc": "white", "mec": style.INK}
    entries["best for a walk of small steps"] = DASHED
    entries["limit of the search"] = DOTTED
    entries["most that a walk can reach"] = {"ls": "none", "marker": "_", "ms": 8, "color": style.INK}
    layout.legend(figure, entries, columns=3)
    return figure
