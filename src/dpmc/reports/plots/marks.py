"""Marks that several kinds of plot share: boxes, published ones, exact samples, notes; their legend."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import Normal, Stroke

from dpmc.reports.plots import style
from dpmc.reports.plots.frame import Quartiles
from dpmc.reports.plots.layout import Entries
from dpmc.reports.plots.style import MethodStyle

GROUP_WIDTH = 0.86  # of the distance between two epsilons
MEDIAN = "_median"  #: label of our medians; the underscore keeps it out of legends
REFERENCE: dict[str, Any] = {"color": style.GREY, "linewidth": 0.7, "linestyle": (0, (4, 3))}


def place(group: int, index: int, count: int) -> float:
    """Return where the one with this index, of so many, stands in a group."""
    return group + ((index + 0.5) / count - 0.5) * GROUP_WIDTH


def draw_boxes(axes: Axes, values_at: Mapping[float, list[float]], width: float, look: MethodStyle) -> None:
    """Draw our boxes of one look, by place; whiskers reach 1.5 interquartile ranges."""
    import seaborn  # takes more than a second

    if not values_at:
        return
    line = {"color": look.edge, "linewidth": 0.7}
    median = style.median_colour(look.colour)
    # where quartiles coincide, the line is all that is seen of a box: its colour is around it
    around = [Stroke(linewidth=2.6, foreground=look.colour), Normal()]
    places = sorted(values_at)
    # seaborn measures widths in the smallest distance of two places
    step = float(np.diff(places).min()) if len(places) > 1 else 1.0
    seaborn.boxplot(
        x=[x for x in places for _ in values_at[x]],
        y=[value for x in places for value in values_at[x]],
        ax=axes,
        native_scale=True,
        width=width / step,
        capwidths=0.5 * width,
        boxprops={"facecolor": look.colour, "edgecolor": look.edge, "linewidth": 0.7, "hatch": look.hatch},
        whiskerprops=line,
        capprops=line,
        medianprops={
            "color": median,
            "linewidth": 1.2 if median == "#000000" else 0.8,
            "path_effects": around,
            "solid_capstyle": "butt",
            "label": MEDIAN,
        },
        flierprops={
            "marker": look.marker,
            "markersize": 2.4,
            "markerfacecolor": "none",
            "markeredgecolor": look.edge,
            "markeredgewidth": 0.5,
        },
        zorder=3,
    )


def draw_in_groups(
    axes: Axes,
    slot: tuple[int, int],
    values: Mapping[int, list[float]],
    published: Mapping[int, Quartiles],
    look: MethodStyle,
    beside: bool,
) -> dict[int, float]:
    """Draw a method's boxes by group, and slim bars beside them; return where ours stand.

    `slot`: which method of how many it is. `beside`: whether any method of the panel has slim bars.
    """
    width = GROUP_WIDTH / slot[1]
    ours = {group: place(group, *slot) - 0.16 * width * beside for group in values}
    for group, box in published.items():
        draw_published(axes, box, place(group, *slot) + 0.28 * width, 0.2 * width, look)
    boxes = {ours[group]: its for group, its in values.items() if its}
    draw_boxes(axes, boxes, width * (0.54 if beside else 0.7), look)
    return ours


def draw_published(axes: Axes, box: Quartiles, x: float, width: float, look: MethodStyle) -> None:
    """Draw a published box: a slim bar from q1 to q3 and a tick at the median."""
    pale = style.mixed(look.colour, "#FFFFFF", 0.55)
    edge: dict[str, Any] = {"edgecolor": style.GREY, "linewidth": 0.6, "zorder": 4}
    axes.add_patch(Rectangle((x - width / 2, box.q1), width, box.q3 - box.q1, facecolor=pale, **edge))
    axes.update_datalim([(x, box.q1), (x, box.q3)])
    tick: dict[str, Any] = {"color": style.INK, "linewidth": 1.1, "solid_capstyle": "butt", "zorder": 5}
    axes.plot([x - 0.75 * width, x + 0.75 * width], [box.median] * 2, **tick)


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


def draw_remark(axes: Axes, place: tuple[float, float], text: str, up: float) -> None:
    """Write a few letters at the end of a box, this many points above it, or below."""
    axes.annotate(
        text,
        place,
        xytext=(0, up),
        textcoords="offset points",
        rotation=90,
        ha="center",
        va="bottom" if up > 0 else "top",
        fontsize=7,
        color=style.INK,
        zorder=6,
    )


def draw_baselines(axes: Axes, values: Sequence[float]) -> int:
    """Draw exact samples' values as thin black lines; return their number."""
    for value in values:
        axes.axhline(value, color="black", linewidth=0.3, zorder=1)
    return len(values)


class PublishedInLegend(HandlerBase):
    """A legend entry that looks like the published glyph: an upright bar with a tick."""

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


def patch(look: MethodStyle) -> Patch:
    """Return a method's box for the legend."""
    return Patch(facecolor=look.colour, edgecolor=look.edge, hatch=look.hatch, linewidth=0.7)


def exact_samples(number: int) -> Entries:
    """Return the legend's entry for this number of exact samples; none for 0."""
    return [(Line2D([], [], color="black", linewidth=0.6), f"{number} exact samples")] if number else []


def references(labels: Iterable[str]) -> Entries:
    """Return the legend's entries for reference lines; lines of one label share one."""
    return [(Line2D([], [], **REFERENCE), label) for label in dict.fromkeys(labels)]
