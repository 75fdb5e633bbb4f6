"""MMD against epsilon on the flat and tempered bananas (Figure 6.3)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures.boxes import Panel, draw_panels, models_of
from dpmc.figures.style import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "mmd-easy"
MODELS = ("flat-banana-2d", "flat-banana-10d", "tempered-banana-2d", "tempered-banana-10d")
CAPTION = (
    "MMD between the second half of each chain and 1,000 exact posterior draws, against the total "
    "privacy budget ε (δ = 0.1/n), on the flat and tempered bananas; lower is better, and about "
    "0.89 means that chain and posterior do not overlap. A box is the quartiles and median over "
    "independent chains, each with the whole budget; whiskers reach the last chain within 1.5 "
    "interquartile ranges, further chains are drawn singly. The slim bar beside a box is the "
    "published one (quartiles and median, Figure 6.3 of the thesis). Black lines are further exact "
    "samples of 1,000 draws: a chain among them cannot be told from the posterior by this metric. "
    "With the same settings a larger ε buys more iterations, not less noise in each: from ε = 1 to 2 "
    "those of the thesis allow 3.6 to 4.1 times as many, but minibatch DP penalty, guided or not, 10 "
    "to 52 times on the flat bananas and on the tempered one in ten dimensions. Guided: one component "
    "is updated at a time, keeping its direction until a rejection. k: iterations, said where there "
    "are fewer than ten."
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per easy model of the study."""
    labels = models_of(study, MODELS)
    panels = [Panel(m, "mmd", model_title(m, study.models[m].model)) for m in labels]
    return draw_panels(panels, metrics, study, published)
