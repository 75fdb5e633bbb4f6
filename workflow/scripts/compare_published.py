"""Compare a study's medians with the published box plots, in standard errors.

    python workflow/scripts/compare_published.py <study> results/<study>/metrics.csv data/published table.csv

z = (our median − published median) / standard error of the difference. The standard error of a median
over m chains is 1.2533 σ/√m with σ = interquartile range / 1.349, as for a normal distribution (exact values
for the published chains are not available); m = 20 for the published boxes. Prints how many agree, and a
summary per metric, with the largest mean z of a method.
"""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from dpmc.metrics.table import error_of_median, median_error
from dpmc.reports.plots.published import published_boxes
from dpmc.reports.tables import markdown
from dpmc.studies import load_study, whole
from dpmc.studies.whole import Results

METRICS = ("mmd", "mean_error", "acceptance_rate", "ratio_clip_fraction", "gradient_clip_fraction")
PUBLISHED_CHAINS = 20
COLUMNS = ("model", "method", "epsilon", "metric", "chains", "median", "published", "error", "z")
LIMIT = 3.0  # standard errors within which medians are said to agree

study = load_study(sys.argv[1])
metrics, published, output = map(Path, sys.argv[2:5])
results = Results(whole.read_whole(study, metrics), study)
rows = []
for metric in METRICS:
    for cell, box in published_boxes(published, metric, study).items():
        if ours := results.values(*cell, metric):
            median = float(np.quantile(ours, 0.5))
            error = math.hypot(median_error(ours), error_of_median(box.q1, box.q3, PUBLISHED_CHAINS))
            z = (median - box.median) / error if error > 0 else math.nan
            rows.append((*cell, metric, len(ours), median, box.median, error, z))
table = pd.DataFrame(rows, columns=COLUMNS)
table.to_csv(output, index=False, float_format="%.6g", na_rep="nan", lineterminator="\n")

known = table.dropna(subset="z")
beyond = known[known.z.abs() > LIMIT]
words = f"{len(known) - len(beyond)} of {len(table)} published medians are within {LIMIT:g} standard errors"
words += f"; {len(table) - len(known)} have none" if len(known) < len(table) else ""
print(f"{words}. Beyond:" if len(beyond) else f"{words}.", end="\n\n")
for box in beyond.itertuples():
    where = f"{box.metric}, {box.model}, {box.method}, ε = {box.epsilon}"
    print(f"- {where}: {box.median:.4g} against {box.published:.4g} (z = {box.z:+.1f})")
heads = (
    "metric",
    "cells",
    "mean z",
    "its error",
    "rms z",
    "largest abs z",
    "of a method, mean z over its error",
)
lines = []
for metric, group in known.groupby("metric"):
    z, by_method = group.z, group.groupby("method").z
    of_method = (by_method.mean() * by_method.size() ** 0.5).abs().max()
    numbers = (1 / math.sqrt(len(z)), math.sqrt((z**2).mean()), z.abs().max(), of_method)
    lines.append((metric, f"{len(z)}", f"{z.mean():+.2f}", *(f"{number:.2f}" for number in numbers)))
print("", markdown(pd.DataFrame(lines, columns=heads)), sep="\n")
