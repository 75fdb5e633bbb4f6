"""The circle: error of the mean, clipping and MMD against epsilon (Figure 6.7 and more)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures.boxes import Panel, draw_panels, models_of
from dpmc.figures.style import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "circle"
METRICS = ("mean_error", "ratio_clip_fraction", "mmd")
TITLES = ("error of the mean", "clipped log ratios", "MMD")
CAPTION = (
    "The circle model: distance of the chain's mean from the true posterior mean (the origin), "
    "fraction of clipped log-likelihood ratios, and MMD from 1,000 exact posterior draws, against "
    "the total privacy budget ε (δ = 0.1/n). The thesis (Figure 6.7) shows the first two, without "
    "the guided DP penalty. A chain that has not gone round the circle has a mean up to 3.2 (the "
    "radius) from the origin. The MMD is possible because the radius squared has a truncated "
    "normal law and the angle a uniform one, so exact draws exist. Boxes are over independent "
    "chains, each with the whole budget; black lines are further exact samples."
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure: three panels per circle model of the study."""
    labels = models_of(study, ("circle",))
    panels = [
        Panel(label, metric, title if len(labels) == 1 else f"{title}, {model_title(label, '')}")
        for label in labels
        for metric, title in zip(METRICS, TITLES, strict=True)
    ]
    return draw_panels(panels, metrics, study, published, columns=3)
