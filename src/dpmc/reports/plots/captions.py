"""What the captions of all figures of a kind say of their marks: numbers of runs, bars, dashes, bands."""

from dpmc.algorithms import algorithm_class
from dpmc.metrics.table import FEW_ITERATIONS, METRICS
from dpmc.reports.plots.selection import models_of, named
from dpmc.reports.plots.style import DASHED, LINES, SOLID, VARIANTS, line_way
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

ALONG = ("iterations", "seconds", "rows_used", "epsilon_total")  # horizontal axes along chains
#: metrics that a cell has one value of
OF_CELLS = {"budget_iterations", "epsilon_spent_tight", "rhat_max", "ess_bulk_min"}


def common(study: Study, how: FigureKeys) -> list[str]:
    """Return the sentences that follow a figure's own caption."""
    if how.kind not in ("boxes", "bounds", "lines", "traces"):
        return []
    metrics = {*how.metric, *(panel.metric for panel in how.panels if panel.metric)}
    names = dict.fromkeys([*how.methods, *(name for panel in how.panels for name in panel.methods)])
    methods = named(study, names)
    sentences = []
    if how.kind in ("boxes", "bounds"):
        sentences.append(
            f"Boxes: quartiles and median over {study.seeds} independent runs; whiskers end at the last run "
            "within 1.5 interquartile ranges of the box, runs beyond them are drawn singly."
        )
        if how.published:
            sentences.append(f"Slim bars: published quartiles and median ({how.published}).")
        if how.beside:
            sentences.append(f"Hollow slim bars: quartiles and median of our runs, {how.beside}.")
    else:
        sentences += _of_lines(study, how, metrics, methods)
    if any(METRICS[metric].of_exact_samples for metric in metrics if metric in METRICS):
        sentences.append("Grey band: exact samples, from the least to the greatest; line: their median.")
    if how.kind == "boxes":
        few = f"k: number of iterations, if below {FEW_ITERATIONS}."
        sentences.append(few if study.epsilon_kind == "total" else "ε is per iteration.")
    if how.kind != "bounds":
        said = (algorithm_class(study.methods[label].algorithm).explanation for label in methods)
        sentences += dict.fromkeys(filter(None, said))
    return sentences


def _of_lines(study: Study, how: FigureKeys, metrics: set[str], methods: list[str]) -> list[str]:
    """Return what figures of lines have: points of cells, lines along chains, dashes by variant."""
    sentences, across = [], {panel.x.of if panel.x else how.x.of for panel in how.panels} or {how.x.of}
    runs = f"{study.seeds} independent runs"
    if metrics - OF_CELLS and across - {*ALONG}:
        beside = ", beside each other at one ε" if "epsilon" in across else ""
        sentences.append(f"Points: medians over {runs}; upright bars: their quartiles{beside}.")
    if across & {*ALONG}:
        bands = "; bands: their quartiles" if "epsilon_total" in across else ""
        sentences.append(f"Lines along chains: medians over {runs}{bands}.")
    # A method that the figure names itself is not told by its variant.
    ways = dict.fromkeys(line_way(study, label) for label in methods if label not in how.titles)
    for way in ways:
        if (line := LINES.get(way, SOLID)) != SOLID:
            dashes = "Dashed" if line == DASHED else "Dotted"
            sentences.append(f"{dashes}, hollow: {VARIANTS[way.replace('_', '-')]}.")
    shown = models_of(study, how.models)
    epsilons = {
        e
        for label in methods
        for on in study.methods[label].models
        if on in shown
        for e in study.epsilons(on, label)
    }
    if across - {*ALONG} and "inf" in epsilons:
        sentences.append("Lines across: without privacy.")
    return sentences
