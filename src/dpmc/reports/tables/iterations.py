"""Iterations of each cell, and the iterations its budget allows by every accountant, from budgets.csv."""

from pathlib import Path

import pandas as pd

from dpmc.metrics.table import read_table
from dpmc.privacy.accountants import ACCOUNTANTS
from dpmc.studies import Study

TITLE = "Iterations"
COLUMNS = ("model", "method", "accountant", "epsilon", "allowed", "run")
READ = ("model", "method", "accountant", "epsilon", "iterations", *ACCOUNTANTS)  # of budgets.csv
NOTE = (
    "allowed: iterations of a chain within the budget ε, by each accountant that bounds the method's\n"
    "releases, at the δ of budgets.csv. run: iterations of the chains, in the row of the accountant that\n"
    "the study uses. Without an accountant no budget limits the iterations."
)


def table(study: Study, results: Path) -> pd.DataFrame:
    """Return a row of texts for each cell and accountant that bounds its releases."""
    budgets, rows = read_table(results / study.name / "budgets.csv", READ, "a table of budgets"), []
    for cell in budgets.to_dict("records"):
        if cell["model"] in study.models and cell["method"] in study.methods:
            # without a budget: one row, of no accountant
            for name in [name for name in ACCOUNTANTS if cell[name]] or [""]:
                run = cell["iterations"] if name in ("", cell["accountant"]) else ""
                rows.append((cell["model"], cell["method"], name, cell["epsilon"], cell.get(name, ""), run))
    return pd.DataFrame(rows, columns=[*COLUMNS])
