"""Claims: sentences of a source that a study's numbers can decide, with verdicts computed from them.

The claims of a study are data, in `<study>.yaml` of this folder: sentence, section, figure, and the numbers
that decide it, each of a kind (`kinds.py`, `clipping.py`) with the cells it compares and the rule `holds`. A
claim is decided case by case (model, metric, version of a method). It `holds` if all of its cases hold,
`fails` if none does, and otherwise `depends`. A case whose number is missing is not counted and is listed
with `holds: null`; a claim with only such cases is `undecided`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.common.streams import canonical_epsilon
from dpmc.reports.claims import clipping, kinds
from dpmc.reports.claims.table import Cells, Table
from dpmc.studies import Study
from dpmc.studies.documents import read_yaml

#: study -> the file of its claims
CLAIMS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}

VERDICTS = ("holds", "fails", "depends", "undecided")
CELL_KEYS = ("models", "methods", "metrics", "at")
COMPARED = {"below": operator.lt, "above": operator.gt, "at most": operator.le, "at least": operator.ge}


@dataclass(frozen=True)
class Case:
    """One case of a claim and the number that decides it, None if missing."""

    case: str
    number: float | None
    asked: str  # rule for the number
    holds: bool | None


@dataclass(frozen=True)
class Claim:
    """A sentence of a source, in our words, and the numbers that decide it."""

    section: str
    claim: str
    test: str  # what the number of a case is
    cases: list[dict[str, Any]]
    figure: str = ""  # where to see it; "": in no figure, in the metrics only

    def judged(self, table: Table) -> Iterator[Case]:
        """Yield the cases as a table of numbers decides them."""
        for entry in self.cases:
            rule, version = entry["holds"], entry.get("version", "")
            for name, value in numbers(table, entry):
                case = ", ".join(filter(None, (name, version)))
                if math.isfinite(value):  # four digits: further ones are noise
                    yield Case(case, float(f"{value:.4g}"), rule, comparison(rule)(value))
                else:
                    yield Case(case, None, rule, None)

    def tested(self) -> str:
        """Return the text of the test, with the rule for its numbers if all cases have the same rule."""
        rules = {entry["holds"] for entry in self.cases}
        return f"{self.test}: {rules.pop()}" if len(rules) == 1 else self.test


@dataclass(frozen=True)
class Source:
    """The claims of a study's source, by name."""

    source: str
    claims: dict[str, Claim]


def numbers(table: Table, entry: Mapping[str, Any]) -> kinds.Cases:
    """Yield the name and number of each case of an entry of a file of claims.

    For `number: of-all`, the function `of_all` of `kinds` or `clipping` is called with the entry's keys.
    """
    keys = {key: value for key, value in entry.items() if key not in ("number", "holds", "version")}
    for key in ("models", "methods", "metrics", "to", "to_models"):
        if isinstance(keys.get(key), str):
            keys[key] = (keys[key],)
    for key in ("at", "to_at"):
        if not isinstance(keys.get(key, ""), str):
            keys[key] = tuple(map(canonical_epsilon, keys[key]))
    if "models" in keys:
        keys["cells"] = Cells(**{key: keys.pop(key) for key in CELL_KEYS if key in keys})
    name = entry["number"].replace("-", "_")
    function: Callable[..., kinds.Cases] = getattr(kinds, name, None) or getattr(clipping, name)
    return function(table, **keys)


def comparison(text: str) -> Callable[[float], bool]:
    """Return the test of a text such as `below 1` or `between 0.8 and 1.25`; ValueError for another."""
    if match := re.fullmatch(r"between (\S+) and (\S+)", text):
        low, high = map(float, match.groups())
        return lambda number: low <= number <= high
    if match := re.fullmatch(rf"({'|'.join(COMPARED)}) (\S+)", text):
        compare, limit = COMPARED[match[1]], float(match[2])
        return lambda number: bool(compare(number, limit))
    raise ValueError(f"{text!r} is no comparison; {', '.join(COMPARED)} a number, or between two")


def verdict(cases: Sequence[Case]) -> str:
    """Return holds, fails or depends from the cases that have a number; undecided for none."""
    decided = [case.holds for case in cases if case.holds is not None]
    if not decided:
        return "undecided"
    return "holds" if all(decided) else "depends" if any(decided) else "fails"


def claims_of(study: str) -> Source:
    """Return the claims of a study; raise DpmcError for a study without claims."""
    if study not in CLAIMS:
        raise DpmcError(f"study {study}: it has no claims; studies that have: {', '.join(CLAIMS)}")
    content = read_yaml(CLAIMS[study])
    return Source(content["source"], {name: Claim(**keys) for name, keys in content["claims"].items()})


def judge(study: Study, table: Table) -> dict[str, Any]:
    """Return the verdicts on a study's claims, by a table of numbers, as plain mappings and lists.

    Raises DpmcError for a study without claims.
    """
    source = claims_of(study.name)
    entries = []
    for name, claim in source.claims.items():
        cases = list(claim.judged(table))
        entries.append(
            {
                "name": name,
                "section": claim.section,
                "claim": claim.claim,
                "verdict": verdict(cases),
                "test": claim.tested(),
                "figure": f"figures/{study.name}/{claim.figure}.pdf" if claim.figure else "none",
                "cases": [asdict(case) for case in cases],
            }
        )
    counts = {name: sum(entry["verdict"] == name for entry in entries) for name in VERDICTS}
    return {"study": study.name, "source": source.source, "verdicts": counts, "claims": entries}


def write(verdicts: dict[str, Any], output: Path) -> None:
    """Write the verdicts as YAML, one line per case."""
    # Without a default style PyYAML writes mappings of plain values, such as a case, on one line each.
    text = yaml.safe_dump(verdicts, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)
    with replacing(output) as temporary:
        temporary.write_text(text, encoding="utf-8")
