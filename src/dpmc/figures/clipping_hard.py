"""Fraction of clipped log-likelihood ratios on the three hard models (Figure 6.6)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures.boxes import Panel, draw_panels, models_of
from dpmc.figures.mmd_hard import MODELS
from dpmc.figures.style import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "clipping-hard"
CAPTION = (
    "Fraction of log-likelihood ratios that were clipped, over all rows and iterations of a chain "
    "(rejected proposals included), against the total privacy budget ε, on the 30-d Gaussian, the "
    "narrow banana and the correlated Gaussian. The published settings were tuned for less than "
    "10 % (dashed, where the axis reaches so far). Too much clipping changes the posterior that "
    "the chain tends to. Boxes are over independent chains. The thesis has these models in Figure "
    "6.6. The fractions are exact functions of the private rows: a diagnostic on synthetic data, "
    "not something to release. k: iterations, said where there are fewer than ten."
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per hard model of the study."""
    labels = models_of(study, MODELS)
    panels = [Panel(m, "ratio_clip_fraction", model_title(m, study.models[m].model)) for m in labels]
    return draw_panels(panels, metrics, study, published)
