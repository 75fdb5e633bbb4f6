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
    accountant. Raises DpmcError for a file that is missing or is not a table of budgets.
    """
    rows = []
    for cell in read_table(inputs(study, results)[0], READ, "a table of budgets").to_dict("records"):
        allowed = {name: cell[name] for name in ACCOUNTANTS if cell[name]}
        if cell["model"] in study.models and cell["method"] in study.methods:
            for name, most in (allowed or {"": ""}).items():  # without a budget: one row
                run = cell["iterations"] if name in ("", cell["accountant"]) else ""
                values = (cell["model"], cell["method"], name, cell["epsilon"], most, run)
                rows.append(dict(zip(COLUMNS, values, strict=True)))

    lines: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}  # one for each model, method and accountant
    for row in rows:
        lines.setdefault((row["model"], row["method"], row["accountant"]), {})[row["epsilon"]] = row
    styles = method_styles(dict(study.methods))
    parts: dict[tuple[str, ...], list[list[str]]] = {}  # one for each list of ε, which are its columns
    for (model, method, accountant), by_epsilon in lines.items():
        star = "*" * any(row["run"] and row["allowed"] for row in by_epsilon.values())
        heads = [model_title(model, study.models[model].model), styles[method].title]
        heads.append(ACCOUNTANT_TITLES.get(accountant, accountant) + star)
        parts.setdefault(tuple(by_epsilon), []).append([*heads, *map(_text, by_epsilon.values())])
    shown = [
        Part(
            "" if len(parts) == 1 else f"ε = {', '.join(epsilons)}",
            ["Model", "Method", "Accountant", *(f"ε = {epsilon}" for epsilon in epsilons)],
            part,
        )
        for epsilons, part in parts.items()
    ]
    return Table(TITLE, NOTE, COLUMNS, rows, shown)


def _text(row: dict[str, str]) -> str:
    """Format an entry for readers."""
    if row["run"] and row["allowed"] and row["run"] != row["allowed"]:
        return f"{row['run']} of {row['allowed']}"
    return row["allowed"] or row["run"]
