"""MMD of the algorithms that read batches, by the thesis's accounting and by tight accounting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.figures.accountings import methods_in_pairs
from dpmc.figures.boxes import Panel, draw_panels, models_of
from dpmc.figures.mmd_easy import MODELS
from dpmc.figures.style import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "tight-mmd"
CAPTION = (
    "MMD between the second half of each chain and 1,000 exact posterior draws, against the total "
    "privacy budget ε (δ = 0.1/n), of the algorithms that read a batch of rows: with the thesis's "
    "accountants (dark) and, in the paler shade of the same colour, with tight ones, which allow "
    "more iterations for the same budget, and for minibatch DP penalty a little less noise too. "
    "Both start from the same points on the same rows. DP Barker with tight accounting stops at a "
    "cap that every budget here allows many times over: its boxes differ between budgets only by "
    "chance, and the budget beyond what the figure tight-spent shows stays unspent. A box is the "
    "quartiles and median over independent chains, each with the whole budget; whiskers reach the "
    "last chain within 1.5 interquartile ranges. Black lines are exact samples. k: iterations, "
    "said where there are fewer than ten."
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per easy model of the study, one below the other.

    Raises DpmcError where no algorithm is accounted for in both ways.
    """
    labels = models_of(study, MODELS)
    panels = [Panel(m, "mmd", model_title(m, study.models[m].model)) for m in labels]
    return draw_panels(panels, metrics, study, None, columns=1, methods=methods_in_pairs(study))
