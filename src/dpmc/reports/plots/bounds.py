"""Kind `bounds`: samplers without privacy, by their clip bound and by the fraction of log ratios clipped.

A box for each algorithm and clip bound, a panel for each metric; the first metric also as one point a chain,
against the fraction of its log ratios that was clipped. Chains of the thesis's Figure 6.2 beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import Results, read_table
from dpmc.reports.plots import Given, layout, marks, style
from dpmc.reports.plots.published import quartiles
from dpmc.reports.plots.selection import selected
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys
from dpmc.studies.pairs import WITHOUT_PRIVACY, clip_bounds, clipping_models

if TYPE_CHECKING:  # pandas takes half a second
    from pandas import DataFrame

EPSILON = "inf"
CLIPPED = "ratio_clip_fraction"
AS_CODED = "as_coded"  # the distance of the published chains
PUBLISHED_ROWS = 100_000
EXACT: dict[str, Any] = {"linestyle": "none", "marker": "_", "markersize": 5, "color": style.GREY}


@dataclass(frozen=True)
class _Experiment:
    """What a figure shows of one model: (algorithm, clip bound) -> a row for each chain, with its metrics."""

    label: str
    chains: Mapping[tuple[str, float], DataFrame]
    published: Mapping[tuple[str, float], DataFrame]
    exact: Sequence[float]  # MMD of published exact samples


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models whose metrics the figure reads, and no files.

    Raises DpmcError if the study has none.
    """
    labels = selected(study, how.models, clipping_models(study))
    if not labels:
        raise DpmcError(f"study {study.name}: it has no clipping experiment (methods with a clip, ε = inf)")
    return labels, []


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: panels of metrics against the clip bound and the fraction clipped, model by model.

    Raises DpmcError where the study has no such model, and for a file that is no table of published chains.
    """
    how, study = given.declared, given.study
    results = Results.of_study(given.metrics, study)
    experiments = [_experiment(given, label, results) for label in reads(study, how, given.results)[0]]
    first, *others = how.metric
    shown = [(first, False), (first, True), *((metric, False) for metric in others)]
    panels = [(experiment, *panel) for experiment in experiments for panel in shown]
    figure, axes_of_panels = layout.panels(len(panels), how.columns or 2, 1.7, more=0.7)
    shared: dict[tuple[str, str], list[Axes]] = {}  # panels of a metric
    for axes, (experiment, metric, by_fraction) in zip(axes_of_panels, panels, strict=True):
        if by_fraction:
            _draw_fractions(axes, experiment, metric)
            axes.set_title("by the fraction clipped")
        else:
            _draw_bounds(axes, experiment, metric, given, results)
        marks.draw_baselines(axes, results.baselines(experiment.label, metric))
        if metric == "mmd":  # published exact samples at the right edge
            edge, transform = [1.008] * len(experiment.exact), axes.get_yaxis_transform()
            (line,) = axes.plot(edge, experiment.exact, **EXACT, transform=transform, clip_on=False)
            line.set_in_layout(False)
        axes.set_ylabel(how.y.label or style.metric_label(metric))
        layout.scale_y(axes, how.y)
        shared.setdefault((metric, "" if how.y.share else experiment.label), []).append(axes)
        for guide in how.lines:
            if by_fraction and guide.metric == CLIPPED:
                axes.axvline(guide.at, **marks.REFERENCE, zorder=2)
            elif guide.metric in ("", metric):
                axes.axhline(guide.at, **marks.REFERENCE, zorder=2)
    for group in shared.values():
        layout.alike(group, "y")
    layout.alike([axes for axes, panel in zip(axes_of_panels, panels, strict=True) if panel[2]], "x")

    drawn = {algorithm for experiment in experiments for algorithm, _ in experiment.chains}
    looks = [style.STYLES[algorithm] for algorithm in WITHOUT_PRIVACY if algorithm in drawn]
    entries: layout.Entries = {
        look.title: (marks.patch(look), Line2D([], [], **_point(look) | {"ms": 5})) for look in looks
    }
    entries |= marks.exact_samples(max(len(results.baselines(part.label, "mmd")) for part in experiments))
    if any(experiment.published for experiment in experiments):
        hollow = [Line2D([], [], **_point(look, published=True) | {"ms": 5}) for look in looks]
        entries[f"published: {how.published}"] = (Line2D([], [], **marks.SLIM_BAR), *hollow)
        entries["exact samples, published"] = EXACT
    entries |= {guide.label: marks.REFERENCE for guide in how.lines}
    layout.legend(figure, entries, handlelength=2.6, handler_map={tuple: HandlerTuple(ndivide=None)})
    return figure


def _methods(study: Study, how: FigureKeys, label: str) -> dict[tuple[str, float], str]:
    """Return (algorithm, clip bound) -> the method of a model that has it."""
    return {
        (algorithm, bound): method
        for algorithm, by_bound in clip_bounds(study, label).items()
        for bound, method in by_bound.items()
        if algorithm in (how.methods or WITHOUT_PRIVACY)
    }


def _experiment(given: Given, label: str, results: Results) -> _Experiment:
    """Return the chains of a model, and the published ones unless the study runs something else."""
    import pandas as pd

    how, study = given.declared, given.study
    methods, spec = _methods(study, how, label), study.models[label]
    metrics = dict.fromkeys([*how.metric, CLIPPED])
    chains = {
        key: pd.DataFrame({metric: results.by_seed(label, method, EPSILON, metric) for metric in metrics})
        for key, method in methods.items()
    }
    as_coded = all(
        study.methods[label].options.get("clip_distance") == AS_CODED for label in methods.values()
    )
    path = given.published / "clipping_experiment.csv"
    if not how.published or not as_coded or spec.n != PUBLISHED_ROWS or not path.is_file():
        return _Experiment(label, chains, {}, [])

    columns = ["dimension", "algorithm", "clip_bound", "clip_distance", "seed", "metric", "value"]
    rows = read_table(path, columns, "a table of chains", {"clip_bound": float, "value": float})
    rows = rows[
        (rows["clip_distance"] == AS_CODED) & ("flat-banana-" + rows["dimension"] + "d" == spec.model)
    ]
    wide = rows.pivot(index=["algorithm", "clip_bound", "seed"], columns="metric", values="value")
    known = wide.rename(columns={"clip_fraction": CLIPPED}).groupby(["algorithm", "clip_bound"])
    path = path.with_stem(f"{path.stem}_baselines")
    exact = read_table(path, ["dimension", "metric", "value"], "a table of samples", {"value": float})
    exact = exact[(exact["metric"] == "mmd") & exact["dimension"].isin(rows["dimension"])]
    return _Experiment(label, chains, dict(iter(known)), exact["value"].tolist())


def _draw_bounds(axes: Axes, experiment: _Experiment, metric: str, given: Given, results: Results) -> None:
    """Draw boxes of a metric over the chains at each clip bound, published ones beside them."""
    how, study, label = given.declared, given.study, experiment.label
    bounds = sorted({bound for _, bound in experiment.chains})
    # nine bounds would run into each other with the zero before the point
    layout.groups(axes, [f"{bound:g}".removeprefix("0") for bound in bounds])
    published = {key: chains[metric] for key, chains in experiment.published.items() if metric in chains}
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in experiment.chains))
    methods = _methods(study, how, label)
    for index, algorithm in enumerate(algorithms):
        keys = {group: (algorithm, bound) for group, bound in enumerate(bounds)}
        values = {
            group: experiment.chains[key][metric].dropna().tolist()
            for group, key in keys.items()
            if key in experiment.chains
        }
        bars = {group: quartiles(published[key]) for group, key in keys.items() if key in published}
        slot, look = (index, len(algorithms)), style.STYLES[algorithm]
        places = marks.draw_boxes(axes, slot, values, bars, look, shifted=bool(published))
        for group in values:
            if not values[group]:
                remark = results.remark(label, methods[keys[group]], EPSILON, metric)
                marks.draw_note(axes, places[group], remark)
    name = style.model_name(study, label, how.titles)
    if len(how.metric) > 1:
        name = f"{name.partition(',')[0]}: {style.metric_title(metric, how.titles)}"
    axes.set(title=name, xlabel="clip bound")


def _draw_fractions(axes: Axes, experiment: _Experiment, metric: str) -> None:
    """Draw one point a chain: its metric against the fraction of its log ratios that was clipped."""
    for (algorithm, bound), chains in experiment.chains.items():
        look = style.STYLES[algorithm]
        known = experiment.published.get((algorithm, bound))
        if known is not None and metric in known:
            axes.plot(known[CLIPPED], known[metric], **_point(look, published=True))
        both = chains.dropna(subset=[CLIPPED, metric])
        axes.plot(both[CLIPPED], both[metric], **_point(look))
    axes.set_xlabel(style.metric_label(CLIPPED))


def _point(look: MethodStyle, published: bool = False) -> dict[str, Any]:
    """Return how a chain looks: ours full, a published one hollow and pale."""
    hollow = {"mfc": "none", "mec": style.mixed(look.colour, "#FFFFFF", 0.4), "mew": 0.5}
    full = {"mfc": look.colour, "mec": "white", "mew": 0.2}
    how = {"ls": "none", "marker": look.marker, "ms": 2.8, "zorder": 3 if published else 4}
    return how | (hollow if published else full)
