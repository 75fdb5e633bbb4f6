"""The figures of a study, declared in `figures/<study>.yaml` beside its file: keys and their rules.

Figures that are not declared there are taken from those that come with dpmc (`config/figures`).
"""

import functools
import re
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, RootModel, model_validator

from dpmc.algorithms import ALGORITHMS
from dpmc.common.errors import DpmcError
from dpmc.common.shipped import PACKAGE, shipped
from dpmc.common.values import shown
from dpmc.metrics.table import METRICS, is_metric
from dpmc.models import MODELS
from dpmc.studies.documents import Document, beside, read_document
from dpmc.studies.keys import Epsilon, Keys, Label, Number, Text, Texts, key, told, validated
from dpmc.studies.study import Study

TABLE_NAMES = (
    "models",
    "hyperparameters",
    "iterations",
    "run-times",
    "repeated",
    "claims",
)  #: of `reports.tables`


def _kinds() -> dict[str, bool]:
    """Return the kinds of plots by name, and whether each needs a metric.

    They are the modules of `reports/plots` with a line `NEEDS_METRIC = …`; those import this one.
    """
    files = sorted((PACKAGE / "reports/plots").glob("*.py"))
    said = {file.stem: re.search(rb"^NEEDS_METRIC = (\w+)$", file.read_bytes(), re.M) for file in files}
    return {kind: found[1] == b"True" for kind, found in said.items() if found}


KINDS = _kinds()


def _limits(value: tuple[float, ...]) -> tuple[float, ...]:
    if len(value) != 2 or not value[0] < value[1]:
        raise ValueError(f"{shown(list(value))} must be two numbers, the smaller first")
    return value


Real = Annotated[float, Field(strict=True, allow_inf_nan=False), told("number")]
Limits = Annotated[tuple[Real, ...], AfterValidator(_limits), told("two numbers, the smaller first")]
Kind: TypeAlias = Literal[tuple(KINDS)]  # type: ignore[valid-type]
Width = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Function = Annotated[Text, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$")]
Metrics = Annotated[
    Texts,
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    told("text, or list of texts"),
]


class Axis(Keys):
    """The vertical axes of a figure's panels."""

    scale: Literal["linear", "log", "symlog"] = key("`symlog`: logarithmic, but linear near 0", "linear")
    linear_below: Real = key("where `symlog` is linear", 1e-3)
    limits: Limits | None = key("limits of all panels; default: by the data", None)
    label: Text = key("default: the metric's name", "")
    share: bool = key("one axis for all panels", False)


class Line(Keys):
    """A dashed line across the panels of a metric."""

    at: Real = key("its value")
    label: Text = key("its text in the legend")
    metric: Text = key("only in panels of this metric", "")
    upright: Text = key("vertical, only in panels with this horizontal axis (`x.of`)", "")


class Across(Keys):
    """The horizontal axis of a panel of lines."""

    of: Text = key(
        "`epsilon`, metric, option; `traces`: also `iterations`, `seconds`, `rows_used`, `epsilon_total`",
        "epsilon",
    )
    at: Epsilon | None = key("ε of the cells shown; needed for an option and along chains", None)
    scale: Literal["linear", "log"] | None = key("default: `linear` for total budgets, else `log`", None)
    label: Text = key("default: by `of`", "")


class Panel(Keys):
    """One panel of each model, of kinds `lines` and `traces`."""

    metric: Text = key("default: the figure's", "")
    title: Text = key("default: the model's name", "")
    methods: Texts = key("default: the figure's", ())
    x: Across | None = key("in place of the figure's", None)
    y: Axis | None = key("in place of the figure's", None)


class FigureKeys(Keys):
    """One figure."""

    kind: Kind | None = key("kind of plot", None)
    draw: Function | None = key("a function, as `module:name`, in place of a kind", None)
    title: Text = key("title in a few words; default: its name", "")
    metric: Metrics = key("metric, or several: a panel for each", ())
    models: Texts = key("models or repeated runs, by label or catalogue id; default: all that fit", ())
    methods: Texts = key("methods, by label or by algorithm; default: all", ())
    pairs: dict[str, str] = key(
        "label of a model or method, drawn as boxes → label of the one beside it, as slim bars; "
        "`*`: any text, the same in both",
        {},
    )
    beside: Text = key("needed with `pairs`: what the slim bars are, for the legend", "")
    wide: bool = key("for two columns of a paper, 6.9 inches; default: for one, 3.3", False)
    columns: Number | None = key("panels side by side; default: as many as fit", None)
    titles: dict[str, str] = key("label of a model or method, or metric → its name in this figure", {})
    half_widths: dict[str, Width] = key(
        "kind `maps`: model → half the sides of its panel, around the posterior's mean; default: by draws", {}
    )
    panels: tuple[Panel, ...] = key(
        "panels of each model, keys below (`lines`, `traces`); default: one per metric", ()
    )
    x: Across = key("horizontal axes: keys below; `boxes` have a label only", {})
    y: Axis = key("vertical axes: keys below", {})
    lines: tuple[Line, ...] = key("reference lines: keys below", ())
    diagonal: Text = key("legend of the line where both axes agree; default: no line", "")
    published: Text = key("source of the published boxes drawn beside ours; default: none drawn", "")
    caption: Text = key("short caption, for a page")
    text: Text = key("longer text for the report: how to read the figure, what it shows", "")

    @model_validator(mode="after")
    def _consistent(self) -> "FigureKeys":
        if (self.kind is None) == (self.draw is None):
            raise ValueError("needs either kind or draw")
        measured = self.metric or (self.panels and all(panel.metric for panel in self.panels))
        if self.kind and KINDS[self.kind] and not measured:
            raise ValueError(f"kind {self.kind} needs a metric")
        if bool(self.pairs) != bool(self.beside):
            raise ValueError("needs both pairs and beside, or neither")
        if self.pairs and self.published:
            raise ValueError("pairs and published exclude each other: both are slim bars")
        return self


def _declared(file: Path) -> tuple[dict[str, FigureKeys], Document]:
    """Read and check the figures of a file."""
    document = read_document(file)
    figures = validated(RootModel[dict[Label, FigureKeys]], document).root
    for name in TABLE_NAMES:
        if name in figures:
            document.refuse(name, rule="is the name of a table that dpmc makes; a figure needs another")
    return figures, document


def own_figures(study: Path) -> dict[str, FigureKeys]:
    """Return the figures of a study's own file by name; raise DpmcError for a wrong declaration."""
    file = beside(study, "figures", study.name)
    return _declared(file)[0] if file.is_file() else {}


def check_own(study: Study) -> None:
    """Check the names in a study's own figures: of metrics, and of models and methods, also in pairs.

    Ids of the catalogue and of algorithms are known, too. Raises DpmcError naming file, line, key and value.
    """
    file = beside(study.path, "figures", study.path.name)
    figures, document = _declared(file) if file.is_file() else ({}, study.document)
    models, methods = study.models, study.methods
    for name in figures.keys() & set(study.figures):
        figure = figures[name]
        metrics = (*figure.metric, *(panel.metric for panel in figure.panels if panel.metric))
        pairs = [label for pair in figure.pairs.items() for label in pair if "*" not in label]
        for what, named, known in (
            ("models", figure.models, (*models, *study.repeated, *MODELS)),
            ("methods", figure.methods, (*methods, *ALGORITHMS)),
            ("pairs", pairs, (*models, *methods)),
            # A function that draws may use any metric.
            ("metric", [text for text in metrics if figure.kind and not is_metric(text)], METRICS),
        ):
            for text in named:
                document.require(text, known, name, what)


def known_figures(study: Path) -> dict[str, FigureKeys]:
    """Return all figures that a study can have: its own, the common ones, those of dpmc's studies."""
    return _shipped_figures() | own_figures(study)


@functools.cache  # a plan asks for each figure, and these files do not change under a process
def _shipped_figures() -> dict[str, FigureKeys]:
    """Return the figures that come with dpmc."""
    folder = shipped("config", "figures")
    known: dict[str, FigureKeys] = {}
    for file in [*sorted(folder.glob("*.yaml")), folder / "common.yaml"]:  # `common` counts most
        known |= _declared(file)[0]
    return known


def declared_figure(study: Path, name: str) -> FigureKeys:
    """Return one figure of `known_figures`; raise DpmcError for another name."""
    known = known_figures(study)
    if name not in known:
        raise DpmcError(f"figure: {name!r} is unknown, must be one of {', '.join(known)}")
    return known[name]
