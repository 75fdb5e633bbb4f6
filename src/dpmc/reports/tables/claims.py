"""Claims of a study's source: each sentence with its verdict, the numbers that decide it, and the figure."""

from __future__ import annotations

from pathlib import Path

from dpmc.reports.tables.formats import Part, Table
from dpmc.studies import Study
from dpmc.studies.documents import read_yaml

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
    """Return the table: a row for each claim, in the CSV for each case; DpmcError for missing verdicts."""
    verdicts = read_yaml(inputs(study, results)[0])
    rows, shown = [], []
    for claim in verdicts["claims"]:
        cases, section, verdict = claim["cases"], str(claim["section"]), claim["verdict"]
        rows += [
            {"claim": claim["name"], "section": section, "verdict": verdict, "case": case["case"]}
            | {"number": _text(case["number"]), "asked": case["asked"] or "", "holds": _text(case["holds"])}
            for case in cases
        ]
        numbers = [case["number"] for case in cases if case["number"] is not None]
        span = [min(numbers), max(numbers)] if numbers else []
        holding = f"{sum(case['holds'] is True for case in cases)} of {len(cases)}"
        figure = "" if claim["figure"] == "none" else Path(claim["figure"]).stem
        texts = (holding, " to ".join(dict.fromkeys(map(_text, span))), claim["test"], figure)
        shown.append((section, claim["claim"], verdict, *texts))
    counts = ", ".join(
        f"{number} {verdict.removesuffix('s')}" for verdict, number in verdicts["verdicts"].items() if number
    )
    note = f"{NOTE}\nSource: {verdicts['source']}. Verdicts: {counts}."
    return Table(TITLE, note, COLUMNS, rows, [Part("", HEADS, shown)])


def _text(value: float | bool | None) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
