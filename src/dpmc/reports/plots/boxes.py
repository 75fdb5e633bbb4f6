"""Kind `boxes`: box plots over the chains of each cell, grouped by ε, and slim bars beside them.

Slim bars are published boxes, or the cells of partners (key `pairs`). Every cell of the study that belongs to
a panel has a box or a note that says why it has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc.metrics.table import Results
from dpmc.reports.plots import Given, layout, marks, style
from dpmc.reports.plots.published import Quartiles, published_boxes, quartiles
from dpmc.reports.plots.selection import CellKey, OnModel, models_of, pairs_of
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

LETTER = 0.055  # height of a panel that a letter of a remark takes
SLOTS_PER_COLUMN = 10  # a panel with more boxes than this gets the whole text width
TUNED_AT = "#FFEFC2"  # band of the ε that hyperparameters were searched at


@dataclass(frozen=True)
class _Panel:
    """A metric of a model, by ε and method."""

    model: str
    metric: str
    title: str
    epsilons: tuple[str, ...]
    looks: Mapping[str, MethodStyle]  # of the methods here
    bars: Mapping[CellKey, Quartiles]  # the slim ones
    tuned_at: str  # ε of the search for the hyperparameters, "" for none


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models drawn as boxes and those beside them; no files."""
    pairs = pairs_of(study, how)
    return list(dict.fromkeys(model for model, _ in [*pairs, *pairs.values()])), []


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: one panel for each model and metric, and one legend above."""
    how, study = given.declared, given.study
    pairs = pairs_of(study, how)
    results = Results.of_study(given.metrics, study)
    looks = style.of_pairs(study, pairs, how.titles)
    panels = _panels(given, results, pairs, looks)
    most = max(len(panel.epsilons) * len(panel.looks) for panel in panels)
    columns = min(how.columns or (2 if most <= SLOTS_PER_COLUMN else 1), len(panels))
    rows = -(-len(panels) // columns)
    height = (2.1 if rows < 4 else 1.9) if columns > 1 else 1.95 if rows < 3 else 1.8
    figure, axes_of_panels = layout.panels(len(panels), columns, height, more=0.5, sharey=how.y.share)
    references: layout.Entries = {}
    for axes, panel in zip(axes_of_panels, panels, strict=True):
        references |= _draw_panel(axes, panel, results, how)
    for axes in axes_of_panels[-columns:]:
        axes.set_xlabel(how.x.label or style.budget_label(study))

    # A method that is not the published algorithm, and whose name does not say so, has a star.
    variants = {label: results.variants.get(label, "").partition(": ")[0] for label in looks}
    stars = {label: text for label, text in variants.items() if text not in looks[label].title}
    entries: layout.Entries = {
        look.title + "*" * (label in stars): marks.patch(look) for label, look in looks.items()
    }
    if any(_has_bars(panel) for panel in panels):
        entries[how.beside or f"published: {how.published}"] = marks.SLIM_BAR
    exact = max(len(results.baselines(panel.model, panel.metric)) for panel in panels)
    entries |= {**marks.exact_samples(exact), **references}
    if any(panel.tuned_at in panel.epsilons for panel in panels):
        entries["ε of the search"] = Patch(facecolor=TUNED_AT)
    layout.legend(figure, entries | {f"* {text}": {"ls": "none"} for text in sorted(set(stars.values()))})
    return figure


def _panels(
    given: Given, results: Results, pairs: Mapping[OnModel, OnModel], looks: Mapping[str, MethodStyle]
) -> list[_Panel]:
    """Return the panels, metrics side by side for each model; a model on which no method runs has none."""
    how, study = given.declared, given.study
    bars: dict[str, dict[CellKey, Quartiles]] = {}
    for metric in how.metric:
        bars[metric] = published_boxes(given.published, metric, study) if how.published else {}
        for (model, method), other in pairs.items() if how.pairs else ():
            for epsilon in study.models[model].epsilons:
                if values := results.values(*other, epsilon, metric):
                    bars[metric][model, method, epsilon] = quartiles(values)
    panels = []
    models = [model for model in models_of(study, how.models) if any(model == shown for shown, _ in pairs)]
    for model in models:
        here = {method: look for method, look in looks.items() if (model, method) in pairs}
        partner = next(other for (shown, _), (other, _) in pairs.items() if shown == model)
        name, spec = style.model_name(study, min(model, partner, key=len), how.titles), study.models[model]
        tuned_at = (
            spec.tuning_epsilon
            if any(study.methods[method].hyperparameters == "tuned" for method in here)
            else ""
        )
        for metric in how.metric:
            what = style.metric_title(metric, how.titles)
            title = name if len(how.metric) == 1 else f"{name}: {what}" if len(models) > 1 else what
            panels.append(_Panel(model, metric, title, spec.epsilons, here, bars[metric], tuned_at))
    return panels


def _has_bars(panel: _Panel) -> bool:
    """Whether any box of a panel has a slim bar beside it."""
    return any((panel.model, method, e) in panel.bars for method in panel.looks for e in panel.epsilons)


def _draw_panel(axes: Axes, panel: _Panel, results: Results, how: FigureKeys) -> layout.Entries:
    """Draw one panel; return the legend's entries for its reference lines."""
    layout.groups(axes, ["∞" if epsilon == "inf" else epsilon for epsilon in panel.epsilons])
    if panel.tuned_at in panel.epsilons:
        group = panel.epsilons.index(panel.tuned_at)
        layout.band(axes, group, TUNED_AT)
        axes.get_xticklabels()[group].set_fontweight("bold")
    notes: list[tuple[float, str, Sequence[float]]] = []  # place, text, values of the box
    for index, (method, look) in enumerate(panel.looks.items()):
        cells = {group: (panel.model, method, epsilon) for group, epsilon in enumerate(panel.epsilons)}
        values = {group: results.values(*cell, panel.metric) for group, cell in cells.items()}
        bars = {group: panel.bars[cell] for group, cell in cells.items() if cell in panel.bars}
        slot = (index, len(panel.looks))
        places = marks.draw_boxes(axes, slot, values, bars, look, _has_bars(panel))
        for group, cell in cells.items():
            if text := results.remark(*cell, panel.metric):
                notes.append((places[group], text, values[group]))
    marks.draw_baselines(axes, results.baselines(panel.model, panel.metric))

    axes.set_title(panel.title)
    axes.set_ylabel(how.y.label or style.metric_label(panel.metric))
    room, top = 1.3 if any(of_box for *_, of_box in notes) else 1.06, float(axes.dataLim.y1)
    if how.y.share and not how.y.limits:
        top = max(top, axes.get_ylim()[1] / room)  # panels so far, which have this axis too
    layout.scale_y(axes, how.y, top, room)
    lines = [line for line in how.lines if line.metric in ("", panel.metric)]
    lines = [line for line in lines if line.at <= axes.get_ylim()[1]]
    for line in lines:
        axes.axhline(line.at, **marks.REFERENCE, zorder=1)
    for note in notes:
        _write(axes, *note)
    return {line.label: marks.REFERENCE for line in lines}


def _write(axes: Axes, x: float, text: str, values: Sequence[float]) -> None:
    """Write a note above or below its box, where there is more room; over it where there is none."""
    to_panel = axes.transData + axes.transAxes.inverted()
    ends = (min(values), max(values)) if values else axes.get_ylim()
    below, above = to_panel.transform((x, ends[0]))[1], 1.0 - to_panel.transform((x, ends[1]))[1]
    if max(above, below) < LETTER * len(text) + 0.04:
        marks.draw_note(axes, x, text)
    elif above >= below:
        axes.annotate(text, (x, ends[1]), (0, 4), textcoords="offset points", va="bottom", **marks.NOTE)
    else:
        axes.annotate(text, (x, ends[0]), (0, -4), textcoords="offset points", va="top", **marks.NOTE)
