"""Tables of a study, for people and papers: each as CSV, Markdown and LaTeX.

A table is a module with `TITLE`, `NOTE` (its meaning and how it was measured), `COLUMNS` (of the CSV),
`table(study, results)` and `inputs(study, results)`, the files that it reads. `results` is the folder of the
results of all studies.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.common.errors import DpmcError
from dpmc.data.outputs import Kind, csv_table, text_file
from dpmc.reports.tables import formats
from dpmc.studies import figures

if TYPE_CHECKING:
    from dpmc.studies import Study

#: name of a table -> its module
TABLES = {name: f"dpmc.reports.tables.{name.replace('-', '_')}" for name in figures.TABLES}
FORMATS = {".csv": formats.csv_text, ".md": formats.markdown_text, ".tex": formats.latex_text}


def write(name: str, study: Study, outputs: Sequence[Path], results: Path = Path("results")) -> None:
    """Write a table into every file of `outputs`, in the format of its suffix.

    Raises DpmcError, and writes nothing, for another suffix and for missing results.
    """
    from dpmc.common.files import replacing

    for output in outputs:
        kind_of_output(name, output)
    made = table(name, study, results)
    for output in outputs:
        with replacing(output) as temporary:
            Path(temporary).write_text(FORMATS[output.suffix.lower()](made), encoding="utf-8")


def table(name: str, study: Study, results: Path) -> formats.Table:
    """Return a table; raise DpmcError for missing results."""
    made: formats.Table = _module(name).table(study, results)
    return made


def inputs(name: str, study: Study, results: Path) -> list[Path]:
    """Return the files that a table reads."""
    found: list[Path] = _module(name).inputs(study, results)
    return found


def note(name: str) -> str:
    """Return the note of a table: its meaning and how it was measured."""
    return str(_module(name).NOTE)


def kind_of_output(name: str, path: Path) -> Kind:
    """Return the kind of result of a table in a file of this name.

    Raises DpmcError for a suffix other than .csv, .md and .tex.
    """
    module = _module(name)
    kinds = {
        ".csv": csv_table(module.COLUMNS),
        ".md": text_file(f"# {module.TITLE}"),
        ".tex": text_file(f"% {module.TITLE}"),
    }
    if path.suffix.lower() not in kinds:
        raise DpmcError(f"{path}: a table's file name must end in one of {', '.join(kinds)}")
    return kinds[path.suffix.lower()]


def _module(name: str) -> Any:
    return importlib.import_module(TABLES[name])
