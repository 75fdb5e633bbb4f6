"""Tuned settings beside published ones: pairs, positions of marks, looks, texts."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from dpmc.errors import DpmcError
from dpmc.plots import style, tuned
from dpmc.plots.frame import Results
from dpmc.studies.figures import declared_figure
from figures import synthetic
from figures.reading import assert_readable
from figures.synthetic import EASY, SIX, THREE, Method, Model, Study, metrics, study

PUBLISHED = Path(__file__).parents[2] / "data" / "published"
HARD = ("gauss-30d", "narrow-banana", "correlated-gauss", "circle")
FIGURES = {"tuned-easy": EASY, "tuned-hard": HARD, "tuned": (*EASY, *HARD)}


@dataclass
class TunedModel(Model):
    tuning_epsilon: str = "4"


def both(models: tuple[str, ...] = EASY[:1], methods: tuple[str, ...] = THREE) -> Study:
    """A study of methods and their tuned partners, the partners in another order."""
    made = study(models, methods)
    made.models = {label: TunedModel(label) for label in models}
    if "circle" in models:
        made.models["circle"] = TunedModel("circle", ("0.5", "0.75", "1"), tuning_epsilon="1")
    for method in reversed(methods):
        made.methods[f"{method}-tuned"] = Method(method, models)
    return made


def draw(name: str, of: Study, table: pd.DataFrame | None = None) -> Figure:
    figure = synthetic.draw(name, metrics(of) if table is None else table, of, PUBLISHED)
    assert isinstance(figure, Figure)
    return figure


def marks(axes: Axes, size: float) -> list[tuple[float, float, str, str]]:
    """(x, y, colour, marker) of the markers of a size, from left to right."""
    lines = [line for line in axes.lines if line.get_markersize() == size and line.get_marker() != "x"]
    found = [(*line.get_xydata()[0], line.get_color(), str(line.get_marker())) for line in lines]
    return sorted(found)


def bars(axes: Axes) -> list[tuple[float, float, float, str]]:
    """(x, low, high, colour) of the bars, from left to right."""
    segments = [(c.get_segments()[0], to_hex(c.get_color()[0]).upper()) for c in axes.collections]
    return sorted((line[0][0], line[0][1], line[1][1], colour) for line, colour in segments)


def values(of: Study, table: pd.DataFrame, model: str, suffix: str) -> list[list[float]]:
    """MMD by ε, then by method in the order of the published ones."""
    results, spec = Results.of_study(table, of), of.models[model]
    names = [m + suffix for m in tuned.pairs(of)]
    return [results.values(model, m, e, "mmd") for e in spec.epsilons for m in names]


def test_pairs_go_by_label() -> None:
    of = both(methods=("dp-penalty", "dp-hmc"))
    of.methods["minibatch-penalty-tight"] = of.methods["minibatch-penalty-tight-tuned"] = Method(
        "minibatch-penalty", EASY[:1]
    )
    of.methods["dp-barker"] = of.methods["dp-sgld-tuned"] = Method("dp-barker", EASY[:1])
    labels = ("dp-penalty", "dp-hmc", "minibatch-penalty-tight")
    assert tuned.tuned_pairs(of) == {label: f"{label}-tuned" for label in labels}


@pytest.mark.parametrize("name", FIGURES)
def test_a_study_without_pairs_is_refused(name: str) -> None:
    of = both(FIGURES[name])
    of.methods = {label: spec for label, spec in of.methods.items() if not label.endswith("-tuned")}
    assert tuned.pairs(of) == {}
    with pytest.raises(DpmcError, match="study made-up: no method has a partner called <method>-tuned"):
        draw(name, of)


def test_pairs_that_share_no_model_are_refused() -> None:
    of = both(EASY[:2], ("dp-hmc",))
    of.methods["dp-hmc"].models, of.methods["dp-hmc-tuned"].models = EASY[:1], EASY[1:2]
    with pytest.raises(DpmcError, match="no method runs with and without tuning on flat-banana-2d, flat"):
        draw("tuned-easy", of)


@pytest.mark.parametrize("methods", [THREE, SIX])
@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_readable(name: str, methods: tuple[str, ...]) -> None:
    of = both(FIGURES[name], methods)
    lengths = dict(zip(methods, (3, 2, 1), strict=False))
    few = {
        (model, m + way, "1"): k for model in of.models for m, k in lengths.items() for way in ("", "-tuned")
    }
    figure = draw(name, of, metrics(of, few))
    assert_readable(figure)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [text for model in FIGURES[name] for text in (style.MODEL_TITLES[model], "")]
    heads = [axes.get_title(loc="center").strip() for axes in figure.axes]
    before = "settings before the search" if name == "tuned" else "published settings"
    assert heads == [f"{before}, our chains", "tuned settings, our chains"] + [""] * (len(heads) - 2)
    # All chains are ours: nothing drawn may be called a published median.
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert f"our median, {before}" in entries and "published median" not in entries


@pytest.mark.parametrize(("column", "suffix"), [(0, ""), (1, "-tuned")])
def test_marks_are_medians_and_bars_quartiles(column: int, suffix: str) -> None:
    of = both(EASY, THREE)
    table = metrics(of)
    figure = draw("tuned-easy", of, table)
    for row, model in enumerate(EASY):
        axes = figure.axes[2 * row + column]
        expected = values(of, table, model, suffix)
        drawn = marks(axes, tuned.MARKER)
        assert [y for _, y, _, _ in drawn] == pytest.approx([np.median(cell) for cell in expected])
        looks = [(style.STYLES[m].colour, style.STYLES[m].marker) for m in THREE] * 6
        assert [mark[2:] for mark in drawn] == looks
        lines = bars(axes)
        assert [line[3] for line in lines] == [style.STYLES[m].edge for m in THREE] * 6
        quartiles = [np.quantile(cell, [0.25, 0.75]) for cell in expected]
        assert [line[1:3] for line in lines] == [pytest.approx(tuple(two)) for two in quartiles]
        assert [line[0] for line in lines] == pytest.approx([mark[0] for mark in drawn])
        assert [round(mark[0]) for mark in drawn] == [group for group in range(6) for _ in THREE]


def test_the_median_before_the_search_is_hollow_beside_the_tuned_one() -> None:
    of = both()
    table = metrics(of)
    left, right = draw("tuned-easy", of, table).axes
    before = marks(right, tuned.HOLLOW)
    assert before == marks(left, tuned.MARKER)
    assert marks(left, tuned.HOLLOW) == []
    hollow = [line for line in right.lines if line.get_markersize() == tuned.HOLLOW]
    assert {line.get_markerfacecolor() for line in hollow} == {"white"}
    assert left.get_ylim() == right.get_ylim()


def test_the_partner_of_a_variant_looks_like_it() -> None:
    of = both(methods=("dp-penalty",))
    for label in ("dp-hmc-a", "dp-hmc-b", "dp-hmc-a-tuned", "dp-hmc-b-tuned"):
        of.methods[label] = Method("dp-hmc", EASY[:1])
    looks = tuned.looks(of)
    assert looks["dp-hmc-a"] == looks["dp-hmc-a-tuned"] and looks["dp-hmc-b"] == looks["dp-hmc-b-tuned"]
    assert looks["dp-hmc-a"] != looks["dp-hmc-b"]
    left, right = draw("tuned-easy", of).axes
    assert [m[2:] for m in marks(left, tuned.MARKER)] == [m[2:] for m in marks(right, tuned.MARKER)]
    legend = [text.get_text() for text in draw("tuned-easy", of).legends[0].get_texts()]
    assert legend[:3] == ["DP penalty", "DP-HMC, a", "DP-HMC, b"]


def test_only_methods_with_a_partner_on_the_model_are_drawn() -> None:
    of = both(EASY[:2], THREE)
    of.methods["dp-barker"] = Method("dp-barker", EASY[:2])
    of.methods["dp-hmc-tuned"].models = EASY[:1]
    figure = draw("tuned-easy", of)
    assert [len(marks(axes, tuned.MARKER)) for axes in figure.axes] == [18, 18, 12, 12]
    colours = {mark[2] for axes in figure.axes for mark in marks(axes, tuned.MARKER)}
    assert style.STYLES["dp-barker"].colour not in colours
    assert "DP Barker" not in [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_missing_cell_has_a_cross_and_a_reason() -> None:
    of = both()
    few = {(EASY[0], "dp-hmc-tuned", "1"): 1, (EASY[0], "dp-penalty-tuned", "1"): 0}
    left, right = draw("tuned-easy", of, metrics(of, few)).axes
    assert [text.get_text() for text in left.texts] == []
    assert [text.get_text() for text in right.texts] == ["0 iterations\n1 iteration"]
    crosses = [line for line in right.lines if line.get_marker() == "x"]
    colours = {line.get_color() for line in crosses}
    assert colours == {style.STYLES[m].colour for m in ("dp-hmc", "dp-penalty")}
    places = sorted(line.get_xdata()[0] for line in crosses)
    assert right.texts[0].xy[0] == pytest.approx(sum(places) / 2)
    assert len(marks(right, tuned.MARKER)) == 16 and len(marks(right, tuned.HOLLOW)) == 18
    whole = metrics(of)
    gone = whole[~((whole.method == "dp-hmc") & (whole.epsilon == "2"))]
    left, right = draw("tuned-easy", of, gone).axes
    assert [text.get_text() for text in left.texts] == ["no results"]
    assert len(marks(right, tuned.MARKER)) == 18 and len(marks(right, tuned.HOLLOW)) == 17


def test_few_iterations_and_lost_chains_are_reported_separately() -> None:
    of = both()
    few = {(EASY[0], m, "1"): k for m, k in (("dp-penalty", 3), ("dp-penalty-guided", 4), ("dp-hmc", 9))}
    table = metrics(of, {**few, (EASY[0], "dp-hmc", "6"): 10})
    same = (table.epsilon == "1") & (table.metric == "mmd")
    table.loc[same, "value"] = "0.5"  # bars of one height: their digits must not run together
    lost = (table.method == "dp-hmc-tuned") & (table.epsilon == "3") & (table.metric == "mmd")
    table = table[~(lost & table.seed.isin(["0", "1"]))]
    figure = draw("tuned-easy", of, table)
    with style.context():
        figure.draw_without_rendering()
    left, right = figure.axes
    assert [text.get_text() for text in left.texts] == ["3", "4", "9"]
    heights = [text.get_window_extent().y0 for text in left.texts]
    assert abs(heights[1] - heights[0]) > 6 and abs(heights[2] - heights[1]) > 6
    assert [text.get_text() for text in right.texts] == ["18 of 20"]


def test_the_budget_tuned_at_is_marked() -> None:
    of = both(("gauss-30d", "circle"))
    figure = draw("tuned-hard", of)
    for axes, wanted in zip(figure.axes, ("4", "4", "1", "1"), strict=True):
        bold = [label.get_text() for label in axes.get_xticklabels() if label.get_fontweight() == "bold"]
        bands = [p for p in axes.patches if to_hex(p.get_facecolor()).upper() == tuned.TUNED_AT]
        middle = [label.get_text() for label in axes.get_xticklabels()].index(wanted)
        assert bold == [wanted] and [band.get_x() for band in bands] == [middle - 0.5]
    assert "ε of the search" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_exact_samples_are_thin_lines_in_both_panels() -> None:
    of = both()
    table = metrics(of)
    wanted = Results.of_study(table, of).baselines(EASY[0], "mmd")
    for axes in draw("tuned-easy", of, table).axes:
        lines = [line.get_ydata()[0] for line in axes.lines if line.get_linewidth() == 0.3]
        assert lines == wanted


def test_captions_say_what_is_marked() -> None:
    for name in FIGURES:
        text = declared_figure(Path("none.yaml"), name).text
        for words in ("hollow", "quartile", "bold", "exact samples", "cross", "no published result is drawn"):
            assert words in text


def test_published_cells_may_be_another_studys() -> None:
    """As they are in the studies that have this figure."""
    of, taken = both(), both()
    table = metrics(of)
    elsewhere = table.copy()
    elsewhere.loc[elsewhere["method"].isin(THREE), "study"] = "elsewhere"
    for method in THREE:
        taken.methods[method].from_study = "elsewhere"
    here, there = draw("tuned-easy", of, table), draw("tuned-easy", taken, elsewhere)
    for one, other in zip(here.axes, there.axes, strict=True):
        assert len(bars(one)) == 18 and bars(one) == bars(other)
