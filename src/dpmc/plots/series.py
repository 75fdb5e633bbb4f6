"""Lines: how that of a method looks, and the legend of a figure of lines."""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.plots import layout, style
from dpmc.studies import Study

SOLID, DASHED, DOTTED = "solid", (0, (4, 1.5)), (0, (1, 1))
#: variant of an algorithm, or who accounts for it -> in words, and its line; markers are full on solid ones
WAYS: dict[str, tuple[str, Any]] = {
    "published": ("as published", DASHED),
    "as_coded": ("as implemented", DOTTED),
    "corrected": ("corrected", SOLID),
    "thesis": ("thesis's accounting", DASHED),
    "tight": ("tight accounting", SOLID),
}
MOST_CONTRAST = 10.0  # of a line and black: what is paler cannot be seen on white
LEGEND_ROW = 0.17  # inches


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
            "markersize": 3.8,
            "markerfacecolor": self.colour if self.line == SOLID else "white",
            "markeredgewidth": 0.8,
        }


def look(study: Study, method: str, title: str = "") -> Look:
    """Return the look of a method's line: colour and marker of its algorithm, line by its variant.

    A label that differs by neither variant nor accounting has a colour of its own. `title`: in place of the
    names of algorithm and variant.
    """
    way = way_of(study, method)
    words, line = WAYS.get(way, ("", SOLID))
    base = style.STYLES.get(study.methods[method].algorithm) if way else None
    base = base or style.method_styles(study.methods)[method]
    title = title or (f"{base.title}, {words}" if words else base.title)
    return Look(line_colour(base.colour), line, base.marker, title)


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


def legend(figure: Figure, entries: layout.Entries, spare: Axes | None) -> None:
    """Explain what is drawn in the place of a spare panel, else above the panels, in added height."""
    how: dict[str, Any] = {"handlelength": 2.8, "handleheight": 0.7}
    if spare is not None:
        spare.set_axis_off()
        spare.legend(*zip(*entries, strict=True), loc="center", **how)
    else:
        rows = layout.legend(figure, entries, **how)
        figure.set_figheight(figure.get_figheight() + LEGEND_ROW * rows)
