"""Marks that several kinds of plot share: boxes, published boxes, exact samples, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.plots import style
from dpmc.plots.style import MethodStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmc.plots.frame import PublishedBox

GROUP_WIDTH = 0.86  # of the distance between two epsilons
MEDIAN = "_median"  #: label of our medians; the underscore keeps it out of legends
REFERENCE: dict[str, Any] = {"color": style.GREY, "linewidth": 0.7, "linestyle": (0, (4, 3))}


def draw_boxes(axes: Axes, values_at: Mapping[float, list[float]], width: float, look: MethodStyle) -> None:
    """Draw our boxes of one look, by place; whiskers reach 1.5 interquartile ranges."""
    import seaborn
    from matplotlib.patheffects import Normal, Stroke

    if not values_at:
        return
    edge = look.edge
    line = {"color": edge, "linewidth": 0.7}
    box = {"facecolor": look.colour, "edgecolor": edge, "linewidth": 0.7, "hatch": look.hatch}
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
        whis=1.5,
        capwidths=0.5 * width,
        boxprops=box,
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
            "markeredgecolor": edge,
            "markeredgewidth": 0.5,
        },
        zorder=3,
    )


def draw_published(axes: Axes, box: PublishedBox, x: float, width: float, look: MethodStyle) -> None:
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


def draw_baselines(axes: Axes, values: Sequence[float]) -> int:
    """Draw exact samples' values as thin black lines; return their number."""
    for value in values:
        axes.axhline(value, color="black", linewidth=0.3, zorder=1)
    return len(values)


def published_in_legend() -> Any:
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
