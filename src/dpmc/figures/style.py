"""The one style of all figures: size, type, and one colour per method for ever."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc import stamp
from dpmc.outputs import CREATOR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXT_WIDTH = 6.0  # inches, the thesis's
DOTS_PER_INCH = 300

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib: the same bytes on every machine
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 4.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,  # text stays text
    "svg.hashsalt": "dpmc",
    "svg.fonttype": "none",
}

INK = "#222222"
GREY = "#6E6E6E"
BAND = "#F4F4F4"


@dataclass(frozen=True)
class MethodStyle:
    """How one method looks in every figure."""

    colour: str
    hatch: str  # with the colours in grey, methods that share a figure still differ by this
    marker: str
    title: str


# Okabe and Ito's palette for the thesis's six, Paul Tol's muted colours for the others. Methods
# that share a figure stay apart for readers with protanopia, deuteranopia and tritanopia: the
# tests compute it. Guided variants are the lighter shade of their plain algorithm.
STYLES: dict[str, MethodStyle] = {
    "dp-penalty": MethodStyle("#0072B2", "", "o", "DP penalty"),
    "dp-penalty-guided": MethodStyle("#56B4E9", "////", "s", "guided DP penalty"),
    "minibatch-penalty": MethodStyle("#D55E00", "....", "^", "minibatch DP penalty"),
    "minibatch-penalty-guided": MethodStyle("#E69F00", "\\\\\\\\", "v", "guided minibatch DP penalty"),
    "dp-barker": MethodStyle("#009E73", "xxxx", "D", "DP Barker"),
    "dp-hmc": MethodStyle("#CC79A7", "----", "P", "DP-HMC"),
    "dp-mala": MethodStyle("#332288", "oo", "p", "DP-MALA"),
    "dp-sgld": MethodStyle("#882255", "||||", "<", "DP-SGLD"),
    "dp-sgnht": MethodStyle("#999933", "++++", ">", "DP-SGNHT"),
    "rwmh": MethodStyle("#117733", "", "h", "random walk MH, not private"),
    "hmc": MethodStyle("#661100", "----", "X", "HMC, not private"),
    "mh": MethodStyle("#000000", "\\\\\\\\", "1", "MH, not private"),
    "barker": MethodStyle("#D0D0D0", "....", "d", "Barker, not private"),
    "tuna-mh": MethodStyle("#DDCC77", "oo", "*", "TunaMH, not private"),
    "dp-fast-mh": MethodStyle("#AA3377", "////", "H", "DP-Fast MH, minibatch"),
    "dp-fast-mh-full": MethodStyle("#EE99AA", "++++", "8", "DP-Fast MH, full batch"),
}
VARIANT_HATCHES = ("\\\\", "..", "xx", "||")

MODEL_TITLES = {
    "flat-banana-2d": "flat banana, d = 2",
    "flat-banana-10d": "flat banana, d = 10",
    "tempered-banana-2d": "tempered banana, d = 2",
    "tempered-banana-10d": "tempered banana, d = 10",
    "gauss-30d": "Gaussian, d = 30",
    "narrow-banana": "narrow banana, d = 2",
    "correlated-gauss": "correlated Gaussian, d = 2",
    "circle": "circle, d = 2",
    "paper-banana": "paper's banana, d = 2",
    "paper-banana-wide": "paper's banana, wide prior, d = 2",
    "paper-gauss": "paper's Gaussian, d = 10",
}


def method_styles(methods: dict[str, Any]) -> dict[str, MethodStyle]:
    """Return label -> style for a study's methods (label -> definition with `.algorithm`).

    A label that is an algorithm's id has that algorithm's style. A variant (another label of the
    same algorithm) has its colour, paler, another hatch, and its label for a title.
    """
    styles: dict[str, MethodStyle] = {}
    variants: dict[str, int] = {}
    for label, definition in methods.items():
        if label in STYLES:
            styles[label] = STYLES[label]
            continue
        base = STYLES.get(definition.algorithm, MethodStyle(GREY, "", "o", label))
        number = variants.get(definition.algorithm, 0)
        variants[definition.algorithm] = number + 1
        hatch = VARIANT_HATCHES[number % len(VARIANT_HATCHES)]
        paler = mixed(base.colour, "#FFFFFF", 0.35 + 0.1 * min(number, 3))
        styles[label] = replace(base, colour=paler, hatch=hatch, title=label)
    return styles


def model_title(label: str, model: str) -> str:
    """Return a panel's title: the model's name, and the label where a study calls it otherwise."""
    if label in MODEL_TITLES:
        return MODEL_TITLES[label]
    return f"{MODEL_TITLES[model]} ({label})" if model in MODEL_TITLES else label


def mixed(colour: str, other: str, share: float) -> str:
    """Return a colour with `share` of another mixed in, as #RRGGBB."""
    from matplotlib.colors import to_hex, to_rgb

    (r, g, b), (x, y, z) = to_rgb(colour), to_rgb(other)
    keep = 1.0 - share
    return str(to_hex((keep * r + share * x, keep * g + share * y, keep * b + share * z))).upper()


def context() -> AbstractContextManager[None]:
    """Return the context that figures are drawn and saved in: this style, nothing of the user's."""
    import matplotlib

    # The defaults too, so that a user's matplotlibrc changes nothing; the backend stays as it is,
    # setting it would load one.
    defaults = {k: v for k, v in matplotlib.rcParamsDefault.items() if k != "backend"}
    settings: Any = defaults | SETTINGS
    return matplotlib.rc_context(settings)


def save(figure: Figure, path: Path, mark: str = "") -> None:
    """Write a figure as PDF, PNG or SVG by the suffix of `path`; same figure, same bytes.

    `mark`: the stamp of what it was drawn from (`dpmc.stamp`), for a PNG's metadata.
    """
    from dpmc.storage import replacing

    kind = path.suffix[1:].lower()
    # without the time and, in PNG, the version of the library
    metadata: dict[str, dict[str, Any]] = {
        "pdf": {"Creator": CREATOR, "CreationDate": None},
        "png": {"Software": CREATOR} | ({stamp.KEY: mark} if mark else {}),
        "svg": {"Creator": CREATOR, "Date": None},
    }
    with context(), replacing(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=DOTS_PER_INCH, metadata=metadata[kind], facecolor="white")
