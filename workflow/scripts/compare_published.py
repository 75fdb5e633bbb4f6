"""Compare a study's medians with the published box plots, in standard errors.

    python workflow/scripts/compare_published.py <study> results/<study>/metrics.csv data/published table.csv

z = (our median − published median) / standard error of the difference. The standard error of a median
over m chains is 1.2533 σ/√m with σ = interquartile range / 1.349, as for a normal distribution (exact values
for the published chains are not available); m = 20 for the published boxes. Prints how many agree, and a
summary per metric and method.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dpmc.metrics.statistics import error_of_median
from dpmc.reports.plots.frame import Results, read_metrics, read_published
from dpmc.reports.tables.formats import markdown
from dpmc.studies import Study, load_study

METRICS = ("mmd", "mean_error", "acceptance_rate", "ratio_clip_fraction", "gradient_clip_fraction")
PUBLISHED_CHAINS = 20
COLUMNS = ("model", "method", "epsilon", "metric", "chains", "median", "published", "error", "z")
LIMIT = 3.0  # standard errors within which medians are said to agree


def compare(study: Study, results: Results, published: Path) -> pd.DataFrame:
    """Return one row for each published cell and metric of which the study has chains."""
    rows = []
    for metric in METRICS:
        for cell, box in read_published(published, metric, study).items():
            if ours := results.values(*cell, metric):
                q1, median, q3 = np.quantile(ours, [0.25, 0.5, 0.75])
                errors = (len(ours), q1, q3), (PUBLISHED_CHAINS, box.q1, box.q3)
                error = math.hypot(*(error_of_median(low, high, m) for m, low, high in errors))
                z = (median - box.median) / error if error > 0 else math.nan
                rows.append((*cell, metric, len(ours), median, box.median, error, z))
    return pd.DataFrame(rows, columns=COLUMNS)


def summary(table: pd.DataFrame) -> Iterator[str]:
    """Yield the numbers of boxes that agree, those that do not, and the table by metric and method."""
    known = table.dropna(subset="z")
    beyond = known[known.z.abs() > LIMIT]
    yield f"{len(table)} published boxes compared; of {len(known)} whose difference has a standard error,"
    yield f"{len(known) - len(beyond)} agree within {LIMIT:g}." + (" Beyond:" if len(beyond) else "")
    yield ""
    for one in beyond.itertuples():
        where = f"{one.metric}, {one.model}, {one.method}, ε = {one.epsilon}"
        yield f"- {where}: {one.median:.4g} against {one.published:.4g} (z = {one.z:+.1f})"
    yield ""
    heads = ("metric", "method", "cells", "mean z", "its error", "rms z", "largest abs z")
    groups = pd.concat([known.assign(method="all"), known]).groupby(["metric", "method"]).z
    rows = [
        (metric, method, f"{len(z)}", f"{z.mean():+.2f}", f"{1 / math.sqrt(len(z)):.2f}")
        + (f"{math.sqrt((z**2).mean()):.2f}", f"{z.abs().max():.2f}")
        for (metric, method), z in groups
    ]
    yield from markdown(heads, rows)


def main() -> None:
    """Write the table and print the summary."""
    study = load_study(sys.argv[1])
    metrics, published, output = (Path(argument) for argument in sys.argv[2:5])
    table = compare(study, Results.of_study(read_metrics(metrics), study), published)
    table.to_csv(output, index=False, float_format="%.6g", na_rep="nan", lineterminator="\n")
    print("\n".join(summary(table)))


if __name__ == "__main__":
    main()
