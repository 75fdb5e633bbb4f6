"""Figures of the DP-Fast MH study: who is on which axis, what is hollow, who is left out, what is said."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from dpmc import datasets, plots
from dpmc.errors import DpmcError
from dpmc.figures import fast, fast_equal_budget, fast_logistic, fast_mixture, fast_variants
from dpmc.metrics.histogram import bin_counts, symmetric_kl
from dpmc.plots import density
from dpmc.plots.chains import path_of
from dpmc.studies import Study
from dpmc.studies.figures import declared_figure
from figures import synthetic
from figures.fast_tables import metrics_of, real_study, write_tables
from figures.paper import write_chain

NAMES = ("mixture", "logistic", "variants", "equal-budget")


def value_of(model: str, method: str, epsilon: str, metric: str) -> float:
    share = metric.endswith(("rate", "fraction", "accuracy"))
    size = 0.5 + 0.01 * len(method) if share else 10.0 + len(method)
    return size if epsilon == "inf" else size * (1.0 if share else 1.0 + float(epsilon))


def spent_by(study: Study):
    return lambda method, epsilon: (
        float(epsilon) if fast.has_guarantee(study, method) and epsilon != "inf" else np.inf
    )


@pytest.fixture
def made(tmp_path) -> tuple[Study, Path]:
    study = real_study()
    write_tables(study, tmp_path, spent_by(study))
    return study, tmp_path


def drawn(name: str, study: Study, results: Path) -> Figure:
    figure = synthetic.draw(name, metrics_of(study, value_of), study, Path("none"), results)
    assert isinstance(figure, Figure)
    figure.canvas.draw()
    return figure


@pytest.mark.parametrize("name", NAMES)
def test_one_kind_of_epsilon_an_axis(made, name):
    labels = [axes.get_xlabel() for axes in drawn(name, *made).axes]
    total, each = ([what for what in labels if word in what] for word in ("total ε", "per iteration"))
    assert bool(total) == (name == "equal-budget")
    assert not (total and each)
    assert each or name == "equal-budget"


@pytest.mark.parametrize("name", (*NAMES, "density"))
def test_captions_say_what_epsilon_is(name):
    caption = declared_figure(Path("none.yaml"), name).text
    assert "total" in caption if name == "equal-budget" else "per iteration" in caption
    assert "as published" in caption.lower() or "As published" in caption


def test_only_true_guarantees_at_equal_budget(made):
    study, results = made
    shown = fast_equal_budget.shown_labels(study, "mixture")
    assert shown == ["dp-penalty", "dp-barker", "dp-fast-mh-corrected", "dp-fast-mh-full-corrected"]
    figure = drawn("equal-budget", study, results)
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    assert len(titles) == 5 and not any("published" in title or "coded" in title for title in titles)
    curve = fast_equal_budget.curve(
        fast.Traces.read(fast.trace_path(results, study, "mixture")), "dp-penalty", "0.05"
    )
    assert [x for x, _ in curve] == pytest.approx([0.05 * i**0.5 for i in (1, 501, 1001, 2001)])


def test_best_within_a_budget():
    curves = [[(1.0, 9.0), (3.0, 5.0), (9.0, 6.0)], [(2.0, 7.0), (4.0, 8.0), (8.0, 1.0)]]
    assert fast_equal_budget.best(curves) == [(1.0, 9.0), (2.0, 7.0), (3.0, 5.0), (8.0, 1.0)]


def test_hollow_and_dashed_without_a_guarantee():
    study = real_study()
    for label in fast.main_labels(study, "mixture"):
        if fast.is_private(study, "mixture", label):
            assert fast.look(study, label).hollow != fast.has_guarantee(study, label), label


def test_main_labels_have_no_other_steps_or_k():
    study = real_study()
    for model in study.models:
        labels = fast.main_labels(study, model)
        assert not any(label.endswith("-tuned") or "-k-" in label for label in labels)
        assert {"mh", "barker", "tuna-mh", "dp-penalty", "dp-fast-mh", "dp-fast-mh-corrected"} <= set(labels)
    assert "dp-fast-mh-as-coded" not in fast.compared_labels(study, "mixture")


def test_variants_are_three_and_the_sampler_without_privacy():
    study = real_study()
    for algorithm, plain in fast_variants.WITHOUT_PRIVACY.items():
        labels = fast_variants.shown_labels(study, "mixture", algorithm)
        kinds = [fast.variant(study, label) for label in labels]
        assert sorted(kinds) == ["", "as_coded", "corrected", "published"]
        assert study.methods[labels[kinds.index("")]].algorithm == plain


def test_mixture_shows_what_the_tables_say(made):
    study, results = made
    axes = drawn("mixture", study, results).axes
    look = fast.look(study, "dp-penalty")
    values = [(line.get_color(), list(line.get_ydata())) for line in axes[0].lines]
    expected = [
        value_of("mixture", "dp-penalty", e, "symmetric_kl") for e in study.models["mixture"].epsilons
    ]
    assert any(colour == look.colour and y == pytest.approx(expected) for colour, y in values)
    level = 1.0 + len("dp-penalty") / 10.0
    along = [(line.get_color(), list(line.get_xdata()), list(line.get_ydata())) for line in axes[2].lines]
    middle = [level + 1.0 + 20.0 / i for i in (1, 501, 1001, 2001)]  # the median of three seeds
    assert any(c == look.colour and y == pytest.approx(middle) for c, _, y in along)
    seconds = [list(line.get_xdata()) for line in axes[3].lines if line.get_color() == look.colour]
    assert seconds[0] == pytest.approx([1e-4 * i for i in (501, 1001, 2001)])
    assert fast_mixture.files(study, results) == [
        results / "dp-fast-mh/traces/mixture.csv",
        results / "dp-fast-mh/speed.csv",
    ]


def test_a_data_set_that_is_not_to_be_had_has_no_column(made):
    study, results = made
    both = len(drawn("logistic", study, results).axes)
    fast.trace_path(results, study, "logistic-fashion").unlink()
    assert fast_logistic.shown_models(study, results) == ["logistic-digits"]
    assert len(drawn("logistic", study, results).axes) < both
    fast.trace_path(results, study, "logistic-digits").unlink()
    with pytest.raises(DpmcError, match="no data set of logistic-fashion, logistic-digits"):
        drawn("logistic", study, results)


def test_a_study_without_pictures_has_no_logistic_figure():
    study = real_study()
    rest = study.model_copy(update={"models": {"mixture": study.models["mixture"]}})
    assert plots.applies("logistic", study) and not plots.applies("logistic", rest)
    assert plots.applies("mixture", rest)


def test_k_sweep_is_of_k_alone():
    study = real_study()
    sweeps = fast_logistic.k_sweeps(study, "logistic-fashion")
    assert list(sweeps["published"]) == [75, 150, 225, 450, 900]
    for kind, labels in sweeps.items():
        assert all(fast.variant(study, label) == kind for label in labels.values())


def test_density_reads_single_chains_at_the_paper_s_epsilon():
    study = real_study()
    cells = density.needs(study)
    assert {epsilon for _, _, epsilon in cells} == {"0.05", "inf"}
    assert density.files(study, Path("results")) == [Path("data/dp-fast-mh/mixture/fresh-0.nc")]
    counts = np.zeros((9, 9))
    counts[4, 4] = 5.0
    assert density.smoothed(counts)[4, 4] == density.smoothed(counts).max()


def test_density_shows_the_first_10_000_draws_beside_the_exact_ones(tmp_path):
    study = real_study()
    problem = datasets.build("mixture", "mixture", "fresh-0", 100)
    problem.write(density.files(study, tmp_path / "results")[0])
    generator = np.random.default_rng(1)
    draws = generator.choice(problem.reference, (1, density.ITERATIONS + 1000))
    draws[:, density.ITERATIONS :] = 2.0  # what comes later is not shown
    cells = density.needs(study)
    for cell in cells:
        write_chain(path_of(tmp_path / "results", study, cell, 0), study, cell, 0, draws)
    figure = synthetic.draw("density", pd.DataFrame(), study, Path("none"), tmp_path / "results")
    panels = figure.axes[: 1 + len(cells)]
    titles = [axes.get_title(loc="left").replace("\n", ", ") for axes in panels]
    assert titles == ["exact posterior", *(fast.look(study, method).title for _, method, _ in cells)]
    shown, edges = draws[0, : density.ITERATIONS], problem.histogram_edges
    divergence, _ = symmetric_kl(shown, edges, problem.histogram_counts)
    assert {axes.texts[0].get_text() for axes in panels[1:]} == {f"KL {divergence:.2f}"}
    most = density.smoothed(problem.histogram_counts).max()
    expected = density.smoothed(bin_counts(shown, edges)[0]).T / most
    assert np.allclose(np.asarray(panels[1].collections[0].get_array()).reshape(expected.shape), expected)
    assert np.asarray(panels[0].collections[0].get_array()).max() == pytest.approx(1.0)


def test_a_table_that_is_missing_is_one_line(tmp_path):
    with pytest.raises(DpmcError, match="no such file"):
        fast.Traces.read(tmp_path / "traces.csv")
    (tmp_path / "speed.csv").write_text("study,model\n")
    with pytest.raises(DpmcError, match="'method' is missing"):
        fast.speeds(tmp_path / "speed.csv", "mixture")
