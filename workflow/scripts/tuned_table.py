"""Write the table of the effect of tuning: iterations, acceptance, clipping and MMD, before and tuned.

    python workflow/scripts/tuned_table.py <study> results/<study>/metrics.csv table.csv > table.md

One row for each model, pair (a method and the one called `<its label>-tuned`) and ε. Columns `before_` and
`tuned_` are for our chains with the settings before the search and with those found: iterations of the
shortest chain; medians over chains of MMD, acceptance rate and fraction clipped (of log ratios, or of
gradients if there are no log ratios). The error of a median is 1.2533 σ/√m over m chains with σ =
interquartile range / 1.349. `difference` is the tuned median minus the one before, its error the root of the
sum of both errors squared, z their quotient. `chains`: those with an MMD, on the side with fewer. `tuned_at`:
the ε of the search. Unknown values are "none".

Raises DpmcError for a study without pairs and a metrics file that cannot be read.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.metrics.statistics import median_error
from dpmc.metrics.table import Results, read_metrics
from dpmc.reports.plots.selection import private_models
from dpmc.reports.plots.style import method_styles, model_title
from dpmc.reports.tables import formats
from dpmc.reports.tables.comparisons import Row, is_known, places, text, with_error, write
from dpmc.studies import Study, load_study
from dpmc.studies.pairs import tuned_pairs

WAYS = ("before", "tuned")
ONE_WAY = ("iterations", "mmd", "mmd_error", "acceptance_rate", "clip_fraction")
COLUMNS = (
    *("model", "method", "epsilon", "tuned_at", "chains"),
    *(f"{way}_{name}" for way in WAYS for name in ONE_WAY),
    *("difference", "difference_error", "z"),
)
LIMIT = 2.0  # standard errors within which two medians are called equal
VERDICTS = {
    "better": f"better by more than {LIMIT:g} errors",
    "within": f"within {LIMIT:g} errors",
    "worse": f"worse by more than {LIMIT:g} errors",
    "unknown": "not comparable",
}


def rows(study: Study, results: Results) -> Iterator[Row]:
    """Yield one row for each model, pair and ε of the study; raise DpmcError if it has no pairs."""
    pairs = tuned_pairs(study)
    if not pairs:
        raise DpmcError(f"study {study.name}: no method has a partner called <method>-tuned")
    for model in private_models(study):
        spec = study.models[model]
        for pair in pairs.items():
            if all(model in study.methods[method].models for method in pair):
                for epsilon in spec.epsilons:
                    cell: Row = {"model": model, "method": pair[0], "epsilon": epsilon}
                    yield {**cell, "tuned_at": spec.tuning_epsilon, **compared(results, model, pair, epsilon)}


def compared(results: Results, model: str, pair: tuple[str, str], epsilon: str) -> Row:
    """Return what was measured of a method with its settings before the search, and with those found."""
    found: Row = {}
    sides = []
    for way, method in zip(WAYS, pair, strict=True):
        cell = (model, method, epsilon)
        values = results.values(*cell, "mmd")
        ratio, gradient = (results.values(*cell, f"{what}_clip_fraction") for what in ("ratio", "gradient"))
        sides.append((median(values), median_error(values), len(values)))
        found |= {
            f"{way}_iterations": results.iterations(*cell),
            f"{way}_mmd": sides[-1][0],
            f"{way}_mmd_error": sides[-1][1],
            f"{way}_acceptance_rate": median(results.values(*cell, "acceptance_rate")),
            f"{way}_clip_fraction": median(ratio or gradient),
        }
    medians, errors, chains = zip(*sides, strict=True)
    difference, error = medians[1] - medians[0], math.hypot(*errors)
    z = difference / error if error > 0.0 else math.nan
    return found | {"chains": min(chains), "difference": difference, "difference_error": error, "z": z}


def median(values: list[float]) -> float:
    """Return the median; NaN for no values."""
    return float(np.median(values)) if values else math.nan


def verdict(row: Row) -> str:
    """Return a key of VERDICTS."""
    z = float(str(row["z"]))
    if math.isnan(z):
        return "unknown"
    return "better" if z < -LIMIT else "worse" if z > LIMIT else "within"


def markdown(study: Study, table: list[Row]) -> Iterator[str]:
    """Yield the lines for readers: the summary, then by model its cells and the ranks by median MMD."""
    titles = {label: look.title for label, look in method_styles(study.methods).items()}
    models = {label: model_title(label, spec.model) for label, spec in study.models.items()}
    yield "\n## Summary\n"
    at_tuned = [row for row in table if row["epsilon"] == row["tuned_at"]]
    lines = []
    for words, part in (("at all ε", table), ("at the ε tuned at", at_tuned)):
        counts = Counter(map(verdict, part))
        lines.append([f"{words}: {len(part)}", *(str(counts[key]) for key in VERDICTS)])
    yield from formats.markdown(("cells", *VERDICTS.values()), lines)
    worse = sorted((row for row in table if verdict(row) == "worse"), key=lambda row: -float(str(row["z"])))
    yield f"\nWorse by more than {LIMIT:g} errors:" + ("\n" if worse else " none.")
    for row in worse:
        where = f"{models[str(row['model'])]}: {titles[str(row['method'])]}, ε = {epsilon(row)}"
        yield f"- {where}: {with_error(row, 'difference', '+')} (z = {text(row['z'], 3)})"
    heads = ("method", "ε", "iterations", "accepted", "clipped", "median MMD", "tuned − before", "z")
    for model in dict.fromkeys(str(row["model"]) for row in table):
        part = [row for row in table if row["model"] == model]
        yield f"\n## {models[model]}\n"
        yield from formats.markdown(heads, [shown(row, titles) for row in part])
        yield ""
        yield from places(part, "method", titles, WAYS)


def epsilon(row: Row) -> str:
    """Return a row's ε, bold if it is the ε of the search."""
    return f"**{row['epsilon']}**" if row["epsilon"] == row["tuned_at"] else str(row["epsilon"])


def shown(row: Row, titles: dict[str, str]) -> list[str]:
    """Return a row for readers, before → tuned."""
    measured = ("iterations", "acceptance_rate", "clip_fraction")
    return [
        titles[str(row["method"])],
        epsilon(row),
        *(" → ".join(text(row[f"{way}_{what}"], 3) for way in WAYS) for what in measured),
        " → ".join(with_error(row, f"{way}_mmd") for way in WAYS),
        with_error(row, "difference", "+"),
        f"{row['z']:+.1f}" if is_known(row["z"]) else "none",
    ]


def main() -> None:
    """Write the table and print it for readers."""
    study = load_study(sys.argv[1])
    table = list(rows(study, Results.of_study(read_metrics(Path(sys.argv[2])), study)))
    write(Path(sys.argv[3]), COLUMNS, table)
    print(f"# {study.title}: tuned settings beside those before\n")
    print(
        "Settings before the search (the published ones, or our own where none were published) → tuned\n"
        "ones; all chains are ours, and no number is a published result. Median MMD ± its standard error;\n"
        "differences are tuned minus before, negative where tuning helped, with the errors of both medians;\n"
        "z is the difference in these errors. Iterations of the shortest chain; medians of the acceptance\n"
        "rate and of the fraction clipped (log ratios, or gradients where there are none). A bold ε is the\n"
        "one tuned at. Were both settings equally good, about one cell in 30 would be called better by\n"
        "chance, and as many worse."
    )
    print("\n".join(markdown(study, table)))


if __name__ == "__main__":
    main()
