"""Kind boxes: every cell, the values drawn, published boxes and partners beside ours, reasons for gaps."""

from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import typed
from dpmc.reports.plots import caption, plot, style
from dpmc.reports.plots.published import published_boxes
from dpmc.studies import Study
from dpmc.studies.pairs import partners, tuned_pairs
from dpmc.studies.whole import Results
from figures.synthetic import (
    EASY,
    PUBLISHED,
    THREE,
    Table,
    bars,
    but,
    draw,
    medians,
    metrics,
    notes,
    study,
    titles,
)

HARD = ("gauss-30d", "narrow-banana", "correlated-gauss")
FIGURES = {
    "mmd-easy": ("mmd", EASY),
    "acceptance-hard": ("acceptance_rate", (*HARD, "circle")),
    "gradient-clipping": ("gradient_clip_fraction", (*EASY, *HARD, "circle")),
}


def with_tuned(models: tuple[str, ...] = EASY[:1]) -> Study:
    """A study of methods and their tuned partners."""
    tuned = {f"{name}-tuned": {"algorithm": name, "hyperparameters": "tuned"} for name in THREE}
    return study(models, {**dict.fromkeys(THREE, {}), **tuned})


def quartiles(of: Study, model: str, labels: tuple[str, ...]) -> list[tuple[float, ...]]:
    """Quartiles of the made-up MMDs, by ε and then by label."""
    results = Results(typed(metrics(of)), of)
    cells = [(model, label, e) for e in of.models[model].epsilons for label in labels]
    return [tuple(np.quantile(results.values(*cell, "mmd"), [0.25, 0.5, 0.75])) for cell in cells]


@pytest.mark.parametrize("name", FIGURES)
def test_boxes_have_the_values_and_the_order_of_the_study(name: str) -> None:
    metric, models = FIGURES[name]
    private = (*EASY, *HARD, "circle")
    made = dict.fromkeys(private, {}) | {"circle": {"epsilons": [0.5, 0.75, 1]}}
    # Has no budget, is in none of them:
    made |= {"clipping-2d": {"model": "flat-banana-2d", "epsilons": ["inf"], "iterations": 500}}
    methods = {"rwmh-4": {"algorithm": "rwmh", "models": ["clipping-2d"]}}
    of = study(made, {**{label: {"models": private} for label in THREE}, **methods})
    table = metrics(of, names=(metric,))
    figure = draw(name, of, table)
    assert titles(figure) == [style.MODEL_TITLES[model] for model in models]
    shown = ["dp-hmc"] if name == "gradient-clipping" else THREE
    chosen = (
        table[table.metric == metric].astype({"value": float}).groupby(["model", "epsilon", "method"]).value
    )
    for axes, model in zip(figure.axes, models, strict=True):
        cells = [(model, epsilon, method) for epsilon in of.models[model].epsilons for method in shown]
        assert medians(axes) == pytest.approx([chosen.get_group(cell).median() for cell in cells])


def test_published_boxes_stand_beside_ours() -> None:
    figure = draw("mmd-easy", study())
    assert [len(bars(axes)) for axes in figure.axes] == [18, 18, 18, 18]
    table = pd.read_csv(PUBLISHED / "mmd.csv", dtype={"epsilon": str})
    cell = (table.model == "flat-banana-10d") & (table.method == "dp-hmc") & (table.epsilon == "6")
    box = table[cell].set_index("statistic").value
    assert bars(figure.axes[1])[-1] == pytest.approx((box["q1"], box["median"], box["q3"]))


def test_nothing_published_is_drawn_beside_another_experiment() -> None:
    ours = study(EASY[:1])
    other_label = study({"mine": {"model": "flat-banana-2d"}})
    per_iteration = replace(ours, epsilon_kind="per-iteration")
    for of in (but(ours, EASY[0], n=5000), other_label, per_iteration):
        assert bars(draw("mmd-easy", of).axes[0]) == []
    assert "per iteration" in draw("mmd-easy", per_iteration).axes[0].get_xlabel()
    assert len(bars(draw("mmd-easy", but(ours, EASY[0], n=100_000)).axes[0])) == 18


def test_a_missing_box_has_a_reason() -> None:
    of = study(EASY[:1])
    table = metrics(
        of, {(EASY[0], "dp-penalty", "1"): 1, (EASY[0], "dp-hmc", "1"): 0, (EASY[0], "dp-hmc", "2"): 3}
    )
    mmd, hmc = table.metric == "mmd", table.method == "dp-hmc"
    two = (table.epsilon == "4") & table.seed.isin(["3", "4"])
    table = table[~(hmc & (table.epsilon == "6")) & ~(mmd & hmc & ((table.epsilon == "5") | two))]
    more = Table()
    more.add(EASY[0], "dp-hmc", "5", 0, "status", "mean_error: x; mmd, y: some draws are not finite")
    (axes,) = draw("mmd-easy", of, pd.concat([table, more.frame()])).axes
    missing = ["0 iterations", "1 iteration", "no results", "some draws are not finite"]
    assert notes(axes) == ["18 of 20", "k = 3", *(f"no box: {reason}" for reason in missing)]
    assert len(medians(axes)) == 18 - 4


def test_exact_samples_are_one_band_from_the_least_to_the_greatest() -> None:
    of = study(EASY[:1])
    table = metrics(of)
    values = table[(table.method == "baseline") & (table.metric == "mmd")].value.astype(float)
    (axes,) = draw("mmd-easy", of, table).axes
    (band,) = [patch for patch in axes.patches if patch.get_zorder() == 0.5]
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((values.min(), values.max()))
    (middle,) = [line for line in axes.lines if line.get_linewidth() == 0.4]
    assert middle.get_ydata()[0] == pytest.approx(values.median())


def test_captions_of_boxes_say_how_many_runs_and_what_the_slim_bars_are() -> None:
    of = study()
    published, tuned = (caption(name, of) for name in ("mmd-easy", "tuned-easy"))
    assert (
        f"{of.seeds} independent runs" in published and "published quartiles and median (thesis" in published
    )
    assert "our runs, published settings" in tuned
    guided = [caption(name, of).count("(GWMH)") for name in ("mmd-easy", "gradient-clipping")]
    assert guided == [1, 0]


def test_rows_of_other_studies_are_left_out() -> None:
    of = study(EASY[:1])
    table = metrics(of)
    both = pd.concat([table, table.assign(study="other", value="99")])
    assert medians(draw("mmd-easy", of, both).axes[0]) == medians(draw("mmd-easy", of, table).axes[0])


def test_boxes_are_tuned_and_slim_bars_their_partners() -> None:
    of = with_tuned(EASY)
    figure = draw("tuned-easy", of)
    for axes, model in zip(figure.axes, EASY, strict=True):
        tuned = quartiles(of, model, tuple(f"{method}-tuned" for method in THREE))
        assert medians(axes) == pytest.approx([median for _, median, _ in tuned])
        assert np.array(bars(axes)) == pytest.approx(np.array(quartiles(of, model, THREE)))


def test_partners() -> None:
    """A star is any text, the same on both sides; tuned pairs have settings of a search."""
    labels = ("a", "b", "a-tuned", "c-tuned", "tuned", "x-b-y", "b-y")
    assert partners({"*-tuned": "*"}, labels) == {"a-tuned": "a"}
    assert partners({"x-*-y": "*", "a": "b", "b": "none"}, labels) == {"x-b-y": "b", "a": "b"}
    assert partners({"*": "*-tuned"}, labels) == {"a": "a-tuned"}
    of = with_tuned()
    of.methods["dp-hmc-tuned"] = of.methods["dp-hmc"]
    others = [method for method in THREE if method != "dp-hmc"]
    assert tuned_pairs(of) == {method: f"{method}-tuned" for method in others}


@pytest.mark.parametrize("ending", ["pdf", "png", "svg"])
def test_the_same_metrics_give_the_same_bytes(tmp_path: Path, ending: str) -> None:
    """Whatever the user's settings of Matplotlib are."""
    of, table = study(EASY[:1]), tmp_path / "metrics.csv"
    metrics(of).to_csv(table, index=False)
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    plot("mmd-easy", of, [table], [first])
    with matplotlib.rc_context({"font.size": 20.0, "lines.linewidth": 7.0, "axes.grid": True}):
        plot("mmd-easy", of, [table], [second])
    assert first.read_bytes() == second.read_bytes() and b"CreationDate" not in first.read_bytes()


def test_bad_input_is_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    of, table, output = study(EASY[:1]), tmp_path / "metrics.csv", tmp_path / "figure.pdf"
    metrics(of).to_csv(table, index=False)
    (tmp_path / "broken.csv").write_text("study,model\na,b\n")
    cases = [
        ("mmd-hardest", table, output, "unknown, must be one of coefficients, comparison"),
        ("mmd-easy", tmp_path / "broken.csv", output, "column 'method' is missing"),
        ("mmd-easy", table, tmp_path / "figure.jpeg", "must end in .pdf or .png or .svg"),
        ("tuned", table, output, r"it has no pair of this figure: \*-tuned "),
    ]
    for name, source, target, message in cases:
        with pytest.raises(DpmcError, match=message) as caught:
            plot(name, of, [source], [target])
        assert "\n" not in str(caught.value) and not target.exists()
    (tmp_path / "mmd.csv").write_text("model,method,epsilon,statistic,value\na,b,1,q1,x\n")
    with pytest.raises(DpmcError, match=r"mmd\.csv: not a table of published boxes"):
        published_boxes(tmp_path, "mmd", of)
