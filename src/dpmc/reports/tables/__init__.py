"""Tables of a study: each as tidy CSV; those that people read whole also as Markdown.

A table is a module with `TITLE`, `NOTE` (the meaning of its columns, and how they were measured), `COLUMNS`
and `table(study, results)`, which returns them as a DataFrame; `results` is the folder of the results of all
studies. Those that are also Markdown have `readable(study, results)`: a note, and a table with headings for
people.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.studies import Study, figures

if TYPE_CHECKING:
    from pandas import DataFrame

#: name of a table -> its module
TABLES = {name: f"dpmc.reports.tables.{name.replace('-', '_')}" for name in figures.TABLES}
#: table -> how its files may end
SUFFIXES = {name: [".csv", ".md"] if name in ("models", "claims") else [".csv"] for name in TABLES}
#: table -> the file of the study's results that it reads
SOURCES = {"iterations": "budgets.csv", "run-times": "metrics.csv", "claims": "claims.yaml"}


def module(name: str) -> Any:
    """Return the module of a table."""
    return importlib.import_module(TABLES[name])


def inputs(name: str, study: Study, results: Path) -> list[Path]:
    """Return the files that a table needs; what is in `logs` is read if it is there."""
    folder = results / study.name
    if name == "hyperparameters":
        tried = [pair for pair in study.pairs() if study.is_tried(*pair)]
        return [folder / "tuning" / model / f"{method}.yaml" for model, method in tried]
    return [folder / SOURCES[name]] if name in SOURCES else []


def check_names(name: str, outputs: Sequence[Path]) -> None:
    """Raise DpmcError for a file name that does not end as those of a table."""
    for path in outputs:
        if path.suffix.lower() not in SUFFIXES[name]:
            raise DpmcError(f"{path}: a file of the table {name} must end in {' or '.join(SUFFIXES[name])}")


def write(name: str, study: Study, outputs: Sequence[Path], results: Path = Path("results")) -> None:
    """Write a table into every file of `outputs`, as CSV or, where its name ends in .md, as Markdown.

    Raises DpmcError, and writes nothing, if results are missing.
    """
    made, texts = module(name), {}
    for output in outputs:
        if output.suffix.lower() == ".md":
            note, table = made.readable(study, results)
            texts[output] = f"# {made.TITLE}\n\n{note}\n\n{markdown(table)}\n"
        else:
            texts[output] = made.table(study, results).to_csv(index=False, lineterminator="\n")
    for output, text in texts.items():
        with replacing(output) as temporary:
            Path(temporary).write_text(text, encoding="utf-8")


def markdown(table: DataFrame) -> str:
    """Return a table of texts as Markdown: numbers at the right of their columns, "–" for empty entries."""
    import pandas as pd

    numbers = [pd.to_numeric(table[name][table[name] != ""], errors="coerce").notna().all() for name in table]
    marks = ["---:" if are_numbers else "---" for are_numbers in numbers]
    lines = [list(table), marks, *table.to_numpy().tolist()]
    cells = [[text.replace("|", r"\|") or "–" for text in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
