"""Write the table of the effect of tight accounting: iterations, ε spent and MMD by both accountings, paired.

    python workflow/scripts/tight_table.py <study> results/<study>/metrics.csv table.csv

One row for each model, algorithm and ε. Columns `thesis_` and `tight_`: the cell accounted for as in the
thesis, and tightly; they are equal for algorithms that use all rows. The error of a median is
1.2533 σ/√m over m chains with σ = interquartile range / 1.349, as in the comparison with published boxes.
Differences are means over pairs of chains from the same start point on the same rows, with their standard
errors: `difference` is tight minus thesis, `thesis_against_full` and `tight_against_full` are the algorithm
minus its counterpart that uses all rows (`FULL`), at the same claimed ε. Unknown values are empty.

A catalogue model on several data sets (labels with data: fresh-r) has a further row with `data_sets` > 1:
means over its data sets, with standard errors between data sets.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpmc.metrics.table import median_error
from dpmc.reports.plots.selection import private_models
from dpmc.studies import Study, load_study, whole
from dpmc.studies.pairs import two_accountings
from dpmc.studies.whole import Results

FULL = {
    "minibatch-penalty": "dp-penalty",
    "minibatch-penalty-guided": "dp-penalty-guided",
    "dp-barker": "dp-penalty",
}
WAYS = ("thesis", "tight")
ONE_WAY = ("iterations", "budget_iterations", "spent", "mmd", "mmd_error")
COMPARED = ("difference", "thesis_against_full", "tight_against_full")
COLUMNS = [
    *("model", "algorithm", "epsilon", "data_sets", "chains"),
    *(f"{way}_{name}" for way in WAYS for name in ONE_WAY),
    *(name + part for name in COMPARED for part in ("", "_error")),
]


def rows(study: Study, results: Results) -> Iterator[dict[str, Any]]:
    """Yield one row for each model, algorithm and ε of the study."""
    partner = two_accountings(study)
    full = {spec.algorithm: label for label, spec in reversed(study.methods.items())}
    for model in private_models(study):
        for epsilon in study.models[model].epsilons:
            for method, spec in study.methods.items():
                if method not in partner.values() and model in spec.models:
                    of_full = full.get(FULL.get(spec.algorithm, ""), "")
                    methods = (method, partner.get(method, method), of_full)
                    yield {"algorithm": spec.algorithm, **compared(results, model, epsilon, methods)}


def compared(results: Results, model: str, epsilon: str, methods: tuple[str, str, str]) -> dict[str, Any]:
    """Return one row: a method as in the thesis, the same tightly, and that on all rows or ""."""
    row: dict[str, Any] = {"model": model, "epsilon": epsilon, "data_sets": 1}
    thesis, tight, full = (results.by_seed(model, method, epsilon, "mmd") for method in methods)
    for way, method, mmd in zip(WAYS, methods[:2], (thesis, tight), strict=True):
        cell, values = (model, method, epsilon), list(mmd.values())
        made, allowed = results.iterations(*cell), results.values(*cell, "budget_iterations")
        row |= {
            f"{way}_iterations": made,
            f"{way}_budget_iterations": int(max(allowed)) if allowed else made,
            f"{way}_spent": max(results.values(*cell, "epsilon_spent_tight"), default=None),
            f"{way}_mmd": float(np.median(values)) if values else None,
            f"{way}_mmd_error": median_error(values),
        }
    row["chains"] = min(len(thesis), len(tight))
    for name, values, others in zip(COMPARED, (tight, thesis, tight), (thesis, full, full), strict=True):
        pairs = pd.Series([values[seed] - others[seed] for seed in values if seed in others], dtype=float)
        if methods[0] != methods[1] or name != "difference":
            row |= {name: pairs.mean(), f"{name}_error": pairs.sem()}
    return row


def over_data_sets(study: Study, single: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rows for models on several data sets: means over these, errors between them."""
    table = pd.DataFrame(single, columns=COLUMNS)
    table["model"] = [study.models[label].model for label in table.model]
    for (model, epsilon, algorithm), group in table.groupby(["model", "epsilon", "algorithm"], sort=False):
        if len(group) == 1:
            continue
        row: dict[str, Any] = {
            "model": model,
            "algorithm": algorithm,
            "epsilon": epsilon,
            "data_sets": len(group),
        }
        row["chains"] = sum(group.chains)
        for name in (*(f"{way}_{name}" for way in WAYS for name in ONE_WAY[:-1]), *COMPARED):
            values = group[name].astype(float)
            row[name] = values.mean()
            if name.endswith("mmd") or name in COMPARED:
                row[f"{name}_error"] = values.sem()
        yield row


if __name__ == "__main__":
    study = load_study(sys.argv[1])
    single = list(rows(study, Results(whole.read_whole(study, Path(sys.argv[2])), study)))
    table = pd.DataFrame([*single, *over_data_sets(study, single)], columns=COLUMNS)
    # Ten digits: numbers of iterations, which are floats where one is missing, stay whole.
    table.to_csv(sys.argv[3], index=False, float_format="%.10g", lineterminator="\n")
