"""Test accuracy and cost of Bayesian logistic regression (Figure 3 of the DP-Fast MH paper)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.figures import fast
from dpmc.plots import style
from dpmc.plots.frame import Results
from dpmc.plots.style import model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

ACCURACY = "test accuracy"


def shown_models(study: Study, results: Path) -> list[str]:
    """Return the logistic models with results: a data set that could not be had has none.

    Raises DpmcError where no model has any.
    """
    labels = fast.models_like(study, "logistic")
    found = [label for label in labels if fast.trace_path(results, study, label).is_file()]
    if not found:
        raise DpmcError(
            f"study {study.name}: figure logistic: no data set of {', '.join(labels)} was to be had"
        )
    return found


def applies(study: Study) -> bool:
    """Whether the study has a model for the figure: one whose data are not to be had is left out."""
    return any(spec.model.startswith("logistic") for spec in study.models.values())


def files(study: Study, results: Path) -> list[Path]:
    """Return the tables that the figure reads."""
    traces = [fast.trace_path(results, study, label) for label in fast.models_like(study, "logistic")]
    return [*traces, fast.speed_path(results, study)]


def draw(metrics: DataFrame, study: Study, published: Path, results: Path) -> Figure:
    """Return the figure, one column a data set; `results` is the folder of all studies' results."""
    from matplotlib.figure import Figure

    models = shown_models(study, results)
    values = Results.of_study(metrics, study)
    methods = list(dict.fromkeys(m for model in models for m in fast.compared_labels(study, model)))
    with style.context():
        size = (style.TEXT_WIDTH, 9.0)
        figure = Figure(figsize=size, layout="constrained", dpi=100)
        axes = figure.subplots(5, len(models), squeeze=False)
        for column, model in zip(axes.T, models, strict=True):
            _draw_column(column, values, study, model, results)
            column[0].set_title(f"{model_title(model, study.models[model].model)}\n(a)")
        fast.legend(figure, study, methods)
    return figure


def _draw_column(axes: np.ndarray, values: Results, study: Study, model: str, results: Path) -> None:
    """Draw the five panels of one data set."""
    methods = fast.compared_labels(study, model)
    traces = fast.Traces.read(fast.trace_path(results, study, model))
    seconds = fast.speeds(fast.speed_path(results, study), model)
    fast.draw_against_epsilon(axes[0], values, study, model, methods, "test_accuracy")
    fast.draw_against_epsilon(axes[1], values, study, model, methods, "rows_per_iteration")
    fast.logarithmic(axes[1].yaxis)
    _draw_k(axes[2], values, study, model)
    for method in methods:
        epsilon = fast.epsilon_shown(study, model, method)
        curve = traces.median(method, epsilon, "test_accuracy")
        if epsilon not in (fast.SHOWN_EPSILON, fast.INF) or not curve:
            continue
        look = fast.look(study, method)
        fast.plot(axes[3], list(curve), list(curve.values()), look)
        if method in seconds:
            fast.plot(axes[4], [seconds[method] * i for i in curve], list(curve.values()), look)
    titles = ("", "(b)", "(c)", "(d)", "(e)")
    names = (ACCURACY, "rows per iteration", ACCURACY, ACCURACY, ACCURACY)
    for one, title, name in zip(axes, titles, names, strict=True):
        one.set_title(title)
        one.set_ylabel(name)
        fast.grid(one)
    axes[3].set_xlabel("iterations")
    axes[4].set_xlabel("seconds")
    for one in axes[3:]:
        fast.logarithmic(one.xaxis)


def _draw_k(axes: Axes, values: Results, study: Study, model: str) -> None:
    """Draw accuracy and share of rows against K."""
    other = axes.twinx()
    sizes: set[int] = set()
    for labels in k_sweeps(study, model).values():
        ordered = sorted(labels.items())
        sizes.update(labels)
        look = fast.look(study, ordered[0][1])
        for one, metric, colour in (
            (axes, "test_accuracy", look.colour),
            (other, "rows_per_iteration", style.GREY),
        ):
            found: list[tuple[int, Any]] = [
                (size, values.values(model, label, fast.SHOWN_EPSILON, metric)) for size, label in ordered
            ]
            points = [(size, float(np.median(numbers))) for size, numbers in found if numbers]
            share = style_of(look, colour)
            fast.plot(one, [x for x, _ in points], [y for _, y in points], share, marked=True)
    axes.set_xscale("log")
    axes.set_xticks(sorted(sizes), [str(size) for size in sorted(sizes)])
    axes.minorticks_off()
    axes.set_xlabel("K at ε = 0.05 per iteration")
    other.set_ylabel("rows per iteration", color=style.GREY)
    fast.logarithmic(other.yaxis)
    other.spines["right"].set_visible(True)


def style_of(look: fast.Look, colour: str) -> fast.Look:
    """The same look in another colour."""
    from dataclasses import replace

    return replace(look, colour=colour)


def k_sweeps(study: Study, model: str) -> dict[str, dict[int, str]]:
    """Return variant -> K -> label, of minibatch DP-Fast MH with nothing else than K changed."""
    sweeps: dict[str, dict[int, str]] = {}
    for label, spec in study.methods.items():
        changed = set(spec.options) - fast.VARIANT_OPTIONS
        if spec.algorithm == fast.MINIBATCH and model in spec.models and changed == {"most_rows"}:
            if fast.SHOWN_EPSILON in study.epsilons(model, label) and "-k-" in label:
                kind = fast.variant(study, label)
                sweeps.setdefault(kind, {})[int(spec.options["most_rows"])] = label
    return sweeps
