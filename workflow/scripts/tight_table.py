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

from dpmc.metrics.statistics import mean_with_error, median_error, paired
from dpmc.reports.plots import style
from dpmc.reports.plots.frame import Results, private_models, read_metrics
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
    shown = [label for label in study.methods if label not in partner.values()]
    for model in private_models(study):
        for epsilon in study.models[model].epsilons:
            for method in shown:
                if model in study.methods[method].models:
                    yield row(study, results, model, epsilon, method, partner.get(method, method))


def row(study: Study, results: Results, model: str, epsilon: str, thesis: str, tight: str) -> Row:
    """Return one row: a method accounted for as in the thesis, and the same algorithm tightly."""
    algorithm = study.methods[thesis].algorithm
    found: Row = {"model": model, "algorithm": algorithm, "epsilon": epsilon, "data_sets": 1}
    mmd = {}
    for way, method in zip(WAYS, (thesis, tight), strict=True):
        mmd[way] = results.by_seed(model, method, epsilon, "mmd")
        values = list(mmd[way].values())
        found |= {
            f"{way}_iterations": results.iterations(model, method, epsilon),
            f"{way}_budget_iterations": allowed_iterations(results, model, method, epsilon),
            f"{way}_spent": max(results.values(model, method, epsilon, "epsilon_spent_tight"), default=None),
            f"{way}_mmd": float(np.median(values)) if values else None,
            f"{way}_mmd_error": median_error(values),
        }
    found["chains"] = min(len(values) for values in mmd.values())
    compared = {"difference": paired(mmd["tight"], mmd["thesis"]) if tight != thesis else (None, None)}
    full = next((m for m, spec in study.methods.items() if spec.algorithm == FULL.get(algorithm)), None)
    for way in WAYS:
        of_full = {} if full is None else results.by_seed(model, full, epsilon, "mmd")
        compared[f"{way}_against_full"] = paired(mmd[way], of_full)
    for name, (value, error) in compared.items():
        found |= {name: value, f"{name}_error": error}
    return found


def allowed_iterations(results: Results, model: str, method: str, epsilon: str) -> int | None:
    """Return the iterations that the budget allows a cell; if unknown, the iterations made."""
    allowed = results.values(model, method, epsilon, "budget_iterations")
    return int(max(allowed)) if allowed else results.iterations(model, method, epsilon)


def over_data_sets(study: Study, single: list[Row]) -> Iterator[Row]:
    """Yield rows for models on several data sets: means over these, errors between them."""
    groups: dict[tuple[str, object, object], list[Row]] = {}
    for one in single:
        key = (study.models[str(one["model"])].model, one["epsilon"], one["algorithm"])
        groups.setdefault(key, []).append(one)
    for (model, epsilon, algorithm), group in groups.items():
        if len(group) == 1:
            continue
        found: Row = {"model": model, "algorithm": algorithm, "epsilon": epsilon, "data_sets": len(group)}
        found["chains"] = sum(int(str(one["chains"])) for one in group)
        names = [f"{way}_{name}" for way in WAYS for name in ONE_WAY if name != "mmd_error"]
        for name in [*names, *COMPARED]:
            values = [float(str(one[name])) for one in group if is_known(one[name])]
            found[name], error = mean_with_error(values)
            if name.endswith("mmd") or name in COMPARED:
                found[f"{name}_error"] = error
        yield found


def markdown(study: Study, table: list[Row]) -> Iterator[str]:
    """Yield the lines of the table for readers: one part per model, then ranks by median MMD."""
    styles = style.method_styles(dict(study.methods))
    named = {spec.algorithm: label for label, spec in reversed(study.methods.items())}
    title = {
        algorithm: style.STYLES.get(algorithm, styles[label]).title for algorithm, label in named.items()
    }
    for model in dict.fromkeys(str(one["model"]) for one in table):
        for several in (False, True):
            part = [one for one in table if one["model"] == model and (one["data_sets"] != 1) == several]
            if part:
                sets = f", mean of {part[0]['data_sets']} data sets" if several else ""
                yield f"\n## {style.MODEL_TITLES.get(model, model)}{sets}\n"
                yield from of_model(part, title)
                yield ""
                yield from places(part, "algorithm", title, WAYS)


def of_model(part: list[Row], title: dict[str, str]) -> Iterator[str]:
    """Yield iterations, ε spent and MMD of one model, thesis → tight."""
    heads = ("ε", "algorithm", "iterations", "ε spent", "median MMD")
    lines = []
    for one in part:
        both = one["thesis_spent"] == one["tight_spent"] and one["thesis_mmd"] == one["tight_mmd"]
        ways = WAYS[:1] if both else WAYS
        allowed = one["tight_budget_iterations"]
        capped = is_known(allowed) and one["tight_iterations"] != allowed
        iterations = " → ".join(text(one[f"{way}_iterations"]) for way in ways)
        iterations += f" (of {text(allowed)})" if capped else ""
        entries = (
            str(one["epsilon"]),
            title[str(one["algorithm"])],
            iterations,
            " → ".join(text(one[f"{way}_spent"], 3) for way in ways),
            " → ".join(with_error(one, f"{way}_mmd") for way in ways),
            *(with_error(one, name, sign="+") if is_known(one[name]) else "" for name in COMPARED),
        )
        lines.append(entries)
    yield from markdown_lines((*heads, "tight − thesis", "thesis − full", "tight − full"), lines)


def main() -> None:
    """Write the table and print it for readers."""
    study, metrics, output = load_study(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    single = list(rows(study, Results.of_study(read_metrics(metrics), study)))
    table = single + list(over_data_sets(study, single))
    write(output, COLUMNS, table)
    print(f"# {study.title}: both ways, side by side\n")
    print(
        "thesis → tight, one number where both are one chain. Median MMD ± its standard error;\n"
        "differences of MMD are means over paired chains ± standard error, negative where the first is\n"
        "better. Full: the counterpart that reads all rows (DP Barker: DP penalty), at the same claimed ε."
    )
    print("\n".join(markdown(study, table)))


if __name__ == "__main__":
    main()
