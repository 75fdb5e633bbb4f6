"""Every figure is legible in a column of a paper, or in two: type, legends, numbers at axes."""

import pytest

from dpmc.reports.plots import layout, style
from dpmc.studies import load_study
from dpmc.studies.figures import declared_figure
from figures.synthetic import EASY, LEAST, THREE, draw, legible, medians, metrics, study

OF_METRICS = (
    "mmd-easy",
    "mmd-hard",
    "acceptance-hard",
    "circle",
    "convergence",
    "comparison",
    "tuned-easy",
    "tight-mmd",
)
BATCHES = ("minibatch-penalty", "minibatch-penalty-guided", "dp-barker")


@pytest.mark.parametrize("name", OF_METRICS)
def test_type_is_legible_and_inside_the_figure(name: str) -> None:
    models = dict.fromkeys((*EASY, "gauss-30d", "narrow-banana", "correlated-gauss"), {})
    of = study(
        {**models, "circle": {"epsilons": [0.5, 0.75, 1]}},
        {
            **dict.fromkeys((*THREE, *BATCHES), {}),
            **{f"{m}-tuned": {"algorithm": m, "hyperparameters": "tuned"} for m in THREE},
            **{f"{m}-tight": {"algorithm": m, "accountant": "tight"} for m in BATCHES},
        },
    )
    names = ("mmd", "mean_error", "acceptance_rate", "ratio_clip_fraction", "rhat_max", "ess_bulk_min")
    legible(draw(name, of, metrics(of, names=names)), declared_figure(of.path, name).wide)


@pytest.mark.parametrize("name", ["posteriors", "trajectory", "accounting"])
def test_figures_without_metrics_are_legible(name: str) -> None:
    of = load_study("thesis")
    legible(draw(name, of, metrics(study(EASY[:1]))), declared_figure(of.path, name).wide)


def test_the_sheet_of_style_has_no_small_type() -> None:
    sizes = {key: value for key, value in style.STYLE_SHEET["settings"].items() if key.endswith("size")}
    sizes = {key: value for key, value in sizes.items() if "font" in key or "label" in key or "title" in key}
    assert len(sizes) >= 6 and min(sizes.values()) >= LEAST and style.SMALL >= LEAST


def test_models_of_one_budget_share_a_panel() -> None:
    of = study({label: {"epsilons": [3]} for label in EASY[:2]}, THREE)
    table = metrics(of)
    (axes,) = draw("mmd-easy", of, table).axes
    values = table[table.metric == "mmd"].astype({"value": float}).groupby(["model", "method"]).value.median()
    assert medians(axes) == pytest.approx([values[model, method] for model in EASY[:2] for method in THREE])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [
        "flat\nbanana,\nd\n=\n2",
        "flat\nbanana,\nd\n=\n10",
    ]
    bands = [patch for patch in axes.patches if patch.get_zorder() == 0.5]  # exact samples of either
    assert [(band.get_x(), band.get_width()) for band in bands] == [(-0.5, 1.0), (0.5, 1.0)]


def test_numbers_are_written_alike_at_all_axes() -> None:
    written = [layout.in_digits(x) for x in (0.00001, 0.0003, 0.05, 0.5, 1.0, 30.0, 1000.0, 1e6, 3.5e8)]
    assert written == ["0.00001", "0.0003", "0.05", "0.5", "1", "30", "1,000", "1 M", "350 M"]
    assert layout.in_digits(0.0) == "0" and layout.in_digits(-2.5) == "−2.5"
