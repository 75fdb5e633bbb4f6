"""Draw what the searches of a study found: gain, length, acceptance, clipping and noise of chosen settings.

python workflow/scripts/lessons.py <study> <output.png> results/<study>/search/<model>/<method>.yaml ...
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from dpmc.metrics.table import CLIP_LIMIT
from dpmc.reports.plots import layout, marks, style
from dpmc.studies import Study, load_study, read_yaml
from dpmc.studies.figures import Axis
from dpmc.tuning.pinned import clip_fraction

#: A random walk that moves little against the posterior, and whose noise has sd s, is accepted with
#: probability 2Φ(−s/2). Its iterations grow as (s/step)², so that what it diffuses for its budget goes as
#: s² 2Φ(−s/2), which is greatest here.
BEST_NOISE_SD, BEST_ACCEPTANCE = 2.381, 0.234

BEST_LINE: dict[str, Any] = {**marks.REFERENCE, "zorder": 1}
LIMIT_LINE: dict[str, Any] = {**BEST_LINE, "linestyle": ":"}
#: what is drawn, its name with its unit, the scale, and a line across
PANELS: tuple[tuple[str, str, Axis, float, dict[str, Any]], ...] = (
    ("mmd", "median MMD", Axis(), 0.0, LIMIT_LINE),
    ("iterations", "iterations", Axis(scale="log"), 0.0, LIMIT_LINE),
    ("acceptance_rate", "acceptance rate", Axis(), BEST_ACCEPTANCE, BEST_LINE),
    ("clip_fraction", "fraction clipped", Axis(scale="symlog", linear_below=0.01), CLIP_LIMIT, LIMIT_LINE),
    ("noise_sd", "noise sd (nats)", Axis(scale="log"), BEST_NOISE_SD, BEST_LINE),
)
# a dot in a ring, so that both are seen where they are equal
AFTER: dict[str, Any] = {"ls": "none", "ms": 3.8, "mew": 0.0, "zorder": 4}
BEFORE: dict[str, Any] = {"ls": "none", "ms": 6.2, "mew": 0.8, "mfc": "white", "zorder": 3}


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
    names = []  # of a model, in short lines with the ε tuned at; of one model, the ε alone
    for label in models:
        spec = study.model(label)
        name, _, dimension = style.MODEL_TITLES.get(spec.model, spec.model).partition(", ")
        lines = [*name.split(" ", 1), dimension] if len({study.model(m).model for m in models}) > 1 else []
        names.append("\n".join(filter(None, [*lines, f"ε = {spec.tuning_epsilon}"])))
    figure, panels = layout.panels(True, len(PANELS), 1, 1.0, sharex=True)
    for axes, (quantity, label, scale, level, line) in zip(panels, PANELS, strict=True):
        layout.set_groups(axes, names)
        axes.margins(y=0.12)  # no mark on the frame
        if level:
            axes.axhline(level, **line)
        for search in searches:
            look, summaries, model = looks[search["method"]], search["search"], search["model"]
            beside = [
                method
                for method in looks
                if any((s["model"], s["method"]) == (model, method) for s in searches)
            ]
            x = marks.place(models.index(model), beside.index(search["method"]), len(beside))
            ends = []
            for summary, how in ((summaries["pinned"], BEFORE), (summaries["chosen"], AFTER)):
                end = clip_fraction(summary) if quantity == "clip_fraction" else summary.get(quantity)
                if end is not None:
                    ends.append(end)
                    marker = {**how, "marker": look.marker, "color": look.colour}
                    axes.plot([x], [end], **marker, clip_on=False)
            axes.plot([x] * len(ends), ends, lw=0.8, color=look.colour, zorder=2)
            if quantity == "mmd":
                error = summaries["chosen"].get("mmd_error", 0.0)
                axes.errorbar([x], [ends[-1]], [error], lw=2.0, color=look.colour, zorder=2)
        axes.set_ylabel(label)
        layout.scale_y(axes, scale)
    figure.align_ylabels()
    entries = {look.title: {**AFTER, "marker": look.marker, "color": look.colour} for look in looks.values()}
    entries["ring: before the search"] = {**BEFORE, "marker": "o", "color": style.INK}
    entries["best for a walk of small steps"] = BEST_LINE
    entries["limit of the search"] = LIMIT_LINE
    layout.add_legend(figure, entries)
    return figure


if __name__ == "__main__":
    study, output, *files = sys.argv[1:]
    style.save(draw([read_yaml(Path(name)) for name in files], load_study(study)), Path(output))
