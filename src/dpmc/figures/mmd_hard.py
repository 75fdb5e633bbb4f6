"""MMD against epsilon on the 30-d Gaussian, narrow banana and correlated Gaussian (Figure 6.4)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures.boxes import Panel, draw_panels, models_of
from dpmc.figures.style import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "mmd-hard"
MODELS = ("gauss-30d", "narrow-banana", "correlated-gauss")
CAPTION = (
    "MMD between the second half of each chain and 1,000 exact posterior draws, against the total "
    "privacy budget ε (δ = 0.1/n), on the three models that are hard for a private sampler: many "
    "dimensions (Gaussian, d = 30), a thin bent ridge (banana with a = 350) and a thin straight "
    "one (Gaussian with correlation 0.999). Lower is better; about 0.89 means that chain and "
    "posterior do not overlap. A box is the quartiles and median over independent chains, each "
    "with the whole budget; whiskers reach the last chain within 1.5 interquartile ranges. Black "
    "lines are further exact samples of 1,000 draws: a chain among them cannot be told from the "
    "posterior by this metric. The thesis has these models in Figure 6.4. k: iterations, said "
    "where there are fewer than ten."
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per hard model of the study."""
    labels = models_of(study, MODELS)
    panels = [Panel(m, "mmd", model_title(m, study.models[m].model)) for m in labels]
    return draw_panels(panels, metrics, study, published)
