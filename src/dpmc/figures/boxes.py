"""Box plots over the chains of each cell, grouped by epsilon, with the published boxes beside ours.

Every cell of the study that belongs to a panel has a box or a note that says why it has none.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.errors import DpmcError
from dpmc.figures import style
from dpmc.figures.style import MethodStyle
from dpmc.randomness import canonical_epsilon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

FEW_ITERATIONS = 10  # a box of chains shorter than this says how short they are
GROUP_WIDTH = 0.86  # of the distance between two epsilons
SLOTS_PER_COLUMN = 10  # a panel with more boxes than this gets the whole text width
CLIP_TARGET = 0.1  # the thesis tuned for less than 10 % clipped ratios (Section 6.3)
LABELS = {
    "mmd": "MMD",
    "mean_error": "distance from the true mean",
    "ratio_clip_fraction": "fraction clipped",
    "gradient_clip_fraction": "fraction clipped",
    "acceptance_rate": "acceptance rate",
}


@dataclass(frozen=True)
class Panel:
    """One panel: a metric of a model (label)."""

    model: str
    metric: str
    title: str


@dataclass(frozen=True)
class PublishedBox:
    """Quartiles of one published box plot."""

    q1: float
    median: float
    q3: float


@dataclass
class Results:
    """A study's metrics, looked up by cell."""

    # (model, method, epsilon, metric) -> seed -> value
    numbers: dict[tuple[str, str, str, str], dict[str, float]] = field(default_factory=dict)
    statuses: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)  # method -> how it departs from its name

    @classmethod
    def of(cls, metrics: DataFrame, study: str, elsewhere: Mapping[str, str] | None = None) -> Results:
        """Read the tidy table; rows of other studies are left out.

        `elsewhere`: method -> the study that ran it, for methods whose rows are another study's.
        """
        results = cls()
        columns = ("study", "model", "method", "epsilon", "metric", "value", "seed")
        for row in zip(*(metrics[column].tolist() for column in columns), strict=True):
            if row[0] != (elsewhere or {}).get(str(row[2]), study):
                continue
            model, method, metric = str(row[1]), str(row[2]), str(row[4])
            cell = (model, method, _epsilon(row[3]))
            if metric == "status":
                results.statuses.setdefault(cell, []).append(str(row[5]))
            elif metric == "variant":
                results.variants[method] = str(row[5])
            else:
                results.numbers.setdefault((*cell, metric), {})[str(row[6])] = float(row[5])
        return results

    @classmethod
    def of_study(cls, metrics: DataFrame, study: Study) -> Results:
        """Read all rows that are the study's: of what it runs, and of what it takes from others."""
        elsewhere = {label: spec.from_study for label, spec in study.methods.items() if spec.from_study}
        return cls.of(metrics, study.name, elsewhere)

    def values(self, model: str, method: str, epsilon: str, metric: str) -> list[float]:
        """The metric's value for each seed that has one."""
        return list(self.by_seed(model, method, epsilon, metric).values())

    def by_seed(self, model: str, method: str, epsilon: str, metric: str) -> dict[str, float]:
        """The metric's values, by seed."""
        return self.numbers.get((model, method, epsilon, metric), {})

    def baselines(self, model: str, metric: str) -> list[float]:
        """The metric's value for exact samples."""
        return self.values(model, "baseline", "", metric)

    def seeds(self, model: str, method: str, epsilon: str) -> int:
        """How many chains the cell has, whatever could be computed of them."""
        return len(self.values(model, method, epsilon, "iterations"))

    def iterations(self, model: str, method: str, epsilon: str) -> int | None:
        """Iterations of the cell's shortest chain."""
        lengths = self.values(model, method, epsilon, "iterations")
        return int(min(lengths)) if lengths else None

    def why_missing(self, model: str, method: str, epsilon: str, metric: str) -> str:
        """Why there is no value, in a few words."""
        length = self.iterations(model, method, epsilon)
        if length is None:
            return "no results"
        if length < FEW_ITERATIONS:
            return f"{length} iteration{'' if length == 1 else 's'}"
        for status in self.statuses.get((model, method, epsilon), []):
            for reason in status.split("; "):
                names, _, text = reason.partition(": ")
                if metric in names.split(", "):
                    return _shortened(text)
        return "not computed"


@functools.lru_cache(maxsize=1024)  # a table has few, and tens of thousands of rows
def _epsilon(value: Any) -> str:
    """The canonical name of an epsilon read from a table; "" for none."""
    blank = value is None or value == "" or (isinstance(value, float) and math.isnan(value))
    return "" if blank else canonical_epsilon(value)


def _shortened(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def read_published(folder: Path, metric: str, study: Study) -> dict[tuple[str, str, str], PublishedBox]:
    """Return (model, method, epsilon) -> published box, for what the study runs as published.

    A label that is not published, or runs with another number of rows, has no box to compare with.

    Raises DpmcError for a file that is not a table of boxes.
    """
    path = folder / f"{metric}.csv"
    if not path.is_file() or study.epsilon_kind != "total":
        return {}
    parts: dict[tuple[str, str, str], dict[str, float]] = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                cell = (row["model"], row["method"], _epsilon(row["epsilon"]))
                if row["statistic"] in ("q1", "median", "q3"):
                    parts.setdefault(cell, {})[row["statistic"]] = float(row["value"])
        boxes = {cell: PublishedBox(**quartiles) for cell, quartiles in parts.items()}
        rows = _published_rows(folder)
    except (KeyError, TypeError, ValueError) as error:
        raise DpmcError(f"{path}: not a table of published boxes ({error!r})") from None
    return {
        cell: box
        for cell, box in boxes.items()
        if cell[0] in study.models and study.models[cell[0]].n in (None, rows[cell[0]])
    }


def _published_rows(folder: Path) -> dict[str, int]:
    """Model -> number of rows of the published experiment."""
    with open(folder / "models.csv", newline="", encoding="utf-8") as file:
        return {row["model"]: int(row["n"]) for row in csv.DictReader(file)}


def models_of(study: Study, ids: Sequence[str]) -> list[str]:
    """Return the study's labels of the given models, in the order of `ids`, then of the study.

    Models that run without privacy only (the clipping experiment) are left out: these figures have
    a budget on their axis. Raises DpmcError when there is none.
    """
    labels = [
        label for wanted in ids for label in private_models(study) if study.models[label].model == wanted
    ]
    if not labels:
        raise DpmcError(
            f"study {study.name}: none of its models belongs to this figure, which shows {', '.join(ids)}"
        )
    return labels


def private_models(study: Study) -> list[str]:
    """Return the study's model labels that have a finite budget."""
    return [label for label, spec in study.models.items() if set(spec.epsilons) != {"inf"}]


def draw_panels(
    panels: Sequence[Panel],
    metrics: DataFrame,
    study: Study,
    published: Path | None,
    columns: int | None = None,
    methods: Sequence[str] | None = None,
) -> Figure:
    """Return a figure of box plots, one panel each, with one legend above.

    `published`: folder of the published boxes; None: none are drawn beside ours.
    `columns`: panels side by side; by default two where boxes stay wide enough, else one.
    `methods`: labels of the methods to show, in this order; by default all, in the study's.
    """
    from matplotlib.figure import Figure

    results = Results.of_study(metrics, study)
    styles = method_styles_in_order(panels, study)
    if methods is not None:
        styles = {label: styles[label] for label in methods if label in styles}
    if columns is None:
        columns = 2 if len(panels) > 1 and _most_boxes(panels, study) <= SLOTS_PER_COLUMN else 1
    rows = math.ceil(len(panels) / columns)
    height = (2.1 if rows < 4 else 1.9) if columns > 1 else 1.95 if rows < 3 else 1.8
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, rows * height + 0.5), layout="constrained", dpi=100)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        shown = _Shown()
        for one, panel in zip(axes, panels, strict=False):
            boxes = {} if published is None else read_published(published, panel.metric, study)
            _draw_panel(one, panel, results, study, styles, boxes, shown)
        for spare in axes[len(panels) :]:
            spare.remove()
        kind = "total" if study.epsilon_kind == "total" else "per iteration"
        for index in range(len(panels)):
            if index + columns >= len(panels):
                axes[index].set_xlabel(f"privacy budget ε ({kind})")
        _legend(figure, styles, shown, results.variants)
    return figure


def method_styles_in_order(panels: Sequence[Panel], study: Study) -> dict[str, MethodStyle]:
    """Return label -> style of the methods that any panel shows, in the study's order."""
    models = {panel.model for panel in panels}
    every = style.method_styles(dict(study.methods))
    return {label: every[label] for label, spec in study.methods.items() if models.intersection(spec.models)}


def _most_boxes(panels: Sequence[Panel], study: Study) -> int:
    """The number of boxes in the fullest panel."""
    return max(
        len(study.models[panel.model].epsilons)
        * sum(panel.model in spec.models for spec in study.methods.values())
        for panel in panels
    )


@dataclass
class _Shown:
    """What the legend must explain."""

    baselines: int = 0
    published: bool = False
    target: bool = False


def _draw_panel(
    axes: Axes,
    panel: Panel,
    results: Results,
    study: Study,
    styles: Mapping[str, MethodStyle],
    published: Mapping[tuple[str, str, str], PublishedBox],
    shown: _Shown,
) -> None:
    """Draw one panel: groups of boxes, published glyphs, baselines, notes."""
    epsilons = list(study.models[panel.model].epsilons)
    methods = [label for label in styles if panel.model in study.methods[label].models]
    slot = GROUP_WIDTH / max(len(methods), 1)
    beside = any((panel.model, m, e) in published for m in methods for e in epsilons)
    notes: list[tuple[float, str]] = []
    remarks: list[tuple[float, list[float], str]] = []
    drawn: dict[str, dict[float, list[float]]] = {method: {} for method in methods}
    for group, epsilon in enumerate(epsilons):
        if group % 2 == 0:
            axes.axvspan(group - 0.5, group + 0.5, color=style.BAND, lw=0, zorder=0)
        for index, method in enumerate(methods):
            centre = group + (index + 0.5) * slot - GROUP_WIDTH / 2
            cell = (panel.model, method, epsilon)
            values = results.values(*cell, panel.metric)
            ours = centre - 0.16 * slot if beside else centre
            if values:
                drawn[method][ours] = values
                if remark := _remark(cell, values, results):
                    remarks.append((ours, values, remark))
            else:
                notes.append((ours, f"no box: {results.why_missing(*cell, panel.metric)}"))
            if cell in published:
                _glyph(axes, published[cell], centre + 0.28 * slot, 0.2 * slot, styles[method])
                shown.published = True
    for method, values_at in drawn.items():
        draw_boxes(axes, values_at, slot * (0.54 if beside else 0.7), styles[method])
    _baselines(axes, results.baselines(panel.model, panel.metric), shown)
    _finish_axes(axes, panel, epsilons, shown, 1.3 if remarks else 1.06)
    for position, text in notes:
        draw_note(axes, position, text)
    for position, values, text in remarks:
        _write_remark(axes, position, values, text)


def draw_boxes(axes: Axes, values_at: Mapping[float, list[float]], width: float, look: MethodStyle) -> None:
    """Draw our boxes of one look by place: quartiles, median, whiskers to 1.5 interquartile ranges, outliers.

    One call for all takes half of what a call for each does.
    """
    if not values_at:
        return
    edge = style.mixed(look.colour, "#000000", 0.45)
    line = {"color": edge, "linewidth": 0.7}
    axes.boxplot(
        list(values_at.values()),
        positions=list(values_at),
        widths=width,
        patch_artist=True,
        manage_ticks=False,
        boxprops={
            "facecolor": look.colour,
            "edgecolor": edge,
            "linewidth": 0.7,
            "hatch": look.hatch,
        },
        whiskerprops=line,
        capprops=line,
        medianprops={"color": "black", "linewidth": 1.5, "solid_capstyle": "butt"},
        flierprops={
            "marker": look.marker,
            "markersize": 2.4,
            "markerfacecolor": "none",
            "markeredgecolor": edge,
            "markeredgewidth": 0.5,
        },
        capwidths=0.5 * width,
        zorder=3,
    )


def _glyph(axes: Axes, box: PublishedBox, x: float, width: float, look: MethodStyle) -> None:
    """Draw a published box: a slim bar from q1 to q3 and a tick at the median."""
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(
            (x - width / 2, box.q1),
            width,
            box.q3 - box.q1,
            facecolor=style.mixed(look.colour, "#FFFFFF", 0.55),
            edgecolor=style.GREY,
            linewidth=0.6,
            zorder=4,
        )
    )
    axes.plot(
        [x - 0.95 * width, x + 0.95 * width],
        [box.median] * 2,
        color=style.INK,
        linewidth=1.1,
        solid_capstyle="butt",
        zorder=5,
    )
    axes.update_datalim([(x, box.q1), (x, box.q3)])


def _remark(cell: tuple[str, str, str], values: Sequence[float], results: Results) -> str:
    """What to say at a box whose chains are very short or partly missing; "" otherwise."""
    length, chains = results.iterations(*cell), results.seeds(*cell)
    parts = []
    if length is not None and length < FEW_ITERATIONS:
        parts.append(f"k = {length}")
    if len(values) < chains:
        parts.append(f"{len(values)} of {chains}")
    return ", ".join(parts)


def _write_remark(axes: Axes, x: float, values: Sequence[float], text: str) -> None:
    """Write a remark above or below a box, where there is more room."""
    low, high = min(values), max(values)
    above = axes.get_ylim()[1] - high >= low
    axes.annotate(
        text,
        (x, high if above else low),
        xytext=(0, 4 if above else -4),
        textcoords="offset points",
        rotation=90,
        ha="center",
        va="bottom" if above else "top",
        fontsize=7,
        color=style.INK,
        zorder=6,
    )


def draw_note(axes: Axes, x: float, text: str) -> None:
    """Write into the panel, where a box would stand, why there is none."""
    axes.annotate(
        text,
        (x, 0.06),
        xycoords=axes.get_xaxis_transform(),
        rotation=90,
        ha="center",
        va="bottom",
        fontsize=7,
        color=style.INK,
        bbox={"boxstyle": "square,pad=0.08", "facecolor": "white", "edgecolor": "none"},
        zorder=6,
    )


def _baselines(axes: Axes, values: Sequence[float], shown: _Shown) -> None:
    """Draw exact samples' values as thin black lines."""
    for value in values:
        axes.axhline(value, color="black", linewidth=0.3, zorder=1)
    shown.baselines = max(shown.baselines, len(values))


def _finish_axes(axes: Axes, panel: Panel, epsilons: Sequence[str], shown: _Shown, room: float) -> None:
    """Set title, labels, ticks and limits; the y axis: 0 to `room` times the largest value."""
    axes.set_title(panel.title)
    axes.set_ylabel(LABELS[panel.metric])
    axes.set_xticks(range(len(epsilons)), ["∞" if e == "inf" else e for e in epsilons])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(epsilons) - 0.5)
    # data limits: a clipped axis would hide outliers
    top = float(axes.dataLim.y1)
    top = top if math.isfinite(top) and top > 0.0 else 1.0
    axes.set_ylim(0.0, room * top)
    if panel.metric == "ratio_clip_fraction" and room * top > CLIP_TARGET:
        axes.axhline(CLIP_TARGET, color=style.GREY, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
        shown.target = True
    axes.yaxis.grid(True, color="#DDDDDD", linewidth=0.4)


def _legend(
    figure: Figure,
    styles: Mapping[str, MethodStyle],
    shown: _Shown,
    variants: Mapping[str, str],
) -> None:
    """Explain methods, the published glyph, baselines and the clipping target above the panels.

    A method that is not the published algorithm has a star, and its departure is spelled out.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle

    handles: list[Any] = [
        Patch(
            facecolor=look.colour,
            edgecolor=style.mixed(look.colour, "#000000", 0.45),
            hatch=look.hatch,
            linewidth=0.7,
        )
        for look in styles.values()
    ]
    labels = [look.title + "*" * (label in variants) for label, look in styles.items()]
    if shown.published:
        handles.append(Rectangle((0, 0), 1, 1))
        labels.append("published quartiles, median")
    if shown.baselines:
        handles.append(Line2D([], [], color="black", linewidth=0.6))
        labels.append(f"{shown.baselines} exact samples")
    if shown.target:
        handles.append(Line2D([], [], color=style.GREY, linewidth=0.7, linestyle=(0, (4, 3))))
        labels.append("tuning target: below 10 %")
    for departure in sorted({variants[label] for label in styles if label in variants}):
        handles.append(Line2D([], [], linestyle="none"))
        labels.append("* " + departure.partition(": ")[0])
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=3,
        frameon=False,
        handlelength=1.8,
        handleheight=1.0,
        columnspacing=1.2,
        handler_map={Rectangle: _glyph_in_legend()},
    )


def _glyph_in_legend() -> Any:
    """A legend entry that looks like the published glyph: an upright bar with a tick."""
    from matplotlib.legend_handler import HandlerBase
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    class Handler(HandlerBase):
        def create_artists(  # type: ignore[no-untyped-def]
            self, legend, orig_handle, xdescent, ydescent, width, height, fontsize, trans
        ):
            """Draw the entry."""
            middle, bar = width / 2 - xdescent, 0.18 * width
            box = Rectangle((middle - bar / 2, -ydescent - 0.1 * height), bar, 1.2 * height)
            box.set(facecolor="#DDDDDD", edgecolor=style.GREY, linewidth=0.6, transform=trans)
            tick = Line2D([middle - bar, middle + bar], [0.5 * height - ydescent] * 2)
            tick.set(color=style.INK, linewidth=1.1, transform=trans)
            return [box, tick]

    return Handler()
