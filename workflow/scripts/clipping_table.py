"""Write the table of the clipping experiment (thesis, Section 6.2; DP-HMC paper, Section 4.2).

    python workflow/scripts/clipping_table.py <study> results/<study>/metrics.csv clipping.csv

Columns: dimension, algorithm (rwmh | hmc), clip_distance (text | as_coded), clip_bound, seed, metric
(clip_fraction | mmd | acceptance), value. A cell belongs to the experiment if its method is one of the two
algorithms without privacy and has a clip bound.
"""

import sys
from pathlib import Path

from dpmc import models
from dpmc.reports.plots.frame import read_metrics
from dpmc.studies import load_study

NAMES = {"ratio_clip_fraction": "clip_fraction", "mmd": "mmd", "acceptance_rate": "acceptance"}


def main() -> None:
    """Write the table."""
    study, metrics, output = load_study(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    dimensions = {
        label: len(models.definition(spec.model).true_theta) for label, spec in study.models.items()
    }
    clipped = {
        label: method
        for label, method in study.methods.items()
        if method.algorithm in ("rwmh", "hmc") and "clip" in method.options
    }
    table = read_metrics(metrics)
    table = table[table.method.isin(clipped) & table.metric.isin(NAMES) & (table.seed != "")]
    methods = table.method.map(clipped.get)
    table = table.assign(
        dimension=table.model.map(dimensions),
        algorithm=[method.algorithm for method in methods],
        clip_distance=[method.options.get("clip_distance", "text") for method in methods],
        clip_bound=[f"{method.options['clip']}" for method in methods],
        metric=table.metric.map(NAMES),
        ran=[method.from_study or study.name for method in methods],
    )
    columns = ["dimension", "algorithm", "clip_distance", "clip_bound", "seed", "metric", "value"]
    own = table.loc[table.study == table.ran, columns]
    own.to_csv(output, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
