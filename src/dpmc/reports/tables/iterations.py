"""Iterations of each cell, and the iterations its budget allows by every accountant, from budgets.csv."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.metrics.table import read_table
from dpmc.privacy.accountants import ACCOUNTANTS
from dpmc.reports.plots.style import method_styles, model_title
from dpmc.reports.tables.formats import Part, Table

if TYPE_CHECKING:
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
    budgets = read_table(inputs(study, results)[0], READ, "a table of budgets")
    rows = [one for row in budgets.to_dict("records") for one in _by_accountant(row)]
    known = [row for row in rows if row["model"] in study.models and row["method"] in study.methods]
    return Table(TITLE, NOTE, COLUMNS, known, list(_parts(study, known)))


def _by_accountant(row: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield the rows of one cell: one per accountant that bounds it, a single one without a budget."""
    used = row["accountant"]
    allowed = {name: row[name] for name in ACCOUNTANTS if row[name]}
    for name, most in allowed.items() or [("", "")]:
        run = row["iterations"] if name in ("", used) else ""
        values = (row["model"], row["method"], name, row["epsilon"], most, run)
        yield dict(zip(COLUMNS, values, strict=True))


def _parts(study: Study, rows: list[dict[str, str]]) -> Iterator[Part]:
    """Yield a part for each list of ε, which are its columns."""
    styles = method_styles(dict(study.methods))
    lines: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    for row in rows:
        lines.setdefault((row["model"], row["method"], row["accountant"]), {})[row["epsilon"]] = row
    groups: dict[tuple[str, ...], list[list[str]]] = {}
    for (model, method, accountant), by_epsilon in lines.items():
        star = "*" * any(row["run"] and row["allowed"] for row in by_epsilon.values())
        name = [model_title(model, study.models[model].model), styles[method].title]
        cells = [_text(row) for row in by_epsilon.values()]
        title = ACCOUNTANT_TITLES.get(accountant, accountant) + star
        groups.setdefault(tuple(by_epsilon), []).append([*name, title, *cells])
    for epsilons, part in groups.items():
        heads = ["Model", "Method", "Accountant", *(f"ε = {epsilon}" for epsilon in epsilons)]
        yield Part("" if len(groups) == 1 else f"ε = {', '.join(epsilons)}", heads, part)


def _text(row: dict[str, str]) -> str:
    """Format an entry for readers."""
    if row["run"] and row["allowed"] and row["run"] != row["allowed"]:
        return f"{row['run']} of {row['allowed']}"
    return row["allowed"] or row["run"]
