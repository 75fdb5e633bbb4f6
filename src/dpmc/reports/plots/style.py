"""The one style of all figures: size, type, and one colour and name for methods, models and variants."""

import functools
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from dpmc.common.files import replacing
from dpmc.metrics.table import METRICS, Metric
from dpmc.studies import Study, read_yaml
from dpmc.studies.keys import MethodSpec

COLUMN, TWO_COLUMNS = 3.3, 6.9  # inches, of a paper: figures are printed as large as they are drawn
DOTS_PER_INCH = 300

INK = "#222222"
GREY = "#6E6E6E"
BAND = "#F4F4F4"

SOLID, DASHED, DOTTED = "solid", (0, (4, 1.5)), (0, (1, 1))
#: variant of an algorithm, or accountant, whose line is not solid; markers are full on solid lines
LINES = {"published": DASHED, "as_coded": DOTTED, "thesis": DASHED, "reused": DASHED}


@dataclass(frozen=True)
class MethodStyle:
    """How one method looks in every figure."""

    colour: str
    hatch: str  # with the colours in grey, methods that share a figure still differ by this
    marker: str
    title: str
    line: Any = SOLID

    @property
    def edge(self) -> str:
        """A darker shade for lines and edges, which a pale colour needs on white."""
        return mixed_colour(self.colour, "#000000", 0.45)

    @property
    def median(self) -> str:
        """The colour of a median line on a box: black, or white on a dark one."""
        red, green, blue = to_rgb(self.colour)
        return "#000000" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.25 else "#FFFFFF"

    @property
    def line2d(self) -> dict[str, Any]:
        """The method's line with its markers, in Matplotlib's words."""
        return {
            "color": self.colour,
            "linestyle": self.line,
            "linewidth": 1.1,
            "marker": self.marker,
            "markersize": 3.8,
            "markerfacecolor": self.colour if self.line == SOLID else "white",
            "markeredgewidth": 0.8,
        }


STYLE_SHEET = read_yaml(Path(__file__).with_name("style.yaml"))
SMALL: float = STYLE_SHEET["settings"]["xtick.labelsize"]  # points, of notes and small titles
STYLES = {algorithm: MethodStyle(*look) for algorithm, look in STYLE_SHEET["methods"].items()}
MODEL_TITLES: dict[str, str] = STYLE_SHEET["models"]
VARIANTS: dict[str, str] = STYLE_SHEET["variants"]  #: pattern -> in words
#: Of variants that share a figure, the darkest has the first share of black, the palest the last of white.
SHADE_RANGE = (-0.5, 0.7)


def method_styles(methods: Mapping[str, MethodSpec]) -> dict[str, MethodStyle]:
    """Return label -> style for a study's methods (label -> definition with `.algorithm`).

    A label that is an algorithm's id has that algorithm's style. A variant (another label of the same
    algorithm) has a shade of its colour, fewer lines, and its name with the variant in words.
    """
    variants: dict[str, list[str]] = {}  # algorithm -> labels
    for label, definition in methods.items():
        if label not in STYLES:
            variants.setdefault(definition.algorithm, []).append(label)
    styles = {label: STYLES[label] for label in methods if label in STYLES}
    for algorithm, labels in variants.items():
        base = STYLES.get(algorithm, MethodStyle(GREY, "", "o", ""))
        plain = algorithm in methods
        shades = np.linspace(*SHADE_RANGE, len(labels) + plain)
        if plain:  # the shade nearest to the algorithm's own is taken
            shades = np.delete(shades, np.argmin(np.abs(shades)))
        elif len(labels) == 1:
            shades = np.zeros(1)
        for label, shade in zip(labels, shades, strict=True):
            colour = mixed_colour(base.colour, "#FFFFFF" if shade > 0 else "#000000", abs(float(shade)))
            title = titled(label, algorithm, base.title)
            styles[label] = replace(base, colour=colour, hatch=base.hatch[:2], title=title)
    return {label: styles[label] for label in methods}


def of_pairs(
    study: Study, pairs: Mapping[tuple[str, str], tuple[str, str]], titles: Mapping[str, str]
) -> dict[str, MethodStyle]:
    """Return method -> style of boxes with others beside them: of the shorter label, or of its algorithm."""
    looks, styles = method_styles(study.methods), {}
    shown = [study.methods[method].algorithm for method in dict.fromkeys(method for _, method in pairs)]
    for (_, method), (_, other) in pairs.items():
        look, algorithm = looks[min(method, other, key=len)], study.methods[method].algorithm
        plain = STYLES.get(algorithm, look) if shown.count(algorithm) == 1 else look
        styles[method] = replace(plain, title=titles.get(method) or look.title)
    return styles


def line_style(study: Study, method: str, title: str = "") -> MethodStyle:
    """Return how a method's line looks: colour and marker of its algorithm, dashes by variant or accountant.

    A dashed line is darker, so that it is seen on a full one. A label that differs by neither from others of
    its algorithm on the same models has a shade of its own. `title`: in place of algorithm and variant.
    """
    spec = study.methods[method]
    same = [other for other in study.methods.values() if other.algorithm == spec.algorithm]
    alone = not any(set(other.models) & set(spec.models) for other in same if other is not spec)
    way = line_way(study, method)
    words, line = VARIANTS.get(way.replace("_", "-"), ""), LINES.get(way, SOLID)
    base = STYLES.get(spec.algorithm) if way or alone else None
    base = base or method_styles(study.methods)[method]
    colour = base.colour if line == SOLID else mixed_colour(base.colour, "#000000", 0.35)
    title = title or (f"{base.title}, {words}" if words else base.title)
    return replace(base, colour=colour, line=line, title=title)


def line_way(study: Study, method: str) -> str:
    """Return the variant that a method's line shows, or its accountant beside one with preset `thesis`."""
    spec = study.methods[method]
    if "reuse_gradients" in spec.options:
        return "reused" if spec.options["reuse_gradients"] else "fresh"
    same = [other for other in study.methods.values() if other.algorithm == spec.algorithm]
    by_accountant = "thesis" in {other.accountant for other in same}
    return str(spec.options.get("variant") or (spec.accountant if by_accountant else ""))


def model_title(label: str, model: str) -> str:
    """Return a panel's title: the model's name, and the variant in words where a study calls it otherwise."""
    return MODEL_TITLES.get(label) or titled(label, model, MODEL_TITLES.get(model, ""))


def model_name(study: Study, label: str, titles: Mapping[str, str] | None = None) -> str:
    """Return the title of a study's model, which a figure's own titles overrule."""
    return (titles or {}).get(label) or model_title(label, study.models[label].model)


def metric_label(metric: str) -> str:
    """Return a metric's name at an axis."""
    known = METRICS.get(metric, Metric(STYLE_SHEET["axes"].get(metric, "")))
    return known.axis or metric.replace("_", " ")


def metric_title(metric: str) -> str:
    """Return a metric's name above a panel."""
    return METRICS.get(metric, Metric()).title or metric_label(metric)


def budget_label(study: Study) -> str:
    """Return the name of the axis of ε, with the kind that the study's is."""
    return "privacy budget ε (total)" if study.epsilon_kind == "total" else "ε per iteration"


def titled(label: str, base: str, title: str) -> str:
    """Return the name of a variant `label` of `base`, whose name is `title`: no raw id."""
    if not title:
        return label.replace("-", " ")
    if label == base:
        return title
    words = "-" + label.removeprefix(base + "-")
    for pattern, text in VARIANTS.items():
        words = re.sub(rf"-{pattern}(?=-|$)", f", {text}", words)
    words = words.lstrip(",- ").replace("-", " ")
    return f"{title} ({words})" if "," in title else f"{title}, {words}"


def mixed_colour(colour: str, other: str, share: float) -> str:
    """Return a colour with `share` of another mixed in, as #RRGGBB."""
    parts: Any = (1.0 - share) * np.array(to_rgb(colour)) + share * np.array(to_rgb(other))
    return str(to_hex(parts)).upper()


#: Draw and save figures in this style, with nothing of the user's; a context or a decorator.
context = functools.partial(matplotlib.style.context, STYLE_SHEET["settings"], after_reset=True)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PDF, PNG or SVG by the suffix; same figure, same bytes."""
    kind = path.suffix[1:].lower()
    # neither the time nor, in PNG, the version of the library
    metadata: dict[str, dict[str, Any]] = {
        "pdf": {"Creator": "dpmc", "CreationDate": None},
        "png": {"Software": "dpmc"},
        "svg": {"Creator": "dpmc", "Date": None},
    }
    drawn = io.BytesIO()  # if the disk is full, matplotlib's PDF backend raises errors of its own
    with context(), replacing(path) as temporary:
        figure.savefig(drawn, format=kind, dpi=DOTS_PER_INCH, metadata=metadata[kind], facecolor="white")
        temporary.write_bytes(drawn.getvalue())
