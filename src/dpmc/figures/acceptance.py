"""Acceptance rates of all models but the circle (in the thesis's public repository, not in it)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures import mmd_easy, mmd_hard
from dpmc.figures.boxes import Panel, draw_panels, models_of
from dpmc.figures.style import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "acceptance"
MODELS = (*mmd_easy.MODELS, *mmd_hard.MODELS)
CAPTION = (
    "Fraction of proposals that a chain accepted, over all its iterations, against the total "
    "privacy budget ε (δ = 0.1/n). The noise of the acceptance test lowers it, but does not "
    "depend on ε: a larger ε only buys more iterations, so that boxes of chains that have reached the "
    "posterior keep their place and get narrower. A trend with ε, or a box that stays wide, means that "
    "chains were still on their way, or stuck, when the budget ended. The guided DP penalty moves one "
    "component at a time, DP-HMC along a whole trajectory. Boxes are over independent chains; the slim "
    "bar beside a box is the published one (quartiles and median, from a figure of the thesis's public "
    "repository that is not in the thesis). k: iterations, said where there are fewer than ten."
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per easy or hard model of the study, two side by side."""
    labels = models_of(study, MODELS)
    panels = [Panel(m, "acceptance_rate", model_title(m, study.models[m].model)) for m in labels]
    columns = 2 if len(panels) > 4 else None  # one below the other, they would not fit a page
    return draw_panels(panels, metrics, study, published, columns=columns)
