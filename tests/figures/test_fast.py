"""Figures of the DP-Fast MH study: axes, hollow marks, methods left out, texts."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from dpmc.common.errors import DpmcError
from dpmc.data import datasets
from dpmc.data.histogram import bin_counts, symmetric_kl
from dpmc.reports import plots
from dpmc.reports.plots import density, lines, style, traces
from dpmc.reports.plots.frame import path_of
from dpmc.sampling import speed
from dpmc.studies import Study
from dpmc.studies.figures import declared_figure
from figures import synthetic
from figures.fast_tables import metrics_of, real_study, write_tables
from figures.paper import write_chain
from figures.reading import assert_readable

NAMES = ("mixture", "logistic-fashion", "logistic-digits", "variants", "equal-budget")
GUARANTEED = (
    "dp-penalty",
    "dp-barker",
    "dp-barker-digits",
    "dp-fast-mh-corrected",
    "dp-fast-mh-full-corrected",
)


def value_of(model: str, method: str, epsilon: str, metric: str) -> float:
    share = metric.endswith(("rate", "fraction", "accuracy"))
    size = 0.5 + 0.01 * len(method) if share else 10.0 + len(method)
    return size if epsilon == "inf" else size * (1.0 if share else 1.0 + float(epsilon))


def spent_by(method: str, epsilon: str) -> float:
    return float(epsilon) if method in GUARANTEED else np.inf


@pytest.fixture
def made(tmp_path) -> tuple[Study, Path]:
    study = real_study()
    write_tables(study, tmp_path, spent_by)
    return study, tmp_path


def drawn(name: str, study: Study, results: Path) -> Figure:
    figure = synthetic.draw(name, metrics_of(study, value_of), study, Path("none"), results)
    assert isinstance(figure, Figure)
    return figure


def declared(name: str):
    return declared_figure(Path("none.yaml"), name)


@pytest.mark.parametrize("name", NAMES)
def test_one_kind_of_epsilon_an_axis_and_all_can_be_read(made, name):
    figure = drawn(name, *made)
    assert_readable(figure)
    labels = [axes.get_xlabel() for axes in figure.axes]
    total, each = ([what for what in labels if word in what] for word in ("total ε", "per iteration"))
    assert bool(total) == (name == "equal-budget")
    assert bool(each) != bool(total)
    assert all("claimed" in what for what in each)


def of_totals(study: Study, table: pd.DataFrame, methods: list[str]) -> list[lines.Curve]:
    panel = lines.panels_of(study, declared("equal-budget"))[0]
    looks = {method: style.line_style(study, method) for method in methods}
    return traces.by_total(study, dataclasses.replace(panel, methods=looks), table)


def test_equal_budget_shows_only_methods_with_a_guarantee(made):
    study, results = made
    table = traces.read_traces(traces.trace_path(results, study, "mixture"))
    every = [label for label, spec in study.methods.items() if "mixture" in spec.models]
    guaranteed = [label for label in GUARANTEED if label != "dp-barker-digits"]
    assert [curve.look for curve in of_totals(study, table, every)] == [
        style.line_style(study, label) for label in guaranteed
    ]
    chains = of_totals(study, table, ["dp-penalty"])
    spent = [x for x, _ in chains[2].points]
    assert spent == pytest.approx([0.05 * i**0.5 for i in (501, 1001, 2001)])
    greys = [style.contrast_with_black(curve.look.colour) for curve in chains]
    assert greys == sorted(greys, reverse=True)  # darker for larger ε
    assert sorted(declared("equal-budget").methods) == sorted(guaranteed)
    figure = drawn("equal-budget", study, results)
    assert len({axes.get_xlim() for axes in figure.axes[:5]}) == 1
    legend = [text.get_text() for text in figure.axes[5].get_legend().get_texts()]
    assert legend == [*(style.line_style(study, label).title for label in guaranteed), "total ε = 10"]


def test_the_best_within_a_total_is_the_lower_envelope():
    study = real_study()
    values = {"0.01": [(1.0, 9.0), (3.0, 5.0), (9.0, 6.0)], "0.02": [(2.0, 7.0), (4.0, 8.0), (8.0, 1.0)]}
    rows = [
        ("dp-penalty", epsilon, iteration, metric, value)
        for epsilon, points in values.items()
        for iteration, point in enumerate(points, start=2)
        for metric, value in zip(("epsilon_total", "symmetric_kl"), point, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["method", "epsilon", "iteration", "metric", "value"])
    (curve,) = of_totals(study, table, ["dp-penalty", "dp-barker"])
    assert curve.points == [(1.0, 9.0), (2.0, 7.0), (3.0, 5.0), (8.0, 1.0)]
    rows.append(("dp-barker", "0.01", 2, "epsilon_total", 16.0))
    rows.append(("dp-barker", "0.01", 2, "symmetric_kl", 4.0))
    table = pd.DataFrame(rows, columns=["method", "epsilon", "iteration", "metric", "value"])
    curve, other = of_totals(study, table, ["dp-penalty", "dp-barker"])
    assert curve.points[-2:] == [(8.0, 1.0), (16.0, 1.0)] and other.points == [(16.0, 4.0)]
    assert curve.steps


def test_methods_without_a_guarantee_are_hollow_and_dashed():
    study = real_study()
    for label in study.methods:
        if "inf" not in study.epsilons(study.methods[label].models[0], label):
            look = style.line_style(study, label)
            true = study.methods[label].options.get("variant", "corrected") == "corrected"
            assert (look.line == style.SOLID) == true, label
            assert (look.line2d["markerfacecolor"] == "white") != true, label


def test_mixture_shows_the_values_of_the_tables(made):
    study, results = made
    axes = drawn("mixture", study, results).axes
    colour = style.line_style(study, "dp-penalty").colour
    of_penalty = [[line for line in one.lines if line.get_color() == colour] for one in axes]
    expected = [
        value_of("mixture", "dp-penalty", e, "symmetric_kl") for e in study.models["mixture"].epsilons
    ]
    assert list(of_penalty[0][0].get_ydata()) == pytest.approx(expected)
    level = 1.0 + len("dp-penalty") / 10.0
    middle = [level + 1.0 + 20.0 / i for i in (501, 1001, 2001)]  # the median of three seeds
    for place, times in ((2, 1.0), (3, 1e-4), (4, 10.0)):
        assert list(of_penalty[place][0].get_ydata()) == pytest.approx(middle)
        assert list(of_penalty[place][0].get_xdata()) == pytest.approx([times * i for i in (501, 1001, 2001)])
    upright = [line.get_xdata()[0] for one in axes for line in one.lines if list(line.get_ydata()) == [0, 1]]
    assert upright == [4000, 15]
    assert plots.chain_files("mixture", study, results) == [
        results / "dp-fast-mh/traces/mixture.csv",
        results / "dp-fast-mh/speed.csv",
    ]


def test_quartiles_and_lines_across(made):
    study, results = made
    table = metrics_of(study, value_of)
    chosen = (table.method == "dp-penalty") & (table.metric == "symmetric_kl") & (table.epsilon == "0.05")
    table.loc[chosen & (table.model == "mixture"), "value"] = ["2", "4", "8"]
    figure = synthetic.draw("mixture", table, study, Path("none"), results)
    colour = style.line_style(study, "dp-penalty").colour
    bars = next(
        container for container in figure.axes[0].containers if container.lines[0].get_color() == colour
    )
    low, high = bars.lines[2][0].get_segments()[2][:, 1]
    assert (low, high) == (3.0, 6.0)  # quartiles of 2, 4, 8
    black = style.line_style(study, "mh").colour
    across = [line for line in figure.axes[0].lines if line.get_color() == black]
    assert list(across[0].get_ydata()) == [value_of("mixture", "mh", "inf", "symmetric_kl")] * 2


def test_a_data_set_that_is_unavailable_has_no_figure(made):
    study, results = made
    rest = dataclasses.replace(study, models={"mixture": study.models["mixture"]})
    assert plots.applies("logistic-fashion", study) and plots.applies("mixture", rest)
    assert not plots.applies("logistic-fashion", rest) and not plots.applies("logistic-digits", rest)
    traces.trace_path(results, study, "logistic-digits").unlink()
    with pytest.raises(DpmcError, match="no such file"):
        drawn("logistic-digits", study, results)
    assert drawn("logistic-fashion", study, results)


def test_barker_on_digits_is_absent_at_small_epsilon(made):
    figure = drawn("logistic-digits", *made)
    colour = style.line_style(made[0], "dp-barker-digits").colour
    first, along = ([line for line in axes.lines if line.get_color() == colour] for axes in figure.axes[::4])
    assert len(first[0].get_xdata()) == 2 and not along
    assert "DP Barker, at ε ≥ 0.1 only" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_density_reads_single_chains_at_the_paper_s_epsilon():
    study = real_study()
    cells = density.cells_of(study, declared("density"))
    assert {epsilon for _, _, epsilon in cells} == {"0.05", "inf"}
    files = density.files(study, declared("density"), Path("results"))
    assert files[0] == Path("data/dp-fast-mh/mixture/fresh-0.nc")
    assert files[1:] == [path_of(Path("results"), study, cell, 0) for cell in cells]
    counts = np.zeros((9, 9))
    counts[4, 4] = 5.0
    assert density.smoothed(counts)[4, 4] == density.smoothed(counts).max()


def test_density_shows_the_first_10_000_draws_beside_the_exact_ones(tmp_path):
    study = real_study()
    problem = datasets.build("mixture", "mixture", "fresh-0", 100)
    problem.write(density.data_file(study, declared("density"), tmp_path / "results"))
    generator = np.random.default_rng(1)
    draws = generator.choice(problem.reference, (1, density.ITERATIONS + 1000))
    draws[:, density.ITERATIONS :] = 2.0  # what comes later is not shown
    cells = density.cells_of(study, declared("density"))
    for cell in cells:
        write_chain(path_of(tmp_path / "results", study, cell, 0), study, cell, 0, draws)
    figure = synthetic.draw("density", pd.DataFrame(), study, Path("none"), tmp_path / "results")
    panels = figure.axes[: 1 + len(cells)]
    titles = [axes.get_title(loc="left").replace("\n", ", ") for axes in panels]
    assert titles == ["exact posterior", *(style.line_style(study, method).title for _, method, _ in cells)]
    shown, edges = draws[0, : density.ITERATIONS], problem.histogram_edges
    divergence, _ = symmetric_kl(shown, edges, problem.histogram_counts)
    assert {axes.texts[0].get_text() for axes in panels[1:]} == {f"KL {divergence:.2f}"}
    most = density.smoothed(problem.histogram_counts).max()
    expected = density.smoothed(bin_counts(shown, edges)[0]).T / most
    assert np.allclose(np.asarray(panels[1].collections[0].get_array()).reshape(expected.shape), expected)
    assert np.asarray(panels[0].collections[0].get_array()).max() == pytest.approx(1.0)


def test_only_iterations_that_all_runs_have(made):
    study, results = made
    table = traces.read_traces(traces.trace_path(results, study, "mixture"))
    shorter = table[~((table.seed == "1") & (table.iteration == 1001))]
    found = traces.medians(shorter, "dp-penalty", "0.05", "symmetric_kl")
    assert list(found.index) == [501, 2001]


def test_a_table_that_is_missing_is_one_line(tmp_path):
    with pytest.raises(DpmcError, match="no such file"):
        traces.read_traces(tmp_path / "traces.csv")
    (tmp_path / "speed.csv").write_text("study,model\n")
    with pytest.raises(DpmcError, match="'method' is missing"):
        traces.speeds(tmp_path / "speed.csv", "mixture")
    (tmp_path / "speed.csv").write_text(",".join(speed.COLUMNS) + "\na,mixture,mh,inf,100,fast\n")
    with pytest.raises(DpmcError, match="speed.csv: not a CSV table .*'fast'"):
        traces.speeds(tmp_path / "speed.csv", "mixture")
