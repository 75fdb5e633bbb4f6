"""Kind bounds, as the thesis's clipping experiment: boxes, paired points, published chains, exact samples."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import typed
from dpmc.reports.plots import Given, marks, style
from dpmc.reports.plots import draw as draw_given
from dpmc.studies.figures import Axis, declared_figure
from dpmc.studies.pairs import clip_bounds
from figures import synthetic
from figures.reading import assert_readable
from figures.synthetic import EASY, Method, Model, Study, metrics, study

PUBLISHED = Path(__file__).parents[2] / "data" / "published"
MARKERS = [style.STYLES[algorithm].marker for algorithm in ("rwmh", "hmc")]
BOUNDS = ("0.5", "1", "2", "4", "6", "8", "10", "1000")
PLACES = ("clipping-2d", "clipping-2d-as-coded", "clipping-10d", "clipping-10d-as-coded")


def experiment(bounds: tuple[str, ...] = BOUNDS) -> Study:
    banana = {2: "flat-banana-2d", 10: "flat-banana-10d"}
    models = {p: Model(banana[10 if "10d" in p else 2], ("inf",), 100_000) for p in PLACES}
    methods = {
        f"{algorithm}{kind}-{bound}": Method(
            algorithm,
            PLACES[first::2],
            options={"clip": float(bound)} | ({"clip_distance": "as_coded"} if kind else {}),
        )
        for first, kind in enumerate(("", "-as-coded"))
        for algorithm in ("rwmh", "hmc")
        for bound in bounds
    }
    return Study(models, methods)


def table_of(of: Study, seeds: int = 20) -> pd.DataFrame:
    made = metrics(study(EASY[:1]), seeds=1).iloc[:0]
    finite = Study(of.models, of.methods)
    for spec in finite.models.values():
        spec.epsilons = ("1",)
    made = metrics(finite, names=("mmd", "ratio_clip_fraction"), seeds=seeds)
    for spec in of.models.values():
        spec.epsilons = ("inf",)
    made.loc[made.epsilon == "1", "epsilon"] = "inf"
    return made


def draw(of: Study, table: pd.DataFrame, folder: Path = PUBLISHED) -> Figure:
    figure = synthetic.draw("clipping-effect", table, of, folder)
    assert isinstance(figure, Figure)
    return figure


def test_the_figure_is_readable_and_labelled() -> None:
    of = experiment()
    figure = draw(of, table_of(of))
    assert_readable(figure)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "d = 2, the text: ‖θ − θ′‖" and titles[6] == "d = 10, as implemented: |Σ(θ − θ′)|"
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == [".5", *BOUNDS[1:]]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == [
        *(style.STYLES[algorithm].title for algorithm in ("rwmh", "hmc")),
        *("10 exact samples", "published: thesis, Figure 6.2", "exact samples, published"),
        "the thesis's guideline, 20 %",
    ]


def test_boxes_are_the_chains_of_their_bound() -> None:
    of = experiment()
    table = table_of(of)
    figure = draw(of, table)
    for panel, place in zip((0, 2, 4, 6), PLACES, strict=True):
        kind = "-as-coded" if "coded" in place else ""
        expected = []
        for bound in BOUNDS:
            for algorithm in ("rwmh", "hmc"):
                cell = (table.model == place) & (table.method == f"{algorithm}{kind}-{bound}")
                expected.append(np.median(table[cell & (table.metric == "mmd")].value.astype(float)))
        solid = [line for line in figure.axes[panel].lines if line.get_linestyle() == "-"]
        lines = [line for line in solid if line.get_label() == marks.MEDIAN]
        assert len(lines) == 2 * len(BOUNDS)
        lines.sort(key=lambda line: line.get_xdata()[0])
        assert [line.get_ydata()[0] for line in lines] == pytest.approx(expected)


def points(figure: Figure, panel: int, filled: bool) -> set[tuple[float, float]]:
    """The points of a scatter panel: ours are filled, the published ones hollow."""
    lines = [line for line in figure.axes[panel].lines if line.get_marker() in MARKERS]
    lines = [line for line in lines if (line.get_markerfacecolor() != "none") == filled]
    return {(float(x), float(y)) for line in lines for x, y in line.get_xydata()}


def test_points_pair_fraction_and_mmd_by_seed() -> None:
    of = experiment(("0.5", "4"))
    table = table_of(of, seeds=5)
    gone = (table.model == PLACES[0]) & (table.method == "hmc-4") & (table.seed == "2")
    table = table[~(gone & (table.metric == "mmd"))]
    figure = draw(of, table.sample(frac=1.0, random_state=3))
    wide = table[table.model == PLACES[0]].pivot(index=["method", "seed"], columns="metric", values="value")
    wide = wide.dropna().astype(float)
    expected = set(zip(wide.ratio_clip_fraction, wide.mmd, strict=True))
    assert len(expected) == 2 * 2 * 5 - 1
    assert points(figure, 1, filled=True) == expected


def test_published_chains_are_in_the_as_coded_panels_only() -> None:
    of = experiment()
    figure = draw(of, table_of(of))
    known = pd.read_csv(PUBLISHED / "clipping_experiment.csv").pivot(
        index=["dimension", "algorithm", "clip_bound", "seed"], columns="metric", values="value"
    )
    for panel, dimension in ((3, 2), (7, 10)):
        chains = known.loc[dimension]
        assert points(figure, panel, filled=False) == set(zip(chains.clip_fraction, chains.mmd, strict=True))
    assert [len(points(figure, panel, filled=False)) for panel in (1, 5)] == [0, 0]
    bars = [patch for patch in figure.axes[2].patches if patch.get_zorder() == 4]
    medians = [line.get_ydata()[0] for line in figure.axes[2].lines if line.get_zorder() == 5]
    assert len(bars) == 2 * len(BOUNDS)
    expected = known.loc[2].groupby(["algorithm", "clip_bound"]).mmd.median()
    assert sorted(medians) == pytest.approx(sorted(expected))
    of.models["clipping-2d-as-coded"].n = 5000
    assert points(draw(of, table_of(of)), 3, filled=False) == set()


def test_exact_samples_are_lines() -> None:
    of = experiment()
    figure = draw(of, table_of(of))
    for panel, axes in enumerate(figure.axes):
        assert len([line for line in axes.lines if line.get_linewidth() == 0.3]) == 10
        (edge,) = [line for line in axes.lines if line.get_marker() == "_"]
        assert len(edge.get_ydata()) == {2: 10, 3: 10, 6: 9, 7: 9}.get(panel, 0)


def test_a_missing_cell_has_a_reason() -> None:
    of = experiment()
    table = table_of(of)
    table = table[~((table.model == PLACES[0]) & (table.method == "hmc-8"))]
    assert [t.get_text() for t in draw(of, table).axes[0].texts] == ["no box: no results"]


def test_one_experiment_alone_is_drawn_and_none_is_refused() -> None:
    of = experiment(("0.5", "1000"))
    alone = Study({PLACES[1]: of.models[PLACES[1]]}, of.methods)
    assert len(draw(alone, table_of(alone)).axes) == 2
    with pytest.raises(DpmcError, match="it has no clipping experiment"):
        draw(study(EASY), metrics(study(EASY)))


def test_clip_bounds_are_sorted_as_numbers() -> None:
    of = experiment(("10", "0.5", "1000", "2"))
    assert list(clip_bounds(of, PLACES[0])["hmc"]) == [0.5, 2.0, 10.0, 1000.0]


def test_a_broken_published_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "clipping_experiment.csv").write_text("dimension,algorithm\nx,hmc\n")
    of = experiment()
    with pytest.raises(DpmcError, match="clipping_experiment.csv: not a table"):
        draw(of, table_of(of), tmp_path)


def test_declared_models_methods_and_axes_are_used() -> None:
    of = experiment()
    made, table = declared_figure(of.path, "clipping-effect"), table_of(of)
    of.models["clipping-2d"].model = "narrow-banana"
    changes = {
        "models": ("narrow-banana", PLACES[3]),
        "methods": ("hmc",),
        "y": Axis(share=True),
        "lines": (),
    }
    given: Any = of
    figure = draw_given(
        Given(made.model_copy(update=changes), typed(table), given, PUBLISHED, Path("results"))
    )
    assert len(figure.axes) == 4
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert figure.axes[0].get_yscale() == "linear"
    colours = {line.get_markerfacecolor() for line in figure.axes[1].lines if line.get_marker() in MARKERS}
    assert colours == {style.STYLES["hmc"].colour}


def test_panels_without_results_say_so() -> None:
    of = experiment(("0.5",))
    figure = draw(of, table_of(of).iloc[:0])
    assert {text.get_text() for text in figure.axes[0].texts} == {"no box: no results"}
