"""Kind `bounds`: samplers without privacy, by their clip bound and by the fraction of log ratios clipped.

A box for each algorithm and clip bound, a panel for each metric; the first metric also as one point a chain,
against the fraction of its log ratios that was clipped. Chains of the thesis's Figure 6.2 beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import Results
from dpmc.reports.plots import Given, layout, marks, style
from dpmc.reports.plots.frame import Quartiles, check_metrics, published_table, selected
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys
from dpmc.studies.pairs import WITHOUT_PRIVACY, clip_bounds, clipping_models

if TYPE_CHECKING:  # as in `frame`
    from pandas import DataFrame

EPSILON = "inf"
CLIPPED = "ratio_clip_fraction"
AS_CODED = "as_coded"  # the distance of the published chains
PUBLISHED_ROWS = 100_000
EXACT: dict[str, Any] = {"linestyle": "none", "marker": "_", "markersize": 5, "color": style.GREY}


@dataclass(frozen=True)
class _Experiment:
    """What a figure shows of one model."""

    label: str
    methods: Mapping[str, Mapping[float, str]]  # algorithm -> clip bound -> method
    results: Results
    known: Mapping[tuple[str, float], DataFrame]  # (algorithm, clip bound) -> metrics of published chains
    known_exact: Sequence[float]  # MMD of published exact samples


def models_read(study: Study, how: FigureKeys) -> list[str]:
    """Return the models whose metrics the figure reads.

    Raises DpmcError if the study has none.
    """
    labels = selected(study, how.models, clipping_models(study))
    if not labels:
        raise DpmcError(f"study {study.name}: it has no clipping experiment (methods with a clip, ε = inf)")
    return labels


@style.context()
def draw(given: Given) -> Figure:
    """Return the figure: panels of metrics against the clip bound and the fraction clipped, model by model.

    Raises DpmcError where the study has no such model.
    """
    how, parts = given.declared, _experiments(given)
    first, *others = how.metric
    of_model = [(first, False), (first, True), *((metric, False) for metric in others)]
    panels = [(part, *panel) for part in parts for panel in of_model]  # whether against the fraction
    figure, axes = layout.panels(len(panels), how.columns or 2, 1.7, more=0.7)
    shared: dict[tuple[str, str], list[Axes]] = {}  # panels of a metric
    for one, (part, metric, against) in zip(axes, panels, strict=True):
        (_draw_fractions if against else _draw_bounds)(one, part, metric)
        one.set_title("by the fraction clipped" if against else _title(part, metric, given))
        one.set_ylabel(how.y.label or style.metric_label(metric))
        layout.scale_y(one, how.y)
        shared.setdefault((metric, "" if how.y.share else part.label), []).append(one)
        for line in how.lines:
            if against and line.metric == CLIPPED:
                one.axvline(line.at, **marks.REFERENCE, zorder=2)
            elif line.metric in ("", metric):
                one.axhline(line.at, **marks.REFERENCE, zorder=2)
    for group in shared.values():
        layout.alike(group, "y")
    layout.alike([one for one, panel in zip(axes, panels, strict=True) if panel[2]], "x")
    _legend(figure, parts, how)
    return figure


def _experiments(given: Given) -> list[_Experiment]:
    """Return the experiments of the declared models, in their order."""
    how, study = given.declared, given.study
    labels = models_read(study, how)
    results = Results.of_study(given.metrics, study)
    check_metrics(results, how.metric)
    parts = []
    for label in labels:
        bounds = clip_bounds(study, label)
        methods = {name: bounds[name] for name in bounds if name in (how.methods or WITHOUT_PRIVACY)}
        parts.append(_Experiment(label, methods, results, *_published(given, label)))
    return parts


def _title(part: _Experiment, metric: str, given: Given) -> str:
    """Return a panel's title: model, and metric where there are several."""
    name = style.model_name(given.study, part.label, given.declared.titles)
    if len(given.declared.metric) == 1:
        return name
    return f"{name.partition(',')[0]}: {style.metric_title(metric, given.declared.titles)}"


def _published(given: Given, label: str) -> tuple[dict[Any, DataFrame], list[float]]:
    """Return published chains and exact samples of a model; none where the study runs something else.

    Raises DpmcError for a file that is not such a table.
    """
    import pandas as pd

    study, spec = given.study, given.study.models[label]
    labels = [method for by_bound in clip_bounds(study, label).values() for method in by_bound.values()]
    coded = all(study.methods[method].options.get("clip_distance") == AS_CODED for method in labels)
    path = given.published / "clipping_experiment.csv"
    if not given.declared.published or not coded or spec.n != PUBLISHED_ROWS or not path.is_file():
        return {}, []
    with published_table(path, "values"):
        rows = pd.read_csv(path)
        banana = "flat-banana-" + rows["dimension"].astype(str) + "d"
        rows = rows[(rows["clip_distance"] == AS_CODED) & (banana == spec.model)]
        chains = rows.pivot(index=["algorithm", "clip_bound", "seed"], columns="metric", values="value")
        chains = chains.astype(float).rename(columns={"clip_fraction": CLIPPED})
    path = path.with_stem(f"{path.stem}_baselines")
    with published_table(path, "values"):
        exact = pd.read_csv(path)
        exact = exact[(exact["metric"] == "mmd") & exact["dimension"].isin(rows["dimension"])]
        return dict(iter(chains.groupby(["algorithm", "clip_bound"]))), exact["value"].tolist()


def _draw_bounds(axes: Axes, part: _Experiment, metric: str) -> None:
    """Draw boxes of a metric over the chains at each clip bound, published ones beside them."""
    bounds = sorted({bound for by_bound in part.methods.values() for bound in by_bound})
    # nine bounds would run into each other with the zero before the point
    layout.groups(axes, [f"{bound:g}".removeprefix("0") for bound in bounds])
    beside = any(metric in one for one in part.known.values())
    for index, (algorithm, by_bound) in enumerate(part.methods.items()):
        slot = (index, len(part.methods))
        cells = {bounds.index(bound): (part.label, method, EPSILON) for bound, method in by_bound.items()}
        values = {group: part.results.values(*cell, metric) for group, cell in cells.items()}
        chains = {bounds.index(bound): part.known.get((algorithm, bound), {}) for bound in by_bound}
        known = {group: Quartiles.of(one[metric]) for group, one in chains.items() if metric in one}
        places = marks.draw_in_groups(axes, slot, values, known, style.STYLES[algorithm], beside)
        for group, cell in cells.items():
            if not values[group]:
                marks.draw_note(axes, places[group], part.results.remark(*cell, metric))
    _draw_exact(axes, part, metric)
    axes.set_xlabel("clip bound")


def _draw_fractions(axes: Axes, part: _Experiment, metric: str) -> None:
    """Draw one point a chain: its metric against the fraction of its log ratios that was clipped."""
    for algorithm, by_bound in part.methods.items():
        look = style.STYLES[algorithm]
        for bound, method in by_bound.items():
            chains = part.known.get((algorithm, bound), {})
            if metric in chains:
                axes.plot(chains[CLIPPED], chains[metric], **_point(look, published=True))
            x, y = (part.results.by_seed(part.label, method, EPSILON, one) for one in (CLIPPED, metric))
            seeds = [seed for seed in x if seed in y]
            axes.plot([x[seed] for seed in seeds], [y[seed] for seed in seeds], **_point(look))
    _draw_exact(axes, part, metric)
    axes.set_xlabel(style.metric_label(CLIPPED))


def _draw_exact(axes: Axes, part: _Experiment, metric: str) -> None:
    """Draw our exact samples as lines, published ones as marks at the right edge."""
    marks.draw_baselines(axes, part.results.baselines(part.label, metric))
    if metric == "mmd":
        ends = [1.008] * len(part.known_exact)
        edge = axes.plot(ends, part.known_exact, **EXACT, transform=axes.get_yaxis_transform(), clip_on=False)
        edge[0].set_in_layout(False)


def _point(look: MethodStyle, published: bool = False) -> dict[str, Any]:
    """Return how a chain looks: ours full, a published one hollow and pale."""
    hollow = {"mfc": "none", "mec": style.mixed(look.colour, "#FFFFFF", 0.4), "mew": 0.5}
    full = {"mfc": look.colour, "mec": "white", "mew": 0.2}
    how = {"ls": "none", "marker": look.marker, "ms": 2.8, "zorder": 3 if published else 4}
    return how | (hollow if published else full)


def _legend(figure: Figure, parts: Sequence[_Experiment], how: FigureKeys) -> None:
    """Explain boxes and points, published ones, exact samples and reference lines above the panels."""
    looks = [style.STYLES[one] for one in WITHOUT_PRIVACY if any(one in part.methods for part in parts)]
    entries: layout.Entries = [
        ((marks.patch(look), Line2D([], [], **_point(look) | {"ms": 5})), look.title) for look in looks
    ]
    entries += marks.exact_samples(max(len(part.results.baselines(part.label, "mmd")) for part in parts))
    if any(part.known for part in parts):
        hollow = [Line2D([], [], **_point(look, published=True) | {"ms": 5}) for look in looks]
        entries.append(((Rectangle((0, 0), 1, 1), *hollow), f"published: {how.published}"))
        entries.append((Line2D([], [], **EXACT), "exact samples, published"))
    entries += marks.references(line.label for line in how.lines)
    handlers = {tuple: HandlerTuple(ndivide=None), Rectangle: marks.PublishedInLegend()}
    layout.legend(figure, entries, handlelength=2.6, handler_map=handlers)
