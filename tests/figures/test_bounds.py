"""Kind bounds, as the thesis's clipping experiment: boxes, paired points, published chains, exact samples."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from dpmc.reports.plots import style
from dpmc.studies import Study
from figures.synthetic import PUBLISHED, bars, but, draw, medians, metrics, study

MARKERS = [style.STYLES[algorithm].marker for algorithm in ("rwmh", "hmc")]
BOUNDS = ("0.5", "1", "2", "4", "6", "8", "10", "1000")
PLACES = ("clipping-2d", "clipping-2d-as-coded", "clipping-10d", "clipping-10d-as-coded")


def experiment(bounds: tuple[str, ...] = BOUNDS) -> Study:
    banana = {2: "flat-banana-2d", 10: "flat-banana-10d"}
    models = {
        place: {
            **{"model": banana[10 if "10d" in place else 2], "epsilons": ["inf"], "n": 100_000},
            **{"tuning_epsilon": "inf", "iterations": 500},
        }
        for place in PLACES
    }
    methods = {
        f"{algorithm}{kind}-{bound}": {
            "algorithm": algorithm,
            "models": PLACES[first::2],
            "options": {"clip": float(bound)} | ({"clip_distance": "as_coded"} if kind else {}),
        }
        for first, kind in enumerate(("", "-as-coded"))
        for algorithm in ("rwmh", "hmc")
        for bound in bounds
    }
    return study(models, methods)


def table_of(of: Study, seeds: int = 20) -> pd.DataFrame:
    return metrics(of, names=("mmd", "ratio_clip_fraction"), seeds=seeds)


def points(axes: Axes, filled: bool) -> set[tuple[float, float]]:
    """The points of a panel: ours are filled, the published ones hollow."""
    lines = [line for line in axes.lines if line.get_marker() in MARKERS]
    lines = [line for line in lines if (line.get_markerfacecolor() != "white") == filled]
    return {(float(x), float(y)) for line in lines for x, y in line.get_xydata()}


def test_boxes_are_the_chains_of_their_bound() -> None:
    of = experiment()
    table = table_of(of)
    figure = draw("clipping-effect", of, table)
    mmd = table[table.metric == "mmd"].astype({"value": float}).groupby(["model", "method"]).value.median()
    for axes, model in zip(figure.axes[::2], PLACES, strict=True):
        kind = "-as-coded" if "coded" in model else ""
        expected = [mmd[model, f"{a}{kind}-{bound}"] for bound in BOUNDS for a in ("rwmh", "hmc")]
        assert medians(axes) == pytest.approx(expected)


def test_published_chains_are_in_the_as_coded_panels_only() -> None:
    of = experiment()
    figure = draw("clipping-effect", of, table_of(of))
    known = pd.read_csv(PUBLISHED / "clipping_experiment.csv").pivot(
        index=["dimension", "algorithm", "clip_bound", "seed"], columns="metric", values="value"
    )
    for panel, dimension in ((3, 2), (7, 10)):  # medians of a bound
        middles = known.loc[dimension].groupby(["algorithm", "clip_bound"]).median()
        expected = sorted(zip(middles.clip_fraction, middles.mmd, strict=True))
        shown = sorted(points(figure.axes[panel], filled=False))
        assert np.array(shown) == pytest.approx(np.array(expected))
    assert [points(figure.axes[panel], filled=False) for panel in (1, 5)] == [set(), set()]
    expected = known.loc[2].groupby(["algorithm", "clip_bound"]).mmd.median()
    assert sorted(y for _, y, _ in bars(figure.axes[2])) == pytest.approx(sorted(expected))
    of = but(of, "clipping-2d-as-coded", n=5000)
    assert points(draw("clipping-effect", of, table_of(of)).axes[3], filled=False) == set()
    for panel, axes in enumerate(figure.axes):  # published exact samples are marks at the edge
        (edge,) = [line for line in axes.lines if line.get_marker() == "_"]
        assert len(edge.get_ydata()) == {2: 10, 3: 10, 6: 9, 7: 9}.get(panel, 0)
