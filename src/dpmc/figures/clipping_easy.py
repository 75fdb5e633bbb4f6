"""Fraction of clipped log-likelihood ratios on the flat and tempered bananas (Figure 6.5)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures.boxes import Panel, draw_panels, models_of
from dpmc.figures.mmd_easy import MODELS
from dpmc.figures.style import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "clipping-easy"
CAPTION = (
    "Fraction of log-likelihood ratios that were clipped, over all rows and iterations of a chain "
    "(rejected proposals included), against the total privacy budget ε, on the flat and tempered "
    "bananas. Clipping bounds what one row can change, and so the noise; too much of it changes "
    "the posterior. The published settings were tuned for less than 10 % (dashed), but for those of "
    "DP Barker, whose bound follows from the size of its batch. Boxes are over independent chains; "
    "the slim bar beside a box is the published one (quartiles and median, Figure 6.5 of the thesis). "
    "These fractions are exact functions of the private rows: a diagnostic on synthetic data, not "
    "something to release. k: iterations, said where there are fewer than ten."
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per easy model of the study."""
    labels = models_of(study, MODELS)
    panels = [Panel(m, "ratio_clip_fraction", model_title(m, study.models[m].model)) for m in labels]
    return draw_panels(panels, metrics, study, published)
