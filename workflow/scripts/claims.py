"""Write the verdicts on the claims of a study's source, from the study's metrics.

    python workflow/scripts/claims.py <study> results/<study>/metrics.csv results/<study>/budgets.csv <output>

The claims are in `dpmc.reports.claims`. Prints a line for each verdict on standard error.
"""

import sys
from pathlib import Path

import pandas as pd

from dpmc.reports import claims
from dpmc.reports.plots.frame import read_metrics
from dpmc.studies import load_study


def main() -> None:
    """Write the verdicts and print them."""
    study, metrics, output = load_study(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[4])
    claims.claims_of(study.name)  # raises for a study without claims, before tables are read
    budgets = pd.read_csv(sys.argv[3], dtype=str, keep_default_na=False)
    verdicts = claims.judge(study, read_metrics(metrics), budgets)
    claims.write(verdicts, output)
    for claim in verdicts["claims"]:
        print(f"{claim['verdict']:9s} {claim['section']}: {claim['claim']}", file=sys.stderr)


if __name__ == "__main__":
    main()
