"""Sentences that captions of several kinds of figures have: boxes, exact samples, what methods do."""

from dpmc.algorithms import algorithm_class
from dpmc.metrics.table import METRICS
from dpmc.reports.plots.selection import matching
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys


def metrics_of(how: FigureKeys) -> set[str]:
    """Return the metrics that a figure shows."""
    return {*how.metric, *(panel.metric for panel in how.panels if panel.metric)}


def methods_in(study: Study, how: FigureKeys) -> list[str]:
    """Return the labels of the methods that a figure names, itself or in a panel; all if it names none."""
    return matching(study, dict.fromkeys([*how.methods, *(m for panel in how.panels for m in panel.methods)]))


def of_boxes(study: Study, how: FigureKeys) -> list[str]:
    """Return what boxes and slim bars are, and exact samples beside them."""
    return [
        f"Boxes: quartiles and median over {study.seeds} independent runs; whiskers end at the last run "
        "within 1.5 interquartile ranges of the box, runs beyond them are drawn singly.",
        *([f"Slim bars: published quartiles and median ({how.published})."] if how.published else []),
        *([f"Hollow slim bars: quartiles and median of our runs, {how.beside}."] if how.beside else []),
        *of_exact_samples(how),
    ]


def of_exact_samples(how: FigureKeys) -> list[str]:
    """Return what the grey band is, of a figure that has one."""
    known = [METRICS[metric] for metric in metrics_of(how) if metric in METRICS]
    text = "Grey band: exact samples, from the least to the greatest; line: their median."
    return [text] if any(metric.of_exact_samples for metric in known) else []


def of_methods(study: Study, how: FigureKeys) -> list[str]:
    """Return what is to be said of the algorithms of a figure, once each."""
    said = (algorithm_class(study.methods[label].algorithm).explanation for label in methods_in(study, how))
    return [*dict.fromkeys(filter(None, said))]
