"""What is shown of the table of `noisy_grid.py`: tables of the page, and its figure."""

import json
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from measuring import table
from noisy_questions import EPSILON, REGRESSIONS, D, N

from dpmc.reports.plots import layout, style

QUESTION = ["regression", "predictors", "d", "n", "epsilon"]


def print_tables(rows: pd.DataFrame) -> None:
    """Print what the page has of the table."""
    sums, chains, ignored = (
        rows[rows["method"] == way] for way in ("noisy-statistics", "chain", "noise ignored")
    )
    print("Noisy statistics: error at ε = 1, the rest over n and ε\n")
    grid = sums[(sums["predictors"] == "normal") & sums["d"].isin(D)]
    header = ["regression", "d", *(f"n = {n:,}" for n in N), "coverage, %", "width", "least ESS"]
    table(header, [grid_row(*group) for group in grid.groupby(["regression", "d"], sort=False)])

    print("\nCoverage by n, %; its range, and that with the noise ignored at ε = 1\n")
    for n in N:
        print(n, *(span(100.0 * of[of["n"] == n]["coverage"], ".0f") for of in (grid, ignored)), sep=" | ")

    print("\nNoisy statistics / the best chain\n")
    both = sums.merge(chains, on=QUESTION, suffixes=("", "_chain"))
    header = [*QUESTION, "error", "coverage, %", "width", "chain's ESS", "chain", "data sets"]
    table(header, [pair_row(row) for _, row in both.iterrows()])

    print("\nClip bound of noisy statistics 1.5 times as large\n")
    columns = [*QUESTION, "error", "coverage", "width", "bias"]
    table(columns, rows[rows["method"] == "wider clip"][columns].values.tolist())

    print("\nCalibration\n")
    columns = ["regression", "predictors", "coverage", "coverage_error", "bias", "spread", "error", "sets"]
    table(columns, sums[~sums["d"].isin(D)][columns].values.tolist())


def grid_row(group: tuple[str, int], cells: pd.DataFrame) -> list[Any]:
    errors = cells[cells["epsilon"] == 1.0].set_index("n")["error"]
    ranges = [span(100.0 * cells["coverage"], ".0f"), span(cells["width"], ".2g")]
    return [*group, *(float(errors.get(n, np.nan)) for n in N), *ranges, float(cells["ess_least"].min())]


def span(values: pd.Series, form: str) -> str:
    return f"{values.min():{form}} to {values.max():{form}}" if len(values) else "-"


def pair_row(row: pd.Series) -> list[Any]:
    def pair(name: str, form: str, scale: float = 1.0) -> str:
        return " / ".join(f"{scale * row[name + end]:{form}}" for end in ("", "_chain"))

    chosen = json.loads(row["setting_chain"])
    way = f"{chosen['method']}, n₀ = {chosen['share'] * row['n']:,.0f}"
    results = [pair("error", ".2g"), pair("coverage", ".0f", 100.0), pair("width", ".2g")]
    return [*(row[name] for name in QUESTION), *results, float(row["ess_chain"]), way, row["sets_chain"]]


COLOURS = dict(zip(EPSILON, ("#74B9DE", "#2171B5", "#08244D"), strict=True))
LOOKS: dict[str, dict[str, Any]] = {
    "noisy-statistics": {"marker": "o", "markersize": 3.8, "linewidth": 1.1},
    "chain": {"marker": "D", "markersize": 4.2, "linestyle": "none", "markerfacecolor": "white"},
}
SIDES = dict(zip(EPSILON, (0.86, 1.0, 1.16), strict=True))  #: times n, so that bars are side by side
BESIDE = 1.4  #: times n: where a chain's marker is, right of the others


@style.context()
def draw(rows: pd.DataFrame) -> Figure:
    """Return error and coverage against n: a column for each regression, a row for each d."""
    grid = rows[(rows["predictors"] == "normal") & rows["d"].isin(D)]
    values = ("error", "coverage")
    places = [(value, d, regression) for value in values for d in D for regression in REGRESSIONS]
    figure, panels = layout.panels(len(places), len(REGRESSIONS), 1.35, sharex=True, sharey="row")
    for axes, (value, d, regression) in zip(panels, places, strict=True):
        panel(axes, grid[(grid["d"] == d) & (grid["regression"] == regression)], value)
        if axes in panels[: len(REGRESSIONS)]:
            axes.set_title(f"{regression} regression")
        if axes in panels[-len(REGRESSIONS) :]:
            axes.set_xlabel("rows n")
        if regression == next(iter(REGRESSIONS)):
            name = "error, s.e." if value == "error" else "coverage, %"
            axes.set_ylabel(f"{d} coefficients\n{name}")
    entries: layout.Entries = {f"ε = {epsilon:g}": {"color": colour} for epsilon, colour in COLOURS.items()}
    entries["noisy statistics"] = {"color": style.GREY, **LOOKS["noisy-statistics"]}
    entries["best chain"] = {"color": style.GREY, **LOOKS["chain"]}
    layout.add_legend(figure, entries, 5)
    return figure


def panel(axes: Axes, rows: pd.DataFrame, value: str) -> None:
    """Draw one value of one regression and d against n."""
    scale = 100.0 if value == "coverage" else 1.0
    for (method, epsilon), cells in rows.groupby(["method", "epsilon"]):
        if method in LOOKS:
            x = cells["n"] * (BESIDE if method == "chain" else SIDES[epsilon])
            bars = 1.96 * scale * cells["coverage_error"] if value == "coverage" else None
            look = {**LOOKS[method], "color": COLOURS[epsilon], "elinewidth": 0.7}
            axes.errorbar(x, scale * cells[value], bars, **look)
    axes.set_xlim(700, 95_000)
    layout.set_logarithmic(axes, "x")
    axes.set_xticks(N, [f"{n:,}" for n in N])
    axes.set_xticks([], minor=True)
    wanted = 90.0 if value == "coverage" else 1.0
    axes.axhline(wanted, color=style.GREY, linewidth=0.8, linestyle=style.DASHED, zorder=0)
    if value == "error":
        layout.set_logarithmic(axes, "y")
    axes.grid(True, axis="y")
