"""What clipping log ratios does on the models of the DP-HMC paper, without privacy noise (its Figure 3)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.errors import DpmcError
from dpmc.figures.labels import WITHOUT_PRIVACY, clip_bounds, clipping_models
from dpmc.plots import marks, style
from dpmc.plots.frame import Results
from dpmc.plots.style import MethodStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

EPSILON = "inf"
GUIDELINE = 0.2  # Section 4.2: with fewer log ratios clipped than this, hardly any effect on the MMD
CONVERGED = 1.05  # R-hat at the largest bound is below it (Section 4.2)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure: two by two panels for each model.

    Raises DpmcError where the study has no clipping experiment.
    """
    from matplotlib.figure import Figure

    labels = clipping_models(study)
    if not labels:
        raise DpmcError(f"study {study.name}: it has no clipping experiment (methods with a clip, ε = inf)")
    results = Results.of_study(metrics, study)
    with style.context():
        size = (style.TEXT_WIDTH, 1.75 * 2 * len(labels) + 0.6)
        figure = Figure(figsize=size, layout="constrained", dpi=100)
        axes = figure.subplots(2 * len(labels), 2, squeeze=False)
        for index, label in enumerate(labels):
            (mmd, against), (error, fraction) = axes[2 * index : 2 * index + 2]
            title = _title(study, label, results)
            mmd.set_title(title)
            against.set_title("against the fraction clipped")
            for one, metric in ((mmd, "mmd"), (error, "mean_error"), (fraction, "ratio_clip_fraction")):
                _draw_bounds(one, label, metric, results, study)
            _draw_fractions(against, label, results, study)
            _baselines((mmd, against), results.baselines(label, "mmd"))
            _guideline(fraction.axhline)
            _guideline(against.axvline)
            for one in (mmd, against, error, fraction):
                _from_zero(one)
            error.set_title(convergence_text(convergence(results, study, label)), fontsize=7.5)
        _legend(figure, study, labels, results)
    return figure


def convergence(results: Results, study: Study, model: str) -> dict[str, tuple[float, float | None]]:
    """Return algorithm -> (largest clip bound, R-hat there; None where it could not be computed)."""
    table = {}
    for algorithm, by_bound in clip_bounds(study, model).items():
        bound = max(by_bound)
        values = results.values(model, by_bound[bound], EPSILON, "rhat_max")
        table[algorithm] = (bound, values[0] if values else None)
    return table


def _title(study: Study, label: str, results: Results) -> str:
    """The model and how many runs its cells have."""
    counts = {
        results.seeds(label, method, EPSILON)
        for by_bound in clip_bounds(study, label).values()
        for method in by_bound.values()
    }
    fewest, most = min(counts), max(counts)
    runs = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    name = style.MODEL_TITLES.get(study.models[label].model, label)
    return f"{name}, {runs} run{'' if runs == '1' else 's'}"


def _draw_bounds(axes: Axes, label: str, metric: str, results: Results, study: Study) -> None:
    """Draw each run's value at each clip bound, and the medians."""
    methods = clip_bounds(study, label)
    bounds = sorted({bound for by_bound in methods.values() for bound in by_bound})
    slot = marks.GROUP_WIDTH / len(methods)
    for group, bound in enumerate(bounds):
        if group % 2 == 0:
            axes.axvspan(group - 0.5, group + 0.5, color=style.BAND, lw=0, zorder=0)
        for index, (algorithm, by_bound) in enumerate(methods.items()):
            if bound not in by_bound:
                continue
            centre = group + (index + 0.5) * slot - marks.GROUP_WIDTH / 2
            cell, look = (label, by_bound[bound], EPSILON), style.STYLES[algorithm]
            values = sorted(results.values(*cell, metric))
            if not values:
                marks.draw_note(axes, centre, f"none: {results.why_missing(*cell, metric)}")
                continue
            axes.plot([centre] * len(values), values, **_point(look))
            axes.plot(
                [centre - 0.42 * slot, centre + 0.42 * slot],
                [_median(values)] * 2,
                color=style.mixed(look.colour, "#000000", 0.3),
                linewidth=1.2,
                solid_capstyle="butt",
                zorder=5,
            )
    # Nine bounds would run into each other with the zero before the point.
    axes.set_xticks(range(len(bounds)), [f"{bound:g}".removeprefix("0") for bound in bounds])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(bounds) - 0.5)
    axes.set_xlabel("clip bound")
    axes.set_ylabel("mean error" if metric == "mean_error" else style.LABELS[metric])


def _draw_fractions(axes: Axes, label: str, results: Results, study: Study) -> None:
    """Draw one point a run: its MMD against the fraction of its log ratios that was clipped."""
    from dpmc.figures.clipping_effect import pairs

    for algorithm, by_bound in clip_bounds(study, label).items():
        for method in by_bound.values():
            axes.plot(*pairs(results, label, method), **_point(style.STYLES[algorithm]))
    axes.set_xlabel(style.LABELS["ratio_clip_fraction"])
    axes.set_ylabel(style.LABELS["mmd"])
    axes.set_xlim(left=-0.01)


def _median(values: list[float]) -> float:
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else 0.5 * (values[middle - 1] + values[middle])


def _point(look: MethodStyle) -> dict[str, Any]:
    """How a run looks."""
    return {
        "linestyle": "none",
        "marker": look.marker,
        "markersize": 3.2,
        "markerfacecolor": look.colour,
        "markeredgecolor": "white",
        "markeredgewidth": 0.15,
        "zorder": 4,
    }


def _baselines(panels: tuple[Axes, ...], values: list[float]) -> None:
    """Draw exact samples' values as thin black lines."""
    for axes in panels:
        for value in values:
            axes.axhline(value, color="black", linewidth=0.3, zorder=1)


def _guideline(line: Any) -> None:
    """Draw the guideline with `axhline` or `axvline`."""
    line(GUIDELINE, color=style.GREY, linewidth=0.7, linestyle=(0, (4, 3)), zorder=2)


def _from_zero(axes: Axes) -> None:
    """Let the vertical axis begin at 0 and leave room above the largest value."""
    top = float(axes.dataLim.y1)
    axes.set_ylim(0.0, 1.1 * top if 0.0 < top < math.inf else 1.0)
    axes.yaxis.grid(True, color="#DDDDDD", linewidth=0.4)


def convergence_text(table: dict[str, tuple[float, float | None]]) -> str:
    """Return a line with R-hat at the largest bound; a value that is too large is marked."""
    parts = []
    for algorithm, (bound, value) in table.items():
        text = "unknown" if value is None else f"{value:.3f}"
        late = f" (not below {CONVERGED})" if value is not None and value >= CONVERGED else ""
        parts.append(f"{algorithm.upper()} at {bound:g}: {text}{late}")
    return "R-hat of " + ", ".join(parts)


def _legend(figure: Figure, study: Study, labels: list[str], results: Results) -> None:
    """Explain points and lines above the panels."""
    from matplotlib.lines import Line2D

    shown = [a for a in WITHOUT_PRIVACY if any(a in clip_bounds(study, label) for label in labels)]
    looks = [style.STYLES[algorithm] for algorithm in shown]
    handles = [Line2D([], [], **_point(look) | {"markersize": 5}) for look in looks]
    names = [look.title for look in looks]
    exact = max(len(results.baselines(label, "mmd")) for label in labels)
    if exact:
        handles.append(Line2D([], [], color="black", linewidth=0.6))
        names.append(f"{exact} exact samples")
    handles.append(Line2D([], [], color=style.GREY, linewidth=0.7, linestyle=(0, (4, 3))))
    names.append(f"guideline: {GUIDELINE:.0%} clipped".replace("%", " %"))
    figure.legend(handles, names, loc="outside upper left", ncols=2, frameon=False)
