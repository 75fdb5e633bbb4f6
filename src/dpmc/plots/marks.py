"""Marks that several kinds of plot share: boxes, published boxes, exact samples, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.plots import style
from dpmc.plots.style import MethodStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from dpmc.plots.frame import PublishedBox
    from dpmc.studies.figures import Axis as AxisKeys

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


def draw_groups(axes: Axes, names: Sequence[str]) -> None:
    """Set up an axis of groups at 0, 1, …: their names, and a band behind every other."""
    for group in range(0, len(names), 2):
        axes.axvspan(group - 0.5, group + 0.5, color=style.BAND, lw=0, zorder=0)
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(names) - 0.5)


def scale_y(axes: Axes, how: AxisKeys, top: float, room: float = 1.06) -> None:
    """Set the vertical axis as declared: scale and limits, by default from 0 to above `top`."""
    top = top if np.isfinite(top) and top > 0.0 else 1.0
    limits = how.limits or (0.0, room * top)
    if how.scale == "symlog":
        axes.set_yscale("symlog", linthresh=how.linear_below)
        plain_numbers(axes.yaxis)
    elif how.scale == "log":
        from matplotlib.ticker import LogLocator

        limits = how.limits or (float(axes.dataLim.minposy) / room, room * top)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0) if limits[1] < 200 * limits[0] else (1.0,))
        )
        plain_numbers(axes.yaxis)
    axes.set_ylim(*limits)
    axes.yaxis.grid(True, color="#DDDDDD", linewidth=0.4)


def plain_numbers(axis: Axis) -> None:
    """Write the numbers of a logarithmic axis out, not as powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_legend(figure: Any, entries: Sequence[tuple[Any, str]], columns: int = 3, **others: Any) -> None:
    """Explain (handle, text) above the panels of a figure or of a part of one."""
    figure.legend(
        [handle for handle, _ in entries],
        [text for _, text in entries],
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        **{"handlelength": 1.8, "handleheight": 1.0, "columnspacing": 1.2} | others,
    )


def exact_samples(number: int) -> list[tuple[Any, str]]:
    """Return the legend's entry for this number of exact samples; none for 0."""
    from matplotlib.lines import Line2D

    return [(Line2D([], [], color="black", linewidth=0.6), f"{number} exact samples")] if number else []
