"""Kind `boxes`: box plots over the chains of each cell, grouped by ε, and slim bars beside them.

Slim bars are published boxes, or the cells of partners (`pairs`). Every cell of the study that belongs to a
panel has a box or a note that says why it has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from dpmc.metrics.table import Results
from dpmc.reports.plots import Given, layout, marks, style
from dpmc.reports.plots.frame import Cell, Quartiles, check_metrics, methods_of, models_of, read_published
from dpmc.reports.plots.pairs import Pairs
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

LETTER = 0.055  # height of a panel that a letter of a remark takes
SLOTS_PER_COLUMN = 10  # a panel with more boxes than this gets the whole text width
TUNED_AT = "#FFEFC2"  # band of the ε that hyperparameters were searched at

Styles = Mapping[str, MethodStyle]


@dataclass(frozen=True)
class _Panel:
    """One panel: a metric of a model (label), what it shows, and the slim bars beside the boxes."""

    model: str
    metric: str
    title: str
    epsilons: tuple[str, ...]
    methods: list[str]
    slim: Mapping[Cell, Quartiles]
    tuned_at: str  # ε of the search for the hyperparameters, "" for none

    @property
    def beside(self) -> bool:
        """Whether any box here has a slim bar beside it."""
        return any((self.model, m, e) in self.slim for m in self.methods for e in self.epsilons)


@dataclass(frozen=True)
class _Note:
    """A text at the place of a box, and the values of the box; no values for a missing box."""

    x: float
    text: str
    values: list[float]


def models_read(study: Study, how: FigureKeys) -> list[str]:
    """Return the models whose metrics the figure reads: those drawn as boxes, and those beside them."""
    beside = Pairs.of(study, how).models
    models = [label for label in models_of(study, how.models) if not beside or label in beside]
    return list(dict.fromkeys([*models, *(beside[label] for label in models if label in beside)]))


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: one panel for each model and metric, and one legend above."""
    how, study = given.declared, given.study
    pairs = Pairs.of(study, how)
    results = Results.of_study(given.metrics, study)
    check_metrics(results, how.metric)
    models = models_of(study, how.models)
    methods = methods_of(study, how.methods, models)
    panels = _panels(given, results, pairs, models, methods)
    methods = [label for label in methods if any(label in panel.methods for panel in panels)]
    styles = pairs.styles(study, how.titles, methods)
    columns = min(how.columns or _columns(panels), len(panels))
    rows = -(-len(panels) // columns)
    height = (2.1 if rows < 4 else 1.9) if columns > 1 else 1.95 if rows < 3 else 1.8
    figure, axes = layout.panels(len(panels), columns, height, more=0.5, sharey=how.y.share)
    notes = [_draw_panel(one, panel, results, styles) for one, panel in zip(axes, panels, strict=True)]
    lines: list[str] = []
    # seaborn's quartiles would be those of logarithms if a scale were set before
    for one, panel, its in zip(axes, panels, notes, strict=True):
        lines += _finish_axes(one, panel, how, any(note.values for note in its))
        for note in its:
            _write(one, note)
    for one in axes[-columns:]:
        one.set_xlabel(how.x.label or style.budget_label(study))
    exact = max(len(results.baselines(panel.model, panel.metric)) for panel in panels)
    others = [*marks.exact_samples(exact), *marks.references(lines)]
    if any(panel.beside for panel in panels):
        others.insert(0, (Rectangle((0, 0), 1, 1), how.beside or f"published: {how.published}"))
    if any(panel.tuned_at in panel.epsilons for panel in panels):
        others.append((Patch(facecolor=TUNED_AT), "ε of the search"))
    entries = _entries(styles, results.variants, others)
    layout.legend(figure, entries, handler_map={Rectangle: marks.PublishedInLegend()})
    return figure


def _panels(
    given: Given, results: Results, pairs: Pairs, models: Sequence[str], methods: Sequence[str]
) -> list[_Panel]:
    """Return the panels, metrics side by side for each model; a model on which no method runs has none."""
    how, study = given.declared, given.study
    published = {
        metric: read_published(given.published, metric, study) if how.published else {}
        for metric in how.metric
    }
    shown = pairs.shown(study, models, methods)
    panels = []
    for model, here in shown.items():
        spec, name = study.models[model], style.model_name(study, pairs.label_shown(model), how.titles)
        tuned = any(study.methods[method].hyperparameters == "tuned" for method in here)
        tuned_at = spec.tuning_epsilon if tuned else ""
        for metric in how.metric:
            what = style.metric_title(metric, how.titles)
            title = name if len(how.metric) == 1 else f"{name}: {what}" if len(shown) > 1 else what
            cells = [(model, method, epsilon) for method in here for epsilon in spec.epsilons]
            slim = _partners(results, pairs, cells, metric) if how.pairs else published[metric]
            panels.append(_Panel(model, metric, title, spec.epsilons, here, slim, tuned_at))
    return panels


def _partners(results: Results, pairs: Pairs, cells: Sequence[Cell], metric: str) -> dict[Cell, Quartiles]:
    """Return the quartiles of the cells beside these, where they have values."""
    found = {cell: results.values(*pairs.beside(cell), metric) for cell in cells}
    return {cell: Quartiles.of(values) for cell, values in found.items() if values}


def _columns(panels: Sequence[_Panel]) -> int:
    """Panels side by side: two where boxes stay wide enough, else one."""
    most = max(len(panel.epsilons) * len(panel.methods) for panel in panels)
    return 2 if len(panels) > 1 and most <= SLOTS_PER_COLUMN else 1


def _draw_panel(axes: Axes, panel: _Panel, results: Results, styles: Styles) -> list[_Note]:
    """Draw boxes, slim bars and baselines of one panel; return what is to be said of them."""
    layout.groups(axes, ["∞" if epsilon == "inf" else epsilon for epsilon in panel.epsilons])
    if panel.tuned_at in panel.epsilons:
        group = panel.epsilons.index(panel.tuned_at)
        layout.band(axes, group, TUNED_AT)
        axes.get_xticklabels()[group].set_fontweight("bold")
    notes: list[_Note] = []
    for index, method in enumerate(panel.methods):
        slot = (index, len(panel.methods))
        cells = {group: (panel.model, method, epsilon) for group, epsilon in enumerate(panel.epsilons)}
        values = {group: results.values(*cell, panel.metric) for group, cell in cells.items()}
        known = {group: panel.slim[cell] for group, cell in cells.items() if cell in panel.slim}
        places = marks.draw_in_groups(axes, slot, values, known, styles[method], panel.beside)
        for group, cell in cells.items():
            if text := results.remark(*cell, panel.metric):
                notes.append(_Note(places[group], text, values[group]))
    marks.draw_baselines(axes, results.baselines(panel.model, panel.metric))
    return notes


def _write(axes: Axes, note: _Note) -> None:
    """Write a note above or below its box, where there is more room; over it where there is none."""
    x, text, values = note.x, note.text, note.values
    if not values:
        return marks.draw_note(axes, x, text)
    to_axes = axes.transData + axes.transAxes.inverted()
    low, high = (to_axes.transform((x, value))[1] for value in (min(values), max(values)))
    above = 1.0 - high >= low
    if max(1.0 - high, low) < LETTER * len(text) + 0.04:
        return marks.draw_note(axes, x, text)
    marks.draw_remark(axes, (x, max(values) if above else min(values)), text, 4 if above else -4)


def _finish_axes(axes: Axes, panel: _Panel, declared: FigureKeys, remarks: bool) -> list[str]:
    """Set title, label, scale and limits, by default from 0 to all data; return the reference lines drawn."""
    how, room = declared.y, 1.3 if remarks else 1.06
    axes.set_title(panel.title)
    axes.set(xlabel="", ylabel=how.label or style.metric_label(panel.metric))
    # data limits: a clipped axis would hide outliers
    top = float(axes.dataLim.y1)
    if how.share and not how.limits:
        top = max(top, axes.get_ylim()[1] / room)  # panels so far, which have this axis too
    layout.scale_y(axes, how, top, room)
    lines = [line for line in declared.lines if line.metric in ("", panel.metric)]
    lines = [line for line in lines if line.at <= axes.get_ylim()[1]]
    for line in lines:
        axes.axhline(line.at, **marks.REFERENCE, zorder=1)
    return [line.label for line in lines]


def _entries(styles: Styles, variants: Mapping[str, str], others: layout.Entries) -> layout.Entries:
    """Return the legend's entries for methods, then `others`.

    A method that is not the published algorithm, and whose name does not say so, has a star, which the last
    entries explain.
    """
    words = {label: variants[label].partition(": ")[0] for label in styles if label in variants}
    stars = {label: word for label, word in words.items() if word not in styles[label].title}
    entries: layout.Entries = [
        (marks.patch(look), look.title + "*" * (label in stars)) for label, look in styles.items()
    ]
    blank = Line2D([], [], linestyle="none")
    return [*entries, *others, *((blank, f"* {word}") for word in sorted(set(stars.values())))]
