"""Kind `boxes`: box plots over the chains of each cell, grouped by ε, with the published boxes beside ours.

Every cell of the study that belongs to a panel has a box or a note that says why it has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.plots import marks, style
from dpmc.plots.frame import (
    FEW_ITERATIONS,
    PublishedBox,
    Results,
    methods_of,
    models_of,
    read_published,
)
from dpmc.plots.marks import (
    GROUP_WIDTH,
    REFERENCE,
    draw_baselines,
    draw_boxes,
    draw_note,
    draw_published,
    published_in_legend,
)
from dpmc.plots.style import MethodStyle, budget_label, model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpmc.plots import Given
    from dpmc.studies.figures import FigureKeys

LETTER = 0.055  # height of a panel that a letter of a remark takes
MOST_LETTERS = 32  # of an entry of the legend, for three side by side
SLOTS_PER_COLUMN = 10  # a panel with more boxes than this gets the whole text width


@dataclass
class _Shown:
    """What the legend must explain."""

    baselines: int = 0
    published: bool = False


@dataclass(frozen=True)
class _Panel:
    """One panel: a metric of a model (label), what it shows, and the published boxes beside."""

    model: str
    metric: str
    title: str
    epsilons: tuple[str, ...]
    methods: list[str]
    published: Mapping[tuple[str, str, str], PublishedBox]

    @property
    def beside(self) -> bool:
        """Whether any box here has a published one beside it."""
        return any((self.model, m, e) in self.published for m in self.methods for e in self.epsilons)

    @property
    def slot(self) -> float:
        """Width of the place of a box."""
        return GROUP_WIDTH / max(len(self.methods), 1)


def draw(given: Given) -> Figure:
    """Return the figure: one panel for each model and metric, and one legend above."""
    from matplotlib.figure import Figure

    how, study = given.declared, given.study
    results = Results.of_study(given.metrics, study)
    models = models_of(study, how.models)
    every = style.method_styles(dict(study.methods))
    styles = {label: every[label] for label in methods_of(study, how.methods, models)}
    styles = {label: _named(look, how.titles.get(label)) for label, look in styles.items()}
    panels = _panels(given, models, list(styles))
    columns = min(how.columns or _columns(panels), len(panels))
    rows = math.ceil(len(panels) / columns)
    height = (2.1 if rows < 4 else 1.9) if columns > 1 else 1.95 if rows < 3 else 1.8
    shown = _Shown()
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, rows * height + 0.5), layout="constrained", dpi=100)
        axes = figure.subplots(rows, columns, squeeze=False, sharey=how.y.share).ravel()
        words = [
            _draw_panel(one, panel, results, styles, shown) for one, panel in zip(axes, panels, strict=False)
        ]
        # seaborn's quartiles would be those of logarithms if a scale were set before
        for one, panel, notes in zip(axes, panels, words, strict=False):
            _finish_axes(one, panel, how, any(note.values for note in notes))
            for note in notes:
                _write(one, note)
        for spare in axes[len(panels) :]:
            spare.remove()
        for index in range(len(panels)):
            if index + columns >= len(panels):
                axes[index].set_xlabel(how.x.label or budget_label(study))
        _legend(figure, styles, shown, results.variants, given)
    return figure


def _named(look: MethodStyle, title: str | None) -> MethodStyle:
    from dataclasses import replace

    return replace(look, title=title) if title else look


def _panels(given: Given, models: Sequence[str], methods: Sequence[str]) -> list[_Panel]:
    """Return the panels, metrics side by side for each model; a model on which no method runs has none."""
    how, study = given.declared, given.study
    panels = []
    for model in models:
        here = [label for label in methods if model in study.methods[label].models]
        for metric in how.metric if here else ():
            name = how.titles.get(model) or model_title(model, study.models[model].model)
            what = how.titles.get(metric) or style.METRIC_TITLES.get(metric, metric.replace("_", " "))
            several = name if len(how.metric) == 1 else f"{name}: {what}"
            title = several if len(models) > 1 or len(how.metric) == 1 else what
            boxes = read_published(given.published, metric, study) if how.published else {}
            panels.append(_Panel(model, metric, title, study.models[model].epsilons, here, boxes))
    return panels


def _columns(panels: Sequence[_Panel]) -> int:
    """Panels side by side: two where boxes stay wide enough, else one."""
    most = max(len(panel.epsilons) * len(panel.methods) for panel in panels)
    return 2 if len(panels) > 1 and most <= SLOTS_PER_COLUMN else 1


@dataclass(frozen=True)
class _Note:
    """What is said at the place of a box, whose values follow if there are any."""

    x: float
    text: str
    values: list[float]


def _draw_panel(
    axes: Axes, panel: _Panel, results: Results, styles: Mapping[str, MethodStyle], shown: _Shown
) -> list[_Note]:
    """Draw boxes, published glyphs and baselines of one panel; return what is to be said of them."""
    slot, beside = panel.slot, panel.beside
    notes: list[_Note] = []
    frame = results.frame(panel.model, panel.methods, panel.epsilons, panel.metric)
    cells = {key: rows.tolist() for key, rows in frame.groupby(["method", "epsilon"])["value"]}
    drawn: dict[str, dict[float, list[float]]] = {method: {} for method in panel.methods}
    for group, epsilon in enumerate(panel.epsilons):
        if group % 2 == 0:
            axes.axvspan(group - 0.5, group + 0.5, color=style.BAND, lw=0, zorder=0)
        for index, method in enumerate(panel.methods):
            centre = group + (index + 0.5) * slot - GROUP_WIDTH / 2
            cell = (panel.model, method, epsilon)
            ours = centre - 0.16 * slot if beside else centre
            values = cells.get((method, epsilon), [])
            if values:
                drawn[method][ours] = values
            if text := _remark(cell, values, results, panel.metric):
                notes.append(_Note(ours, text, values))
            if cell in panel.published:
                draw_published(axes, panel.published[cell], centre + 0.28 * slot, 0.2 * slot, styles[method])
                shown.published = True
    for method, values_at in drawn.items():
        draw_boxes(axes, values_at, slot * (0.54 if beside else 0.7), styles[method])
    shown.baselines = max(shown.baselines, draw_baselines(axes, results.baselines(panel.model, panel.metric)))
    return notes


def _remark(cell: tuple[str, str, str], values: Sequence[float], results: Results, metric: str) -> str:
    """What to say of a cell without values, or whose chains are very short or partly missing; else ""."""
    if not values:
        return f"no box: {results.why_missing(*cell, metric)}"
    length, chains = results.iterations(*cell), results.seeds(*cell)
    parts = []
    if length is not None and length < FEW_ITERATIONS:
        parts.append(f"k = {length}")
    if len(values) < chains:
        parts.append(f"{len(values)} of {chains}")
    return ", ".join(parts)


def _write(axes: Axes, note: _Note) -> None:
    """Write a note above or below its box, where there is more room; over it where there is none."""
    x, text, values = note.x, note.text, note.values
    if not values:
        return draw_note(axes, x, text)
    to_axes = axes.transData + axes.transAxes.inverted()
    low, high = (to_axes.transform((x, value))[1] for value in (min(values), max(values)))
    above = 1.0 - high >= low
    if max(1.0 - high, low) < LETTER * len(text) + 0.04:
        return draw_note(axes, x, text)
    axes.annotate(
        text,
        (x, max(values) if above else min(values)),
        xytext=(0, 4 if above else -4),
        textcoords="offset points",
        rotation=90,
        ha="center",
        va="bottom" if above else "top",
        fontsize=7,
        color=style.INK,
        zorder=6,
    )


def _finish_axes(axes: Axes, panel: _Panel, declared: FigureKeys, remarks: bool) -> None:
    """Set title, labels, ticks, scale and limits, by default from 0 to all data; draw reference lines."""
    how, room = declared.y, 1.3 if remarks else 1.06
    axes.set_title(panel.title)
    axes.set_xlabel("")
    axes.set_ylabel(how.label or style.LABELS.get(panel.metric, panel.metric.replace("_", " ")))
    axes.set_xticks(range(len(panel.epsilons)), ["∞" if e == "inf" else e for e in panel.epsilons])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(panel.epsilons) - 0.5)
    # data limits: a clipped axis would hide outliers
    top = float(axes.dataLim.y1)
    if how.share and not how.limits:
        top = max(top, axes.get_ylim()[1] / room)  # panels so far, which have this axis too
    marks.scale_y(axes, how, top, room)
    for line in declared.lines:
        if line.metric in ("", panel.metric) and line.at <= axes.get_ylim()[1]:
            axes.axhline(line.at, **REFERENCE, zorder=1)


def _legend(
    figure: Figure,
    styles: Mapping[str, MethodStyle],
    shown: _Shown,
    variants: Mapping[str, str],
    given: Given,
) -> None:
    """Explain methods, the published glyph, baselines and reference lines above the panels.

    A method that is not the published algorithm has a star, and its departure is spelled out.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle

    entries: list[tuple[Any, str]] = []
    for label, look in styles.items():
        patch = Patch(facecolor=look.colour, edgecolor=look.edge, hatch=look.hatch, linewidth=0.7)
        entries.append((patch, look.title + "*" * (label in variants)))
    if shown.published:
        entries.append((Rectangle((0, 0), 1, 1), f"published: {given.declared.published}"))
    if shown.baselines:
        entries.append((Line2D([], [], color="black", linewidth=0.6), f"{shown.baselines} exact samples"))
    for line in given.declared.lines:
        if any(line.at in np.atleast_1d(one.get_ydata()) for axes in figure.axes for one in axes.lines):
            entries.append((Line2D([], [], **REFERENCE), line.label))
    for departure in sorted({variants[label] for label in styles if label in variants}):
        entries.append((Line2D([], [], linestyle="none"), "* " + departure.partition(": ")[0]))
    figure.legend(
        [handle for handle, _ in entries],
        [label for _, label in entries],
        loc="outside upper left",
        ncols=3 if max(len(label) for _, label in entries) <= MOST_LETTERS else 2,
        frameon=False,
        handlelength=1.8,
        handleheight=1.0,
        columnspacing=1.2,
        handler_map={Rectangle: published_in_legend()},
    )
