"""A partner's slim bar beside each box: which are pairs, what is drawn, what looks alike, what is said."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import Results, typed
from dpmc.reports import plots
from dpmc.reports.plots import style
from dpmc.reports.plots.marks import MEDIAN
from dpmc.studies.figures import FigureKeys
from dpmc.studies.pairs import partners, tuned_pairs
from figures import synthetic
from figures.reading import assert_readable, legend_texts
from figures.synthetic import EASY, PUBLISHED, SIX, THREE, Method, Model, Study, metrics, study

HARD = ("gauss-30d", "narrow-banana", "correlated-gauss", "circle")
FIGURES = {"tuned-easy": EASY, "tuned-hard": HARD, "tuned": EASY}


def both(models: tuple[str, ...] = EASY[:1], methods: tuple[str, ...] = THREE) -> Study:
    """A study of methods and their tuned partners."""
    made = study(models, methods)
    if "circle" in models:
        made.models["circle"] = Model("circle", ("0.5", "0.75", "1"), tuning_epsilon="1")
    made.methods |= {f"{method}-tuned": Method(method, models, hyperparameters="tuned") for method in methods}
    return made


def draw(name: str, of: Study, table: pd.DataFrame | None = None) -> Figure:
    return synthetic.draw(name, metrics(of) if table is None else table, of)


def draw_pairs(of: Study, pairs: dict[str, str], **keys: Any) -> Figure:
    """A figure of pairs of our own."""
    how = {"kind": "boxes", "metric": ["mmd"], "pairs": pairs, "beside": "others", "caption": "none"}
    made: Any = of
    given = plots.Given(FigureKeys(**how | keys), typed(metrics(of)), made, PUBLISHED, Path("results"))
    return plots.draw(given)


def ours(axes: Axes) -> list[float]:
    """The medians of our boxes, from left to right."""
    lines = [line for line in axes.lines if line.get_label() == MEDIAN]
    return [float(y) for _, y in sorted((line.get_xdata()[0], line.get_ydata()[0]) for line in lines)]


def slim(axes: Axes) -> list[tuple[float, float, float]]:
    """Quartiles and median of the slim bars, from left to right."""
    bars = [p for p in axes.patches if isinstance(p, Rectangle)]
    bars = sorted((p for p in bars if to_hex(p.get_edgecolor()).upper() == style.GREY), key=Rectangle.get_x)
    ticks = sorted((line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if is_tick(line))
    return [(p.get_y(), float(y), p.get_y() + p.get_height()) for p, (_, y) in zip(bars, ticks, strict=True)]


def is_tick(line: Any) -> bool:
    return to_hex(line.get_color()) == style.INK and line.get_linewidth() == 1.1


def quartiles(of: Study, model: str, labels: tuple[str, ...], metric: str = "mmd") -> list[tuple[float, ...]]:
    """Quartiles of the made-up values, by ε and then by label."""
    results = Results.of_study(typed(metrics(of)), of)
    cells = [(model, label, e) for e in of.models[model].epsilons for label in labels]
    return [tuple(np.quantile(results.values(*cell, metric), [0.25, 0.5, 0.75])) for cell in cells]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in legend_texts(figure)]


def test_a_star_is_any_text_the_same_on_both_sides() -> None:
    labels = ("a", "b", "a-tuned", "c-tuned", "tuned", "x-b-y", "b-y")
    assert partners({"*-tuned": "*"}, labels) == {"a-tuned": "a"}
    assert partners({"x-*-y": "*", "a": "b", "b": "none"}, labels) == {"x-b-y": "b", "a": "b"}
    assert partners({"*": "*-tuned"}, labels) == {"a": "a-tuned"}


def test_tuned_pairs_have_settings_of_a_search() -> None:
    of = both(methods=("dp-penalty", "dp-hmc"))
    of.methods["dp-barker"] = of.methods["dp-sgld-tuned"] = Method(
        "dp-barker", EASY[:1], hyperparameters="tuned"
    )
    assert tuned_pairs(of) == {"dp-penalty": "dp-penalty-tuned", "dp-hmc": "dp-hmc-tuned"}
    of.methods["dp-hmc-tuned"] = Method("dp-hmc", EASY[:1], hyperparameters="published")
    assert tuned_pairs(of) == {"dp-penalty": "dp-penalty-tuned"}


@pytest.mark.parametrize("name", FIGURES)
def test_a_study_without_pairs_is_refused(name: str) -> None:
    with pytest.raises(DpmcError, match=r"made-up: it has no pair that this figure shows: \*-tuned "):
        draw(name, study(FIGURES[name]))


def test_pairs_that_share_no_model_are_refused() -> None:
    of = both(EASY[:2], ("dp-hmc",))
    of.methods["dp-hmc"].models, of.methods["dp-hmc-tuned"].models = EASY[:1], EASY[1:2]
    with pytest.raises(DpmcError, match="no method runs with its partner on flat-banana-2d, flat"):
        draw("tuned-easy", of)


@pytest.mark.parametrize("methods", [THREE, SIX])
@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_readable(name: str, methods: tuple[str, ...]) -> None:
    of = both(FIGURES[name], methods)
    few = {
        (model, methods[k - 1] + way, "1"): k for model in of.models for k in (1, 3) for way in ("", "-tuned")
    }
    figure = draw(name, of, metrics(of, few))
    assert_readable(figure)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [style.MODEL_TITLES[model] for model in FIGURES[name]]
    beside = "before the search" if name == "tuned" else "published settings, our chains"
    titles = [style.STYLES[method].title for method in methods]
    assert legend(figure) == [*titles, beside, "10 exact samples", "ε of the search"]


def test_boxes_are_tuned_and_slim_bars_their_partners() -> None:
    of = both(EASY, THREE)
    figure = draw("tuned-easy", of)
    for axes, model in zip(figure.axes, EASY, strict=True):
        tuned = quartiles(of, model, tuple(f"{method}-tuned" for method in THREE))
        assert ours(axes) == pytest.approx([median for _, median, _ in tuned])
        assert slim(axes) == [pytest.approx(cell) for cell in quartiles(of, model, THREE)]


def test_only_methods_with_a_partner_on_the_model_are_drawn() -> None:
    of = both(EASY[:2], THREE)
    of.methods["dp-barker"] = Method("dp-barker", EASY[:2])
    of.methods["dp-hmc-tuned"].models = EASY[:1]
    figure = draw("tuned-easy", of)
    assert [(len(ours(axes)), len(slim(axes))) for axes in figure.axes] == [(18, 18), (12, 12)]
    assert "DP Barker" not in legend(figure)


def test_pairs_of_models() -> None:
    """Only models with a partner have a panel; a pair has the name of the shorter label."""
    of = study(EASY[:2], THREE[:2])
    of.models["flat-banana-2d-wide"] = Model("flat-banana-2d", ("2", "4", "9"))
    of.methods["dp-penalty"].models = (*EASY[:2], "flat-banana-2d-wide")
    (axes,) = draw_pairs(of, {"*-wide": "*"}).axes
    assert axes.get_title(loc="left") == style.MODEL_TITLES["flat-banana-2d"]
    wide = quartiles(of, "flat-banana-2d-wide", ("dp-penalty",))
    assert ours(axes) == pytest.approx([median for _, median, _ in wide])
    every = quartiles(of, "flat-banana-2d", ("dp-penalty",))
    assert slim(axes) == [pytest.approx(every[1]), pytest.approx(every[3])]  # it has no ε = 9


def test_a_partner_without_values_has_no_bar() -> None:
    of = both()
    few = {(EASY[0], "dp-hmc", "1"): 1, (EASY[0], "dp-penalty-tuned", "1"): 1}
    (axes,) = draw("tuned-easy", of, metrics(of, few)).axes
    assert [text.get_text() for text in axes.texts] == ["no box: 1 iteration"]
    assert (len(ours(axes)), len(slim(axes))) == (17, 17)


def test_partners_may_be_another_studys() -> None:
    """As they are in the studies that have this figure."""
    of, taken = both(), both()
    table = metrics(of)
    elsewhere = table.copy()
    elsewhere.loc[elsewhere["method"].isin(THREE), "study"] = "elsewhere"
    for method in THREE:
        taken.methods[method].from_study = "elsewhere"
    here, there = draw("tuned-easy", of, table), draw("tuned-easy", taken, elsewhere)
    assert slim(here.axes[0]) == slim(there.axes[0]) and len(slim(here.axes[0])) == 18
