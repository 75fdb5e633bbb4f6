"""Write the verdicts on the claims of a study's source, from the study's metrics and from published numbers.

    python workflow/scripts/claims.py <study> results/<study>/metrics.csv results/<study>/budgets.csv \
        data/published <output>

The claims are in `dpmc.reports.claims`. Settings that were tried are read from results/<study>/tuning, and
what other studies decide from their results, where there are any. Prints a line for each verdict on standard
error.
"""

import sys
from pathlib import Path

import pandas as pd
import yaml

from dpmc.common.files import replacing
from dpmc.metrics.table import METRIC_COLUMNS, read_table
from dpmc.reports import claims
from dpmc.reports.claims.table import RING, ClaimTable, ring_distance
from dpmc.studies import load_study, problem_of, read_yaml, whole

NEEDED = ("model", "method", "epsilon", "accountant", "allowed")  # columns of budgets.csv
study, metrics, budgets, published, output = load_study(sys.argv[1]), *map(Path, sys.argv[2:6])
others = claims.other_studies(study.name)  # raises for a study without claims, before tables are read
model, method, epsilon, metric = RING
rows = []
if "trajectory" in study.figures:
    from thesis_figures import leapfrog_points  # beside the study

    distance = ring_distance(leapfrog_points(study, model, problem_of(study, model, exact=True)))
    rows.append((study.name, model, method, epsilon, "", metric, distance))
for path in sorted(metrics.parent.glob("tuning/*/*.yaml")):
    tried = read_yaml(path)["tried"]
    if isinstance(tried, dict) and "mmd" in tried["medians"]:  # a text for a setting that is not tried
        cell = (path.parent.name, path.stem, tried["epsilon"])
        rows.append((study.name, *cell, "", "tuning_mmd", tried["medians"]["mmd"]))
table = pd.concat(
    [whole.read_whole(study, metrics), pd.DataFrame(rows, columns=[*METRIC_COLUMNS]).astype({"value": float})]
)
tables = {study.name: ClaimTable.of_study(study, table, read_table(budgets, NEEDED))}
for other in map(load_study, others):
    if (file := metrics.parent.parent / other.name / metrics.name).is_file():
        tables[other.name] = ClaimTable.of_study(other, whole.read_whole(other, file))
verdicts = claims.judge(study, tables, ClaimTable.published(study, published))
# Without a default style PyYAML writes mappings of plain values, such as a case, on one line each.
form = {"sort_keys": False, "allow_unicode": True, "width": 150, "default_flow_style": None}
with replacing(output) as temporary:
    temporary.write_text(yaml.safe_dump(verdicts, **form), encoding="utf-8")
for claim in verdicts["claims"]:
    print(f"{claim['verdict']:9s} {claim['section']}: {claim['claim']}", file=sys.stderr)
