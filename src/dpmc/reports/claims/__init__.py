"""Claims: sentences of a source that a study's numbers can decide, with verdicts computed from them.

The claims of a study are data, in `<study>.yaml` of this folder: sentence, section, figure, and the numbers
that decide it, each of a kind (`kinds.py`, `overall.py`, `clipping.py`) with its parameters and the rule
`holds`. A claim is decided case by case (model, metric, version of a method). It `holds` if all of its cases
hold, `fails` if none does, and otherwise `depends`. A case whose number is missing is not counted and is
listed with `holds: null`; a claim with only such cases is `undecided`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from dpmc.common.errors import DpmcError
from dpmc.reports.claims import clipping, kinds, overall
from dpmc.reports.claims.numbers import Numbers
from dpmc.studies.documents import read_yaml
from dpmc.studies.keys import Keys

if TYPE_CHECKING:
    from pandas import DataFrame

    from dpmc.studies import Study

#: study -> the file of its claims
CLAIMS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}

VERDICTS = ("holds", "fails", "depends", "undecided")

AnyKind = Annotated[
    kinds.Level
    | kinds.Ratio
    | kinds.RatioOfMetrics
    | overall.OfAll
    | kinds.Growth
    | overall.Inconsistent
    | overall.Extreme
    | overall.FirstReached
    | kinds.Gain
    | kinds.Ends
    | kinds.Fall
    | kinds.Apart
    | overall.Share
    | overall.Models
    | overall.AboveFloor
    | overall.BestEnds
    | clipping.AtLargestBound
    | clipping.MostIncrease
    | clipping.LateBounds
    | clipping.ChosenBound
    | clipping.InGap
    | clipping.StrayBounds
    | clipping.OverFree,
    Field(discriminator="number"),
]


@dataclass(frozen=True)
class Case:
    """One case of a claim and the number that decides it, None if missing."""

    name: str
    number: float | None
    holds: bool | None
    asks: str = ""  # rule for the number


class Claim(Keys):
    """A sentence of a source, in our words, and the numbers that decide it."""

    section: str
    claim: str
    test: str  # what the number of a case is
    figure: str = ""  # where to see it; "": in no figure, in the metrics only
    cases: tuple[AnyKind, ...]

    def judged(self, numbers: Numbers) -> Iterator[Case]:
        """Yield the decided cases."""
        for kind in self.cases:
            holds = kinds.comparison(kind.holds)
            for name, number in kind.cases(numbers).items():
                one = case(", ".join(filter(None, (name, kind.version))), number, holds)
                yield replace(one, asks=kind.holds)

    def tested(self) -> str:
        """Return the text of the test, with the rule for its numbers if all cases have the same rule."""
        asked = {kind.holds for kind in self.cases}
        return f"{self.test}: {asked.pop()}" if len(asked) == 1 else self.test


class Source(Keys):
    """A file of claims."""

    source: str
    words: dict[str, str] = {}  # meanings of vague words, as YAML anchors used in the file
    claims: dict[str, Claim]


def case(name: str, number: float | None, holds: Any) -> Case:
    """Return a case, decided by `holds` if its number is known."""
    if number is None or not math.isfinite(number):
        return Case(name, None, None)
    return Case(name, number, bool(holds(number)))


def verdict(cases: Sequence[Case]) -> str:
    """Return holds, fails or depends from the cases that have a number; undecided for none."""
    decided = [one.holds for one in cases if one.holds is not None]
    if not decided:
        return "undecided"
    return "holds" if all(decided) else "depends" if any(decided) else "fails"


def claims_of(study: str) -> Source:
    """Return the claims of a study; raise DpmcError for a study without claims."""
    if study not in CLAIMS:
        raise DpmcError(f"study {study}: it has no claims; studies that have: {', '.join(CLAIMS)}")
    return Source.model_validate(read_yaml(CLAIMS[study]))


def judge(study: Study, metrics: DataFrame, budgets: DataFrame | None = None) -> dict[str, Any]:
    """Return the verdicts on a study's claims as plain mappings and lists.

    `budgets` is the table of iterations by accountant, for claims about iterations. Raises DpmcError for a
    study without claims.
    """
    source = claims_of(study.name)
    numbers = Numbers(study, metrics, budgets)
    entries = [_entry(name, claim, numbers) for name, claim in source.claims.items()]
    counts = {name: sum(entry["verdict"] == name for entry in entries) for name in VERDICTS}
    return {"study": study.name, "source": source.source, "verdicts": counts, "claims": entries}


def _entry(name: str, claim: Claim, numbers: Numbers) -> dict[str, Any]:
    """Return one claim with its verdict as a mapping."""
    cases = list(claim.judged(numbers))
    return {
        "name": name,
        "section": claim.section,
        "claim": claim.claim,
        "verdict": verdict(cases),
        "test": claim.tested(),
        "figure": f"figures/{numbers.study.name}/{claim.figure}.pdf" if claim.figure else "none",
        "cases": [
            {"case": one.name, "number": _rounded(one.number), "asked": one.asks, "holds": one.holds}
            for one in cases
        ],
    }


def _rounded(number: float | None) -> float | None:
    """Round to four significant digits: further digits are noise."""
    return None if number is None else float(f"{number:.4g}")


def write(verdicts: dict[str, Any], output: Path) -> None:
    """Write the verdicts as YAML, one line per case."""
    import yaml

    from dpmc.common.files import replacing

    class Dumper(yaml.SafeDumper):
        def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
            """Write cases and counts on one line each, other mappings as blocks."""
            short = all(not isinstance(value, (dict, list)) for value in mapping.values())
            return super().represent_mapping(tag, mapping, short and "section" not in mapping)

    with replacing(output) as temporary:
        text = yaml.dump(
            verdicts, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False
        )
        temporary.write_text(text, encoding="utf-8")
