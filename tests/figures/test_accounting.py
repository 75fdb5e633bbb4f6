"""The accountants' curves: ours are the published ones, number by number."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmc.common.errors import DpmcError
from dpmc.reports.plots import accounting
from dpmc.studies import Study, load_study
from figures import synthetic
from figures.reading import assert_readable
from figures.synthetic import study as made_up

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "data" / "published"


@pytest.fixture(scope="module")
def thesis() -> Study:
    return load_study(ROOT / "config" / "studies" / "thesis.yaml")


@pytest.fixture(scope="module")
def figure(thesis: Study):
    return synthetic.draw("accounting", pd.DataFrame(), thesis, PUBLISHED)


CURVES = [
    ("dp-penalty", "tight", "tight"),
    ("dp-penalty", "zcdp", "zcdp"),
    ("dp-hmc", "tight", "tight"),
    ("dp-hmc", "zcdp", "zcdp"),
    ("minibatch-penalty", accounting.AS_PUBLISHED, "rdp"),
]


@pytest.mark.parametrize(("method", "accountant", "published"), CURVES)
def test_iterations_equal_the_published_ones(
    thesis: Study, method: str, accountant: str, published: str
) -> None:
    table = pd.read_csv(PUBLISHED / "accountants.csv")
    curve = table[(table.method == method) & (table.accountant == published)].sort_values("index")
    assert len(curve) == 50
    assert np.allclose(curve.epsilon, accounting.EPSILONS, rtol=0.0, atol=1e-8)
    assert accounting.iterations(thesis, "flat-banana-2d", method, accountant) == list(curve.iterations)


def test_the_figure_draws_all_three(figure) -> None:
    assert_readable(figure)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[-1] == "published: thesis, Figure 6.1"
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["DP penalty", "minibatch DP penalty", "DP-HMC"]
    for axes in (figure.axes[0], figure.axes[2]):
        tight, tight_dots, zcdp, zcdp_dots = axes.lines
        assert list(tight.get_ydata()) == list(tight_dots.get_ydata())
        assert list(zcdp.get_ydata()) == list(zcdp_dots.get_ydata())
        assert all(a > b for a, b in zip(tight.get_ydata(), zcdp.get_ydata(), strict=True))


def test_the_batch_panel(figure) -> None:
    """The loss distribution equals the Fourier accountant, the cut sum the published Renyi curve."""
    pair, pair_dots, theorem, no_dots, cut, cut_dots = (line.get_ydata() for line in figure.axes[1].lines)
    assert list(pair) == list(pair_dots)
    assert list(cut) == list(cut_dots)
    assert len(no_dots) == 0
    assert (theorem[-1], cut[-1]) == (961, 991)
    assert all(a >= b >= c for a, b, c in zip(pair, cut, theorem, strict=True))


def test_without_published_curves(thesis: Study, tmp_path: Path) -> None:
    figure = synthetic.draw("accounting", pd.DataFrame(), thesis, tmp_path)
    assert not any("published" in text.get_text() for text in figure.legends[0].get_texts())


def test_mistakes_are_named(thesis: Study, tmp_path: Path) -> None:
    (tmp_path / "accountants.csv").write_text("model,method\nflat-banana-2d,x\n")
    with pytest.raises(DpmcError, match="accountants.csv: not a table"):
        synthetic.draw("accounting", pd.DataFrame(), thesis, tmp_path)
    with pytest.raises(DpmcError, match="runs on none of the models"):
        synthetic.draw("accounting", pd.DataFrame(), made_up(methods=("dp-barker",)), PUBLISHED)
