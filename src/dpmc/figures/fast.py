"""What the figures of the DP-Fast MH study share: which labels they show, their looks, tables, curves.

Every ε here is per iteration, but for the figure of equal total budgets, which has another axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.plots import style
from dpmc.plots.frame import check_columns, check_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.plots.frame import Results
    from dpmc.studies import Study

PUBLISHED, AS_CODED, CORRECTED = "published", "as_coded", "corrected"
MINIBATCH, FULL_BATCH = "dp-fast-mh", "dp-fast-mh-full"
FAST = (MINIBATCH, FULL_BATCH)
#: algorithms whose guarantee nobody doubts; DP-Fast MH has one in its corrected variant only
GUARANTEED = ("dp-penalty", "dp-barker")
INF = "inf"
SHOWN_EPSILON = "0.05"  # the paper's main value
#: options that make a variant, not another setting, of a method
VARIANT_OPTIONS = {"variant", "acceptance", "inverted_sensitivity"}
VARIANT_NAMES = {PUBLISHED: "as published", AS_CODED: "as coded", CORRECTED: "corrected"}
LINES: dict[str, Any] = {"": "solid", CORRECTED: "solid", PUBLISHED: (0, (4, 1.5)), AS_CODED: (0, (1, 1))}


@dataclass(frozen=True)
class Look:
    """How one label looks."""

    colour: str
    line: Any
    marker: str
    hollow: bool
    title: str


def variant(study: Study, method: str) -> str:
    """Return published, as_coded or corrected for DP-Fast MH, "" for other algorithms."""
    spec = study.methods[method]
    return str(spec.options.get("variant", PUBLISHED)) if spec.algorithm in FAST else ""


def has_guarantee(study: Study, method: str) -> bool:
    """Whether an ε per iteration is true of a method."""
    return study.methods[method].algorithm in GUARANTEED or variant(study, method) == CORRECTED


def main_labels(study: Study, model: str) -> list[str]:
    """Return a model's methods with their main settings: no other step, no other K; in the study's order."""
    return [
        label
        for label, spec in study.methods.items()
        if model in spec.models and set(spec.options) <= VARIANT_OPTIONS and not label.endswith("-tuned")
    ]


def compared_labels(study: Study, model: str) -> list[str]:
    """Return the main labels without those as coded, which a figure of their own shows."""
    return [label for label in main_labels(study, model) if variant(study, label) != AS_CODED]


def is_private(study: Study, model: str, method: str) -> bool:
    """Whether a method runs with an ε."""
    return study.epsilons(model, method) != (INF,)


def epsilon_shown(study: Study, model: str, method: str) -> str:
    """The ε at which curves along a chain are shown: the paper's main one, inf for a non-private method.

    Where a method does not run at that ε, its nearest one.
    """
    epsilons = study.epsilons(model, method)
    if SHOWN_EPSILON in epsilons or epsilons == (INF,):
        return SHOWN_EPSILON if SHOWN_EPSILON in epsilons else INF
    return min(epsilons, key=lambda epsilon: abs(np.log(float(epsilon) / float(SHOWN_EPSILON))))


def models_like(study: Study, start: str) -> list[str]:
    """Return the study's labels of models whose id begins so.

    Raises DpmcError where there are none.
    """
    found = [label for label, spec in study.models.items() if spec.model.startswith(start)]
    if not found:
        raise DpmcError(f"study {study.name}: none of its models is a {start}, which this figure shows")
    return found


def look(study: Study, method: str) -> Look:
    """Return a label's looks: colour and marker of its algorithm, line and filling by its variant."""
    spec = study.methods[method]
    name = spec.algorithm
    if name == "rwmh":
        name = "barker" if spec.options.get("acceptance") == "barker" else "mh"
    base = style.STYLES[name]
    kind = variant(study, method)
    title = base.title + (f", {VARIANT_NAMES[kind]}" if kind else "")
    colour = style.mixed(base.colour, "#000000", 0.25) if name == "barker" else base.colour
    return Look(colour, LINES[kind], base.marker, kind in (PUBLISHED, AS_CODED), title)


# -- tables beside the metrics ----------------------------------------------------------------------------


def trace_path(results: Path, study: Study, model: str) -> Path:
    """The table of metrics along the chains of a model."""
    return results / study.name / "traces" / f"{model}.csv"


def speed_path(results: Path, study: Study) -> Path:
    """The table of seconds per iteration."""
    return results / study.name / "speed.csv"


def read_table(path: Path, columns: Iterable[str]) -> DataFrame:
    """Return a CSV table whose ε are text.

    Raises DpmcError for a file that is missing or has other columns.
    """
    import pandas as pd

    if not path.is_file():
        raise DpmcError(f"{path}: no such file")
    try:
        table = pd.read_csv(path, dtype={"epsilon": str, "seed": str}, keep_default_na=False)
    except (ValueError, pd.errors.ParserError) as error:
        raise DpmcError(f"{path}: not a CSV table ({error})") from None
    check_columns(table, columns, path)
    for column in ("iteration", "iterations", "value", "seconds_per_iteration"):
        if column in columns:
            check_numbers(table, column, path)
    return table


@dataclass(frozen=True)
class Traces:
    """Metrics along the chains of one model."""

    # (method, epsilon, metric) -> seed -> iteration -> value
    numbers: Mapping[tuple[str, str, str], Mapping[str, Mapping[int, float]]]

    @classmethod
    def read(cls, path: Path) -> Traces:
        """Read a table written by `dpmc trace`."""
        from dpmc.metrics.traces import COLUMNS

        table = read_table(path, COLUMNS)
        numbers: dict[tuple[str, str, str], dict[str, dict[int, float]]] = {}
        for keys, part in table.groupby(["method", "epsilon", "metric", "seed"], sort=False):
            method, epsilon, metric, seed = (str(key) for key in keys)
            values = dict(zip(part["iteration"].astype(int), part["value"].astype(float), strict=True))
            numbers.setdefault((method, epsilon, metric), {})[seed] = values
        return cls(numbers)

    def median(self, method: str, epsilon: str, metric: str) -> dict[int, float]:
        """Iteration -> median over the runs, for iterations that all of them have."""
        runs = list(self.numbers.get((method, epsilon, metric), {}).values())
        shared = [i for i in runs[0] if all(i in run for run in runs)] if runs else []
        return {i: float(np.median([run[i] for run in runs])) for i in shared}


def speeds(path: Path, model: str) -> dict[str, float]:
    """Return method -> measured seconds per iteration on a model."""
    from dpmc.metrics.speed import COLUMNS

    table = read_table(path, COLUMNS)
    rows = table[table["model"] == model]
    return dict(zip(rows["method"], rows["seconds_per_iteration"].astype(float), strict=True))


# -- drawing ------------------------------------------------------------------------------------------------


def draw_against_epsilon(
    axes: Axes, results: Results, study: Study, model: str, methods: Sequence[str], metric: str
) -> None:
    """Draw medians and quartiles over the runs against ε per iteration; lines across without privacy."""
    for place, method in enumerate(methods):
        one = look(study, method)
        if not is_private(study, model, method):
            values = results.values(model, method, INF, metric)
            if values:
                axes.axhline(float(np.median(values)), color=one.colour, linewidth=0.9, zorder=2)
            continue
        points = []
        for epsilon in study.epsilons(model, method):
            values = results.values(model, method, epsilon, metric)
            if values:
                low, middle, high = (float(v) for v in np.quantile(values, [0.25, 0.5, 0.75]))
                shift = 1.0 + 0.02 * (place - 0.5 * len(methods))  # bars of different methods stay apart
                points.append((float(epsilon) * shift, middle, low, high))
        x, y, low_, high_ = ([point[i] for point in sorted(points)] for i in range(4))
        axes.vlines(x, low_, high_, color=one.colour, linewidth=0.6, alpha=0.7, zorder=2)
        plot(axes, x, y, one, marked=True)
    epsilons = sorted({float(e) for m in methods for e in study.epsilons(model, m) if e != INF})
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlabel("ε per iteration")


def plot(axes: Axes, x: Sequence[float], y: Sequence[float], one: Look, marked: bool = False) -> None:
    """Draw one curve, with a marker at each point if `marked`."""
    axes.plot(
        x,
        y,
        color=one.colour,
        linestyle=one.line,
        linewidth=1.1,
        marker=one.marker if marked else "",
        markersize=3.8,
        markerfacecolor="white" if one.hollow else one.colour,
        markeredgecolor=one.colour,
        markeredgewidth=0.8,
        zorder=3,
    )


def logarithmic(axis: Any) -> None:
    """Give an axis (`axes.xaxis` or `axes.yaxis`) a logarithmic scale whose ticks are plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis._set_axes_scale("log")
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,), numticks=8))
    axis.set_minor_locator(LogLocator(subs=tuple(range(1, 10)), numticks=20))
    axis.set_minor_formatter(NullFormatter())
    if decades < 4.0 and high < 1e5:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def grid(axes: Axes) -> None:
    """Faint lines behind a panel."""
    axes.grid(True, color="#E4E4E4", linewidth=0.4)


def legend(where: Figure | Axes, study: Study, methods: Sequence[str], **how: Any) -> None:
    """Explain the labels: above the panels of a figure, or within axes."""
    from matplotlib.lines import Line2D

    looks = list(dict.fromkeys(look(study, method) for method in methods))
    handles = [
        Line2D(
            [],
            [],
            color=one.colour,
            linestyle=one.line,
            linewidth=1.2,
            marker=one.marker,
            markersize=3.8,
            markerfacecolor="white" if one.hollow else one.colour,
        )
        for one in looks
    ]
    titles = [one.title for one in looks]
    placed = {"loc": "outside upper left", "ncols": 2, **how}
    where.legend(handles, titles, frameon=False, handlelength=3.0, columnspacing=1.4, **placed)
