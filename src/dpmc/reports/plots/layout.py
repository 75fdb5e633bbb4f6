"""What all figures share around their marks: panels in a grid, legends above them, axes of plain numbers."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dpmc.reports.plots import style
from dpmc.studies.figures import Axis as AxisKeys

MOST_ENTRIES = 4  # of a legend, side by side
ROOM = {"x": 1.3, "y": 2.0}  # decades of an axis whose ticks are 1, 2, 5

# of a legend: text -> what it explains: an artist, several side by side, or the properties of a line
Entries = dict[str, Any]


def panels(wide: bool, count: int, columns: int, row: float, **shared: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure of one column of a paper, or of two, and its panels, `row` inches high."""
    rows = -(-count // columns)
    size = style.TWO_COLUMNS if wide else style.COLUMN, row * rows
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **shared).ravel().tolist()
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def add_legend(figure: Figure, entries: Entries, **how: Any) -> None:
    """Explain entries above the panels, as many side by side as the figure has room for."""
    handles = [Line2D([], [], **look) if isinstance(look, dict) else look for look in entries.values()]
    for columns in range(min(MOST_ENTRIES, len(entries)), 0, -1):
        legend = figure.legend(handles, list(entries), loc="outside upper left", ncols=columns, **how)
        size = legend.get_window_extent()
        if size.width <= figure.bbox.width or columns == 1:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)


def in_digits(x: float, _: object = None) -> str:
    """Return a number written out, thousands apart, from a million on in millions (M)."""
    text = f"{x / 1e6:,.7g} M" if abs(x) >= 1e6 else f"{x:,.5f}".rstrip("0").rstrip(".")
    return text.replace("-", "−")


def set_plain_numbers(axis: Axis) -> None:
    """Write the numbers of an axis out, not as powers of ten."""
    axis.set_major_formatter(FuncFormatter(in_digits))
    axis.set_minor_formatter(NullFormatter())


def set_logarithmic(axes: Axes, which: Literal["x", "y"]) -> None:
    """Give a panel a logarithmic axis: ticks by its decades, as many as have room, and plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    axes.autoscale_view()  # margins of the new scale
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    subs = (1.0, 2.0, 5.0) if decades < ROOM[which] else (1.0, 3.0) if decades < 1.8 * ROOM[which] else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=8))
    axis.set_minor_locator(LogLocator(subs=range(1, 10), numticks=20))
    set_plain_numbers(axis)


def set_groups(axes: Axes, names: Sequence[str]) -> None:
    """Set up an axis of groups at 0, 1, …: their names, and a band behind every other."""
    for group in range(0, len(names), 2):
        draw_band(axes, group)
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(names) - 0.5)


def draw_band(axes: Axes, group: int, colour: str = style.BAND) -> None:
    """Draw the band behind a group."""
    axes.axvspan(group - 0.5, group + 0.5, color=colour, lw=0, zorder=0)


def scale_y(axes: Axes, how: AxisKeys) -> None:
    """Set the vertical axis as declared: scale and limits.

    Without limits it is from 0 to the data of those that share it, a logarithmic one by the data.
    """
    # limits of data: a clipped axis would hide outliers
    tops = [float(panel.dataLim.y1) for panel in axes.get_shared_y_axes().get_siblings(axes)]
    top = max((top for top in tops if np.isfinite(top) and top > 0.0), default=1.0)
    if how.scale == "symlog":
        axes.set_yscale("symlog", linthresh=how.linear_below, linscale=0.4)
        set_plain_numbers(axes.yaxis)
    if how.limits or how.scale != "log":
        # on a logarithmic axis with more room for the markers at the top
        axes.set_ylim(*(how.limits or (0.0, top * (1.5 if how.scale == "symlog" else 1.06))))
    if how.scale == "log":
        set_logarithmic(axes, "y")
    axes.yaxis.grid(True)


def share_axis(axes: Axes, which: Literal["x", "y"], group: object, first: dict[object, Axes]) -> None:
    """Give a panel the axis of the first of its group, which is kept in `first`."""
    if (key := (which, group)) in first:
        getattr(axes, f"share{which}")(first[key])
    first.setdefault(key, axes)
