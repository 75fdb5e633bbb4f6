"""Figures: what `figures/<study>.yaml` declares, drawn by one module for each kind of plot.

A kind's module has `draw(given) -> matplotlib.figure.Figure`.
A figure with `draw: "module:function"` is drawn by that function. The module may have more:
`files(study, declared, results)`, chain files and tables that the figure reads beside the metrics;
`models_read(study, declared)`, the models whose metrics it reads (default: those declared, else all);
`applies(study, declared)`, whether the study, as far as its data are available, has anything to show. This
module itself does not import Matplotlib.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dpmc.common.errors import DpmcError
from dpmc.data.outputs import FIGURE, Kind
from dpmc.reports.plots import stamp
from dpmc.studies.figures import FigureKeys, declared_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

FORMATS = ("pdf", "png", "svg")


@dataclass(frozen=True)
class Given:
    """What a figure is drawn from."""

    declared: FigureKeys
    # tidy table of the models that the figure reads: study, model, method, epsilon, seed, metric, value
    metrics: DataFrame
    study: Study
    published: Path  # folder of the published results
    results: Path  # folder of all studies' results


def _function(declared: FigureKeys, study: Study) -> tuple[ModuleType, str]:
    """Return the module that draws a figure, which may lie beside the study, and its function's name there.

    Raises DpmcError where there is none.
    """
    module, _, name = (declared.draw or f"dpmc.reports.plots.{declared.kind}:draw").partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise DpmcError(f"figure: {declared.draw}: {error}") from None
    if not hasattr(found, name):
        raise DpmcError(f"figure: {declared.draw}: {module} has no function {name}")
    return found, name


def applies(name: str, study: Study) -> bool:
    """Return whether a study, whose models with missing data are left out, can have a figure.

    Raises DpmcError for an unknown figure.
    """
    declared = declared_figure(study.path, name)
    module, _ = _function(declared, study)
    return bool(module.applies(study, declared)) if hasattr(module, "applies") else True


def caption(name: str, study: Study) -> str:
    """Return what the report says of a figure: its caption, and the text beside it."""
    declared = declared_figure(study.path, name)
    return "\n\n".join(part.strip() for part in (declared.caption, declared.text) if part)


def chain_files(name: str, study: Study, results: Path) -> list[Path]:
    """Return the chain files and tables, beside the metrics, that a figure reads; none for most figures.

    `results` is the folder of all studies' results. Raises DpmcError for an unknown figure, or a study that
    cannot have it.
    """
    declared = declared_figure(study.path, name)
    module, _ = _function(declared, study)
    return list(module.files(study, declared, results)) if hasattr(module, "files") else []


def models_read(name: str, study: Study) -> list[str]:
    """Return the labels of the models whose metrics a figure reads; none for some figures.

    Raises DpmcError for an unknown figure, or a study that cannot have it.
    """
    declared = declared_figure(study.path, name)
    module, _ = _function(declared, study)
    if hasattr(module, "models_read"):
        return list(module.models_read(study, declared))
    wanted = declared.models or tuple(study.models)
    return [label for label, spec in study.models.items() if label in wanted or spec.model in wanted]


def metric_files(study: Study, models: Collection[str], results: Path) -> list[Path]:
    """Return the metric files of models of a study: of chains, also of reused ones, and of exact samples."""
    own = dict.fromkeys((study.name, model) for model, _, _ in study.cells())
    chains = [(of, model) for of, model in [*own, *study.reused()] if model in models]
    exact = [model for model, spec in study.models.items() if model in models and ":" not in spec.model]
    return [
        *(results / of / "metrics" / model / "chains.csv" for of, model in chains),
        *(results / study.name / "metrics" / model / "baseline.csv" for model in exact),
    ]


def inputs(name: str, study: Study, metrics: Sequence[Path], published: Path, results: Path) -> list[Path]:
    """Return the files that a figure is drawn from: metrics, published tables, `chain_files`."""
    return [*metrics, *published.glob("*.csv"), *chain_files(name, study, results)]


def kind_of_output(name: str, study: Study, path: Path) -> Kind:
    """Return the kind of result that a figure is in a file of this name.

    Raises DpmcError for an unknown figure, and for a suffix that it is not written by.
    """
    declared_figure(study.path, name)
    if path.suffix[1:].lower() not in FORMATS:
        endings = ", ".join(f".{ending}" for ending in FORMATS)
        raise DpmcError(f"{path}: a figure's file name must end in one of {endings}")
    return FIGURE


def plot(
    name: str,
    study: Study,
    metrics: Sequence[Path],
    published: Path,
    outputs: Sequence[Path],
    results: Path = Path("results"),
) -> None:
    """Draw one figure of a study from metrics files into every file of `outputs`.

    The same metrics, and chains in the folder `results` for a figure that shows them, give the same bytes.
    Raises DpmcError for an unknown figure, a metrics file that cannot be read as one, a chain file that is
    missing, or an output whose suffix is none of .pdf, .png, .svg; nothing is written then.
    """
    for output in outputs:
        kind_of_output(name, study, output)
    from dpmc.metrics.table import read_metrics
    from dpmc.reports.plots import style

    declared = declared_figure(study.path, name)
    table = read_metrics(*metrics)
    mark = stamp.digest(inputs(name, study, metrics, published, results))
    figure = draw(Given(declared, table, study, published, results))
    for output in outputs:
        style.save(figure, output, mark)


def draw(given: Given) -> Figure:
    """Return a figure; DpmcError where the study cannot have it."""
    module, function = _function(given.declared, given.study)
    drawing: Callable[..., Any] = getattr(module, function)
    return drawing(given)
