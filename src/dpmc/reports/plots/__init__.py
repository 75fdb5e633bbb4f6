"""Figures: what `figures/<study>.yaml` declares, drawn by one module for each kind of plot.

A kind is a module here that says whether it needs a metric, `NEEDS_METRIC = True`, and has
`draw(given) -> matplotlib.figure.Figure`. A figure with `draw: "module:function"` is drawn by that function.
The module may say more, by functions with the names of the fields of `Drawing`; `<function>_reads` is that of
one of several functions. This module itself does not import Matplotlib.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.common.errors import DpmcError
from dpmc.common.shipped import shipped
from dpmc.reports.plots import stamp
from dpmc.studies import whole
from dpmc.studies.figures import FigureKeys, declared_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

FORMATS = ("pdf", "png", "svg")
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


def reads_models(study: Study, how: FigureKeys, results: Path) -> ModelsAndFiles:
    """Return the models that a figure names, else all, and no files."""
    wanted = how.models or tuple(study.models)
    return [label for label, spec in study.models.items() if label in wanted or spec.model in wanted], []


def reads_nothing(study: Study, how: FigureKeys, results: Path) -> ModelsAndFiles:
    """Return no model and no file: data and chains are made anew."""
    return [], []


@dataclass(frozen=True)
class Drawing:
    """What draws a figure, and what is known of it; each function gets the study and what is declared."""

    draw: Callable[[ToDraw], Figure]
    #: (study, declared, results) -> labels of the models whose metrics it reads, and chain files and tables.
    reads: Callable[[Study, FigureKeys, Path], ModelsAndFiles] = reads_models
    #: Whether the study, as far as its data are available, has anything to show.
    applies: Callable[[Study, FigureKeys], bool] = lambda study, how: True
    #: Sentences after the figure's own caption.
    caption: Callable[[Study, FigureKeys], list[str]] = lambda study, how: []


def drawing(declared: FigureKeys) -> Drawing:
    """Return what draws a figure, of a module that may lie beside the study; raise DpmcError for none."""
    place, _, function = (declared.draw or f"dpmc.reports.plots.{declared.kind}:draw").partition(":")
    try:
        module = importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise DpmcError(f"figure: {declared.draw}: {error}") from None
    if not hasattr(module, function):
        raise DpmcError(f"figure: {declared.draw}: {place} has no function {function}")
    said: dict[str, Any] = {
        field.name: getattr(module, f"{function}_{field.name}", getattr(module, field.name, field.default))
        for field in fields(Drawing)[1:]
    }
    return Drawing(getattr(module, function), **said)


def applies(name: str, study: Study) -> bool:
    """Return whether a study, whose models with missing data are left out, can have a figure.

    Raises DpmcError for an unknown figure.
    """
    declared = declared_figure(study.path, name)
    return bool(drawing(declared).applies(study, declared))


def caption(name: str, study: Study, long: bool = False) -> str:
    """Return the caption of a figure, with what holds for all of its kind; `long`: and the text beside it."""
    declared = declared_figure(study.path, name)
    short = " ".join([declared.caption.strip(), *drawing(declared).caption(study, declared)])
    return "\n\n".join([short, declared.text.strip()]) if long and declared.text else short


def reads(name: str, study: Study, results: Path = Path("results")) -> ModelsAndFiles:
    """Return the labels of the models whose metrics a figure reads, and the other files that it reads.

    These are chain files and tables; there are none for most figures. `results` is the folder of all studies'
    results. Raises DpmcError for an unknown figure, or a study that cannot have it.
    """
    declared = declared_figure(study.path, name)
    return drawing(declared).reads(study, declared, results)


def metric_files(study: Study, models: Collection[str], results: Path) -> list[Path]:
    """Return the metric files of models of a study, of its own and of those whose cells it reuses."""
    needed = whole.parts(study)
    return [results / of / "metrics" / f"{model}.csv" for of, model in needed if model in models]


def figure_files(name: str, study: Study, metrics: Sequence[Path], results: Path) -> list[Path]:
    """Return the files that a figure is drawn from: metrics, published tables, chains and other tables."""
    return [*metrics, *PUBLISHED_RESULTS.glob("*.csv"), *reads(name, study, results)[1]]


def check_figure_names(outputs: Sequence[Path]) -> None:
    """Raise DpmcError for a file name that does not end as a figure's."""
    for path in outputs:
        if path.suffix[1:].lower() not in FORMATS:
            endings = ", ".join(f".{ending}" for ending in FORMATS)
            raise DpmcError(f"{path}: a figure's file name must end in one of {endings}")


def plot(
    name: str,
    study: Study,
    metrics: Sequence[Path],
    outputs: Sequence[Path],
    results: Path = Path("results"),
) -> None:
    """Draw one figure of a study from metrics files into every file of `outputs`.

    The same metrics, and chains in the folder `results` for a figure that shows them, give the same bytes;
    not so for a figure of measured times.
    Raises DpmcError for an unknown figure, a metrics file that cannot be read as one, a chain file that is
    missing, or an output whose suffix is none of .pdf, .png, .svg; nothing is written then.
    """
    check_figure_names(outputs)
    from dpmc.reports.plots import style

    declared = declared_figure(study.path, name)
    table = whole.read_whole(study, *metrics)
    mark = stamp.digest_of_files(figure_files(name, study, metrics, results))
    figure = draw(ToDraw(declared, table, study, results))
    for output in outputs:
        style.save(figure, output, mark)


def draw(given: ToDraw) -> Figure:
    """Return a figure in the one style of all; raise DpmcError where the study cannot have it."""
    from dpmc.reports.plots import style

    with style.context():
        return drawing(given.declared).draw(given)
