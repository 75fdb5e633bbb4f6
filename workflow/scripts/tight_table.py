"""Write the table of the effect of tight accounting: iterations, ε spent and MMD by both accountings, paired.

    python workflow/scripts/tight_table.py <study> results/<study>/metrics.csv table.csv > table.md

One row for each model, algorithm and ε. Columns `thesis_` and `tight_`: the cell accounted for as in the
thesis, and tightly; they are equal for algorithms that use all rows. The error of a median is
1.2533 σ/√m over m chains with σ = interquartile range / 1.349, as in the comparison with published boxes.
Differences are means over pairs of chains from the same start point on the same rows, with their standard
errors: `difference` is tight minus thesis, `thesis_against_full` and `tight_against_full` are the algorithm
minus its counterpart that uses all rows (`FULL`), at the same claimed ε. Unknown values are "none".

A catalogue model on several data sets (labels with data: fresh-r) has a further row with `data_sets` > 1:
means over its data sets, with standard errors between data sets.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dpmc.metrics.statistics import mean_with_error, median_error, paired
from dpmc.metrics.table import Results, read_metrics
from dpmc.reports.plots import style
from dpmc.reports.plots.selection import private_models
from dpmc.reports.tables.comparisons import Row, is_known, places, text, with_error, write
from dpmc.reports.tables.formats import markdown as markdown_lines
from dpmc.studies import Study, load_study
from dpmc.studies.pairs import two_accountings

FULL = {
    "minibatch-penalty": "dp-penalty",
    "minibatch-penalty-guided": "dp-penalty-guided",
    "dp-barker": "dp-penalty",
}
WAYS = ("thesis", "tight")
ONE_WAY = ("iterations", "budget_iterations", "spent", "mmd", "mmd_error")
COMPARED = ("difference", "thesis_against_full", "tight_against_full")
COLUMNS = (
    *("model", "algorithm", "epsilon", "data_sets", "chains"),
    *(f"{way}_{name}" for way in WAYS for name in ONE_WAY),
    *(name + part for name in COMPARED for part in ("", "_error")),
)


def rows(study: Study, results: Results) -> Iterator[Row]:
    """Yield one row for each model, algorithm and ε of the study."""
    partner = two_accountings(study)
    full = {spec.algorithm: label for label, spec in reversed(study.methods.items())}
    for model in private_models(study):
        for epsilon in study.models[model].epsilons:
            for method, spec in study.methods.items():
                if method not in partner.values() and model in spec.models:
                    of_full = full.get(FULL.get(spec.algorithm, ""), "")
                    methods = (method, partner.get(method, method), of_full)
                    yield {"algorithm": spec.algorithm, **row(results, model, epsilon, methods)}


def row(results: Results, model: str, epsilon: str, methods: tuple[str, str, str]) -> Row:
    """Return one row: a method as in the thesis, the same tightly, and that on all rows or ""."""
    found: Row = {"model": model, "epsilon": epsilon, "data_sets": 1}
    thesis, tight, full = (results.by_seed(model, method, epsilon, "mmd") for method in methods)
    for way, method, mmd in zip(WAYS, methods[:2], (thesis, tight), strict=True):
        cell, values = (model, method, epsilon), list(mmd.values())
        made, allowed = results.iterations(*cell), results.values(*cell, "budget_iterations")
        found |= {
            f"{way}_iterations": made,
            f"{way}_budget_iterations": int(max(allowed)) if allowed else made,
            f"{way}_spent": max(results.values(*cell, "epsilon_spent_tight"), default=None),
            f"{way}_mmd": float(np.median(values)) if values else None,
            f"{way}_mmd_error": median_error(values),
        }
    found["chains"] = min(len(thesis), len(tight))
    difference = paired(tight, thesis) if methods[0] != methods[1] else (None, None)
    for name, pair in zip(COMPARED, (difference, paired(thesis, full), paired(tight, full)), strict=True):
        found |= dict(zip((name, f"{name}_error"), pair, strict=True))
    return found


def over_data_sets(study: Study, single: list[Row]) -> Iterator[Row]:
    """Yield rows for models on several data sets: means over these, errors between them."""
    table = pd.DataFrame(single)
    table["model"] = [study.models[label].model for label in table.model]
    for (model, epsilon, algorithm), group in table.groupby(["model", "epsilon", "algorithm"], sort=False):
        if len(group) == 1:
            continue
        found: Row = {"model": model, "algorithm": algorithm, "epsilon": epsilon, "data_sets": len(group)}
        found["chains"] = sum(group.chains)
        for name in (*(f"{way}_{name}" for way in WAYS for name in ONE_WAY[:-1]), *COMPARED):
            found[name], error = mean_with_error(group[name].dropna().astype(float).tolist())
            if name.endswith("mmd") or name in COMPARED:
                found[f"{name}_error"] = error
        yield found


def markdown(study: Study, table: list[Row]) -> Iterator[str]:
    """Yield the lines of the table for readers: one part per model, then ranks by median MMD."""
    styles = style.method_styles(dict(study.methods))
    title = {
        spec.algorithm: style.STYLES.get(spec.algorithm, styles[label]).title
        for label, spec in reversed(study.methods.items())
    }
    for model in dict.fromkeys(str(row["model"]) for row in table):
        for several in (False, True):
            part = [row for row in table if row["model"] == model and (row["data_sets"] != 1) == several]
            if part:
                sets = f", mean of {part[0]['data_sets']} data sets" if several else ""
                yield f"\n## {style.MODEL_TITLES.get(model, model)}{sets}\n"
                heads = ("ε", "algorithm", "iterations", "ε spent", "median MMD", "tight − thesis")
                lines = [shown(row, title) for row in part]
                yield from markdown_lines((*heads, "thesis − full", "tight − full"), lines)
                yield ""
                yield from places(part, "algorithm", title, WAYS)


def shown(row: Row, title: dict[str, str]) -> list[str]:
    """Return a row for readers: iterations, ε spent and MMD, thesis → tight, and the differences."""
    same = all(row[f"thesis_{name}"] == row[f"tight_{name}"] for name in ("spent", "mmd"))
    ways = WAYS[:1] if same else WAYS
    allowed = row["tight_budget_iterations"]
    capped = is_known(allowed) and row["tight_iterations"] != allowed
    return [
        str(row["epsilon"]),
        title[str(row["algorithm"])],
        " → ".join(text(row[f"{way}_iterations"]) for way in ways) + f" (of {text(allowed)})" * capped,
        " → ".join(text(row[f"{way}_spent"], 3) for way in ways),
        " → ".join(with_error(row, f"{way}_mmd") for way in ways),
        *(with_error(row, name, sign="+") if is_known(row[name]) else "" for name in COMPARED),
    ]


def main() -> None:
    """Write the table and print it for readers."""
    study = load_study(sys.argv[1])
    single = list(rows(study, Results.of_study(read_metrics(Path(sys.argv[2])), study)))
    table = single + list(over_data_sets(study, single))
    write(Path(sys.argv[3]), COLUMNS, table)
    print(f"# {study.title}: both ways, side by side\n")
    print(
        "thesis → tight, one number where both are one chain. Median MMD ± its standard error;\n"
        "differences of MMD are means over paired chains ± standard error, negative where the first is\n"
        "better. Full: the counterpart that reads all rows (DP Barker: DP penalty), at the same claimed ε."
    )
    print("\n".join(markdown(study, table)))


if __name__ == "__main__":
    main()
