"""Write the verdicts on the claims of a study's source, from the study's metrics.

    python workflow/scripts/claims.py <study> results/<study>/metrics.csv results/<study>/budgets.csv <output>

The claims are in `dpmc.reports.claims`. Prints a line for each verdict on standard error.
"""

import sys
from pathlib import Path

from dpmc.metrics.table import read_metrics, read_table
from dpmc.reports import claims
from dpmc.studies import load_study

study, metrics, budgets, output = load_study(sys.argv[1]), *map(Path, sys.argv[2:5])
claims.claims_of(study.name)  # raises for a study without claims, before tables are read
verdicts = claims.judge(study, claims.Table.of_study(study, read_metrics(metrics), read_table(budgets, ())))
claims.write(verdicts, output)
for claim in verdicts["claims"]:
    print(f"{claim['verdict']:9s} {claim['section']}: {claim['claim']}", file=sys.stderr)
