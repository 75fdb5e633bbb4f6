"""Figures: what `figures/<study>.yaml` declares, drawn by one module for each kind of plot.

A kind's module has `draw(given) -> matplotlib.figure.Figure`.
A figure with `draw: "module:function"` is drawn by that function. The module may have more:
`reads(study, declared, results)`, the models whose metrics the figure reads (default: those declared, else
all), and the chain files and tables that it reads beside the metrics (default: none); or `READS_NOTHING`;
`<function>_reads`, the same for one of its functions;
`applies(study, declared)`, whether the study, as far as its data are available, has anything to show.
This module itself does not import Matplotlib.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

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


@dataclass(frozen=True)
class Given:
    """What a figure is drawn from."""

    declared: FigureKeys
    # tidy table of the models that the figure reads: study, model, method, epsilon, seed, metric, value
    metrics: DataFrame
    study: Study
    results: Path  # folder of all studies' results


def _drawing(declared: FigureKeys, study: Study) -> tuple[ModuleType, str]:
    """Return the module that draws a figure, which may lie beside the study, and its function's name there.

    Raises DpmcError where there is none.
    """
    place, _, function = (declared.draw or f"dpmc.reports.plots.{declared.kind}:draw").partition(":")
    try:
        module = importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise DpmcError(f"figure: {declared.draw}: {error}") from None
    if not hasattr(module, function):
        raise DpmcError(f"figure: {declared.draw}: {place} has no function {function}")
    return module, function


def applies(name: str, study: Study) -> bool:
    """Return whether a study, whose models with missing data are left out, can have a figure.

    Raises DpmcError for an unknown figure.
    """
    declared = declared_figure(study.path, name)
    module, _ = _drawing(declared, study)
    return not hasattr(module, "applies") or bool(module.applies(study, declared))


def caption(name: str, study: Study, long: bool = False) -> str:
    """Return the caption of a figure, with what holds for all of its kind; `long`: and the text beside it."""
    from dpmc.reports.plots import captions

    declared = declared_figure(study.path, name)
    short = " ".join([declared.caption.strip(), *captions.common(study, declared)])
    return "\n\n".join([short, declared.text.strip()]) if long and declared.text else short


def reads(name: str, study: Study, results: Path = Path("results")) -> tuple[list[str], list[Path]]:
    """Return the labels of the models whose metrics a figure reads, and the other files that it reads.

    These are chain files and tables; there are none for most figures. `results` is the folder of all studies'
    results. Raises DpmcError for an unknown figure, or a study that cannot have it.
    """
    declared = declared_figure(study.path, name)
    module, function = _drawing(declared, study)
    if getattr(module, "READS_NOTHING", False):
        return [], []
    if read := getattr(module, f"{function}_reads", getattr(module, "reads", None)):
        models, files = read(study, declared, results)
        return models, files
    wanted = declared.models or tuple(study.models)
    return [label for label, spec in study.models.items() if label in wanted or spec.model in wanted], []


def metric_files(study: Study, models: Collection[str], results: Path) -> list[Path]:
    """Return the metric files of models of a study, of its own and of those whose cells it reuses."""
    needed = whole.parts(study)
    return [results / of / "metrics" / f"{model}.csv" for of, model in needed if model in models]


def inputs(name: str, study: Study, metrics: Sequence[Path], results: Path) -> list[Path]:
    """Return the files that a figure is drawn from: metrics, published tables, chains and other tables."""
    return [*metrics, *PUBLISHED_RESULTS.glob("*.csv"), *reads(name, study, results)[1]]


def check_names(outputs: Sequence[Path]) -> None:
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
    check_names(outputs)
    from dpmc.reports.plots import style

    declared = declared_figure(study.path, name)
    table = whole.read(study, *metrics)
    mark = stamp.digest(inputs(name, study, metrics, results))
    figure = draw(Given(declared, table, study, results))
    for output in outputs:
        style.save(figure, output, mark)


def draw(given: Given) -> Figure:
    """Return a figure in the one style of all; raise DpmcError where the study cannot have it."""
    from dpmc.reports.plots import style

    module, function = _drawing(given.declared, given.study)
    with style.context():
        figure: Figure = getattr(module, function)(given)
    return figure
