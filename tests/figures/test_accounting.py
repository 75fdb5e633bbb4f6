"""The accountants' curves: ours are the published ones, number by number."""

import numpy as np
import pandas as pd
import pytest
import thesis_figures

from dpmc.studies import Study, load_study
from figures.synthetic import NONE, PUBLISHED, draw, titles


@pytest.fixture(scope="module")
def thesis() -> Study:
    return load_study(PUBLISHED.parents[1] / "config" / "studies" / "thesis.yaml")


CURVES = [
    ("dp-penalty", "tight", "tight"),
    ("dp-penalty", "zcdp", "zcdp"),
    ("dp-hmc", "tight", "tight"),
    ("dp-hmc", "zcdp", "zcdp"),
    ("minibatch-penalty", thesis_figures.AS_PUBLISHED, "rdp"),
]


@pytest.mark.parametrize(("method", "accountant", "published"), CURVES)
def test_iterations_equal_the_published_ones(
    thesis: Study, method: str, accountant: str, published: str
) -> None:
    table = pd.read_csv(PUBLISHED / "accountants.csv")
    curve = table[(table.method == method) & (table.accountant == published)].sort_values("index")
    assert len(curve) == 50
    assert np.allclose(curve.epsilon, thesis_figures.EPSILONS, rtol=0.0, atol=1e-8)
    assert thesis_figures.iterations_by(thesis, "flat-banana-2d", method, accountant) == list(
        curve.iterations
    )


def test_the_figure_draws_our_curves_and_the_published_ones(thesis: Study) -> None:
    figure = draw("accounting", thesis, NONE)
    assert titles(figure) == ["DP penalty", "minibatch DP penalty", "DP-HMC"]
    for axes in (figure.axes[0], figure.axes[2]):
        tight, tight_dots, zcdp, zcdp_dots = (list(line.get_ydata()) for line in axes.lines)
        assert tight == tight_dots and zcdp == zcdp_dots
        assert all(a > b for a, b in zip(tight, zcdp, strict=True))
    # The loss distribution equals the Fourier accountant, the cut sum the published Renyi curve.
    pair, pair_dots, theorem, no_dots, cut, cut_dots = (
        list(line.get_ydata()) for line in figure.axes[1].lines
    )
    assert pair == pair_dots and cut == cut_dots and no_dots == []
    assert (theorem[-1], cut[-1]) == (961, 991)
    assert all(a >= b >= c for a, b, c in zip(pair, cut, theorem, strict=True))
    assert len(draw("accounting", thesis, NONE, published="").axes[0].lines) == 2
