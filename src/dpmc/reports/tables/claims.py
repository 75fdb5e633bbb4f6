"""Claims of a study's source: each sentence with its verdict, the numbers that decide it, and the figure."""

from __future__ import annotations

from pathlib import Path

from dpmc.reports.tables.formats import Part, Table
from dpmc.studies import Study
from dpmc.studies.documents import read_yaml

TITLE = "Claims"
COLUMNS = ("claim", "section", "verdict", "published", "case", "number", "asked", "holds")
HEADS = ("Section", "Claim", "Verdict", "Published", "Cases that hold", "Numbers", "Test", "Figure")
NOTE = """\
The sentences of the source that we test. A claim is decided case by case (each model, metric or version of
a method that it speaks of): it holds where all cases hold, fails where none does, and depends otherwise.
Numbers are the smallest and the largest of its cases. Published: what the source's own numbers decide by
the same test, where it has published them."""
CHANCE = """\
Of {all} claims {claims} ask for medians less than some standard errors apart. If all of these were true,
{expected:.2g} of them would still not hold, by chance (for normal and independent differences). For the
other claims the chance is not known: it depends on how far a true claim is from its limit."""


def inputs(study: Study, results: Path) -> list[Path]:
    """Return the file of verdicts."""
    return [results / study.name / "claims.yaml"]


def table(study: Study, results: Path) -> Table:
    """Return the table: a row for each claim, in the CSV for each case; DpmcError for missing verdicts."""
    verdicts = read_yaml(inputs(study, results)[0])
    rows, shown = [], []
    for claim in verdicts["claims"]:
        cases, section = claim["cases"], str(claim["section"])
        about = {name: claim[name] for name in ("verdict", "published")}
        none = dict.fromkeys(COLUMNS[4:])  # of a claim that cannot be decided here
        rows += [
            {"claim": claim["name"], "section": section, **about}
            | {name: _text(case[name]) for name in COLUMNS[4:]}
            for case in cases or [none]
        ]
        numbers = [case["number"] for case in cases if case["number"] is not None]
        span = [min(numbers), max(numbers)] if numbers else []
        holding = f"{sum(case['holds'] is True for case in cases)} of {len(cases)}" if cases else ""
        figure = "" if claim["figure"] == "none" else Path(claim["figure"]).stem
        texts = (holding, " to ".join(dict.fromkeys(map(_text, span))), claim["test"], figure)
        shown.append((section, claim["claim"], *about.values(), *texts))
    counts = ", ".join(
        f"{number} {verdict.removesuffix('s')}" for verdict, number in verdicts["verdicts"].items() if number
    )
    note = f"{NOTE}\nSource: {verdicts['source']}. Verdicts: {counts}."
    if verdicts["by_chance"]["claims"]:
        note += "\n" + CHANCE.format(all=len(verdicts["claims"]), **verdicts["by_chance"])
    return Table(TITLE, note, COLUMNS, rows, [Part("", HEADS, shown)])


def _text(value: str | float | bool | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
