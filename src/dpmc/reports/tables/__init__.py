"""Tables of a study, for people and papers: each as CSV, Markdown and LaTeX.

A table is a module with `TITLE`, `NOTE` (its meaning and how it was measured), `COLUMNS` (of the CSV),
`table(study, results)` and `inputs(study, results)`, the files that it reads. `results` is the folder of the
results of all studies.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.data.outputs import Kind, csv_table, text_file
from dpmc.reports.tables import formats
from dpmc.studies import Study, figures

#: name of a table -> its module
TABLES = {name: f"dpmc.reports.tables.{name.replace('-', '_')}" for name in figures.TABLES}
#: suffix -> the text of a table, and the start of its first line before the title
FORMATS = {".md": (formats.markdown_text, "# "), ".tex": (formats.latex_text, "% ")}


def module(name: str) -> Any:
    """Return the module of a table."""
    return importlib.import_module(TABLES[name])


def write(name: str, study: Study, outputs: Sequence[Path], results: Path = Path("results")) -> None:
    """Write a table into every file of `outputs`, in the format of its suffix.

    Raises DpmcError, and writes nothing, for another suffix and for missing results.
    """
    for output in outputs:
        kind_of_output(name, output)
    table: formats.Table = module(name).table(study, results)
    for output in outputs:
        text, _ = FORMATS.get(output.suffix.lower(), (formats.csv_text, ""))
        with replacing(output) as temporary:
            Path(temporary).write_text(text(table), encoding="utf-8")


def kind_of_output(name: str, path: Path) -> Kind:
    """Return the kind of result of a table in a file of this name.

    Raises DpmcError for a suffix other than .csv, .md and .tex.
    """
    suffix, made = path.suffix.lower(), module(name)
    if suffix == ".csv":
        return csv_table(made.COLUMNS)
    if suffix not in FORMATS:
        raise DpmcError(f"{path}: a table's file name must end in one of .csv, {', '.join(FORMATS)}")
    return text_file(FORMATS[suffix][1] + made.TITLE)
