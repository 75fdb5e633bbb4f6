"""The figures of the DP-HMC paper: comparison, single runs, clipping, errata, directions, priors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import paper_figures
import pytest

from dpmc.common.errors import DpmcError
from dpmc.data import datasets
from dpmc.metrics.table import typed
from dpmc.reports.plots import chains, plot, reads
from dpmc.reports.plots.chains import chain_path, kept_draws
from dpmc.studies import Study
from dpmc.studies.figures import declared_figure
from dpmc.studies.whole import Results
from figures import synthetic
from figures.paper import (
    BANANA,
    BOUNDS,
    GAUSS,
    catalogue,
    paper_study,
    plausible,
    table_of,
    write_runs,
)
from figures.synthetic import EASY, bars, medians, metrics, notes, study

MAIN = ["dp-hmc", "dp-penalty", "dp-mala", "dp-sgld", "dp-sgld-published", "dp-sgnht", "dp-sgnht-published"]


@pytest.fixture(scope="module", autouse=True)
def _models():  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        catalogue(patch)
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chain files of all that the figures of chains need."""
    folder, of = tmp_path_factory.mktemp("results"), paper_study()
    scales = {"dp-sgld-published": 0.7**0.5, "dp-sgnht-published": 1.5**0.5, "dp-penalty": 1.3}
    pairs = paper_figures.direction_cells(of, declared_figure(of.path, "paper-directions"))
    single = chains.cells_of_runs(of, declared_figure(of.path, "paper-posteriors"))
    for cell in [*single, *pairs, *pairs.values()]:
        write_runs(folder, of, cell, scales.get(cell[1], 1.0))
    return folder


def draw(name: str, of: Study, results: Path = Path()):  # type: ignore[no-untyped-def]
    return synthetic.draw(name, of, table_of(of, plausible), results=results)


def test_single_runs_are_the_best_the_median_and_the_worst(results: Path) -> None:
    of, cell = paper_study(), (BANANA, "dp-hmc", "15")
    values = Results(typed(table_of(of, plausible)), of)
    seeds = [chains.chosen_run(values, cell, run)[0] for run in chains.RUNS]
    assert seeds == ["0", "4", "9"]
    assert chains.chosen_run(values, (BANANA, "none", "15"), "best")[0] == ""
    figure = draw("paper-posteriors", of, results)
    worst = figure.axes[2 * len(MAIN)].lines[0].get_xydata()
    draws = kept_draws(chain_path(results, of, cell, "9"))
    assert draws.shape == (4 * 201, 2)  # the second halves, 200 ... 400, of four chains
    assert set(map(tuple, worst)) <= set(map(tuple, draws)) and len(worst) == chains.DRAWS_SHOWN
    # A normal law in the plane drops by −ln(1 − p) from its peak to the edge of its region of mass p.
    # The panel leaves out about half a percent of the posterior.
    (regions,) = figure.axes[2 * len(MAIN)].collections
    assert regions.levels == pytest.approx((np.log(0.05), np.log(0.5), 0.0), abs=0.15)


def test_legends_have_the_colour_and_the_name_of_the_draws(results: Path) -> None:
    figure = draw("paper-posteriors", paper_study(), results)
    (legend,) = figure.legends
    dots = {
        text.get_text(): line.get_color()
        for text, line in zip(legend.texts, legend.legend_handles, strict=True)
        if hasattr(line, "get_color")
    }
    drawn = [axes.lines[0].get_color() for axes in figure.axes[: len(MAIN)]]
    above = [axes.get_title(loc="left").splitlines()[:-1] for axes in figure.axes[: len(MAIN)]]
    names = [" ".join(lines) for lines in above]
    assert dots == dict(zip([f"a draw of {name}" for name in names], drawn, strict=True))
    assert "DP-SGLD, corrected" in names and "DP-SGLD, paper's drift" in names


def test_marginals_are_those_of_the_runs_and_of_the_posterior(results: Path) -> None:
    of = paper_study()
    figure = draw("paper-marginals", of, results)
    columns = len(MAIN)
    assert len(figure.axes) == 3 * columns
    problem = datasets.build(BANANA, BANANA, "fresh-0")
    for row in (1, 2):
        axes = figure.axes[row * columns]
        side, mean = axes.lines[0].get_xdata(), problem.exact.posterior_mean[row - 1]
        (exact,) = axes.collections
        outline = exact.get_paths()[0].vertices
        assert outline[:, 1].max() * (side[-1] - side[0]) > 1.0  # a density
        assert len(axes.lines) == len(chains.RUNS)
        for line, seed in zip(axes.lines, ("0", "4", "9"), strict=True):
            density = np.asarray(line.get_ydata())
            draws = kept_draws(chain_path(results, of, (BANANA, "dp-hmc", "15"), seed))[:, row - 1]
            assert np.trapezoid(density, side) == pytest.approx(1.0, abs=0.03)
            assert np.trapezoid(side * density, side) == pytest.approx(
                draws.mean(), abs=0.05 + 0.02 * abs(mean)
            )


@pytest.mark.parametrize("name", ["comparison", "paper-posteriors", "paper-marginals", "paper-directions"])
def test_type_is_legible_and_inside_the_figure(name: str, results: Path) -> None:
    of = paper_study()
    synthetic.legible(draw(name, of, results), declared_figure(of.path, name).wide)


def test_of_several_models_the_median_run_of_the_best_method_is_shown(results: Path) -> None:
    def best(model: str, method: str, epsilon: str, metric: str) -> float | None:
        least = method == {BANANA: "dp-penalty", GAUSS: "dp-sgld"}[model]
        return (0.1 if least else 0.2) if metric == "mmd" else None

    of = paper_study()
    of = replace(of, models={label: of.models[label] for label in (BANANA, GAUSS)})
    figure = synthetic.draw(
        "paper-posteriors", of, table_of(of, best), results=results, models=(BANANA, GAUSS)
    )
    cells = [(BANANA, "dp-penalty", "15"), (GAUSS, "dp-sgld", "15")]
    for axes, cell in zip(figure.axes, cells, strict=True):
        draws = kept_draws(chain_path(results, of, cell, "4"))[:, :2]
        assert set(map(tuple, axes.lines[-1].get_xydata())) <= set(map(tuple, draws))
    exact = datasets.build(GAUSS, GAUSS, "fresh-0").exact.reference[:, :2]
    assert np.array_equal(figure.axes[1].lines[0].get_xydata(), exact)


def test_clipping_shows_metrics_by_bound_and_by_fraction() -> None:
    of = paper_study()
    figure = draw("paper-clipping", of)
    for panel, model in ((0, BANANA), (4, GAUSS)):
        for further, metric in ((0, "mmd"), (2, "mean_error"), (3, "ratio_clip_fraction")):
            expected = [
                plausible(f"{model}-clipping", f"{algorithm}-{model}-{bound}", "inf", metric)
                for bound in BOUNDS[model]
                for algorithm in ("rwmh", "hmc")
            ]
            assert medians(figure.axes[panel + further]) == pytest.approx(expected)
    points = [line for line in figure.axes[1].lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in points if line.get_marker() != "_") == 12  # a bound each


def test_directions_show_the_variance_of_either_version(results: Path, tmp_path: Path) -> None:
    figure = draw("paper-directions", paper_study(), results)
    # The made-up chains: 0.7 and 1.5 of the exact variance as published, all of it corrected.
    for axes, ratio in zip(figure.axes, (0.7, 1.5), strict=True):
        assert np.mean(medians(axes)) == pytest.approx(1.0, abs=0.05)
        assert np.mean(bars(axes), axis=0)[1] == pytest.approx(ratio, abs=0.05)
    problem = datasets.build(GAUSS, GAUSS, "fresh-0")
    draws = problem.exact.baselines.reshape(-1, 10).copy()
    draws[:, int(np.argmin(np.diag(problem.exact.posterior_covariance)))] *= 2.0  # the stiffest comes first
    assert paper_figures.variance_ratios(draws, problem) == pytest.approx([4.0, *[1.0] * 9], rel=0.1)

    of = paper_study()
    del of.methods["dp-sgnht-published"]
    ((corrected, published),) = paper_figures.direction_cells(
        of, declared_figure(of.path, "paper-directions")
    ).items()
    assert published == (GAUSS, "dp-sgld-published", "15")
    write_runs(tmp_path, of, corrected, np.inf)
    write_runs(tmp_path, of, published)
    (axes,) = draw("paper-directions", of, tmp_path).axes
    assert notes(axes) == ["no finite run"] and medians(axes) == [] and len(bars(axes)) == 10


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("paper-clipping", "it has no clipping experiment"),
        ("paper-errata", "none of its models belongs to this figure"),
        ("paper-prior", "runs on none|it has no pair of this figure: paper-banana-wide beside paper-banana"),
        ("paper-posteriors", "none of its models belongs to this figure, which shows paper-banana"),
    ],
)
def test_studies_without_the_needed_cells_are_refused(name: str, message: str) -> None:
    with pytest.raises(DpmcError, match=message):
        synthetic.draw(name, study(EASY[:1]), metrics(study(EASY[:1])))


def test_plot_reads_the_chains_of_its_cells_and_names_a_missing_one(tmp_path: Path, results: Path) -> None:
    of, table = paper_study(), tmp_path / "metrics.csv"
    _, files = reads("paper-posteriors", of)
    assert len(files) == len(MAIN) * of.seeds
    assert files[0] == Path("results/made-up/chains/paper-banana/dp-hmc/eps-15/seed-0.nc")
    of = replace(of, methods={"dp-hmc": of.methods["dp-hmc"]})
    table_of(of, plausible).to_csv(table, index=False)
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    for output in (first, second):
        plot("paper-posteriors", of, [table], [output], results)
    assert first.read_bytes() == second.read_bytes()
    with pytest.raises(DpmcError, match="eps-15/seed-0.nc: no such file"):
        plot("paper-posteriors", of, [table], [tmp_path / "c.png"], tmp_path)
