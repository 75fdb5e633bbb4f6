"""Figures: one module a figure, found here by name; Matplotlib is imported only when one is drawn.

A figure module has `NAME`, `CAPTION` (what the reader sees and can learn from it) and
`draw(metrics, study, published) -> matplotlib.figure.Figure`, where `metrics` is the study's tidy
table (study, model, method, epsilon, seed, metric, value), `study` its definition and `published`
the folder of the published results.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from dpmc.errors import DpmcError

#: name of a figure -> its module
FIGURES: dict[str, str] = {
    "mmd-easy": "dpmc.figures.mmd_easy",
    "clipping-easy": "dpmc.figures.clipping_easy",
    "circle": "dpmc.figures.circle",
}

COLUMNS = ("study", "model", "method", "epsilon", "seed", "metric", "value")
FORMATS = ("pdf", "png", "svg")


def load(name: str) -> ModuleType:
    """Return the module of a figure.

    Raises DpmcError for a name that is not in `FIGURES`.
    """
    if name not in FIGURES:
        raise DpmcError(f"figure: {name!r} is unknown, must be one of {', '.join(FIGURES)}")
    return importlib.import_module(FIGURES[name])


def plot(name: str, study: Any, metrics: Path, published: Path, outputs: Sequence[Path]) -> None:
    """Draw one figure of a study from its metrics file into every file of `outputs`.

    The same metrics give the same bytes.

    Raises DpmcError for an unknown figure, a metrics file that cannot be read as one, or an output
    whose suffix is none of .pdf, .png, .svg; nothing is written then.
    """
    module = load(name)
    for output in outputs:
        if output.suffix[1:].lower() not in FORMATS:
            endings = ", ".join(f".{ending}" for ending in FORMATS)
            raise DpmcError(f"{output}: a figure's file name must end in one of {endings}")
    table = read_metrics(metrics)
    from dpmc.figures import style

    figure = module.draw(table, study, published)
    for output in outputs:
        style.save(figure, output)


def read_metrics(path: Path) -> Any:
    """Return a metrics file as a data frame of text, nothing turned into NaN.

    Raises DpmcError for a file that is missing, empty or has other columns.
    """
    import pandas as pd

    if not path.is_file():
        raise DpmcError(f"{path}: no such file")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, pd.errors.ParserError) as error:
        raise DpmcError(f"{path}: not a CSV table of metrics ({error})") from None
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing:
        raise DpmcError(f"{path}: column {missing[0]!r} is missing; needed: {', '.join(COLUMNS)}")
    return table
