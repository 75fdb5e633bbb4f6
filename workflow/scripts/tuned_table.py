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
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.metrics.statistics import median_error
from dpmc.reports.plots.frame import Results, private_models, read_metrics
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
CLIPPED = ("ratio_clip_fraction", "gradient_clip_fraction")
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
        for pair in pairs.items():
            if all(model in study.methods[method].models for method in pair):
                for epsilon in study.models[model].epsilons:
                    yield row(study, results, model, epsilon, pair)


def row(study: Study, results: Results, model: str, epsilon: str, pair: tuple[str, str]) -> Row:
    """Return one row: a method with its settings before the search, and with those found."""
    tuned_at = study.models[model].tuning_epsilon
    found: Row = {"model": model, "method": pair[0], "epsilon": epsilon, "tuned_at": tuned_at}
    chains = []
    for way, method in zip(WAYS, pair, strict=True):
        cell = (model, method, epsilon)
        values = results.values(*cell, "mmd")
        chains.append(len(values))
        ratio, gradient = (results.values(*cell, metric) for metric in CLIPPED)
        found |= {
            f"{way}_iterations": results.iterations(*cell),
            f"{way}_mmd": median(values),
            f"{way}_mmd_error": median_error(values),
            f"{way}_acceptance_rate": median(results.values(*cell, "acceptance_rate")),
            f"{way}_clip_fraction": median(ratio or gradient),
        }
    found["chains"] = min(chains)
    before, tuned = (float(str(found[f"{way}_mmd"])) for way in WAYS)
    error = math.hypot(*(float(str(found[f"{way}_mmd_error"])) for way in WAYS))
    difference = tuned - before
    z = difference / error if error > 0.0 else math.nan
    return found | {"difference": difference, "difference_error": error, "z": z}


def median(values: Sequence[float]) -> float:
    """Return the median; NaN for no values."""
    return float(np.median(values)) if values else math.nan


def verdict(one: Row) -> str:
    """Return a key of VERDICTS."""
    z = float(str(one["z"]))
    if math.isnan(z):
        return "unknown"
    return "better" if z < -LIMIT else "worse" if z > LIMIT else "within"


def markdown(study: Study, table: list[Row]) -> Iterator[str]:
    """Yield the lines for readers: the summary, then by model its cells and the ranks by median MMD."""
    titles = {label: look.title for label, look in method_styles(study.methods).items()}
    yield from summary(study, table, titles)
    for model in dict.fromkeys(str(one["model"]) for one in table):
        part = [one for one in table if one["model"] == model]
        yield f"\n## {name(study, model)}\n"
        yield from of_model(part, titles)
        yield ""
        yield from places(part, "method", titles, WAYS)


def summary(study: Study, table: list[Row], titles: dict[str, str]) -> Iterator[str]:
    """Yield the numbers of cells that are better, equal and worse, at all ε and at the ε of the search."""
    yield "\n## Summary\n"
    at_tuned = [one for one in table if one["epsilon"] == one["tuned_at"]]
    parts = {"at all ε": table, "at the ε tuned at": at_tuned}
    counts = {f"{words}: {len(part)}": Counter(map(verdict, part)) for words, part in parts.items()}
    lines = [[words, *(str(count[key]) for key in VERDICTS)] for words, count in counts.items()]
    yield from formats.markdown(("cells", *VERDICTS.values()), lines)
    worse = sorted((one for one in table if verdict(one) == "worse"), key=lambda one: -float(str(one["z"])))
    yield f"\nWorse by more than {LIMIT:g} errors:" + ("\n" if worse else " none.")
    for one in worse:
        where = f"{name(study, str(one['model']))}: {titles[str(one['method'])]}, ε = {epsilon(one)}"
        yield f"- {where}: {with_error(one, 'difference', '+')} (z = {text(one['z'], 3)})"


def name(study: Study, model: str) -> str:
    """Return a model's title."""
    return model_title(model, study.models[model].model)


def epsilon(one: Row) -> str:
    """Return a row's ε, bold if it is the ε of the search."""
    return f"**{one['epsilon']}**" if one["epsilon"] == one["tuned_at"] else str(one["epsilon"])


def of_model(part: list[Row], titles: dict[str, str]) -> Iterator[str]:
    """Yield the table of the cells of one model, before → tuned."""
    heads = ("method", "ε", "iterations", "accepted", "clipped", "median MMD", "tuned − before", "z")
    lines = [
        (
            titles[str(one["method"])],
            epsilon(one),
            *(
                " → ".join(text(one[f"{way}_{what}"], 3) for way in WAYS)
                for what in ("iterations", "acceptance_rate", "clip_fraction")
            ),
            " → ".join(with_error(one, f"{way}_mmd") for way in WAYS),
            with_error(one, "difference", "+"),
            f"{one['z']:+.1f}" if is_known(one["z"]) else "none",
        )
        for one in part
    ]
    yield from formats.markdown(heads, lines)


def main() -> None:
    """Write the table and print it for readers."""
    study, metrics, output = load_study(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    table = list(rows(study, Results.of_study(read_metrics(metrics), study)))
    write(output, COLUMNS, table)
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
