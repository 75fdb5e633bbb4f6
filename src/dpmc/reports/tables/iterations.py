"""Iterations of each cell, and the iterations its budget allows by every accountant, from budgets.csv."""

from __future__ import annotations

from pathlib import Path

from dpmc.metrics.table import read_table
from dpmc.privacy.accountants import ACCOUNTANTS
from dpmc.reports.plots.style import method_styles, model_title
from dpmc.reports.tables.formats import Part, Table
from dpmc.studies import Study

TITLE = "Iterations"
COLUMNS = ("model", "method", "accountant", "epsilon", "allowed", "run")
READ = ("model", "method", "accountant", "epsilon", "iterations", *ACCOUNTANTS)  # of budgets.csv
ACCOUNTANT_TITLES = {
    "tight": "Gaussian, exact",
    "zcdp": "zCDP",
    "rdp": "RDP",
    "replace-pld": "loss distribution, the thesis's pair",
    "wor-pld": "loss distribution, without replacement",
    "barker-pld": "loss distribution, Barker",
    "fast-mh-pld": "loss distribution, DP-Fast MH",
}
NOTE = (
    "Iterations that the budget ε allows a chain, by each accountant that bounds the method's releases, at\n"
    "the δ of budgets.csv. A star: the accountant that the study uses. “k of m”: of m allowed iterations k\n"
    "were run. Without an accountant: no budget limits the iterations, which are those run."
)


def inputs(study: Study, results: Path) -> list[Path]:
    """Return the table of budgets."""
    return [results / study.name / "budgets.csv"]


def table(study: Study, results: Path) -> Table:
    """Return the table: tidy as CSV, for readers a row for each model, method and accountant.

    `allowed`: iterations that the budget allows; `run`: iterations of the chains, in the row of the study's
    accountant.
    """
    import pandas as pd

    rows = []
    for cell in read_table(inputs(study, results)[0], READ, "a table of budgets").to_dict("records"):
        if cell["model"] in study.models and cell["method"] in study.methods:
            # without a budget: one row, of no accountant
            for name in [name for name in ACCOUNTANTS if cell[name]] or [""]:
                run = cell["iterations"] if name in ("", cell["accountant"]) else ""
                values = (cell["model"], cell["method"], name, cell["epsilon"], cell.get(name, ""), run)
                rows.append(dict(zip(COLUMNS, values, strict=True)))

    styles = method_styles(study.methods)
    parts: dict[tuple[str, ...], list[list[str]]] = {}  # one for each list of ε, which are its columns
    lines = pd.DataFrame(rows, columns=[*COLUMNS]).groupby([*COLUMNS[:3]], sort=False)
    for (model, method, accountant), line in lines:
        entries = [
            f"{run} of {allowed}" if run and allowed and run != allowed else allowed or run
            for allowed, run in zip(line["allowed"], line["run"], strict=True)
        ]
        used = accountant and line["run"].any()
        heads = [model_title(model, study.models[model].model), styles[method].title]
        heads.append(ACCOUNTANT_TITLES.get(accountant, accountant) + "*" * bool(used))
        parts.setdefault(tuple(line["epsilon"]), []).append([*heads, *entries])
    shown = [
        Part(
            "" if len(parts) == 1 else f"ε = {', '.join(epsilons)}",
            ["Model", "Method", "Accountant", *(f"ε = {epsilon}" for epsilon in epsilons)],
            part,
        )
        for epsilons, part in parts.items()
    ]
    return Table(TITLE, NOTE, COLUMNS, rows, shown)
