"""What clipping log ratios does to the posterior, without privacy noise (Figure 6.2)."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.errors import DpmcError
from dpmc.plots import marks, style
from dpmc.plots.frame import Results
from dpmc.plots.style import MethodStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

ALGORITHMS = ("rwmh", "hmc")
EPSILON = "inf"
PUBLISHED_ROWS = 100_000
MODEL_LABEL = re.compile(r"clipping-([0-9]+)d(-as-coded)?")
METHOD_LABEL = re.compile(r"(rwmh|hmc)(-as-coded)?-([0-9.]+)")


@dataclass(frozen=True)
class _Place:
    """One clipping model of the study: a column, and the text's distance or the code's."""

    label: str
    dimension: int
    as_coded: bool


Published = dict[tuple[str, float], list[tuple[float, float]]]  # -> (fraction, MMD) of each chain


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure: two rows of panels per clip distance, one column per dimension.

    Raises DpmcError where the study has no model of the clipping experiment.
    """
    from matplotlib.figure import Figure

    places = [
        _Place(label, int(match[1]), match[2] is not None)
        for label in study.models
        if (match := MODEL_LABEL.fullmatch(label))
    ]
    if not places:
        raise DpmcError(f"study {study.name}: it has no model clipping-<d>d of the experiment")
    results = Results.of(metrics, study.name)
    dimensions = sorted({place.dimension for place in places})
    kinds = sorted({place.as_coded for place in places})
    with style.context():
        height = 1.75 * 2 * len(kinds) + 0.5
        figure = Figure(figsize=(style.TEXT_WIDTH, height), layout="constrained", dpi=100)
        axes = figure.subplots(2 * len(kinds), len(dimensions), squeeze=False)
        for one in axes.ravel():
            one.set_visible(False)
        shown = False
        for place in places:
            row = 2 * kinds.index(place.as_coded)
            column = dimensions.index(place.dimension)
            known = _published(published, study, place)
            shown = shown or bool(known)
            for one in axes[row : row + 2, column]:
                one.set_visible(True)
            _draw_bounds(axes[row, column], place, results, study, known)
            _draw_fractions(axes[row + 1, column], place, results, study, known)
        top = max(one.get_ylim()[1] for one in axes.ravel() if one.get_visible())
        for one in axes.ravel():
            one.set_ylim(0.0, top)  # dimensions and distances are compared
        _legend(figure, max(len(results.baselines(p.label, "mmd")) for p in places), shown)
    return figure


def bounds_of(study: Study, label: str) -> dict[str, dict[float, str]]:
    """Return algorithm -> clip bound -> method label of the methods that run on a model."""
    table: dict[str, dict[float, str]] = {}
    for method, spec in study.methods.items():
        match = METHOD_LABEL.fullmatch(method)
        if match and label in spec.models:
            table.setdefault(match[1], {})[float(match[3])] = method
    return {name: dict(sorted(table[name].items())) for name in ALGORITHMS if name in table}


def _published(folder: Path, study: Study, place: _Place) -> Published:
    """Return the published chains of a place; none where the study runs something else.

    Raises DpmcError for a file that is not such a table.
    """
    path = folder / "clipping_experiment.csv"
    if not place.as_coded or study.models[place.label].n != PUBLISHED_ROWS or not path.is_file():
        return {}
    values: dict[tuple[str, float, str], dict[str, float]] = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if int(row["dimension"]) == place.dimension and row["clip_distance"] == "as_coded":
                    chain = row["algorithm"], float(row["clip_bound"]), row["seed"]
                    values.setdefault(chain, {})[row["metric"]] = float(row["value"])
        chains: Published = {}
        for (algorithm, bound, _), one in values.items():
            chains.setdefault((algorithm, bound), []).append((one["clip_fraction"], one["mmd"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DpmcError(f"{path}: not a table of published chains ({error!r})") from None
    return chains


def _draw_bounds(axes: Axes, place: _Place, results: Results, study: Study, known: Published) -> None:
    """Draw boxes of the MMD over the chains at each clip bound, published chains beside them."""
    methods = bounds_of(study, place.label)
    bounds = sorted({bound for by_bound in methods.values() for bound in by_bound})
    slot = marks.GROUP_WIDTH / max(len(methods), 1)
    for group, bound in enumerate(bounds):
        if group % 2 == 0:
            axes.axvspan(group - 0.5, group + 0.5, color=style.BAND, lw=0, zorder=0)
        for index, (algorithm, by_bound) in enumerate(methods.items()):
            centre = group + (index + 0.5) * slot - marks.GROUP_WIDTH / 2
            look, cell = style.STYLES[algorithm], (place.label, by_bound.get(bound, ""), EPSILON)
            ours = centre - 0.16 * slot if known else centre
            if values := results.values(*cell, "mmd"):
                marks.draw_boxes(axes, {ours: values}, slot * (0.54 if known else 0.7), look)
            else:
                marks.draw_note(axes, ours, f"no box: {results.why_missing(*cell, 'mmd')}")
            theirs = [mmd for _, mmd in known.get((algorithm, bound), [])]
            axes.plot([centre + 0.28 * slot] * len(theirs), theirs, **_faint(look))
    axes.set_xticks(range(len(bounds)), [f"{bound:g}" for bound in bounds])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(bounds) - 0.5)
    distance = "as coded: |Σ(θ − θ′)|" if place.as_coded else "text: ‖θ − θ′‖"
    axes.set_title(f"d = {place.dimension}, {distance}")
    axes.set_xlabel("clip bound")
    _finish(axes, place, results)


def _draw_fractions(axes: Axes, place: _Place, results: Results, study: Study, known: Published) -> None:
    """Draw one point a chain: its MMD against the fraction of its log ratios that was clipped."""
    for algorithm, by_bound in bounds_of(study, place.label).items():
        look = style.STYLES[algorithm]
        for bound, method in by_bound.items():
            fractions, mmds = pairs(results, place.label, method)
            axes.plot(
                fractions,
                mmds,
                linestyle="none",
                marker=look.marker,
                markersize=2.6,
                markerfacecolor=look.colour,
                markeredgecolor="white",
                markeredgewidth=0.2,
                zorder=4,
            )
            theirs = known.get((algorithm, bound), [])
            axes.plot([x for x, _ in theirs], [y for _, y in theirs], **_faint(look))
    axes.set_xlabel("fraction clipped")
    axes.set_xlim(left=-0.01)
    _finish(axes, place, results)


def pairs(results: Results, model: str, method: str) -> tuple[list[float], list[float]]:
    """Return clip fractions and MMDs of the chains of a cell that have both, paired by seed."""
    fractions = results.by_seed(model, method, EPSILON, "ratio_clip_fraction")
    mmds = results.by_seed(model, method, EPSILON, "mmd")
    seeds = [seed for seed in fractions if seed in mmds]
    return [fractions[seed] for seed in seeds], [mmds[seed] for seed in seeds]


def _finish(axes: Axes, place: _Place, results: Results) -> None:
    """Draw exact samples' values, label the MMD axis and let it begin at 0."""
    for value in results.baselines(place.label, "mmd"):
        axes.axhline(value, color="black", linewidth=0.3, zorder=1)
    axes.set_ylabel("MMD")
    top = float(axes.dataLim.y1)
    axes.set_ylim(0.0, 1.06 * top if 0.0 < top < math.inf else 1.0)
    axes.yaxis.grid(True, color="#DDDDDD", linewidth=0.4)


def _faint(look: MethodStyle) -> dict[str, Any]:
    """How a published chain looks."""
    return {
        "linestyle": "none",
        "marker": look.marker,
        "markersize": 2.6,
        "markerfacecolor": "none",
        "markeredgecolor": style.mixed(look.colour, "#FFFFFF", 0.45),
        "markeredgewidth": 0.5,
        "zorder": 3,
    }


def _legend(figure: Figure, baselines: int, published: bool) -> None:
    """Explain algorithms, published chains and exact samples above the panels."""
    from matplotlib.lines import Line2D

    looks = [style.STYLES[algorithm] for algorithm in ALGORITHMS]
    handles = [Line2D([], [], linestyle="none", marker=k.marker, color=k.colour, markersize=5) for k in looks]
    labels = [look.title for look in looks]
    if baselines:
        handles.append(Line2D([], [], color="black", linewidth=0.6))
        labels.append(f"{baselines} exact samples")
    if published:
        handles += [Line2D([], [], **_faint(look) | {"markersize": 4}) for look in looks]
        labels += [f"{look.title.partition(',')[0]}, published" for look in looks]
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)
