"""Claims of a study's source: each sentence with its verdict, the numbers that decide it, and the figure."""

from pathlib import Path

import pandas as pd

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


def table(study: Study, results: Path) -> pd.DataFrame:
    """Return a row of texts for each case of each claim; raise DpmcError for missing verdicts."""
    rows = []
    for claim in read_yaml(results / study.name / "claims.yaml")["claims"]:
        about = (claim["name"], str(claim["section"]), claim["verdict"], claim["published"])
        # A claim that cannot be decided here has no case, and one row.
        for case in claim["cases"] or [dict.fromkeys(COLUMNS[4:])]:
            rows.append((*about, *(_text(case[name]) for name in COLUMNS[4:])))
    return pd.DataFrame(rows, columns=[*COLUMNS])


def readable(study: Study, results: Path) -> tuple[str, pd.DataFrame]:
    """Return the note with counts of verdicts, and a row of texts for each claim."""
    verdicts, rows = read_yaml(results / study.name / "claims.yaml"), []
    for claim in verdicts["claims"]:
        cases = claim["cases"]
        holding = f"{sum(case['holds'] is True for case in cases)} of {len(cases)}" if cases else ""
        numbers = [case["number"] for case in cases if case["number"] is not None]
        # Equal ends of the range are written once.
        span = dict.fromkeys(map(_text, (min(numbers), max(numbers)))) if numbers else []
        figure = "" if claim["figure"] == "none" else Path(claim["figure"]).stem
        about = (str(claim["section"]), claim["claim"], claim["verdict"], claim["published"])
        rows.append((*about, holding, " to ".join(span), claim["test"], figure))
    counts = ", ".join(
        f"{number} {verdict.removesuffix('s')}" for verdict, number in verdicts["verdicts"].items() if number
    )
    note = f"{NOTE}\nSource: {verdicts['source']}. Verdicts: {counts}."
    if verdicts["by_chance"]["claims"]:
        note += "\n" + CHANCE.format(all=len(rows), **verdicts["by_chance"])
    return note, pd.DataFrame(rows, columns=[*HEADS])


def _text(value: str | float | bool | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
