"""Compare a study's medians with the published box plots, in standard errors.

    python workflow/scripts/compare_published.py <study> results/<study>/metrics.csv data/published table.csv

z = (our median − published median) / standard error of the difference. The standard error of a median
over m chains is 1.2533 σ/√m with σ = interquartile range / 1.349 (a normal law's; exact values for the
published chains are not available), m = 20 for the published boxes. Prints a summary per metric and method.
"""

import csv
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpmc.comparing import error_of_median
from dpmc.plots.frame import Results, read_metrics
from dpmc.studies import load_study

METRICS = ("mmd", "acceptance_rate", "ratio_clip_fraction", "gradient_clip_fraction")
PUBLISHED_CHAINS = 20
COLUMNS = ("model", "method", "epsilon", "metric", "chains", "median", "published", "error", "z")

Cell = tuple[str, str, str]


def published_boxes(path: Path) -> dict[Cell, dict[str, float]]:
    """(model, method, ε) → q1, median, q3."""
    boxes: dict[Cell, dict[str, float]] = defaultdict(dict)
    for row in csv.DictReader(path.open()):
        if row["statistic"] in ("q1", "median", "q3"):
            cell = (row["model"], row["method"], f"{float(row['epsilon']):g}")
            boxes[cell][row["statistic"]] = float(row["value"])
    return boxes


def compare(results: Results, published: Path) -> Iterator[dict[str, object]]:
    """One row for each cell and metric that was published and that the study has chains of."""
    for metric in METRICS:
        for cell, box in published_boxes(published / f"{metric}.csv").items():
            ours = results.values(*cell, metric)
            if not ours or len(box) < 3:
                continue
            q1, median, q3 = np.quantile(ours, [0.25, 0.5, 0.75])
            error = math.hypot(
                error_of_median(q1, q3, len(ours)), error_of_median(box["q1"], box["q3"], PUBLISHED_CHAINS)
            )
            z = (median - box["median"]) / error if error > 0 else math.nan
            numbers = (len(ours), median, box["median"], error, z)
            yield dict(zip(COLUMNS, (*cell, metric, *numbers), strict=True))


def main() -> None:
    """Write the table and print the summary."""
    study = load_study(sys.argv[1])
    metrics, published, output = (Path(argument) for argument in sys.argv[2:5])
    rows = list(compare(Results.of_study(read_metrics(metrics), study), published))
    with output.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            short = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
            writer.writerow(short)
    groups: dict[tuple[object, object], list[float]] = defaultdict(list)
    for row in rows:
        if not math.isnan(z := float(str(row["z"]))):
            groups[row["metric"], row["method"]].append(z)
            groups[row["metric"], "all"].append(z)
    print("| metric | method | cells | mean z | its error | rms z | largest |z| |".replace("|z|", "abs z"))
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (metric, method), all_z in sorted(groups.items(), key=str):
        rms, worst = math.sqrt(sum(v * v for v in all_z) / len(all_z)), max(abs(v) for v in all_z)
        mean, error = sum(all_z) / len(all_z), 1 / math.sqrt(len(all_z))
        print(f"| {metric} | {method} | {len(all_z)} | {mean:+.2f} | {error:.2f} | {rms:.2f} | {worst:.2f} |")


if __name__ == "__main__":
    main()
