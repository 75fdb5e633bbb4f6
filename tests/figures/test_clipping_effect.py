"""The clipping experiment: boxes, paired points, published chains, exact samples."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from dpmc.errors import DpmcError
from dpmc.figures import clipping_effect
from dpmc.plots import marks, style
from figures import synthetic
from figures.reading import assert_readable
from figures.synthetic import EASY, Method, Model, Study, metrics, study

PUBLISHED = Path(__file__).parents[2] / "data" / "published"
BOUNDS = ("0.5", "1", "2", "4", "6", "8", "10", "1000")
PLACES = ("clipping-2d", "clipping-10d", "clipping-2d-as-coded", "clipping-10d-as-coded")


def experiment(bounds: tuple[str, ...] = BOUNDS) -> Study:
    banana = {2: "flat-banana-2d", 10: "flat-banana-10d"}
    models = {p: Model(banana[10 if "10d" in p else 2], ("inf",), 100_000) for p in PLACES}
    methods = {
        f"{algorithm}{kind}-{bound}": Method(algorithm, tuple(p for p in PLACES if p in chosen))
        for kind, chosen in {"": PLACES[:2], "-as-coded": PLACES[2:]}.items()
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


def test_it_is_readable_and_says_what_is_where() -> None:
    of = experiment()
    figure = draw(of, table_of(of))
    assert_readable(figure)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "d = 2, text: ‖θ − θ′‖" and titles[5] == "d = 10, as coded: |Σ(θ − θ′)|"
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == list(BOUNDS)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "10 exact samples" in legend and "HMC, published" in legend


def test_boxes_are_the_chains_of_their_bound() -> None:
    of = experiment()
    table = table_of(of)
    figure = draw(of, table)
    for panel, place in ((0, PLACES[0]), (1, PLACES[1]), (4, PLACES[2]), (5, PLACES[3])):
        kind = "-as-coded" if "coded" in place else ""
        expected = []
        for bound in BOUNDS:
            for algorithm in ("rwmh", "hmc"):
                cell = (table.model == place) & (table.method == f"{algorithm}{kind}-{bound}")
                expected.append(np.median(table[cell & (table.metric == "mmd")].value.astype(float)))
        solid = [line for line in figure.axes[panel].lines if line.get_linestyle() == "-"]
        lines = [line for line in solid if line.get_label() == marks.MEDIAN]
        lines.sort(key=lambda line: line.get_xdata()[0])
        assert [line.get_ydata()[0] for line in lines] == pytest.approx(expected)


def points(figure: Figure, panel: int, filled: bool) -> set[tuple[float, float]]:
    """The points of a scatter panel: ours are filled, the published ones hollow."""
    lines = [line for line in figure.axes[panel].lines if line.get_linestyle() == "None"]
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
    assert points(figure, 2, filled=True) == expected


def test_published_chains_are_in_the_as_coded_panels_only() -> None:
    of = experiment()
    figure = draw(of, table_of(of))
    known = pd.read_csv(PUBLISHED / "clipping_experiment.csv").pivot(
        index=["dimension", "algorithm", "clip_bound", "seed"], columns="metric", values="value"
    )
    for panel, dimension in ((6, 2), (7, 10)):
        chains = known.loc[dimension]
        assert points(figure, panel, filled=False) == set(zip(chains.clip_fraction, chains.mmd, strict=True))
    assert [len(points(figure, panel, filled=False)) for panel in (2, 3)] == [0, 0]
    of.models["clipping-2d-as-coded"].n = 5000
    assert points(draw(of, table_of(of)), 6, filled=False) == set()


def test_exact_samples_are_lines() -> None:
    of = experiment()
    figure = draw(of, table_of(of))
    for axes in figure.axes:
        assert len([line for line in axes.lines if line.get_linewidth() == 0.3]) == 10


def test_a_missing_cell_says_why() -> None:
    of = experiment()
    table = table_of(of)
    table = table[~((table.model == PLACES[1]) & (table.method == "hmc-8"))]
    assert [t.get_text() for t in draw(of, table).axes[1].texts] == ["no box: no results"]


def test_one_place_alone_and_none() -> None:
    of = experiment(("0.5", "1000"))
    alone = Study({PLACES[1]: of.models[PLACES[1]]}, of.methods)
    assert len(draw(alone, table_of(alone)).axes) == 2
    with pytest.raises(DpmcError, match="it has no model clipping-<d>d"):
        draw(study(EASY), metrics(study(EASY)))


def test_bounds_are_sorted_as_numbers() -> None:
    of = experiment(("10", "0.5", "1000", "2"))
    assert list(clipping_effect.bounds_of(of, PLACES[0])["hmc"]) == [0.5, 2.0, 10.0, 1000.0]


def test_a_broken_published_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "clipping_experiment.csv").write_text("dimension,algorithm\nx,hmc\n")
    of = experiment()
    with pytest.raises(DpmcError, match="clipping_experiment.csv: not a table"):
        draw(of, table_of(of), tmp_path)


def test_algorithms_have_the_colours_of_all_figures() -> None:
    of = experiment()
    figure = draw(of, table_of(of))
    colours = {
        line.get_markerfacecolor()
        for line in figure.axes[2].lines
        if line.get_linestyle() == "None" and len(line.get_xdata())
    }
    assert colours == {style.STYLES["rwmh"].colour, style.STYLES["hmc"].colour}


def test_all_panels_have_one_vertical_axis() -> None:
    of = experiment()
    figure = draw(of, table_of(of))
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert figure.axes[0].get_ylim()[1] >= max(float(axes.dataLim.y1) for axes in figure.axes)
