"""Write the table of the clipping experiment (thesis, Section 6.2; DP-HMC paper, Section 4.2).

    python workflow/scripts/clipping_table.py <study> results/<study>/metrics.csv clipping.csv

Columns: dimension, algorithm (rwmh | hmc), clip_distance (text | as_coded), clip_bound, seed, metric
(clip_fraction | mmd | acceptance), value. A cell belongs to the experiment if its method is one of the two
algorithms without privacy and has a clip bound.
"""

import sys
from pathlib import Path

from dpmc import models
from dpmc.studies import load_study, whole
from dpmc.studies.pairs import clipped_at_will

METRICS = {"ratio_clip_fraction": "clip_fraction", "mmd": "mmd", "acceptance_rate": "acceptance"}
COLUMNS = ["dimension", "algorithm", "clip_distance", "clip_bound", "seed", "metric", "value"]

study = load_study(sys.argv[1])
table = whole.read_whole(study, Path(sys.argv[2]))
methods = {
    label: (spec.algorithm, spec.options.get("clip_distance", "text"), str(spec.options["clip"]))
    for label, spec in study.methods.items()
    if spec.algorithm in clipped_at_will() and "clip" in spec.options
}
ran = {label: study.methods[label].from_study or study.name for label in methods}
table = table[table.metric.isin(METRICS) & (table.seed != "") & (table.study == table.method.map(ran))].copy()
for place, column in enumerate(("algorithm", "clip_distance", "clip_bound")):
    table[column] = [methods[label][place] for label in table.method]
table["dimension"] = [len(models.definition(study.models[m].model).true_theta) for m in table.model]
table["metric"] = table.metric.map(METRICS)
table[COLUMNS].to_csv(sys.argv[3], index=False, lineterminator="\n")
