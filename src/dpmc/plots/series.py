"""Lines: how that of a method looks, how points and quartiles are drawn, axes of plain numbers, legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dpmc.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from dpmc.studies import Study

SOLID, DASHED, DOTTED = "solid", (0, (4, 1.5)), (0, (1, 1))
PUBLISHED, AS_CODED, CORRECTED = "published", "as_coded", "corrected"
#: variant of an algorithm, or who accounts for it -> in words, and its line; markers are full on solid ones
WAYS: dict[str, tuple[str, Any]] = {
    PUBLISHED: ("as published", DASHED),
    AS_CODED: ("as implemented", DOTTED),
    CORRECTED: ("corrected", SOLID),
    "thesis": ("thesis's accounting", DASHED),
    "tight": ("tight accounting", SOLID),
}
MOST_CONTRAST = 10.0  # of a line and black: what is paler cannot be seen on white
SIZE = 3.8  # of a marker
LEGEND_ROW = 0.17  # inches
MOST_LETTERS = 32  # of an entry of the legend, for three side by side


@dataclass(frozen=True)
class Look:
    """How the line of a method looks."""

    colour: str
    line: Any
    marker: str
    title: str

    @property
    def line2d(self) -> dict[str, Any]:
        """The same, in Matplotlib's words."""
        return {
            "color": self.colour,
            "linestyle": self.line,
            "linewidth": 1.1,
            "marker": self.marker,
            "markersize": SIZE,
            "markerfacecolor": self.colour if self.line == SOLID else "white",
            "markeredgecolor": self.colour,
            "markeredgewidth": 0.8,
        }


def look(study: Study, method: str) -> Look:
    """Return the look of a method's line: colour and marker of its algorithm, line by its variant.

    A label that differs by neither variant nor accounting has a colour of its own.
    """
    way = way_of(study, method)
    words, line = WAYS.get(way, ("", SOLID))
    algorithm = study.methods[method].algorithm
    base = style.STYLES.get(algorithm) if way else None
    base = base or style.method_styles(dict(study.methods))[method]
    return Look(
        line_colour(base.colour), line, base.marker, f"{base.title}, {words}" if words else base.title
    )


def way_of(study: Study, method: str) -> str:
    """Return the key of `WAYS` that a method differs by from others of its algorithm; "" for none."""
    spec = study.methods[method]
    if "variant" in spec.options:
        return str(spec.options["variant"])
    twice = any(m.algorithm == spec.algorithm and m.accountant == "thesis" for m in study.methods.values())
    return spec.accountant if twice else ""


def line_colour(fill: str) -> str:
    """Return a method's colour for lines and markers: a pale one is darkened."""
    while style.contrast_with_black(fill) > MOST_CONTRAST:
        fill = style.mixed(fill, "#000000", 0.1)
    return fill


def logarithmic(axes: Axes, which: Literal["x", "y"]) -> None:
    """Give a panel a logarithmic axis whose ticks are plain numbers."""
    from math import log10

    from matplotlib.ticker import LogLocator, NullFormatter

    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axes.autoscale_view()  # margins of the new scale
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    decades = log10(high / low)
    subs = (1.0, 2.0, 5.0) if decades < 2.0 else (1.0, 3.0) if decades < 3.5 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=8))
    axis.set_minor_locator(LogLocator(subs=tuple(range(1, 10)), numticks=20))
    axis.set_minor_formatter(NullFormatter())
    if low > 1e-4 and high < 1e6:
        plain(axis)


def plain(axis: Axis) -> None:
    """Label the ticks of an axis with plain numbers, thousands apart."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.7g}"))


def grid(axes: Axes) -> None:
    """Draw faint lines behind a panel."""
    axes.grid(True, color="#E0E0E0", linewidth=0.4)


def legend(figure: Figure, entries: Sequence[tuple[Any, str]], spare: Axes | None = None) -> None:
    """Explain what is drawn: above the panels, in added height, or in the place of a spare panel."""
    handles, texts = [handle for handle, _ in entries], [text for _, text in entries]
    how: dict[str, Any] = {"frameon": False, "handlelength": 2.8, "columnspacing": 1.2}
    if spare is not None:
        spare.set_axis_off()
        spare.legend(handles, texts, loc="center", **how)
    else:
        ncols = 3 if max(map(len, texts)) <= MOST_LETTERS else 2
        figure.legend(handles, texts, loc="outside upper left", ncols=ncols, **how)
        figure.set_figheight(figure.get_figheight() + LEGEND_ROW * -(-len(texts) // ncols))
