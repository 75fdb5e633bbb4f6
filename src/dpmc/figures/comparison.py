"""MMD and mean error against epsilon of the algorithms of the DP-HMC paper (its Figure 1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures.boxes import Panel, draw_panels
from dpmc.figures.labels import compared_models, main_methods
from dpmc.figures.style import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "comparison"
METRICS = {"mmd": "MMD", "mean_error": "mean error"}
CAPTION = (
    "DP-HMC against DP penalty, DP-SGLD, DP-SGNHT and DP-MALA on the banana and the 10-dimensional "
    "Gaussian of the DP-HMC paper (its Figure 1), over the total privacy budget ε (δ = 0.1/n). A run is "
    "four chains that share the budget; the second halves of the four are pooled and compared with 1,000 "
    "exact posterior draws (MMD) and with the exact posterior mean (Euclidean distance). A box is the "
    "quartiles and median over independent runs, whiskers reach the last run within 1.5 interquartile "
    "ranges, further runs are drawn singly. Black lines are further exact samples of 1,000 draws. "
    "DP-SGLD and DP-SGNHT are the corrected ones; what the published drift and order of updates change is "
    "the figure paper-errata; the banana has the prior of the code. DP-SGLD's longest chains are stopped "
    "before their budget is spent (most_iterations in the study). DP-MALA, DP-HMC with one leapfrog step, is "
    "not in the paper. All chains start near the posterior, which favours DP penalty: the others could have "
    "found it by their gradients."
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, two panels per model of the study that has a budget."""
    panels = [
        Panel(label, metric, f"{model_title(label, study.models[label].model)}: {name}")
        for label in compared_models(study)
        for metric, name in METRICS.items()
    ]
    return draw_panels(panels, metrics, study, published, methods=main_methods(study))
