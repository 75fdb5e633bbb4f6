"""Write the table of the effect of tuning: iterations, acceptance, clipping and MMD, before and tuned.

    python workflow/scripts/tuned_table.py <study> results/<study>/metrics.csv table.csv

One row for each model, pair (a method and the one called `<its label>-tuned`) and ε. Columns `before_` and
`tuned_` are for our chains with the settings before the search and with those found: iterations of the
shortest chain; medians over chains of MMD, acceptance rate and fraction clipped (of log ratios, or of
gradients if there are no log ratios). The error of a median is 1.2533 σ/√m over m chains with σ =
interquartile range / 1.349. `difference` is the tuned median minus the one before, its error the root of the
sum of both errors squared, z their quotient. `chains`: those with an MMD, on the side with fewer. `tuned_at`:
the ε of the search. Unknown values are empty. Were both settings equally good, |z| would be above 2 by chance
in about one cell of 15.

Raises DpmcError for a study without pairs and a metrics file that cannot be read.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import median_error
from dpmc.reports.plots.selection import private_models
from dpmc.studies import Study, load_study, whole
from dpmc.studies.pairs import tuned_pairs
from dpmc.studies.whole import Results

WAYS = ("before", "tuned")
ONE_WAY = ("iterations", "mmd", "mmd_error", "acceptance_rate", "clip_fraction")
COLUMNS = [
    *("model", "method", "epsilon", "tuned_at", "chains"),
    *(f"{way}_{name}" for way in WAYS for name in ONE_WAY),
    *("difference", "difference_error", "z"),
]


def rows(study: Study, results: Results) -> Iterator[dict[str, Any]]:
    """Yield one row for each model, pair and ε of the study; raise DpmcError if it has no pairs."""
    pairs = tuned_pairs(study)
    if not pairs:
        raise DpmcError(f"study {study.name}: no method has a partner called <method>-tuned")
    for model in private_models(study):
        spec = study.models[model]
        for pair in pairs.items():
            if all(model in study.methods[method].models for method in pair):
                for epsilon in spec.epsilons:
                    cell = {"model": model, "method": pair[0], "epsilon": epsilon}
                    yield {**cell, "tuned_at": spec.tuning_epsilon, **compared(results, model, pair, epsilon)}


def compared(results: Results, model: str, pair: tuple[str, str], epsilon: str) -> dict[str, Any]:
    """Return what was measured of a method with its settings before the search, and with those found."""
    row: dict[str, Any] = {}
    chains = []
    for way, method in zip(WAYS, pair, strict=True):
        cell = (model, method, epsilon)
        mmds = results.values(*cell, "mmd")
        ratio, gradient = (results.values(*cell, f"{what}_clip_fraction") for what in ("ratio", "gradient"))
        chains.append(len(mmds))
        row |= {
            f"{way}_iterations": results.iterations(*cell),
            f"{way}_mmd": median(mmds),
            f"{way}_mmd_error": median_error(mmds),
            f"{way}_acceptance_rate": median(results.values(*cell, "acceptance_rate")),
            f"{way}_clip_fraction": median(ratio or gradient),
        }
    difference = row["tuned_mmd"] - row["before_mmd"]
    error = math.hypot(row["before_mmd_error"], row["tuned_mmd_error"])
    z = difference / error if error > 0.0 else math.nan
    return row | {"chains": min(chains), "difference": difference, "difference_error": error, "z": z}


def median(values: list[float]) -> float:
    """Return the median; NaN for no values."""
    return float(np.median(values)) if values else math.nan


if __name__ == "__main__":
    study = load_study(sys.argv[1])
    table = pd.DataFrame(
        rows(study, Results(whole.read_whole(study, Path(sys.argv[2])), study)), columns=COLUMNS
    )
    # Ten digits: numbers of iterations, which are floats where one is missing, stay whole.
    table.to_csv(sys.argv[3], index=False, float_format="%.10g", lineterminator="\n")
