"""Claims: sentences of a source that a study's numbers can decide, with verdicts computed from them.

The claims of a study are data, in `<study>.yaml` of this folder: the sentence in our words (`claim`), its
section, the `figure` to see it in, if any, what the number of a case is (`test`), and the `cases`: numbers
that decide it, each of a kind (`kinds.py`) with the cells it compares and what is asked of it (`holds`). With
`study` the cells are those of another study, if it has results. `rule.py` has the rule. `some`: the claim is
that a case holds; `exceptions`: the claim's own word that allows some. The claim is about the method as its
source has it: cases whose names match a pattern of the file's `versions` (as its authors coded it, corrected,
by another metric) have a verdict of their own. A claim that no number can decide has `undecidable`, the
reason, in place of cases.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.reports.claims import kinds, rule
from dpmc.reports.claims.table import Cells, ClaimTable
from dpmc.studies import Study, read_yaml

#: study -> the file of its claims
CLAIMS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}

UNDECIDABLE = "cannot be decided here"
VERDICTS = (rule.HOLDS, rule.FAILS, rule.DEPENDS, rule.UNTOLD, rule.NO_NUMBER, UNDECIDABLE)
MILDER = {"some", "exceptions"}  #: keys of claims that fail if all cases do, not one
Tables = Mapping[str, ClaimTable]  # by study
Case = dict[str, Any]


def listed(value: str | Sequence[str]) -> Sequence[str]:
    """Return a value of an entry that may be one text or several as a sequence."""
    return (value,) if isinstance(value, str) else value


def case_numbers(table: ClaimTable, entry: Mapping[str, Any]) -> kinds.Cases:
    """Yield name and number of each case of an entry: `number: first-reached` calls `kinds.first_reached`."""
    others = ("number", "holds", "version", "by", "study")
    keys = {key: value for key, value in entry.items() if key not in others}
    for key in ("models", "methods", "metrics", "to", "to_models"):
        if key in keys:
            keys[key] = listed(keys[key])
    for key in ("at", "to_at"):
        if not isinstance(keys.get(key, ""), str):
            keys[key] = tuple(map(canonical_epsilon, keys[key]))
    kind = getattr(kinds, entry["number"].replace("-", "_"))
    if entry["number"] in kinds.NAMING:
        yield from kind(table, **keys)
        return
    if "models" in keys:
        cells = Cells(**{key.name: keys.pop(key.name) for key in fields(Cells) if key.name in keys})
        parts = table.parts(cells, entry.get("by", kinds.BY.get(entry["number"], kinds.CASE)))
    else:
        parts = table.experiments(keys.pop("model", ""))
    for name, part in parts:
        yield name, kind(table, part, **keys)


def _numbers_of(claim: Mapping[str, Any], tables: Tables, study: str) -> Iterator[tuple[str, str, bool, Any]]:
    """Yield name, what is asked, whether it is a ratio, and number of each case; none without a table."""
    for entry in claim.get("cases", ()):
        if other := tables.get(entry.get("study", study)):
            added = (entry.get("version", ""), f"study {entry['study']}" if "study" in entry else "")
            for name, number in case_numbers(other, entry):
                is_ratio = entry["number"] in kinds.RATIO_KINDS and not entry.get("less", False)
                yield ", ".join(filter(None, (name, *added))), entry["holds"], is_ratio, number


def cases_of(claim: Mapping[str, Any], tables: Tables, study: str, versions: Mapping[str, str]) -> list[Case]:
    """Return the cases of a claim with the numbers that decide them, None for a missing one.

    Numbers and errors are shown with four digits, but judged by all of them. `luck`: the chance that the case
    fails though it holds. A case whose number is known and that cannot be told has `holds: null`.
    """
    found = [(*case, _version(case[0], versions)) for case in _numbers_of(claim, tables, study)]
    known = Counter(version for _, _, _, number, version in found if np.isfinite(number[0]))
    cases: list[Case] = []
    for name, text, is_ratio, number, version in found:
        asked = rule.Limit(
            text,
            to_hold=known[version] if "some" in claim else 1,
            to_fail=1 if MILDER & {*claim} else known[version],
            ratio=is_ratio,
        )
        case: Case = {"case": name, "version": version, "number": None, "error": None, "asked": text}
        case |= {"holds": None, "luck": None}
        if np.isfinite(number[0]):
            value = float(number[0]), _error(number, is_ratio)
            case |= {key: float(f"{part:.4g}") for key, part in zip(("number", "error"), value, strict=True)}
            case |= {"holds": asked.decide(*value), "luck": asked.luck(*value)}
        cases.append(case)
    return cases


def _error(number: Any, is_ratio: bool) -> float:
    """Return the standard deviation of runs drawn anew; of a ratio, that of its logarithm times the ratio."""
    again = number[1:][np.isfinite(number[1:]) & ((number[1:] > 0.0) | (not is_ratio))]
    if not len(again):
        return 0.0
    error = float(number[0] * np.std(np.log(again)) if is_ratio else np.std(again))
    return error if error > 1e-9 * abs(number[0]) else 0.0  # without the rounding of an exact number


def _version(name: str, versions: Mapping[str, str]) -> str:
    return next((version for version, pattern in versions.items() if re.search(pattern, name)), "")


def verdicts_of(claim: Mapping[str, Any], cases: Sequence[Case]) -> dict[str, str]:
    """Return version -> verdict; first the one that the claim is about, the source's if it has cases."""
    by_version: dict[str, list[bool | None]] = {"": []} if any(not case["version"] for case in cases) else {}
    for case in cases:
        decided = by_version.setdefault(case["version"], [])
        decided += [case["holds"]] if case["number"] is not None else []
    ways = {"some": "some" in claim, "exceptions": "exceptions" in claim}
    return {version: rule.verdict(holds, **ways) for version, holds in by_version.items()}


def reproduced(ours: Sequence[Case], theirs: Sequence[Case]) -> str:
    """Return of how many published numbers ours are apart by no more than chance; "–" where there are none.

    Numbers without error have to agree within half a per cent.
    """
    ours, theirs = ([case for case in cases if case["number"] is not None] for cases in (ours, theirs))
    found = {case["case"]: case for case in theirs}
    pairs = [(case, found[case["case"]]) for case in ours if case["case"] in found]
    asked = rule.Limit("not beyond chance apart from 0", to_fail=max(len(pairs), 1))
    same = [
        asked.decide(one["number"] - other["number"], math.hypot(one["error"], other["error"]))
        or math.isclose(one["number"], other["number"], rel_tol=0.005)
        for one, other in pairs
    ]
    return f"{sum(same)} of {len(same)}" if same else "–"


def claims_of(study: str) -> dict[str, Any]:
    """Return the source, versions and claims by name of a study; raise DpmcError for one without claims."""
    if study not in CLAIMS:
        raise DpmcError(f"study {study}: it has no claims; studies that have: {', '.join(CLAIMS)}")
    return read_yaml(CLAIMS[study])


def other_studies(study: str) -> list[str]:
    """Return the studies whose results decide claims of a study's source, too; as `claims_of`."""
    entries = (entry for claim in claims_of(study)["claims"].values() for entry in claim.get("cases", ()))
    return sorted({entry["study"] for entry in entries if "study" in entry})


def judge(study: Study, tables: Tables, published: ClaimTable | None = None) -> dict[str, Any]:
    """Return the verdicts on a study's claims, by the tables of numbers of studies, as mappings and lists.

    `published`: the numbers of the source, with verdicts of their own, – where there are none; `reproduced`:
    of how many of these ours are not apart. Raises DpmcError for a study without claims.
    """
    of, entries = claims_of(study.name), []
    versions = of.get("versions", {})
    for name, claim in of["claims"].items():
        cases, test = cases_of(claim, tables, study.name, versions), claim.get("test", "")
        theirs = cases_of(claim, {study.name: published}, study.name, versions) if published else []
        (version, decided), *others = verdicts_of(claim, cases).items() or [("", rule.NO_NUMBER)]
        printed = [found for found in verdicts_of(claim, theirs).values() if found != rule.NO_NUMBER]
        chances = [case["luck"] for case in cases if case["version"] == version and case["luck"] is not None]
        if len(rules := {case["asked"] for case in cases}) == 1:
            test += f": {rules.pop()}"
        for case in cases:
            del case["luck"]
        entries.append(
            {
                "name": name,
                "section": claim["section"],
                "claim": claim["claim"],
                "verdict": UNDECIDABLE if "undecidable" in claim else decided,
                "version": version,
                "versions": dict(others),
                "reproduced": reproduced(cases, theirs),
                "published": [*printed, "–"][0],
                "luck": float(f"{rule.luck(chances, bool(MILDER & {*claim})):.2g}") if chances else None,
                "test": claim.get("undecidable", test),
                "figure": f"figures/{study.name}/{claim['figure']}.pdf" if "figure" in claim else "none",
                "cases": cases,
            }
        )
    counts = {name: sum(entry["verdict"] == name for entry in entries) for name in VERDICTS}
    return {"study": study.name, "source": of["source"], "verdicts": counts, "claims": entries}
