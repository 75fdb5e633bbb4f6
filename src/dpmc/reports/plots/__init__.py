"""Figures: what `figures/<study>.yaml` declares, drawn by one module for each kind of plot.

A kind is a module here that says whether it needs a metric, `NEEDS_METRIC = True`, and has
`draw(given) -> matplotlib.figure.Figure`. A figure with `draw: "module:function"` is drawn by that function.
The module may say more, by functions with the names in `DEFAULTS`; `<function>_reads` is that of one of
several functions. This module itself does not import Matplotlib.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.common.errors import DpmcError
from dpmc.common.files import check_endings
from dpmc.common.shipped import shipped
from dpmc.reports.plots.selection import selected
from dpmc.studies import whole
from dpmc.studies.figures import FigureKeys, declared_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

FORMATS = (".pdf", ".png", ".svg")
PUBLISHED_RESULTS = shipped("data", "published")  #: CSV files
ModelsAndFiles = tuple[list[str], list[Path]]  #: labels of models whose metrics are read, other files


@dataclass(frozen=True)
class ToDraw:
    """What a figure is drawn from."""

    declared: FigureKeys
    # tidy table of the models that the figure reads: study, model, method, epsilon, seed, metric, value
    metrics: DataFrame
    study: Study
    results: Path  # folder of all studies' results


def reads_nothing(study: Study, how: FigureKeys, results: Path) -> ModelsAndFiles:
    """Return no model and no file: data and chains are made anew."""
    return [], []


#: What is known of a figure unless its module says otherwise; functions of the study and what is declared.
DEFAULTS: dict[str, Callable[..., Any]] = {
    # (study, declared, results) -> labels of the models whose metrics it reads, and chain files and tables
    "reads": lambda study, how, results: (selected(study, how.models, study.models), []),
    # whether the study, as far as its data are available, has anything to show
    "applies": lambda study, how: True,
    # sentences after the figure's own caption
    "caption": lambda study, how: [],
}


def said(declared: FigureKeys, what: str = "") -> Any:
    """Return what draws a figure, or what its module, also one beside the study, says: of `DEFAULTS`."""
    place, _, function = (declared.draw or f"dpmc.reports.plots.{declared.kind}:draw").partition(":")
    try:
        module = importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise DpmcError(f"figure: {declared.draw}: {error}") from None
    if not hasattr(module, function):
        raise DpmcError(f"figure: {declared.draw}: {place} has no function {function}")
    if not what:
        return getattr(module, function)
    return getattr(module, f"{function}_{what}", getattr(module, what, DEFAULTS[what]))


def applies(name: str, study: Study) -> bool:
    """Return whether a study, without the models whose data are missing, can have a figure."""
    declared = declared_figure(study.path, name)
    return bool(said(declared, "applies")(study, declared))


def caption(name: str, study: Study, long: bool = False) -> str:
    """Return the caption of a figure, with what holds for all of its kind; `long`: and the text beside it."""
    declared = declared_figure(study.path, name)
    short = " ".join([declared.caption.strip(), *said(declared, "caption")(study, declared)])
    return "\n\n".join([short, declared.text.strip()]) if long and declared.text else short


def reads(name: str, study: Study, results: Path = Path("results")) -> ModelsAndFiles:
    """Return the models whose metrics a figure reads, and its chain files and tables; or raise DpmcError."""
    declared = declared_figure(study.path, name)
    read: ModelsAndFiles = said(declared, "reads")(study, declared, results)
    return read


def plot(
    name: str, study: Study, metrics: Sequence[Path], outputs: Sequence[Path], results: Path = Path("results")
) -> None:
    """Draw one figure of a study from metrics files into every file of `outputs`.

    Equal files give equal bytes, but for a figure of measured times. Raises DpmcError, and writes nothing,
    for an unknown figure, a file that is missing or wrong, or an output whose suffix is none of `FORMATS`.
    """
    check_endings(outputs, FORMATS, f"the figure {name}")
    from dpmc.reports.plots import style

    declared = declared_figure(study.path, name)
    table = whole.read_whole(study, *metrics)
    figure = draw(ToDraw(declared, table, study, results))
    for output in outputs:
        style.save(figure, output)


def draw(given: ToDraw) -> Figure:
    """Return a figure in the one style of all; raise DpmcError where the study cannot have it."""
    from dpmc.reports.plots import style

    with style.context():
        return said(given.declared)(given)
