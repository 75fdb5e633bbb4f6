"""Marks that several kinds of plot share: boxes, slim bars beside them, exact samples, notes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.path import Path
from matplotlib.patheffects import Normal, Stroke

from dpmc.reports.plots import style
from dpmc.reports.plots.published import Quartiles
from dpmc.reports.plots.style import MethodStyle

GROUP_WIDTH = 0.86  # of the distance between two groups
MEDIAN = "_median"  #: label of our medians; the underscore keeps it out of legends
REFERENCE: dict[str, Any] = {"color": style.GREY, "linewidth": 0.7, "linestyle": (0, (4, 3))}
NOTE: dict[str, Any] = {
    "rotation": 90,
    "ha": "center",
    "fontsize": style.SMALL,
    "color": style.INK,
    "zorder": 6,
}
EXACT_BAND: dict[str, Any] = {"facecolor": "#C8C8C8", "linewidth": 0.0}  # band of exact samples
# A slim bar in the legend is an upright rectangle with a tick across it.
_CORNERS = [(-2, -6), (2, -6), (2, 6), (-2, 6), (-2, -6), (-4, 0), (4, 0)]
_STROKES = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY, Path.MOVETO, Path.LINETO]
_BAR: dict[str, Any] = {"ls": "none", "marker": Path(_CORNERS, _STROKES), "ms": 9.5, "mew": 0.8}
PARTNER = _BAR | {"mfc": "white", "mec": style.INK}
PUBLISHED = _BAR | {"mfc": "#CCCCCC", "mec": style.GREY}


def place(group: int, index: int, count: int) -> float:
    """Return where the method with this index, of so many, stands in a group."""
    return group + ((index + 0.5) / count - 0.5) * GROUP_WIDTH


def draw_boxes(
    axes: Axes,
    slot: tuple[int, int],
    values: Mapping[int, Sequence[float]],
    beside: Mapping[int, Quartiles],
    look: MethodStyle,
    bar: Mapping[str, Any] | None,
) -> dict[int, float]:
    """Draw a method's boxes by group, and slim bars beside them; return the boxes' places by group.

    Whiskers reach 1.5 interquartile ranges. `slot`: which method of how many it is. `bar`: `PARTNER` or
    `PUBLISHED`, what the slim bars are, None if no method of the panel has them.
    """
    width = GROUP_WIDTH / slot[1]
    places = {group: place(group, *slot) - 0.16 * width * bool(bar) for group in values}
    face, edge = style.mixed_colour(look.colour, "#FFFFFF", 0.55), style.GREY
    if bar is PARTNER:  # hollow: our own chains, as those of the box
        face, edge = "#FFFFFF", look.edge
    for group, (low, median, high) in beside.items():
        x, half = place(group, *slot) + 0.28 * width, 0.1 * width
        axes.add_patch(Rectangle((x - half, low), 2 * half, high - low, fc=face, ec=edge, lw=0.6, zorder=4))
        axes.update_datalim([(x, low), (x, high)])
        tick = (x - 1.5 * half, x + 1.5 * half)
        axes.plot(tick, [median] * 2, color=style.INK, lw=1.1, solid_capstyle="butt", zorder=5)
    drawn = {places[group]: its for group, its in values.items() if its}
    if not drawn:
        return places
    box_width = width * (0.54 if bar else 0.7)
    axes.boxplot(
        list(drawn.values()),
        positions=list(drawn),
        widths=box_width,
        capwidths=0.5 * box_width,
        manage_ticks=False,
        boxprops={"facecolor": look.colour, "edgecolor": look.edge, "hatch": look.hatch},
        whiskerprops={"color": look.edge},
        capprops={"color": look.edge},
        flierprops={"marker": look.marker, "markeredgecolor": look.edge},
        medianprops={
            "color": look.median,
            "linewidth": 1.2 if look.median == "#000000" else 0.8,
            # where quartiles coincide, the line is all that is seen of a box: its colour is around it
            "path_effects": [Stroke(linewidth=2.6, foreground=look.colour), Normal()],
            "solid_capstyle": "butt",
            "label": MEDIAN,
        },
        zorder=3,
    )
    return places


def draw_note(axes: Axes, x: float, text: str, above: bool = False) -> None:
    """Write a note into the panel, where a box would stand, or above the panel."""
    background = {"boxstyle": "square,pad=0.08", "facecolor": "white", "edgecolor": "none"}
    where: dict[str, Any] = {"y": 1.01} if above else {"y": 0.06, "bbox": background}
    axes.text(x=x, s=text, transform=axes.get_xaxis_transform(), va="bottom", **where, **NOTE)


def draw_baselines(axes: Axes, values: Sequence[float], across: tuple[float, float] | None = None) -> None:
    """Draw exact samples' values as a band from the least to the greatest, and their median as a line.

    `across`: from where to where; else the whole panel.
    """
    if values:
        low, high = (0.0, 1.0) if across is None else across
        where = axes.get_yaxis_transform() if across is None else axes.transData
        size = (high - low, max(values) - min(values))
        axes.add_patch(Rectangle((low, min(values)), *size, **EXACT_BAND, transform=where, zorder=0.5))
        middle = [np.median(values)] * 2
        axes.plot((low, high), middle, color="black", linewidth=0.4, transform=where, zorder=1)


def exact_samples(number: int) -> dict[str, Any]:
    """Return the legend's entry for this number of exact samples; none for 0."""
    line = Line2D([], [], color="black", linewidth=0.6)
    return {f"{number} exact samples: range, median": (Patch(**EXACT_BAND), line)} if number else {}


def patch(look: MethodStyle) -> Patch:
    """Return a method's box for the legend."""
    return Patch(facecolor=look.colour, edgecolor=look.edge, hatch=look.hatch, linewidth=0.7)
