"""MMD with the settings before a search, and beside it with those that it found, on all models of a study."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from dpmc.errors import DpmcError
from dpmc.plots import Given, layout, marks, style
from dpmc.plots.frame import Results, models_of
from dpmc.plots.style import MethodStyle
from dpmc.studies import ModelSpec, Study

SUFFIX = "-tuned"
BEFORE, FOUND = "settings before the search", "tuned settings"
METRIC = "mmd"
ROW_HEIGHT, MOST_HEIGHT, ABOVE_AND_BELOW = 1.7, 8.5, 0.95  # inches: of a row, of the figure, of all but rows
TITLE_AND_TICKS = 25.0  # points of a row that are not its panels'
ROWS_WITH_TICKS = 5  # of more rows, those like the one below have no labels of their budgets
LETTER, DIGIT, GAP = 3.5, 6.5, 2.5  # points: a note's letter is wide, a digit high, and above its bar
TUNED_AT = "#FFEFC2"  # band of the budget that the settings were tuned at
BAR, MARKER, HOLLOW = 1.2, 4.6, 2.8  # line width and marker sizes in points: now, and before the search


@dataclass(frozen=True)
class _Cell:
    """What a panel shows of a method at an ε."""

    x: float
    epsilon: str
    look: MethodStyle
    values: list[float]
    before: list[float]  # with the settings before the search, in the right panel
    remark: str  # at its bar, or why it has none

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """First quartile, median and third quartile of the values."""
        low, middle, high = np.quantile(self.values, [0.25, 0.5, 0.75]).tolist()
        return low, middle, high


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure, one row per model, with a legend above.

    The title `before` says which settings the left panels have.

    Raises DpmcError where the study has none of the models, or no method has a tuned partner on any of them.
    """
    study, before = given.study, given.declared.titles.get("before", BEFORE)
    models = models_of(study, given.declared.models)
    rows = [model for model in models if pairs_on(study, model)]
    if not rows:
        raise DpmcError(f"study {study.name}: no method runs with and without tuning on {', '.join(models)}")
    results = Results.of_study(given.metrics, study)
    height = min(ROW_HEIGHT * len(rows) + ABOVE_AND_BELOW, MOST_HEIGHT)
    of_panel = (height - ABOVE_AND_BELOW) / len(rows) * 72 - TITLE_AND_TICKS  # points
    figure, axes = layout.panels(2 * len(rows), 2, height / len(rows), sharey="row")
    for left, right, model in zip(axes[::2], axes[1::2], rows, strict=True):
        exact = results.baselines(model, METRIC)
        panels = {left: _cells(model, study, results, 0), right: _cells(model, study, results, 1)}
        left.set_ylim(0.0, _top([*panels[left], *panels[right]], exact, of_panel))
        for one, cells in panels.items():
            _draw_panel(one, cells, study.models[model])
            marks.draw_baselines(one, exact)
            _write_remarks(one, cells, of_panel)
            _write_reasons(one, cells, of_panel)
        left.set_title(style.model_name(study, model))
        left.set_ylabel(style.metric_label(METRIC))
    for one, name in zip(axes[:2], (before, FOUND), strict=True):
        title = f"{name}, our chains\n"  # a line above the model's title
        one.set_title(title, loc="center", fontweight="bold")
    for one in axes[-2:]:
        one.set_xlabel(style.budget_label(study))
    if len(rows) > ROWS_WITH_TICKS:
        _share_ticks(axes[::2])
        _share_ticks(axes[1::2])
    layout.legend(figure, _entries(study, rows, results, before), handleheight=0.7)
    return figure


def pairs(study: Study) -> dict[str, str]:
    """Return label -> tuned label: `<the same>-tuned`, with hyperparameters that a search found."""
    return {
        label: label + SUFFIX
        for label in study.methods
        if label + SUFFIX in study.methods and study.settings_are_tuned(label + SUFFIX)
    }


def tuned_pairs(study: Study) -> dict[str, str]:
    """Return the pairs of a study that has some.

    Raises DpmcError where it has none.
    """
    found = pairs(study)
    if not found:
        raise DpmcError(f"study {study.name}: no method has a partner called <method>{SUFFIX}")
    return found


def pairs_on(study: Study, model: str) -> dict[str, str]:
    """Return those of `tuned_pairs` of which both run on a model."""
    return {
        one: other
        for one, other in tuned_pairs(study).items()
        if model in study.methods[one].models and model in study.methods[other].models
    }


def looks(study: Study) -> dict[str, MethodStyle]:
    """Return label -> style of the methods in pairs; a tuned method looks like its partner."""
    every = style.method_styles(study.methods)
    return {label: every[one] for one, other in tuned_pairs(study).items() for label in (one, other)}


def _share_ticks(column: Sequence[Axes]) -> None:
    """Leave the budgets away where the row below has the same."""
    names = [[(tick.get_text(), tick.get_fontweight()) for tick in one.get_xticklabels()] for one in column]
    for one, its, below in zip(column, names, names[1:], strict=False):
        one.tick_params(axis="x", labelbottom=its != below)


def _cells(model: str, study: Study, results: Results, side: int) -> list[_Cell]:
    """Return the cells of a panel, the left (0) or the right (1), from left to right."""
    found, styles = pairs_on(study, model), looks(study)
    cells = []
    for group, epsilon in enumerate(study.models[model].epsilons):
        for index, pair in enumerate(found.items()):
            cell, partner = (model, pair[side], epsilon, METRIC), (model, pair[0], epsilon, METRIC)
            x, before = marks.place(group, index, len(found)), results.values(*partner) if side else []
            values, remark = results.values(*cell), results.remark(*cell, few="", none="")
            cells.append(_Cell(x, epsilon, styles[pair[0]], values, before, remark))
    return cells


def _draw_panel(axes: Axes, cells: Sequence[_Cell], model: ModelSpec) -> None:
    """Draw bands, bars and markers, and the horizontal axis."""
    layout.groups(axes, model.epsilons)
    if model.tuning_epsilon in model.epsilons:
        group = model.epsilons.index(model.tuning_epsilon)
        layout.band(axes, group, TUNED_AT)
        axes.get_xticklabels()[group].set_fontweight("bold")
    for cell in cells:
        if cell.values:
            low, middle, high = cell.quartiles
            axes.vlines([cell.x], [low], [high], color=cell.look.edge, linewidth=BAR, zorder=3)
            axes.plot([cell.x], [middle], **_marker(cell.look, MARKER), zorder=4)
        else:
            cross = _marker(cell.look, 3.0) | {"marker": "x"}
            axes.plot([cell.x], [0.03], **cross, transform=axes.get_xaxis_transform(), zorder=5)
        if cell.before:
            hollow = _marker(cell.look, HOLLOW) | {"markerfacecolor": "white", "alpha": 0.75}
            axes.plot([cell.x], [float(np.median(cell.before))], **hollow, zorder=2)
    axes.yaxis.grid(True)


def _top(cells: Sequence[_Cell], exact: Sequence[float], height: float) -> float:
    """Return where the vertical axis ends: above all that these cells have, and their remarks."""
    drawn = [cell for cell in cells if cell.values]
    highest = max([0.0, *exact, *(cell.quartiles[2] for cell in drawn)])
    room = (GAP + 2 * DIGIT) / height if any(cell.remark for cell in drawn) else 0.07
    return (highest or 1.0) / (1.0 - room)


def _write_remarks(axes: Axes, cells: Sequence[_Cell], height: float) -> None:
    """Write remarks at bars, in a darker shade of their colour; a digit stands above its bar.

    What is longer than a digit stands on its end, above or below the bar, where there is more room.
    """
    top = axes.get_ylim()[1]
    slot = min(np.diff([cell.x for cell in cells]), default=1.0)
    last = (-1.0, 0.0)  # where the last remark stands: x, and points up
    for cell in cells:
        if not cell.values or not cell.remark:
            continue
        low, _, high = cell.quartiles
        bar = high / top * height
        up, digit = bar + GAP, len(cell.remark) == 1
        if digit and cell.x - last[0] < 1.5 * slot and abs(up - last[1]) < 0.9 * DIGIT:
            up = last[1] + DIGIT  # two digits side by side would be read as one number
        above = digit or top - high >= low
        place, rotation = (cell.x, high if above else low), 0 if digit else 90
        marks.draw_remark(axes, place, cell.remark, up - bar if above else -GAP, cell.look.edge, rotation)
        last = (cell.x, up)


def _write_reasons(axes: Axes, cells: Sequence[_Cell], height: float) -> None:
    """Write why values are missing: one note for all of an ε, since two side by side would not have room."""
    letters = int(0.94 * height / LETTER)
    missing = [cell for cell in cells if not cell.values]
    for epsilon in dict.fromkeys(cell.epsilon for cell in missing):
        group = [cell for cell in missing if cell.epsilon == epsilon]
        reasons = dict.fromkeys(cell.remark for cell in group)
        lines = [textwrap.fill(why, letters, break_long_words=False) for why in reasons]
        middle = sum(cell.x for cell in group) / len(group)
        marks.draw_note(axes, middle, "\n".join(lines), zorder=1.5)  # behind the neighbours' markers


def _marker(look: MethodStyle, size: float) -> dict[str, Any]:
    """Marker settings of a method."""
    return {
        "color": look.colour,
        "markeredgecolor": look.edge,
        "linestyle": "none",
        "marker": look.marker,
        "markersize": size,
        "markeredgewidth": 0.6,
    }


def _entries(study: Study, models: Sequence[str], results: Results, before: str) -> layout.Entries:
    """Return the legend's entries for methods, the hollow marker, exact samples and the band.

    A method that is not the published algorithm has a star, and its departure is spelled out.
    """
    shown = {one for model in models for one in pairs_on(study, model)}
    styles = {label: look for label, look in looks(study).items() if label in shown}
    entries: layout.Entries = [
        (Line2D([], [], **_marker(look, MARKER)), marks.starred(look, label, results.variants))
        for label, look in styles.items()
    ]
    hollow = Line2D([], [], ls="none", marker="o", ms=HOLLOW, color=style.GREY, mfc="white")
    entries.append((hollow, f"our median, {before}"))
    entries += marks.exact_samples(max(len(results.baselines(model, METRIC)) for model in models))
    if any(study.models[model].tuning_epsilon in study.models[model].epsilons for model in models):
        entries.append((Patch(facecolor=TUNED_AT), "ε of the search"))
    return entries + marks.departures(styles, results.variants)
