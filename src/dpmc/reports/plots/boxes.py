"""Kind `boxes`: box plots over the runs of each cell, grouped by ε, and slim bars beside them.

Slim bars are published boxes, or the cells of partners (key `pairs`). Every cell of the study that belongs to
a panel has a box or a note that says why it has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc.metrics.table import FEW_ITERATIONS, Results
from dpmc.reports.plots import Given, layout, marks, style
from dpmc.reports.plots.published import Quartiles, published_boxes, quartiles
from dpmc.reports.plots.selection import CellKey, OnModel, pairs_of
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

LETTER = 4.4  # points that a letter of a note takes
SLOTS_PER_COLUMN = 10  # a panel with more boxes than this gets the whole text width
TUNED_AT = "#FFEFC2"  # band of the ε that hyperparameters were searched at
OF_EXACT_SAMPLES = {"mmd", "mean_error"}  # metrics that exact samples have, too


@dataclass(frozen=True)
class _Panel:
    """A metric of a model, by ε and method."""

    model: str
    metric: str
    title: str
    looks: Mapping[str, MethodStyle]  # of the methods here
    bars: Mapping[CellKey, Quartiles]  # the slim ones


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models drawn as boxes and those beside them; no files."""
    pairs = pairs_of(study, how)
    return list(dict.fromkeys(model for model, _ in [*pairs, *pairs.values()])), []


def common_caption(study: Study, how: FigureKeys) -> str:
    """Return what the captions of all figures of this kind say of their marks."""
    sentences = [
        f"Boxes: quartiles and median over {study.seeds} independent runs; whiskers end at the last run "
        "within 1.5 interquartile ranges of the box, runs beyond them are drawn singly."
    ]
    if how.published:
        sentences.append(f"Slim bars: published quartiles and median ({how.published}).")
    if how.beside:
        sentences.append(f"Hollow slim bars: quartiles and median of our runs, {how.beside}.")
    if OF_EXACT_SAMPLES & set(how.metric):
        sentences.append("Grey band: exact samples, from the least to the greatest; line: their median.")
    if study.epsilon_kind == "total":
        sentences.append(f"k: number of iterations, if below {FEW_ITERATIONS}.")
    return " ".join(sentences)


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: one panel for each model and metric, and one legend above."""
    how, study = given.declared, given.study
    pairs, results = pairs_of(study, how), Results.of_study(given.metrics, study)
    looks = style.of_pairs(study, pairs, how.titles)
    panels = _panels(given, results, pairs, looks)
    most = max(len(study.models[panel.model].epsilons) * len(panel.looks) for panel in panels)
    columns = min(how.columns or (2 if most <= SLOTS_PER_COLUMN else 1), len(panels))
    figure, places = layout.panels(len(panels), columns, 2.1, sharey=how.y.share)
    bar = marks.PARTNER if how.pairs else marks.PUBLISHED
    below: layout.Entries = {}
    for axes, panel in zip(places, panels, strict=True):
        below |= _draw_panel(axes, panel, given, results, bar)
    for axes in places[-columns:]:
        axes.set_xlabel(how.x.label or style.budget_label(study))

    # A method that is not the published algorithm, and whose name does not say so, has a star.
    variants = {label: results.variants.get(label, "").partition(": ")[0] for label in looks}
    stars = {label: text for label, text in variants.items() if text not in looks[label].title}
    entries: layout.Entries = {
        look.title + "*" * (label in stars): marks.patch(look) for label, look in looks.items()
    }
    if any(panel.bars for panel in panels):
        entries[how.beside or f"published: {how.published}"] = bar
    entries |= marks.exact_samples(max(len(results.baselines(panel.model, panel.metric)) for panel in panels))
    entries |= below | {f"* {text}": {"ls": "none"} for text in sorted(set(stars.values()))}
    layout.legend(figure, entries)
    return figure


def _panels(
    given: Given, results: Results, pairs: Mapping[OnModel, OnModel], looks: Mapping[str, MethodStyle]
) -> list[_Panel]:
    """Return the panels, metrics side by side for each model."""
    how, study = given.declared, given.study
    models, panels = dict.fromkeys(model for model, _ in pairs), []
    for model in models:
        partners = {method: other for (shown, method), other in pairs.items() if shown == model}
        here = {method: looks[method] for method in looks if method in partners}
        # a pair has the name of the one whose label is shorter
        label = min(model, next(iter(partners.values()))[0], key=len)
        name = style.model_name(study, label, how.titles)
        for metric in how.metric:
            bars: dict[CellKey, Quartiles] = {}
            if how.published:
                known = published_boxes(given.published, metric, study)
                bars = {cell: bar for cell, bar in known.items() if cell[0] == model and cell[1] in here}
            for method, other in partners.items() if how.pairs else ():
                for epsilon in study.models[model].epsilons:
                    if values := results.values(*other, epsilon, metric):
                        bars[model, method, epsilon] = quartiles(values)
            what = how.titles.get(metric) or style.metric_title(metric)
            title = name if len(how.metric) == 1 else f"{name}: {what}" if len(models) > 1 else what
            panels.append(_Panel(model, metric, title, here, bars))
    return panels


def _draw_panel(
    axes: Axes, panel: _Panel, given: Given, results: Results, bar: Mapping[str, object]
) -> layout.Entries:
    """Draw one panel; return the legend's entries for its band of the search and its reference lines."""
    how, spec = given.declared, given.study.models[panel.model]
    entries: layout.Entries = {}
    layout.groups(axes, ["∞" if epsilon == "inf" else epsilon for epsilon in spec.epsilons])
    tuned = any(given.study.methods[method].hyperparameters == "tuned" for method in panel.looks)
    if tuned and spec.tuning_epsilon in spec.epsilons:
        group = spec.epsilons.index(spec.tuning_epsilon)
        layout.band(axes, group, TUNED_AT)
        axes.get_xticklabels()[group].set_fontweight("bold")
        entries["ε of the search"] = Patch(facecolor=TUNED_AT)
    above = [""]  # notes above the panel, where they cover no box
    for index, (method, look) in enumerate(panel.looks.items()):
        cells = {group: (panel.model, method, epsilon) for group, epsilon in enumerate(spec.epsilons)}
        values = {group: results.values(*cell, panel.metric) for group, cell in cells.items()}
        bars = {group: panel.bars[cell] for group, cell in cells.items() if cell in panel.bars}
        slot = (index, len(panel.looks))
        places = marks.draw_boxes(axes, slot, values, bars, look, bar if panel.bars else None)
        for group, cell in cells.items():
            if text := results.remark(*cell, panel.metric):
                marks.draw_note(axes, places[group], text, above=bool(values[group]))
                above += [text] if values[group] else []
    axes.set_title(panel.title, pad=4.0 + LETTER * max(map(len, above)))
    marks.draw_baselines(axes, results.baselines(panel.model, panel.metric))
    axes.set_ylabel(how.y.label or style.metric_label(panel.metric))
    layout.scale_y(axes, how.y)
    for line in how.lines:
        if line.metric in ("", panel.metric) and line.at <= axes.get_ylim()[1]:
            axes.axhline(line.at, **marks.REFERENCE, zorder=1)
            entries[line.label] = marks.REFERENCE
    return entries
