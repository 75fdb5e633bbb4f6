"""Claims: sentences of a source that a study's numbers can decide, with a verdict computed from them.

The claims of a study stand in one module, named in `CLAIMS`, which has `SOURCE` (what makes the claims) and
`claims() -> list[Claim]`. A claim is decided case by case (each model, metric, version of a
method it speaks of): it `holds` where all of its cases hold, `fails` where none does, `depends` otherwise. A
case whose number is missing decides nothing and is listed with `holds: null`; a claim of such cases alone
is `undecided`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from dpmc.errors import DpmcError
from dpmc.plots.frame import Results

if TYPE_CHECKING:
    from pandas import DataFrame

    from dpmc.studies import Study

#: study -> the module of its claims
CLAIMS: dict[str, str] = {"dp-hmc": "dpmc.claims.dp_hmc", "dp-fast-mh": "dpmc.claims.dp_fast_mh"}

VERDICTS = ("holds", "fails", "depends", "undecided")


@dataclass(frozen=True)
class Case:
    """One thing that a claim speaks of: the number that decides it, None where it is missing."""

    name: str
    number: float | None
    holds: bool | None


@dataclass(frozen=True)
class Claim:
    """A sentence of a source, in our words, and how the numbers decide it."""

    name: str
    section: str
    sentence: str
    test: str  # what the number of a case is, and when the case holds
    figure: str  # where to see it; "": in no figure, in the metrics only
    cases: Callable[[Numbers], list[Case]]


def case(name: str, number: float | None, holds: Callable[[float], bool]) -> Case:
    """Return a case whose number, where there is one, decides it by `holds`."""
    if number is None or not math.isfinite(number):
        return Case(name, None, None)
    return Case(name, number, bool(holds(number)))


def verdict(cases: Sequence[Case]) -> str:
    """Return holds, fails or depends from the cases that have a number; undecided for none."""
    decided = [one.holds for one in cases if one.holds is not None]
    if not decided:
        return "undecided"
    return "holds" if all(decided) else "depends" if any(decided) else "fails"


@dataclass(frozen=True)
class Numbers:
    """A study's metrics as claims ask for them. None: there is no such number."""

    study: Study
    results: Results

    def median(self, model: str, method: str, epsilon: str, metric: str) -> float | None:
        """The median over the runs of a cell; for a metric of the cell, its value."""
        values = self.results.values(model, method, epsilon, metric)
        return median(values) if values else None

    def spread(self, model: str, method: str, epsilon: str, metric: str) -> float | None:
        """The interquartile range over the runs of a cell; None for fewer than four."""
        values = self.results.values(model, method, epsilon, metric)
        if len(values) < 4:
            return None
        import numpy as np

        low, high = np.quantile(values, (0.25, 0.75))
        return float(high - low)

    def epsilons(self, model: str) -> list[str]:
        """The study's budgets for a model, in ascending order."""
        return sorted(self.study.models[model].epsilons, key=float)

    def ratio(
        self,
        model: str,
        metric: str,
        method: str,
        others: Sequence[str],
        which: Any = min,
        part: slice = slice(None),
    ) -> float | None:
        """The geometric mean, over the budgets in `part` of the grid, of a ratio of medians.

        Above is `method`'s median, below the `which` (min: the best) of those of `others`. Budgets at which
        one of them is missing are left out.
        """
        logs = []
        for epsilon in self.epsilons(model)[part]:
            above = self.median(model, method, epsilon, metric)
            below = [self.median(model, other, epsilon, metric) for other in others]
            known = [value for value in below if value is not None]
            if above is not None and len(known) == len(below):
                divisor = which(known)
                if above > 0.0 and divisor > 0.0:
                    logs.append(math.log(above / divisor))
        return math.exp(sum(logs) / len(logs)) if logs else None


def judge(study: Study, metrics: DataFrame) -> dict[str, Any]:
    """Return the verdicts on a study's claims as plain mappings and lists.

    Raises DpmcError for a study without claims.
    """
    if study.name not in CLAIMS:
        raise DpmcError(f"study {study.name}: it has no claims; studies that have: {', '.join(CLAIMS)}")
    module = importlib.import_module(CLAIMS[study.name])
    numbers = Numbers(study, Results.of_study(metrics, study))
    entries = [_entry(claim, claim.cases(numbers), study) for claim in module.claims()]
    counts = {name: sum(entry["verdict"] == name for entry in entries) for name in VERDICTS}
    return {"study": study.name, "source": module.SOURCE, "verdicts": counts, "claims": entries}


def _entry(claim: Claim, cases: list[Case], study: Study) -> dict[str, Any]:
    """One claim as a mapping."""
    return {
        "name": claim.name,
        "section": claim.section,
        "claim": claim.sentence,
        "verdict": verdict(cases),
        "test": claim.test,
        "figure": f"figures/{study.name}/{claim.figure}.pdf" if claim.figure else "none",
        "cases": [{"case": one.name, "number": _rounded(one.number), "holds": one.holds} for one in cases],
    }


def _rounded(number: float | None) -> float | None:
    """A number to four significant digits: more would be noise."""
    return None if number is None else float(f"{number:.4g}")


def write(verdicts: dict[str, Any], output: Path) -> None:
    """Write the verdicts as YAML, a case a line."""
    import yaml

    from dpmc.storage import replacing

    class Dumper(yaml.SafeDumper):
        def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
            """Cases and counts on one line each, all else in blocks."""
            short = all(not isinstance(value, (dict, list)) for value in mapping.values())
            return super().represent_mapping(tag, mapping, short and "section" not in mapping)

    with replacing(output) as temporary:
        text = yaml.dump(
            verdicts, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False
        )
        temporary.write_text(text, encoding="utf-8")
