"""Marks that several kinds of plot share: boxes, slim bars beside them, exact samples, notes."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle
from matplotlib.path import Path
from matplotlib.patheffects import Normal, Stroke

from dpmc.reports.plots import style
from dpmc.reports.plots.published import Quartiles
from dpmc.reports.plots.style import MethodStyle

GROUP_WIDTH = 0.86  # of the distance between two groups
MEDIAN = "_median"  #: label of our medians; the underscore keeps it out of legends
REFERENCE: dict[str, Any] = {"color": style.GREY, "linewidth": 0.7, "linestyle": (0, (4, 3))}
NOTE: dict[str, Any] = {"rotation": 90, "ha": "center", "fontsize": 7, "color": style.INK, "zorder": 6}
#: a slim bar in the legend: an upright rectangle, and a tick across it
SLIM_BAR: dict[str, Any] = {
    "linestyle": "none",
    "marker": Path(
        [(-2, -6), (2, -6), (2, 6), (-2, 6), (-2, -6), (-4, 0), (4, 0)],
        [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY, Path.MOVETO, Path.LINETO],
    ),
    "markersize": 9.5,
    "markerfacecolor": "#DDDDDD",
    "markeredgecolor": style.GREY,
    "markeredgewidth": 0.6,
}


def place(group: int, index: int, count: int) -> float:
    """Return where the method with this index, of so many, stands in a group."""
    return group + ((index + 0.5) / count - 0.5) * GROUP_WIDTH


def draw_boxes(
    axes: Axes,
    slot: tuple[int, int],
    values: Mapping[int, Sequence[float]],
    beside: Mapping[int, Quartiles],
    look: MethodStyle,
    shifted: bool,
) -> dict[int, float]:
    """Draw a method's boxes by group, and slim bars beside them; return the boxes' places by group.

    Whiskers reach 1.5 interquartile ranges. `slot`: which method of how many it is. `shifted`: whether any
    method of the panel has slim bars.
    """
    width = GROUP_WIDTH / slot[1]
    places = {group: place(group, *slot) - 0.16 * width * shifted for group in values}
    for group, bar in beside.items():
        draw_slim_bar(axes, bar, place(group, *slot) + 0.28 * width, 0.2 * width, look)
    drawn = {places[group]: its for group, its in values.items() if its}
    if not drawn:
        return places
    box_width, line = width * (0.54 if shifted else 0.7), {"color": look.edge, "linewidth": 0.7}
    axes.boxplot(
        list(drawn.values()),
        positions=list(drawn),
        widths=box_width,
        capwidths=0.5 * box_width,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": look.colour, "edgecolor": look.edge, "linewidth": 0.7, "hatch": look.hatch},
        whiskerprops=line,
        capprops=line,
        medianprops={
            "color": look.median,
            "linewidth": 1.2 if look.median == "#000000" else 0.8,
            # where quartiles coincide, the line is all that is seen of a box: its colour is around it
            "path_effects": [Stroke(linewidth=2.6, foreground=look.colour), Normal()],
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
    return places


def draw_slim_bar(axes: Axes, bar: Quartiles, x: float, width: float, look: MethodStyle) -> None:
    """Draw a slim bar between quartiles, and a tick at the median."""
    pale = style.mixed(look.colour, "#FFFFFF", 0.55)
    edge: dict[str, Any] = {"edgecolor": style.GREY, "linewidth": 0.6, "zorder": 4}
    axes.add_patch(Rectangle((x - width / 2, bar.q1), width, bar.q3 - bar.q1, facecolor=pale, **edge))
    axes.update_datalim([(x, bar.q1), (x, bar.q3)])
    tick: dict[str, Any] = {"color": style.INK, "linewidth": 1.1, "solid_capstyle": "butt", "zorder": 5}
    axes.plot([x - 0.75 * width, x + 0.75 * width], [bar.median] * 2, **tick)


def draw_note(axes: Axes, x: float, text: str) -> None:
    """Write into the panel, where a box would stand, why there is none."""
    background = {"boxstyle": "square,pad=0.08", "facecolor": "white", "edgecolor": "none"}
    axes.text(x, 0.06, text, transform=axes.get_xaxis_transform(), va="bottom", bbox=background, **NOTE)


def draw_baselines(axes: Axes, values: Sequence[float]) -> None:
    """Draw exact samples' values as thin black lines."""
    for value in values:
        axes.axhline(value, color="black", linewidth=0.3, zorder=1)


def exact_samples(number: int) -> dict[str, dict[str, Any]]:
    """Return the legend's entry for this number of exact samples; none for 0."""
    return {f"{number} exact samples": {"color": "black", "linewidth": 0.6}} if number else {}


def patch(look: MethodStyle) -> Patch:
    """Return a method's box for the legend."""
    return Patch(facecolor=look.colour, edgecolor=look.edge, hatch=look.hatch, linewidth=0.7)
