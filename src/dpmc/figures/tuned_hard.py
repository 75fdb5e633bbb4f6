"""MMD with the published settings and with tuned ones on the hard models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures import mmd_hard
from dpmc.figures.boxes import models_of
from dpmc.figures.tuned import HOW_TO_READ, draw_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "tuned-hard"
MODELS = (*mmd_hard.MODELS, "circle")
CAPTION = (
    "MMD between the second half of each chain and 1,000 exact posterior draws (lower is better), "
    "against the total privacy budget ε of a run (δ = 0.1/n), on the models that are hard for a private "
    "sampler: many dimensions (Gaussian, d = 30), a thin bent ridge (banana with a = 350), a thin "
    "straight one (Gaussian with correlation 0.999), and a ring (circle). Left the published settings, "
    "right those that a search found. " + HOW_TO_READ
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one row per hard model of the study.

    Raises DpmcError where the study has none, or no method has a tuned partner on any of them.
    """
    return draw_rows(metrics, study, models_of(study, MODELS))
