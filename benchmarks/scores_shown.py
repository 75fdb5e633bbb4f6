"""What is shown of the table of `scores.py`: what was asked of the grid, and the two figures of the page."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.reports.plots import layout, style

COVERAGE = 86.0, 94.0  #: asked of each cell of the grid, %
WORST = 82.0  #: of each coefficient, %
TRIAL, BOUND = 1.1, 1.5  #: largest error over the trial's, and over the lower bound at ε ≥ 1
WAYS = {"linear": "linear", "logistic": "logistic", "poisson": "Poisson"}
N = 1000, 5000, 50_000
LARGEST = 30.0  #: error that is drawn
COLOURS = dict(zip((0.5, 1.0, 4.0), ("#74B9DE", "#2171B5", "#08244D"), strict=True))
MARKERS = {"normal": "o", "binary": "s", "skew": "^"}
LINES: dict[str, dict[str, Any]] = {
    "noisy scores": {"color": "#2171B5", "marker": "o"},
    "lower bound": {"color": style.GREY, "marker": "_"},
    "AdaSSP": {"color": "#E08214", "marker": "D"},
    "objective perturbation": {"color": "#8C510A", "marker": "v"},
    "diffprivlib": {"color": "#B2182B", "marker": "x"},
}
COLUMNS = dict(
    zip(LINES, ("error", "lower_bound", "adassp", "objective_perturbation", "diffprivlib"), strict=True)
)


def print_verdict(rows: pd.DataFrame) -> None:
    """Print which cells of the grid are outside of what was asked."""
    grid = rows[rows["part"] == "grid"]
    ratio, bound = grid["error"] / grid["trial_error"], grid["error"] / grid["lower_bound"]
    outside = {
        f"coverage outside {COVERAGE[0]:g} to {COVERAGE[1]:g} %": ~grid["coverage"].between(*COVERAGE),
        f"a coefficient below {WORST:g} %": grid["worst"] < WORST,
        f"error above {TRIAL} times the trial's": ratio > TRIAL,
        f"error above {BOUND} times the lower bound, ε ≥ 1": (bound > BOUND) & (grid["epsilon"] >= 1.0),
    }
    print(f"{len(grid)} cells of the grid")
    for rule, found in outside.items():
        print(f"{rule}: {found.sum()}")
        for (_, row), *numbers in zip(grid[found].iterrows(), ratio[found], bound[found], strict=True):
            cell = ", ".join(str(row[name]) for name in ("regression", "predictors", "n", "d", "epsilon"))
            print(
                f"    {cell}: cover {row['coverage']:.1f}±{row['coverage_se']:.1f}, worst {row['worst']:g}, "
                f"error {row['error']:.3g}, {numbers[0]:.2f} times the trial's, {numbers[1]:.2f} the bound"
            )
    mean = float(np.exp(np.log(ratio).mean()))
    print(f"coverage {grid['coverage'].mean():.1f} % on average; error {mean:.3f} times the trial's")


def print_chains(rows: pd.DataFrame) -> None:
    """Print error and coverage of noisy scores and of chains on the same data sets, a line for each cell."""
    own = rows[rows["part"] == "chains"]
    for cell, group in own.groupby(["regression", "predictors", "n", "d"], sort=False):
        told = [
            f"{row['case']} {row['error']:.2f}±{row['error_se']:.2f}, {row['coverage']:.0f} %"
            for _, row in group.iterrows()
        ]
        print(f"{', '.join(map(str, cell))}: {'; '.join(told)}")


@style.context()
def draw_errors(rows: pd.DataFrame) -> Figure:
    """Return errors against n at ε = 1 with eight coefficients, a panel for each regression."""
    figure, panels = layout.panels(True, len(WAYS), len(WAYS), 2.2, sharex=True, sharey=True)
    chosen = rows[(rows["part"] == "grid") & (rows["d"] == 8) & (rows["epsilon"] == 1.0)]
    for axes, way in zip(panels, WAYS, strict=True):
        for kind, line in (("normal", style.SOLID), ("skew", style.DASHED)):
            own = chosen[(chosen["regression"] == way) & (chosen["predictors"] == kind)].sort_values("n")
            for name, look in LINES.items():
                errors = own[COLUMNS[name]].where(own[COLUMNS[name]] < LARGEST)
                axes.plot(own["n"], errors, linestyle=line, linewidth=1.1, markersize=3.8, **look)
        set_panel(axes, way)
        axes.set_ylim(0.2, LARGEST)
        layout.set_logarithmic(axes, "y")
    panels[0].set_ylabel("error, standard errors")
    entries: layout.Entries = {name: {**look, "linestyle": style.SOLID} for name, look in LINES.items()}
    entries["skew predictors"] = {"color": style.GREY, "linestyle": style.DASHED}
    layout.add_legend(figure, entries)
    return figure


@style.context()
def draw_coverage(rows: pd.DataFrame) -> Figure:
    """Return the coverage of 90 % intervals in the grid against n, a panel for each regression."""
    figure, panels = layout.panels(True, len(WAYS), len(WAYS), 2.2, sharex=True, sharey=True)
    grid = rows[rows["part"] == "grid"]
    for axes, way in zip(panels, WAYS, strict=True):
        axes.axhspan(*COVERAGE, color=style.BAND, zorder=0)
        axes.axhline(90.0, color=style.GREY, linewidth=0.8, linestyle=style.DASHED, zorder=0)
        for n in N:
            own = grid[(grid["regression"] == way) & (grid["n"] == n)]
            own = own.sort_values(["epsilon", "predictors", "d"])
            sides = np.exp(0.09 * (np.arange(len(own)) - 0.5 * (len(own) - 1)))  # beside each other
            for (_, row), side in zip(own.iterrows(), sides, strict=True):
                marker, colour = MARKERS[row["predictors"]], COLOURS[row["epsilon"]]
                face = colour if row["d"] == 8 else "white"
                axes.errorbar(
                    n * side, row["coverage"], 1.96 * row["coverage_se"], color=colour, marker=marker,
                    markerfacecolor=face, markersize=3.4, elinewidth=0.7, linestyle="none",
                )  # fmt: skip
        set_panel(axes, way)
    panels[0].set_ylim(81.0, 99.0)
    panels[0].set_yticks((82.0, *COVERAGE, 90.0, 98.0), ("82", "86", "94", "90", "98"))
    panels[0].set_ylabel("coverage, %")
    entries: layout.Entries = {f"ε = {epsilon:g}": {"color": colour} for epsilon, colour in COLOURS.items()}
    plain = {"color": style.GREY, "linestyle": "none"}
    for kind, marker in MARKERS.items():
        name = "0/1" if kind == "binary" else kind
        entries[f"{name} predictors"] = {**plain, "marker": marker}
    entries["three coefficients"] = {**plain, "marker": "o", "markerfacecolor": "white"}
    layout.add_legend(figure, entries)
    return figure


def set_panel(axes: Axes, way: str) -> None:
    """Set the title and the axis of rows."""
    axes.set_title(f"{WAYS[way]} regression")
    axes.set_xlabel("rows n")
    axes.set_xlim(500, 100_000)
    layout.set_logarithmic(axes, "x")
    axes.set_xticks(N, [f"{n:,}" for n in N])
    axes.set_xticks([], minor=True)
    axes.grid(True, axis="y")
