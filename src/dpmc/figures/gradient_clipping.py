"""Fraction of clipped gradients of DP-HMC on every model (Figure 6.8)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.errors import DpmcError
from dpmc.figures import mmd_easy, mmd_hard
from dpmc.figures.boxes import Panel, draw_panels, models_of
from dpmc.figures.style import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from dpmc.studies import Study

NAME = "gradient-clipping"
MODELS = (*mmd_easy.MODELS, *mmd_hard.MODELS, "circle")
ALGORITHM = "dp-hmc"
CAPTION = (
    "Fraction of the rows' gradients that were clipped, over all rows and all gradient "
    "evaluations of a DP-HMC chain (L + 1 per iteration), against the total privacy budget ε. "
    "Unlike clipped log ratios, clipped gradients leave the posterior as it is: a leapfrog "
    "trajectory is reversible whatever force drives it, and the acceptance test corrects the "
    "rest. They only lower the acceptance rate, while a larger clip bound would add more noise, "
    "so that no fraction is right as such. Boxes are over independent chains; the slim bar beside "
    "a box is the published one (quartiles and median, Figure 6.8 of the thesis). These fractions "
    "are exact functions of the private rows: a diagnostic on synthetic data, not something to "
    "release. k: iterations, said where there are fewer than ten."
)


def draw(metrics: DataFrame, study: Study, published: Path) -> Figure:
    """Return the figure, one panel per model of the study on which DP-HMC runs.

    Raises DpmcError where there is none.
    """
    methods = [label for label, spec in study.methods.items() if spec.algorithm == ALGORITHM]
    labels = [
        label
        for label in models_of(study, MODELS)
        if any(label in study.methods[method].models for method in methods)
    ]
    if not labels:
        raise DpmcError(f"study {study.name}: {ALGORITHM} runs on none of the models of this figure")
    panels = [Panel(m, "gradient_clip_fraction", model_title(m, study.models[m].model)) for m in labels]
    columns = min(3, len(panels))
    return draw_panels(panels, metrics, study, published, columns=columns, methods=methods)
