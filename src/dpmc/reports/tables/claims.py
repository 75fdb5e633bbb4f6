"""Claims of a study's source: each sentence with its verdict, the numbers that decide it, and the figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.common.errors import DpmcError
from dpmc.reports.tables.formats import Part, Table
from dpmc.studies.documents import read_yaml

if TYPE_CHECKING:
    from dpmc.studies import Study

TITLE = "Claims"
COLUMNS = ("claim", "section", "verdict", "case", "number", "asked", "holds")
HEADS = ("Section", "Claim", "Verdict", "Cases that hold", "Numbers", "Test", "Figure")
NOTE = (
    "Sentences of the source that a number can decide. A claim is decided case by case (each model, metric\n"
    "or version of a method that it speaks of): it holds where all cases hold, fails where none does, and\n"
    "depends otherwise. Numbers are the smallest and the largest of its cases."
)


def inputs(study: Study, results: Path) -> list[Path]:
    """Return the file of verdicts."""
    return [results / study.name / "claims.yaml"]


def table(study: Study, results: Path) -> Table:
    """Return the table: a row for each claim, in the CSV for each case.

    Raises DpmcError for verdicts that are missing.
    """
    [path] = inputs(study, results)
    if not path.is_file():
        raise DpmcError(f"{path}: not found; a study whose source has claims writes it")
    verdicts = read_yaml(path)
    rows = [row for claim in verdicts["claims"] for row in _cases(claim)]
    counts = ", ".join(
        f"{number} {verdict.removesuffix('s')}" for verdict, number in verdicts["verdicts"].items() if number
    )
    note = f"{NOTE}\nSource: {verdicts['source']}. Verdicts: {counts}."
    return Table(TITLE, note, COLUMNS, rows, [Part("", HEADS, [_shown(one) for one in verdicts["claims"]])])


def _cases(claim: Mapping[str, Any]) -> list[dict[str, str]]:
    """The rows of a claim in the CSV."""
    return [
        {"claim": claim["name"], "section": str(claim["section"]), "verdict": claim["verdict"]}
        | {"case": case["case"], "number": _text(case["number"]), "asked": str(case["asked"])}
        | {"holds": _text(case["holds"])}
        for case in claim["cases"]
    ]


def _shown(claim: Mapping[str, Any]) -> Sequence[str]:
    """The row of a claim for readers."""
    numbers = [case["number"] for case in claim["cases"] if case["number"] is not None]
    holding = sum(case["holds"] is True for case in claim["cases"])
    span = " to ".join(dict.fromkeys(f"{one:g}" for one in (min(numbers), max(numbers)))) if numbers else ""
    figure = "" if claim["figure"] == "none" else Path(claim["figure"]).stem
    counted = f"{holding} of {len(claim['cases'])}"
    return (str(claim["section"]), claim["claim"], claim["verdict"], counted, span, claim["test"], figure)


def _text(value: float | bool | None) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value).lower()
