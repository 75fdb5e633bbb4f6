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
from dpmc.studies import Study

SUFFIX = "-tuned"
BEFORE, FOUND = "settings before the search", "tuned settings"
METRIC = "mmd"
ROW_HEIGHT, MOST_HEIGHT, ABOVE_AND_BELOW = 1.7, 8.5, 0.95  # inches: of a row, of the figure, of all but rows
TITLE_AND_TICKS = 25.0  # points of a row that are not its panels'
ROWS_WITH_TICKS = 5  # of more rows, those like the one below have no labels of their budgets
LETTER, DIGIT, GAP = 3.5, 6.5, 2.5  # points: a note's letter is wide, a digit high, and above its bar
TUNED_AT = "#FFEFC2"  # band of the budget that the settings were tuned at
BAR, MARKER, HOLLOW = 1.2, 4.6, 2.8  # line width and marker sizes in points: now, and before the search


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
    figure, axes = layout.panels(2 * len(rows), 2, height / len(rows), sharey="row")
    for left, right, model in zip(axes[::2], axes[1::2], rows, strict=True):
        row = _Row(model, study, results, (height - ABOVE_AND_BELOW) / len(rows) * 72 - TITLE_AND_TICKS)
        left.set_ylim(0.0, row.top())
        for one, found in ((left, False), (right, True)):
            row.draw(one, found)
            row.write_notes(one, found)
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
    layout.legend(figure, _entries(study, rows, results, before), columns=3, handleheight=0.7)
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


@dataclass(frozen=True)
class _Row:
    """The two panels of a model."""

    model: str
    study: Study
    results: Results
    height: float  # of a panel, about, in points

    @property
    def epsilons(self) -> tuple[str, ...]:
        """The budgets, from left to right."""
        return self.study.models[self.model].epsilons

    def values(self, method: str, epsilon: str) -> list[float]:
        """What is drawn of a cell."""
        return self.results.values(self.model, method, epsilon, METRIC)

    def cells(self, right: bool) -> list[tuple[float, str, str, str]]:
        """(x, ε, method drawn, its partner before the search) of a panel, from left to right."""
        found = pairs_on(self.study, self.model)
        return [
            (marks.place(group, index, len(found)), epsilon, pair[right], pair[0])
            for group, epsilon in enumerate(self.epsilons)
            for index, pair in enumerate(found.items())
        ]

    def draw(self, axes: Axes, right: bool) -> None:
        """Draw bands, exact samples, bars and markers of one panel, and its horizontal axis."""
        styles, tuned_at = looks(self.study), self.study.models[self.model].tuning_epsilon
        layout.groups(axes, self.epsilons)
        if tuned_at in self.epsilons:
            group = self.epsilons.index(tuned_at)
            layout.band(axes, group, TUNED_AT)
            axes.get_xticklabels()[group].set_fontweight("bold")
        marks.draw_baselines(axes, self.results.baselines(self.model, METRIC))
        for x, epsilon, method, partner in self.cells(right):
            if values := self.values(method, epsilon):
                _draw_cell(axes, x, values, styles[method])
            if right and (before := self.values(partner, epsilon)):
                hollow = _marker(styles[method], HOLLOW) | {"markerfacecolor": "white", "alpha": 0.75}
                axes.plot([x], [float(np.median(before))], **hollow, zorder=2)
        axes.yaxis.grid(True)

    def top(self) -> float:
        """Where the vertical axis ends: above all that either panel has, and its remarks."""
        highest, remarks = max(self.results.baselines(self.model, METRIC), default=0.0), False
        for right in (False, True):
            for _, epsilon, method, _ in self.cells(right):
                if values := self.values(method, epsilon):
                    highest = max(highest, float(np.quantile(values, 0.75)))
                    remarks = remarks or bool(self.remark(method, epsilon))
        room = (GAP + 2 * DIGIT) / self.height if remarks else 0.07
        return (highest or 1.0) / (1.0 - room)

    def remark(self, method: str, epsilon: str) -> str:
        """What to write at a bar."""
        return self.results.remark(self.model, method, epsilon, METRIC, before="")

    def write_notes(self, axes: Axes, right: bool) -> None:
        """Write remarks at bars, and why values are missing, into one panel."""
        styles = looks(self.study)
        missing: dict[str, list[tuple[float, str]]] = {}
        slot, top = marks.GROUP_WIDTH / len(pairs_on(self.study, self.model)), axes.get_ylim()[1]
        last = (-1.0, 0.0)  # where the last remark stands: x, and points up
        for x, epsilon, method, _ in self.cells(right):
            values, remark = self.values(method, epsilon), self.remark(method, epsilon)
            if not values:
                cross = _marker(styles[method], 3.0) | {"marker": "x"}
                axes.plot([x], [0.03], **cross, transform=axes.get_xaxis_transform(), zorder=5)
                why = self.results.why_missing(self.model, method, epsilon, METRIC)
                missing.setdefault(epsilon, []).append((x, why))
            elif remark:
                bar = float(np.quantile(values, 0.75)) / top * self.height
                height = bar + GAP
                if len(remark) == 1 and x - last[0] < 1.5 * slot and abs(height - last[1]) < 0.9 * DIGIT:
                    height = last[1] + DIGIT  # two digits side by side would be read as one number
                _draw_remark(axes, x, values, remark, height - bar, styles[method])
                last = (x, height)
        letters = int(0.94 * self.height / LETTER)
        for cells in missing.values():
            # One note for all of a group: two of them, side by side, would not have room.
            reasons = dict.fromkeys(why for _, why in cells)
            lines = [textwrap.fill(why, letters, break_long_words=False) for why in reasons]
            middle = sum(x for x, _ in cells) / len(cells)
            marks.draw_note(axes, middle, "\n".join(lines), zorder=1.5)  # behind the neighbours' markers


def _draw_cell(axes: Axes, x: float, values: Sequence[float], look: MethodStyle) -> None:
    """Draw a bar from quartile to quartile and a marker at the median."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    axes.vlines([x], [low], [high], color=look.edge, linewidth=BAR, zorder=3)
    axes.plot([x], [middle], **_marker(look, MARKER), zorder=4)


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


def _draw_remark(
    axes: Axes, x: float, values: Sequence[float], text: str, gap: float, look: MethodStyle
) -> None:
    """Write a remark at a bar, in a darker shade of its colour; a digit stands `gap` points above.

    What is longer than a digit stands on its end, above or below the bar, where there is more room.
    """
    low, high = (float(value) for value in np.quantile(values, [0.25, 0.75]))
    digit = len(text) == 1
    above = digit or axes.get_ylim()[1] - high >= low
    end, rotation = (x, high if above else low), 0 if digit else 90
    marks.draw_remark(axes, end, text, gap if above else -GAP, look.edge, rotation)


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
