"""DP-Fast MH as published, as coded and corrected at the same ε: what the guarantee costs once it is true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures import fast
from dpmc.plots import style
from dpmc.plots.frame import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

METRICS = {
    "symmetric_kl": "symmetric KL",
    "rows_per_iteration": "rows per iteration",
    "acceptance_rate": "acceptance rate",
    "noise_fraction": "iterations with noise",
}
LOGARITHMIC = ("symmetric_kl", "rows_per_iteration")
WITHOUT_PRIVACY = {fast.MINIBATCH: "tuna-mh", fast.FULL_BATCH: "rwmh"}


def shown_labels(study: Study, model: str, algorithm: str) -> list[str]:
    """Return the labels of one column: the variants of an algorithm, and the sampler without privacy."""
    return [
        label
        for label in fast.main_labels(study, model)
        if study.methods[label].algorithm in (algorithm, WITHOUT_PRIVACY[algorithm])
        and study.methods[label].options.get("acceptance") != "barker"
    ]


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure for the study's first mixture, one column an algorithm."""
    from matplotlib.figure import Figure

    model = fast.models_like(study, "mixture")[0]
    values = Results.of_study(metrics, study)
    with style.context():
        figure = Figure(figsize=(style.TEXT_WIDTH, 7.6), layout="constrained", dpi=100)
        axes = figure.subplots(len(METRICS), 2, sharey="row")
        for column, algorithm in zip(axes.T, fast.FAST, strict=True):
            column[0].set_title(style.STYLES[algorithm].title)
            methods = shown_labels(study, model, algorithm)
            for one, metric in zip(column, METRICS, strict=True):
                fast.draw_against_epsilon(one, values, study, model, methods, metric)
                if metric in LOGARITHMIC:
                    fast.logarithmic(one.yaxis)
                else:
                    one.set_ylim(-0.03, 1.03)
                fast.grid(one)
        for row, name in zip(axes, METRICS.values(), strict=True):
            row[0].set_ylabel(name)
        shown = [label for algorithm in fast.FAST for label in shown_labels(study, model, algorithm)]
        fast.legend(figure, study, shown)
    return figure
