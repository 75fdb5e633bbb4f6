"""The box plots of the hard models, acceptance rates and clipped gradients."""

import numpy as np
import pytest
from matplotlib.patches import PathPatch

from dpmc.common.errors import DpmcError
from dpmc.reports.plots import marks, style
from figures.synthetic import EASY, THREE, Method, Model, Study, draw, metrics, study

HARD = ("gauss-30d", "narrow-banana", "correlated-gauss")
FIGURES = {
    "mmd-hard": ("mmd", HARD),
    "clipping-hard": ("ratio_clip_fraction", HARD),
    "acceptance-easy": ("acceptance_rate", EASY),
    "acceptance-hard": ("acceptance_rate", (*HARD, "circle")),
    "gradient-clipping": ("gradient_clip_fraction", (*EASY, *HARD, "circle")),
}


def whole_study(methods: tuple[str, ...] = THREE) -> Study:
    """All eight models, and beside them one model of the clipping experiment."""
    made = study((*EASY, *HARD, "circle"), methods)
    made.models["circle"].epsilons = ("0.5", "0.75", "1")
    made.models["clipping-2d"] = Model("flat-banana-2d", ("inf",), 100_000)
    made.methods["rwmh-4"] = Method("rwmh", ("clipping-2d",))
    return made


@pytest.mark.parametrize("name", FIGURES)
def test_panels_show_the_models_and_the_medians_of_the_table(name: str) -> None:
    metric, models = FIGURES[name]
    of = whole_study()
    table = metrics(of, names=(metric,))
    figure = draw(name, table, of)
    assert [a.get_title(loc="left") for a in figure.axes] == [style.MODEL_TITLES[m] for m in models]
    methods = ["dp-hmc"] if name == "gradient-clipping" else THREE
    chosen = table[table.metric == metric].groupby(["model", "epsilon", "method"]).value
    for axes, model in zip(figure.axes, models, strict=True):
        expected = [
            float(np.median(chosen.get_group((model, epsilon, method)).astype(float)))
            for epsilon in of.models[model].epsilons
            for method in methods
        ]
        lines = [line for line in axes.lines if line.get_label() == marks.MEDIAN]
        lines.sort(key=lambda line: line.get_xdata()[0])
        assert [line.get_ydata()[0] for line in lines] == pytest.approx(expected)
        drawn = [p for p in axes.patches if isinstance(p, PathPatch)]
        assert len(drawn) == len(methods) * len(of.models[model].epsilons)


@pytest.mark.parametrize("name", ["mmd-easy", "clipping-easy", *FIGURES])
def test_the_clipping_experiment_is_in_no_figure_with_a_budget(name: str) -> None:
    of = whole_study()
    metric = FIGURES.get(name, ("mmd" if name == "mmd-easy" else "ratio_clip_fraction",))[0]
    figure = draw(name, metrics(of, names=(metric,)), of)
    assert not any("clipping-2d" in axes.get_title(loc="left") for axes in figure.axes)
    assert "rwmh-4" not in [text.get_text() for text in figure.legends[0].get_texts()]


def test_gradient_clipping_without_dp_hmc_is_an_error() -> None:
    of = study(EASY, ("dp-penalty",))
    with pytest.raises(DpmcError, match="dp-hmc runs on none of the models"):
        draw("gradient-clipping", metrics(of), of)
