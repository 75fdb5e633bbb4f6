"""The clipping experiment as a table of its own (thesis, Section 6.2; DP-HMC paper, Section 4.2).

    python workflow/scripts/clipping_table.py <study> results/<study>/metrics.csv clipping.csv

Columns: dimension, algorithm (rwmh | hmc), clip_distance (text | as_coded), clip_bound, seed, metric
(clip_fraction | mmd | acceptance), value. A cell belongs to the experiment if its method is one of the two
algorithms without privacy and has a clip bound.
"""

import csv
import sys
from pathlib import Path

from dpmc import models
from dpmc.studies import load_study

COLUMNS = ("dimension", "algorithm", "clip_distance", "clip_bound", "seed", "metric", "value")
NAMES = {"ratio_clip_fraction": "clip_fraction", "mmd": "mmd", "acceptance_rate": "acceptance"}


def main() -> None:
    """Write the table."""
    study, metrics, output = load_study(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    dimensions = {
        label: len(models.definition(spec.model).true_theta) for label, spec in study.models.items()
    }
    with metrics.open() as source, output.open("w", newline="") as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in csv.DictReader(source):
            method = study.methods.get(row["method"])
            if method is None or method.algorithm not in ("rwmh", "hmc"):
                continue
            if row["study"] != (method.from_study or study.name):
                continue
            if "clip" not in method.options or row["seed"] == "" or row["metric"] not in NAMES:
                continue
            writer.writerow(
                (
                    dimensions[row["model"]],
                    method.algorithm,
                    method.options.get("clip_distance", "text"),
                    method.options["clip"],
                    row["seed"],
                    NAMES[row["metric"]],
                    row["value"],
                )
            )


if __name__ == "__main__":
    main()
