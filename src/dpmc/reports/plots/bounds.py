"""Kind `bounds`: samplers without privacy, by their clip bound and by the fraction of log ratios clipped.

A box for each algorithm and clip bound, a panel for each metric; the first metric also as one point a bound,
medians with quartiles, against the fraction of the log ratios that was clipped. Chains of the thesis's Figure
6.2 beside ours.
"""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import RATIO_CLIPPED, read_table
from dpmc.reports.plots import PUBLISHED_RESULTS, ToDraw, layout, marks, style
from dpmc.reports.plots.captions import of_boxes
from dpmc.reports.plots.published import quartiles
from dpmc.reports.plots.selection import selected
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys
from dpmc.studies.pairs import clip_bounds, clipped_at_will, clipping_models
from dpmc.studies.whole import Results

NEEDS_METRIC = True
AS_CODED = "as_coded"  # the distance of the published chains
PUBLISHED_ROWS = 100_000
EXACT_MARK: dict[str, Any] = {"linestyle": "none", "marker": "_", "markersize": 5, "color": style.INK}


caption = of_boxes


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return the models whose metrics the figure reads, and no files; raise DpmcError if there are none."""
    labels = selected(study, how.models, clipping_models(study))
    if not labels:
        raise DpmcError(f"study {study.name}: it has no clipping experiment (methods with a clip, ε = inf)")
    return labels, []


def draw(given: ToDraw) -> Figure:
    """Return the figure: metrics against the clip bound and the fraction clipped, model by model."""
    how, study = given.declared, given.study
    models, _ = reads(study, how, given.results)
    results = Results(given.metrics, study)
    main, *others = how.metric
    shown = [(main, False), (main, True), *((metric, False) for metric in others)]
    panels = [(model, metric, by_fraction) for model in models for metric, by_fraction in shown]
    tables = {model: _chains(given, results, model) for model in models}
    figure, axes_of_panels = layout.panels(how.wide, len(panels), how.columns or 2, 1.5)
    first: dict[object, Axes] = {}  # panels whose axes others share
    for axes, (model, metric, by_fraction) in zip(axes_of_panels, panels, strict=True):
        chains, exact = tables[model]
        layout.share_axis(axes, "y", (metric, model), first)
        if by_fraction:  # one point a clip bound
            layout.share_axis(axes, "x", RATIO_CLIPPED, first)
            both = chains.dropna(subset=[RATIO_CLIPPED, metric])
            for (published, algorithm), rows in both.groupby(["published", "algorithm"], sort=False):
                at = rows.groupby("bound")[[RATIO_CLIPPED, metric]].quantile([0.25, 0.5, 0.75]).unstack()
                (x0, x, x1), (y0, y, y1) = (at[name].to_numpy().T for name in (RATIO_CLIPPED, metric))
                look, errors = style.STYLES[algorithm], [(x - x0, x1 - x), (y - y0, y1 - y)]
                how_drawn = {"elinewidth": 0.6, "ecolor": look.edge, **_point(look, published)}
                axes.errorbar(x, y, xerr=errors[0], yerr=errors[1], **how_drawn)
            axes.set(title="by the fraction clipped", xlabel=style.metric_label(RATIO_CLIPPED))
        else:
            _draw_boxes(axes, chains, metric)
            name = style.model_name(study, model, how.titles)
            if len(how.metric) > 1:
                name = f"{name.partition(',')[0]}: {how.titles.get(metric) or style.metric_title(metric)}"
            axes.set(title=name, xlabel="clip bound")
        marks.draw_baselines(axes, results.baselines(model, metric))
        if metric == "mmd":  # published exact samples at the right edge
            axes.plot([0.985] * len(exact), exact, **EXACT_MARK, transform=axes.get_yaxis_transform())
        axes.set_ylabel(how.y.label or style.metric_label(metric))
        layout.scale_y(axes, how.y)
        for guide in how.lines:
            if by_fraction and guide.metric == RATIO_CLIPPED:
                axes.axvline(guide.at, **marks.REFERENCE, zorder=2)
            elif guide.metric in ("", metric):
                axes.axhline(guide.at, **marks.REFERENCE, zorder=2)

    looks = [style.STYLES[algorithm] for algorithm in clipped_at_will()]
    entries: layout.Entries = {
        look.title: (marks.patch(look), Line2D([], [], **_point(look) | {"ms": 5})) for look in looks
    }
    entries |= marks.exact_samples(max(len(results.baselines(model, "mmd")) for model in models))
    if any(chains["published"].any() for chains, _ in tables.values()):
        hollow = [Line2D([], [], **_point(look, published=True) | {"ms": 5}) for look in looks]
        entries[f"published: {how.published}"] = (Line2D([], [], **marks.PUBLISHED), *hollow)
        entries["exact samples, published"] = EXACT_MARK
    entries |= {guide.label: marks.REFERENCE for guide in how.lines}
    layout.add_legend(figure, entries, handler_map={tuple: HandlerTuple(ndivide=None)})
    return figure


def _chains(given: ToDraw, results: Results, model: str) -> tuple[pd.DataFrame, list[float]]:
    """Return a model's chains (algorithm, bound, published, metrics), and MMDs of published exact samples."""
    how, study, spec = given.declared, given.study, given.study.models[model]
    tables, distances = [], set()
    for algorithm, methods in clip_bounds(study, model).items():
        for bound, method in methods.items():
            columns = {m: results.by_seed(model, method, "inf", m) for m in {*how.metric, RATIO_CLIPPED}}
            table = pd.DataFrame(columns, dtype=float)
            tables.append(table.assign(algorithm=algorithm, bound=bound, published=False))
            distances.add(study.methods[method].options.get("clip_distance"))
    path = PUBLISHED_RESULTS / "clipping_experiment.csv"
    if not how.published or distances != {AS_CODED} or spec.n != PUBLISHED_ROWS:
        return pd.concat(tables), []

    needed = ["dimension", "algorithm", "clip_bound", "clip_distance", "seed", "metric", "value"]
    rows = read_table(path, needed, "a table of chains", {"clip_bound": float, "value": float})
    rows = rows.rename(columns={"clip_bound": "bound"}).replace({"metric": {"clip_fraction": RATIO_CLIPPED}})
    dimension = spec.model.removeprefix("flat-banana-").removesuffix("d")
    rows = rows[(rows["clip_distance"] == AS_CODED) & (rows["dimension"] == dimension)]
    known = rows.pivot(index=["algorithm", "bound", "seed"], columns="metric", values="value").reset_index()
    path = path.with_stem(f"{path.stem}_baselines")
    exact = read_table(path, ["dimension", "metric", "value"], "a table of samples", {"value": float})
    exact = exact[(exact["metric"] == "mmd") & (exact["dimension"] == dimension)]
    return pd.concat([*tables, known.assign(published=True)]), exact["value"].tolist()


def _draw_boxes(axes: Axes, chains: pd.DataFrame, metric: str) -> None:
    """Draw boxes of a metric over the chains at each clip bound, published ones beside them."""
    rows = chains.dropna(subset=metric)
    bounds = sorted(set(chains["bound"]))
    # nine bounds would run into each other with the zero before the point
    layout.set_groups(axes, [f"{bound:g}".removeprefix("0") for bound in bounds])
    axes.set_xlim(right=len(bounds) - 0.25)  # with room for published exact samples
    bar = marks.PUBLISHED if rows["published"].any() else None
    for index, algorithm in enumerate(clipped_at_will()):
        boxes, published = (
            {bounds.index(bound): its.tolist() for bound, its in part.groupby("bound")[metric]}
            for which in (False, True)
            for part in [rows[(rows["algorithm"] == algorithm) & (rows["published"] == which)]]
        )
        bars = {group: quartiles(its) for group, its in published.items()}
        slot = (index, len(clipped_at_will()))
        marks.draw_boxes(axes, slot, boxes, bars, style.STYLES[algorithm], bar)


def _point(look: MethodStyle, published: bool = False) -> dict[str, Any]:
    """Return how the chains of a clip bound look: ours full, published ones hollow."""
    hollow = {"mfc": "white", "mec": style.mixed_colour(look.colour, "#FFFFFF", 0.2), "mew": 0.6}
    full = {"mfc": look.colour, "mec": "white", "mew": 0.2}
    how = {"ls": "none", "marker": look.marker, "ms": 3.4, "zorder": 3 if published else 4}
    return how | (hollow if published else full)
