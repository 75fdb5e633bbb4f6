"""Contents of figures: every cell, correct numbers, the published boxes, reasons for missing values."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle

from dpmc.common.errors import DpmcError
from dpmc.reports.plots import marks, plot, style
from figures import synthetic
from figures.reading import assert_readable
from figures.synthetic import EASY, PUBLISHED, SIX, THREE, Model, Study, Table, metrics, study

CIRCLE = ("circle",)


def draw(name: str, of: Study, table: pd.DataFrame | None = None, folder: Path = PUBLISHED) -> Figure:
    return synthetic.draw(name, metrics(of) if table is None else table, of, folder)


def medians(figure: Figure, panel: int) -> list[float]:
    """Our medians as drawn, from left to right."""
    lines = [line for line in figure.axes[panel].lines if line.get_label() == marks.MEDIAN]
    return [float(line.get_ydata()[0]) for line in sorted(lines, key=lambda line: line.get_xdata()[0])]


def glyphs(figure: Figure, panel: int) -> list[Rectangle]:
    """The published bars of a panel."""
    grey = matplotlib.colors.to_rgba(style.GREY)
    patches = (p for p in figure.axes[panel].patches if isinstance(p, Rectangle))
    return [p for p in patches if p.get_edgecolor() == grey]


def texts(figure: Figure, panel: int) -> list[str]:
    return [text.get_text() for text in figure.axes[panel].texts]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def of_circle(methods: tuple[str, ...] = THREE) -> Study:
    made = study(CIRCLE, methods)
    made.models["circle"] = Model("circle", ("0.5", "0.75", "1"))
    return made


def all_cases() -> list[Any]:
    cases = []
    for methods in (THREE, SIX):
        for name in ("mmd-easy", "clipping-easy"):
            cases.append(pytest.param(name, study(EASY, methods), id=name))
        cases.append(pytest.param("circle", of_circle(methods), id="circle"))
    return cases


@pytest.mark.parametrize(("name", "of"), all_cases())
def test_nothing_is_cut_off_or_too_small(name: str, of: Study) -> None:
    few = {(model, "dp-penalty", spec.epsilons[0]): 1 for model, spec in of.models.items()}
    few |= {(model, "dp-hmc", spec.epsilons[0]): 3 for model, spec in of.models.items()}
    figure = draw(name, of, metrics(of, few))
    assert_readable(figure)


def test_boxes_have_the_values_and_the_order_of_the_study() -> None:
    of = study(EASY, THREE)
    table = metrics(of)
    figure = draw("mmd-easy", of, table)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [style.MODEL_TITLES[model] for model in EASY]
    chosen = table[(table.metric == "mmd") & (table.method != "baseline")]
    for panel, model in enumerate(EASY):
        cells = chosen[chosen.model == model].groupby(["epsilon", "method"]).value
        expected = [
            float(np.median(cells.get_group((epsilon, method)).astype(float)))
            for epsilon in of.models[model].epsilons
            for method in THREE
        ]
        assert medians(figure, panel) == pytest.approx(expected)
        assert len([p for p in figure.axes[panel].patches if isinstance(p, PathPatch)]) == 18
        assert figure.axes[panel].get_ylim()[0] == 0.0


@pytest.mark.parametrize(("name", "metric"), [("mmd-easy", "mmd"), ("clipping-easy", "ratio_clip_fraction")])
def test_published_boxes_stand_beside_ours(name: str, metric: str) -> None:
    figure = draw(name, study(EASY, THREE))
    counts = [len(glyphs(figure, panel)) for panel in range(4)]
    assert counts == [18, 18, 18, 18]
    assert any(text.startswith("published: thesis, Figure 6.") for text in legend(figure))
    table = pd.read_csv(PUBLISHED / f"{metric}.csv", dtype={"epsilon": str})
    cell = (table.model == "flat-banana-10d") & (table.method == "dp-hmc") & (table.epsilon == "6")
    box = table[cell].set_index("statistic").value
    last = max(glyphs(figure, 1), key=lambda bar: bar.get_x())
    assert last.get_y() == pytest.approx(box["q1"])
    assert last.get_y() + last.get_height() == pytest.approx(box["q3"])
    ticks = [line for line in figure.axes[1].lines if line.get_linewidth() == 1.1]
    assert max(ticks, key=lambda t: t.get_xdata()[0]).get_ydata()[0] == pytest.approx(box["median"])


def test_a_published_box_is_inside_the_axis_even_where_ours_are_small() -> None:
    of = study(EASY[:1])
    table = metrics(of)
    table.loc[table.metric == "mmd", "value"] = "0.001"
    figure = draw("mmd-easy", of, table)
    assert figure.axes[0].get_ylim()[1] > max(b.get_y() + b.get_height() for b in glyphs(figure, 0))


def test_nothing_published_is_drawn_beside_another_experiment() -> None:
    other_size, other_label, per_iteration = study(EASY[:1]), study(("mine",)), study(EASY[:1])
    other_size.models["flat-banana-2d"].n = 5000
    other_label.models["mine"].model = "flat-banana-2d"
    per_iteration.epsilon_kind = "per-iteration"
    same_size = study(EASY[:1])
    same_size.models["flat-banana-2d"].n = 100_000
    for of in (other_size, other_label, per_iteration):
        figure = draw("mmd-easy", of)
        assert glyphs(figure, 0) == []
        assert not any("published" in text for text in legend(figure))
    assert len(glyphs(draw("mmd-easy", same_size), 0)) == 18
    circle = draw("circle", of_circle())  # two methods at three ε; no MMD was published
    assert [len(glyphs(circle, panel)) for panel in range(3)] == [6, 6, 0]
    assert "per iteration" in draw("mmd-easy", per_iteration).axes[0].get_xlabel()


def test_no_folder_of_published_results(tmp_path: Path) -> None:
    assert glyphs(draw("mmd-easy", study(EASY[:1]), folder=tmp_path / "none"), 0) == []


def test_a_missing_box_has_a_reason() -> None:
    of = study(EASY[:1])
    few = {
        (EASY[0], "dp-penalty", "1"): 1,
        (EASY[0], "dp-hmc", "1"): 0,
        (EASY[0], "dp-hmc", "2"): 3,
    }
    table = metrics(of, few)
    table = table[~((table.method == "dp-hmc") & (table.epsilon == "6"))]
    figure = draw("mmd-easy", of, table)
    notes = texts(figure, 0)
    wanted = ["no box: 1 iteration", "no box: 0 iterations", "k = 3", "no box: no results"]
    assert sorted(notes) == sorted(wanted)
    assert len(medians(figure, 0)) == 18 - 3


def test_a_metric_that_no_chain_has_is_refused() -> None:
    of = study(EASY[:1])
    table = metrics(of)
    table.loc[table.metric == "acceptance_rate", "metric"] = "acceptance"
    with pytest.raises(
        DpmcError, match="metric: 'acceptance_rate' has no values in this study; there are .*mmd"
    ):
        draw("acceptance-easy", of, table)


def test_other_reasons_are_shown_and_missing_chains_are_counted() -> None:
    of = study(EASY[:1])
    table = metrics(of)
    mmd = (table.metric == "mmd") & (table.method == "dp-hmc")
    two = (table.epsilon == "6") & table.seed.isin(["3", "4"])
    table = table[~(mmd & ((table.epsilon == "5") | two))]
    more = Table()
    more.add(EASY[0], "dp-hmc", "5", 0, "status", "mean_error: x; mmd, y: some draws are not finite")
    notes = texts(draw("mmd-easy", of, pd.concat([table, more.frame()])), 0)
    assert sorted(notes) == ["18 of 20", "no box: some draws are not finite"]


def test_a_variant_is_drawn_only_for_the_models_that_it_runs_on() -> None:
    of = study(("flat-banana-2d", "tempered-banana-2d"), (*THREE, "dp-hmc-reused"))
    of.methods["dp-hmc-reused"].algorithm = "dp-hmc"
    of.methods["dp-hmc-reused"].models = ("flat-banana-2d",)
    figure = draw("mmd-easy", of)
    assert [len(medians(figure, panel)) for panel in range(2)] == [24, 18]
    assert "DP-HMC, reuses gradients" in legend(figure)


def test_rows_of_other_studies_are_left_out() -> None:
    of = study(EASY[:1])
    table = metrics(of)
    both = pd.concat([table, table.assign(study="other", value="99")])
    assert medians(draw("mmd-easy", of, both), 0) == medians(draw("mmd-easy", of, table), 0)


@pytest.mark.parametrize("ending", ["pdf", "png", "svg"])
def test_the_same_metrics_give_the_same_bytes(tmp_path: Path, ending: str) -> None:
    of = study(EASY[:1])
    table = tmp_path / "metrics.csv"
    metrics(of).to_csv(table, index=False)
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    plot("mmd-easy", of, [table], PUBLISHED, [first])
    with matplotlib.rc_context({"font.size": 20.0, "lines.linewidth": 7.0, "axes.grid": True}):
        plot("mmd-easy", of, [table], PUBLISHED, [second])
    assert first.read_bytes() == second.read_bytes()
    assert b"CreationDate" not in first.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"a.{ending}", f"b.{ending}", "metrics.csv")
    ]


def test_bad_input_is_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    of, table = study(EASY[:1]), tmp_path / "metrics.csv"
    metrics(of).to_csv(table, index=False)
    broken, empty = tmp_path / "broken.csv", tmp_path / "empty.csv"
    broken.write_text("study,model\na,b\n")
    empty.write_text("")
    output = tmp_path / "figure.pdf"
    cases = [
        ("mmd-hardest", of, table, output, "unknown, must be one of comparison"),
        ("mmd-easy", of, tmp_path / "none.csv", output, "no such file"),
        ("mmd-easy", of, broken, output, "column 'method' is missing"),
        ("mmd-easy", of, empty, output, "not a CSV table"),
        ("mmd-easy", of, table, tmp_path / "figure.jpeg", "must end in one of .pdf, .png, .svg"),
        ("circle", of, table, output, "none of its models belongs to this figure"),
    ]
    for name, made, source, target, message in cases:
        with pytest.raises(DpmcError, match=message) as caught:
            plot(name, made, [source], PUBLISHED, [target])
        assert "\n" not in str(caught.value)
        assert not target.exists()


def test_a_broken_published_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "mmd.csv").write_text("model,method,epsilon,statistic,value\na,b,1,q1,x\n")
    with pytest.raises(DpmcError, match="mmd.csv: not a table of published boxes"):
        draw("mmd-easy", study(EASY[:1]), folder=tmp_path)


def test_the_registry_does_not_import_matplotlib() -> None:
    code = "import dpmc.reports.plots, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
