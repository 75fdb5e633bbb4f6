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
LETTER = 4.4  # points that a letter of a note takes
SLOTS_PER_COLUMN = 10  # a panel with more boxes than this gets the whole text width
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
    panels = [(model, metric) for model in partners for metric in how.metric]
    most = max(len(study.models[model].epsilons) * len(methods) for model, methods in partners.items())
    columns = min(how.columns or (2 if most <= SLOTS_PER_COLUMN else 1), len(panels))
    row = 2.1 if len(panels) <= 3 * columns else 1.85  # all on a page
    figure, places = layout.panels(len(panels), columns, row, sharey=how.y.share)

    # A method that is not the published algorithm, and whose name does not say so, has a star.
    variants = {label: results.variants.get(label, "").partition(": ")[0] for label in looks}
    stars = {label: text for label, text in variants.items() if text not in looks[label].title}
    entries: layout.Entries = {
        look.title + "*" * (label in stars): marks.patch(look) for label, look in looks.items()
    }
    for index, (axes, (model, metric)) in enumerate(zip(places, panels, strict=True)):
        # A pair has the name of the one whose label is shorter.
        beside, _ = next(iter(partners[model].values()))
        name = style.model_name(study, min(model, beside, key=len), how.titles)
        what = how.titles.get(metric) or style.metric_title(metric)
        title = name if len(how.metric) == 1 else f"{name}: {what}" if len(partners) > 1 else what
        entries |= _draw_panel(axes, title, given, results, (model, metric), partners[model], looks)
        if index % columns == 0 or not how.y.share:
            axes.set_ylabel(how.y.label or style.metric_label(metric))
    for axes in places[-columns:]:
        axes.set_xlabel(how.x.label or style.budget_label(study))
    layout.add_legend(figure, entries | {f"* {text}": {"ls": "none"} for text in sorted(set(stars.values()))})
    return figure


def _draw_panel(
    axes: Axes,
    title: str,
    given: ToDraw,
    results: Results,
    shown: tuple[str, str],
    partners: Mapping[str, OnModel],
    looks: Mapping[str, MethodStyle],
) -> layout.Entries:
    """Draw a model's metric, `partners` beside its methods; return what else the legend must explain."""
    how, (model, metric), entries = given.declared, shown, layout.Entries()
    spec = given.study.models[model]
    layout.set_groups(axes, ["∞" if epsilon == "inf" else epsilon for epsilon in spec.epsilons])
    known = published_boxes(PUBLISHED_RESULTS, metric, given.study) if how.published else {}
    if how.pairs:
        partner_cells = {
            (model, method, e): (*partners[method], e) for method in partners for e in spec.epsilons
        }
        values = {cell: results.values(*other, metric) for cell, other in partner_cells.items()}
        known = {cell: quartiles(its) for cell, its in values.items() if its}
    bar = marks.PARTNER if how.pairs else marks.PUBLISHED
    has_bars = any(of == model and method in partners for of, method, _ in known)
    if has_bars:
        entries[how.beside or f"published: {how.published}"] = bar
    above = [""]  # notes above the panel, where they cover no box
    methods = [method for method in looks if method in partners]
    for index, method in enumerate(methods):
        cells = {group: (model, method, epsilon) for group, epsilon in enumerate(spec.epsilons)}
        boxes = {group: results.values(*cell, metric) for group, cell in cells.items()}
        bars = {group: known[cell] for group, cell in cells.items() if cell in known}
        slot = (index, len(methods))
        places = marks.draw_boxes(axes, slot, boxes, bars, looks[method], bar if has_bars else None)
        for group, cell in cells.items():
            if text := results.remark(*cell, metric):
                marks.draw_note(axes, places[group], text, above=bool(boxes[group]))
                above += [text] if boxes[group] else []
    axes.set_title(title, pad=4.0 + LETTER * max(map(len, above)))
    exact = results.baselines(model, metric)
    marks.draw_baselines(axes, exact)
    entries |= marks.exact_samples(len(exact))
    tuned = any(given.study.methods[method].hyperparameters == "tuned" for method in methods)
    if tuned and spec.tuning_epsilon in spec.epsilons:
        group = spec.epsilons.index(spec.tuning_epsilon)
        layout.draw_band(axes, group, TUNED_AT)
        axes.get_xticklabels()[group].set_fontweight("bold")
        entries["ε of the search"] = Patch(facecolor=TUNED_AT)
    layout.scale_y(axes, how.y)
    for line in how.lines:
        if line.metric in ("", metric) and line.at <= axes.get_ylim()[1]:
            axes.axhline(line.at, **marks.REFERENCE, zorder=1)
            entries[line.label] = marks.REFERENCE
    return entries
