"""Claims: sentences of a source that a study's numbers can decide, with verdicts computed from them.

The claims of a study are data, in `<study>.yaml` of this folder: the sentence in our words (`claim`), its
section, the `figure` to see it in, if any, what the number of a case is (`test`), and the `cases`: numbers
that decide it, each of a kind (`kinds.py`) with the cells it compares and the rule `holds`. A claim is
decided case by case (model, metric, version of a method). It `holds` if all of its cases hold, `fails` if
none does, and otherwise `depends`. A case whose number is missing is not counted and is listed with
`holds: null`; a claim with only such cases is `undecided`. A claim that no number of the study can decide
has `undecidable`, the reason, in place of cases.
"""

import itertools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.common.streams import canonical_epsilon
from dpmc.reports.claims import kinds
from dpmc.reports.claims.table import Cells, ClaimTable
from dpmc.studies import Study, read_yaml

#: study -> the file of its claims
CLAIMS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}

UNDECIDABLE = "cannot be decided here"
VERDICTS = ("holds", "fails", "depends", "undecided", UNDECIDABLE)
TAILS = {"apart": 2, "fall": 1}  #: number in standard errors -> tails of its distribution that count
COMPARED: dict[str, Callable[..., bool]] = {
    **{"below": operator.lt, "above": operator.gt, "at most": operator.le, "at least": operator.ge},
    "between": lambda number, low, high: low <= number <= high,
}


def listed(value: str | Sequence[str]) -> Sequence[str]:
    """Return a value of an entry that may be one text or several as a sequence."""
    return (value,) if isinstance(value, str) else value


def case_numbers(table: ClaimTable, entry: Mapping[str, Any]) -> kinds.Cases:
    """Yield name and number of each case of an entry: `number: first-reached` calls `kinds.first_reached`."""
    keys = {key: value for key, value in entry.items() if key not in ("number", "holds", "version", "by")}
    for key in ("models", "methods", "metrics", "to", "to_models"):
        if key in keys:
            keys[key] = listed(keys[key])
    for key in ("at", "to_at"):
        if not isinstance(keys.get(key, ""), str):
            keys[key] = tuple(map(canonical_epsilon, keys[key]))
    kind: Callable[..., Any] = getattr(kinds, entry["number"].replace("-", "_"))
    if entry["number"] in kinds.NAMING:
        yield from kind(table, **keys)
        return
    if "models" in keys:
        cells = Cells(**{key.name: keys.pop(key.name) for key in fields(Cells) if key.name in keys})
        parts = cells.each(*entry.get("by", kinds.BY.get(entry["number"], kinds.CASE)))
    else:
        parts = table.experiments(keys.pop("model", ""))
    for name, part in parts:
        yield name, kind(table, part, **keys)


def comparison(text: str) -> Callable[[float], bool]:
    """Return the test of a text such as `below 1` or `between 0.8 and 1.25`."""
    word, *limits = re.split(r" (?=[-\d])| and ", text)
    return lambda number: bool(COMPARED[word](number, *map(float, limits)))


def cases_of(claim: Mapping[str, Any], table: ClaimTable) -> list[dict[str, Any]]:
    """Return the cases of a claim with the numbers that decide them, None for a missing one."""
    cases = []
    for entry in claim.get("cases", ()):
        rule = entry["holds"]
        for name, number in case_numbers(table, entry):
            known = math.isfinite(number)
            cases.append(
                {
                    "case": ", ".join(filter(None, (name, entry.get("version", "")))),
                    # Shown with four digits, as further ones are noise, but judged by all of them.
                    "number": float(f"{number:.4g}") if known else None,
                    "asked": rule,
                    "holds": comparison(rule)(number) if known else None,
                }
            )
    return cases


def verdict(cases: Sequence[Mapping[str, Any]]) -> str:
    """Return holds, fails or depends from the cases that have a number; undecided for none."""
    decided = [case["holds"] for case in cases if case["holds"] is not None]
    if not decided:
        return "undecided"
    return "holds" if all(decided) else "depends" if any(decided) else "fails"


def wrong_by_chance(claim: Mapping[str, Any], table: ClaimTable) -> float:
    """Return P(a claim of equal medians fails though they are equal), differences independent and normal."""
    passes = 1.0
    for entry in claim.get("cases", ()):
        rule, _, errors = entry["holds"].rpartition(" ")
        if rule == "below" and entry["number"] in TAILS:
            chance = TAILS[entry["number"]] * math.erfc(float(errors) / math.sqrt(2.0)) / 2.0
            for model, method in itertools.product(listed(entry["models"]), listed(entry["methods"])):
                budgets = len(table.grid(model, method)) if entry["number"] == "apart" else 1
                passes *= (1.0 - chance) ** budgets
    return 1.0 - passes


def claims_of(study: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the source of a study and its claims by name; raise DpmcError for a study without claims."""
    if study not in CLAIMS:
        raise DpmcError(f"study {study}: it has no claims; studies that have: {', '.join(CLAIMS)}")
    content = read_yaml(CLAIMS[study])
    return content["source"], content["claims"]


def judge(study: Study, table: ClaimTable, published: ClaimTable | None = None) -> dict[str, Any]:
    """Return the verdicts on a study's claims, by a table of numbers, as plain mappings and lists.

    `published`: the numbers of the source, with verdicts of their own, – where there are none. `by_chance`:
    how many claims have a known chance of a wrong verdict though they are true, and how many wrong verdicts
    are expected. Raises DpmcError for a study without claims.
    """
    source, claims = claims_of(study.name)
    entries = []
    for name, claim in claims.items():
        cases, test = cases_of(claim, table), claim.get("test", "")
        if len(rules := {case["asked"] for case in cases}) == 1:
            test += f": {rules.pop()}"
        theirs = verdict(cases_of(claim, published)) if published else "undecided"
        entries.append(
            {
                "name": name,
                "section": claim["section"],
                "claim": claim["claim"],
                "verdict": UNDECIDABLE if "undecidable" in claim else verdict(cases),
                "published": "–" if theirs == "undecided" else theirs,
                "test": claim.get("undecidable", test),
                "figure": f"figures/{study.name}/{claim['figure']}.pdf" if "figure" in claim else "none",
                "cases": cases,
            }
        )
    counts = {name: sum(entry["verdict"] == name for entry in entries) for name in VERDICTS}
    chances = [chance for claim in claims.values() if (chance := wrong_by_chance(claim, table))]
    by_chance = {"claims": len(chances), "expected": round(sum(chances), 3)}
    about = {"study": study.name, "source": source, "verdicts": counts, "by_chance": by_chance}
    return about | {"claims": entries}


def write_verdicts(verdicts: dict[str, Any], output: Path) -> None:
    """Write the verdicts as YAML, one line per case."""
    # Without a default style PyYAML writes mappings of plain values, such as a case, on one line each.
    text = yaml.safe_dump(verdicts, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)
    with replacing(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
