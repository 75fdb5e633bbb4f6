"""Kind `boxes`: box plots over the runs of each cell, grouped by ε, and slim bars beside them.

Slim bars are published boxes, or the cells of partners (key `pairs`). Every cell of the study that belongs to
a panel has a box or a note that says why it has none.
"""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc.reports.plots import PUBLISHED_RESULTS, ToDraw, captions, layout, marks, style
from dpmc.reports.plots.published import published_boxes, quartiles
from dpmc.reports.plots.selection import OnModel, pairs_of
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys
from dpmc.studies.whole import FEW_ITERATIONS, Results

NEEDS_METRIC = True
LETTER = 4.0  # points that a letter of a note takes
ROW = 1.45  # inches, of several rows of panels
MOST_SLOTS = 10  # boxes of a panel that is half as wide as a page
TUNED_AT = "#FFEFC2"  # band of the ε that hyperparameters were searched at


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models drawn as boxes and those beside them; no files."""
    pairs = pairs_of(study, how)
    return list(dict.fromkeys(model for model, _ in [*pairs, *pairs.values()])), []


def caption(study: Study, how: FigureKeys) -> list[str]:
    """Return what holds for all figures of the kind."""
    few = f"k: number of iterations, if below {FEW_ITERATIONS}."
    each = few if study.epsilon_kind == "total" else "ε is per iteration."
    return [*captions.of_boxes(study, how), each, *captions.of_methods(study, how)]


def draw(given: ToDraw) -> Figure:
    """Return the figure: one panel for each model and metric, and one legend above."""
    how, study = given.declared, given.study
    pairs, results = pairs_of(study, how), Results(given.metrics, study)
    looks = style.of_pairs(study, pairs, how.titles)
    partners: dict[str, dict[str, OnModel]] = {}  # model -> method -> what stands beside it
    for (model, method), other in pairs.items():
        partners.setdefault(model, {})[method] = other
    groups = [[(model, epsilon) for epsilon in study.models[model].epsilons] for model in partners]
    if (
        by_model := len(groups) > 1 and max(map(len, groups)) == 1
    ):  # models in one panel, not one tick in each
        groups = [[group for panel in groups for group in panel]]
    panels = [(those, metric) for those in groups for metric in how.metric]
    most = max(len(those) for those in groups) * max(map(len, partners.values()))
    columns = min(how.columns or (2 if how.wide and most <= MOST_SLOTS else 1), len(panels))
    row = ROW if len(panels) > columns else 1.9
    figure, places = layout.panels(how.wide, len(panels), columns, row, sharey=how.y.share)

    # A method that is not the published algorithm, and whose name does not say so, has a star.
    variants = {label: results.variants.get(label, "").partition(": ")[0] for label in looks}
    stars = {label: text for label, text in variants.items() if text not in looks[label].title}
    entries: layout.Entries = {
        look.title + "*" * (label in stars): marks.patch(look) for label, look in looks.items()
    }
    names = {}  # a pair has the name of the one whose label is shorter
    for model, methods in partners.items():
        names[model] = min(model, next(iter(methods.values()))[0], key=len)
        names[model] = style.model_name(study, names[model], how.titles)
    for index, (axes, (those, metric)) in enumerate(zip(places, panels, strict=True)):
        name, what = names[those[0][0]], how.titles.get(metric) or style.metric_title(metric)
        title = name if len(how.metric) == 1 else f"{name}: {what}" if len(groups) > 1 else what
        marked = ["∞" if epsilon == "inf" else epsilon for _, epsilon in those]
        if by_model:
            title, marked = what, [names[model].replace(" ", "\n") for model, _ in those]
        layout.set_groups(axes, marked)
        entries |= _draw_panel(axes, title, given, results, (those, metric), partners, looks)
        if index % columns == 0 or not how.y.share:
            axes.set_ylabel(how.y.label or style.metric_label(metric))
    for axes in [] if by_model else places[-columns:]:
        axes.set_xlabel(how.x.label or style.budget_label(study))
    layout.add_legend(figure, entries | {f"* {text}": {"ls": "none"} for text in sorted(set(stars.values()))})
    return figure


def _draw_panel(
    axes: Axes,
    title: str,
    given: ToDraw,
    results: Results,
    shown: tuple[list[OnModel], str],
    partners: Mapping[str, Mapping[str, OnModel]],
    looks: Mapping[str, MethodStyle],
) -> layout.Entries:
    """Draw groups (model, ε) of a metric, `partners` beside methods; return what else the legend explains."""
    how, study, (groups, metric), entries = given.declared, given.study, shown, layout.Entries()
    known = published_boxes(PUBLISHED_RESULTS, metric, study) if how.published else {}
    if how.pairs:
        others = {(m, of, e): (*other, e) for m, e in groups for of, other in partners[m].items()}
        values = {cell: results.values(*other, metric) for cell, other in others.items()}
        known = {cell: quartiles(its) for cell, its in values.items() if its}
    bar = marks.PARTNER if how.pairs else marks.PUBLISHED
    has_bars = any((m, e) in groups and method in partners[m] for m, method, e in known)
    if has_bars:
        entries[how.beside or f"published: {how.published}"] = bar
    above = [""]  # notes above the panel, where they cover no box
    methods = [method for method in looks if any(method in partners[model] for model, _ in groups)]
    for index, method in enumerate(methods):
        cells = {
            group: (model, method, epsilon)
            for group, (model, epsilon) in enumerate(groups)
            if method in partners[model] and epsilon in given.study.epsilons(model, method)
        }
        boxes = {group: results.values(*cell, metric) for group, cell in cells.items()}
        bars = {group: known[cell] for group, cell in cells.items() if cell in known}
        slot = (index, len(methods))
        places = marks.draw_boxes(axes, slot, boxes, bars, looks[method], bar if has_bars else None)
        for group, cell in cells.items():
            if text := results.remark(*cell, metric):
                marks.draw_note(axes, places[group], text, above=bool(boxes[group]))
                above += [text] if boxes[group] else []
    axes.set_title(title, pad=4.0 + LETTER * max(map(len, above)))
    for model in dict.fromkeys(model for model, _ in groups):
        its = [group for group, (other, _) in enumerate(groups) if other == model]
        exact = results.baselines(model, metric)
        marks.draw_baselines(axes, exact, (its[0] - 0.5, its[-1] + 0.5))
        entries |= marks.exact_samples(len(exact))
    tuned = any(study.methods[method].hyperparameters == "tuned" for method in methods)
    for group, (model, epsilon) in enumerate(groups):
        if tuned and epsilon == study.models[model].tuning_epsilon:
            layout.draw_band(axes, group, TUNED_AT)
            axes.get_xticklabels()[group].set_fontweight("bold")
            entries["ε of the search"] = Patch(facecolor=TUNED_AT)
    layout.scale_y(axes, how.y)
    for line in how.lines:
        if line.metric in ("", metric) and line.at <= axes.get_ylim()[1]:
            axes.axhline(line.at, **marks.REFERENCE, zorder=1)
            entries[line.label] = marks.REFERENCE
    return entries
