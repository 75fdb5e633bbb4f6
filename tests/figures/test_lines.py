"""Kinds lines and traces: the values drawn, methods and data sets left out, broken tables."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmc.common.errors import DpmcError
from dpmc.reports import plots
from dpmc.reports.plots import lines, style, traces
from dpmc.studies import Study, load_study
from dpmc.studies.figures import declared_figure
from figures.fast_tables import metrics_of, real_study, write_tables
from figures.synthetic import Table, curves, draw, legible, metrics
from figures.synthetic import study as made_up

GUARANTEED = ["dp-penalty", "dp-barker", "dp-fast-mh-corrected", "dp-fast-mh-full-corrected"]


def value_of(model: str, method: str, epsilon: str, metric: str) -> float:
    share = metric.endswith(("rate", "fraction", "accuracy"))
    size = 0.5 + 0.01 * len(method) if share else 10.0 + len(method)
    return size if epsilon == "inf" else size * (1.0 if share else 1.0 + float(epsilon))


def spent_by(method: str, epsilon: str) -> float:
    return float(epsilon) if method in (*GUARANTEED, "dp-barker-digits") else np.inf


@pytest.fixture
def made(tmp_path: Path) -> tuple[Study, Path]:
    study, results = real_study(), tmp_path / "results"
    write_tables(study, results, spent_by)
    return study, results


def drawn(name: str, study: Study, results: Path):
    return draw(name, study, metrics_of(study, value_of), results)


def of_totals(study: Study, table: pd.DataFrame, methods: list[str]) -> list[lines.Curve]:
    panel = lines.panels_of(study, declared_figure(study.path, "equal-budget"))[0]
    looks = {method: style.line_style(study, method) for method in methods}
    return traces.by_total(study, dataclasses.replace(panel, methods=looks), table)


def test_equal_budget_shows_only_methods_with_a_guarantee(made):
    study, results = made
    table = pd.read_csv(results / "dp-fast-mh/traces/mixture.csv", dtype={"epsilon": str})
    every = [label for label, spec in study.methods.items() if "mixture" in spec.models]
    guaranteed = [style.line_style(study, label) for label in GUARANTEED]
    assert [curve.look for curve in of_totals(study, table, every)] == guaranteed
    chains = of_totals(study, table, ["dp-penalty"])
    assert chains[2].points[0] == pytest.approx([0.05 * i**0.5 for i in (501, 1001, 2001)])
    assert sorted(declared_figure(study.path, "equal-budget").methods) == sorted(GUARANTEED)
    assert len({axes.get_xlim() for axes in drawn("equal-budget", study, results).axes[:5]}) == 1


@pytest.mark.parametrize(
    "name", ["mixture", "logistic-digits", "logistic-fashion", "variants", "equal-budget"]
)
def test_type_is_legible_and_inside_the_figure(name, made):
    legible(drawn(name, *made), declared_figure(made[0].path, name).wide)


def test_lines_by_the_total_are_named_where_they_begin(made):
    study, results = made
    panels = drawn("equal-budget", study, results).axes
    texts = [[text.get_text() for text in axes.texts if text.get_text()] for axes in panels]
    assert texts[0] == ["0.01", "0.02", "0.05", "0.1", "0.2"] and texts[4] == []
    table = pd.read_csv(results / "dp-fast-mh/traces/mixture.csv", dtype={"epsilon": str})
    table.loc[table.metric == "epsilon_total", "value"] = 0.3  # as of a batch that keeps every ε
    (first, *others) = of_totals(study, table, ["dp-barker"])
    assert first.text == "0.01 to 0.2" and {curve.text for curve in others} == {""}


def test_an_ess_above_the_number_of_draws_is_blank():
    of = made_up(("flat-banana-2d",), ("dp-hmc",))
    table = metrics(of, {("flat-banana-2d", "dp-hmc", "1"): 7}, seeds=20)  # 4 draws of each chain are kept
    rows = Table()
    for epsilon, ess in (("1", 80.1), ("2", 353.0)):
        rows.add("flat-banana-2d", "dp-hmc", epsilon, "", "ess_bulk_min", ess)
    (panel, *_) = [
        axes
        for axes in draw("convergence", of, pd.concat([table, rows.frame()])).axes
        if axes.get_ylabel() == "ESS"
    ]
    assert [point for shown in curves(panel).values() for point in shown] == [(2.0, 353.0)]
    rows.rows[0] = (*rows.rows[0][:-1], "79.9")
    panel = draw("convergence", of, pd.concat([table, rows.frame()])).axes[1]
    assert [point for shown in curves(panel).values() for point in shown] == [(1.0, 79.9), (2.0, 353.0)]


def test_the_best_within_a_total_is_the_lower_envelope():
    study = real_study()
    rows = [
        ("dp-penalty", epsilon, "0", iteration, metric, value)
        for epsilon, points in {
            "0.01": [(1.0, 9.0), (3.0, 5.0), (9.0, 6.0)],
            "0.02": [(2.0, 7.0), (4.0, 8.0), (8.0, 1.0)],
        }.items()
        for iteration, point in enumerate(points, start=2)
        for metric, value in zip(("epsilon_total", "symmetric_kl"), point, strict=True)
    ]
    last = ("dp-barker", "0.01", "0", 2)
    rows += [(*last, "epsilon_total", 16.0), (*last, "symmetric_kl", 4.0)]
    table = pd.DataFrame(rows, columns=["method", "epsilon", "seed", "iteration", "metric", "value"])
    curve, other = of_totals(study, table, ["dp-penalty", "dp-barker"])
    # drawn on to the largest total of any
    expected = [(1.0, 9.0), (2.0, 7.0), (3.0, 5.0), (8.0, 1.0), (16.0, 1.0)]
    assert list(zip(*curve.points[:2], strict=True)) == expected
    assert set(zip(*other.points[:2], strict=True)) == {(16.0, 4.0)}


def test_mixture_shows_the_values_of_the_tables(made):
    study, results = made
    table = metrics_of(study, value_of)
    cell = (table.model == "mixture") & (table.method == "dp-penalty") & (table.epsilon == "0.05")
    table.loc[cell & (table.metric == "symmetric_kl"), "value"] = ["2", "4", "8"]
    runs = table[(table.model == "mixture") & (table.metric == "symmetric_kl")]
    table = pd.concat([table, runs.assign(metric="iterations", value="1000")])
    spent = 1e-4 * 1000 * (runs.method == "dp-penalty").sum()  # 0.1 ms an iteration
    times = results.parent / "logs/dp-fast-mh/sampling/mixture/dp-penalty.tsv"
    times.parent.mkdir(parents=True)
    times.write_text(f"wall_seconds\tcpu_seconds\tpeak_mib\n9\t{spent}\t250\n")
    axes = draw("mixture", study, table, results).axes
    assert max(len(curves(panel)) for panel in axes) == 5  # methods on all rows and on minibatches apart
    colour, black = (style.line_style(study, method).colour for method in ("dp-penalty", "mh"))
    epsilons = study.models["mixture"].epsilons
    expected = {e: value_of("mixture", "dp-penalty", e, "symmetric_kl") for e in epsilons} | {"0.05": 4.0}
    shown = curves(axes[0])
    assert [y for _, y in shown[colour, False]] == pytest.approx(list(expected.values()))
    assert shown[black, False][0][1] == value_of("mixture", "mh", "inf", "symmetric_kl")  # across
    bar = next(bars for bars in axes[0].containers if bars.lines[0].get_color() == colour)
    assert tuple(bar.lines[2][0].get_segments()[2][:, 1]) == (3.0, 6.0)  # quartiles of 2, 4, 8
    level = 1.0 + len("dp-penalty") / 10.0
    middle = [level + 1.0 + 20.0 / i for i in (501, 1001, 2001)]  # the median of three seeds
    for place, times in ((1, 1.0), (2, 1e-4), (6, 10.0)):
        x, y = zip(*curves(axes[place])[colour, False], strict=True)
        assert list(y) == pytest.approx(middle)
        assert list(x) == pytest.approx([times * i for i in (501, 1001, 2001)])
    _, files = plots.reads("mixture", study, results)
    assert files == [results / "dp-fast-mh/traces/mixture.csv"]


def test_only_iterations_that_all_runs_have(made):
    table = pd.read_csv(made[1] / "dp-fast-mh/traces/mixture.csv", dtype=str)
    table = table.astype({"iteration": int, "value": float})
    shorter = table[~((table.seed == "1") & (table.iteration == 1001))]
    x, *quartiles = traces.run_quartiles(shorter, "dp-penalty", "0.05", "symmetric_kl")
    level = 1.0 + len("dp-penalty") / 10.0
    assert list(x) == [501, 2001]
    assert [values[0] - level - 20.0 / 501 for values in quartiles] == pytest.approx([1.0, 0.5, 1.5])


def test_a_broken_table_is_one_line(made):
    study, results = made
    (results / "dp-fast-mh/traces/mixture.csv").write_text("study,model\n")
    with pytest.raises(DpmcError, match="'method' is missing"):
        drawn("mixture", study, results)


def test_captions_say_how_many_runs_and_what_is_dashed() -> None:
    names = ("mixture", "variants", "equal-budget")
    mixture, variants, totals = (plots.caption(name, real_study()) for name in names)
    assert "medians over 5 independent runs" in mixture and "Dashed, hollow: as published." in mixture
    assert "Dotted" not in mixture and "Dotted, hollow: as implemented." in variants
    assert "Lines across: without privacy." in mixture and "bands: their quartiles" in totals
    assert "Points" not in totals and "across" not in totals


def test_captions_say_nothing_of_marks_that_a_figure_lacks() -> None:
    text = plots.caption("convergence", load_study("config/studies/thesis.yaml"))
    assert "Guided" in text
    assert not any(words in text for words in ("quartiles", "Lines across", "accounting"))
    assert "ε is per iteration." in plots.caption("tuned", load_study("config/studies/dp-fast-mh-tuned.yaml"))


def test_a_model_of_other_rows_is_named_by_their_number() -> None:
    study = load_study("config/studies/rows.yaml")
    assert style.model_name(study, "n-1000") == "flat banana, d = 2 (n = 1000)"
