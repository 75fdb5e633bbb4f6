"""The figures of the DP-HMC paper: comparison, single runs, clipping, errata, directions, priors."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from dpmc.common.errors import DpmcError
from dpmc.data import datasets
from dpmc.metrics.table import Results, typed
from dpmc.reports.plots import chain_files, directions, paper_posteriors, plot, style
from dpmc.reports.plots.frame import kept_draws, path_of
from dpmc.reports.plots.marks import MEDIAN
from dpmc.studies.figures import declared_figure
from figures import synthetic
from figures.paper import (
    BANANA,
    BOUNDS,
    EPSILONS,
    GAUSS,
    WIDE,
    Study,
    catalogue,
    paper_study,
    plausible,
    table_of,
    write_runs,
)
from figures.reading import assert_readable, legend_texts
from figures.synthetic import EASY, metrics, study

PUBLISHED = Path(__file__).parents[2] / "data" / "published"
MAIN = ["dp-hmc", "dp-penalty", "dp-sgld", "dp-sgnht", "dp-mala"]
CORRECTED = ["DP-SGLD, corrected", "DP-SGNHT, corrected"]


@pytest.fixture(scope="module", autouse=True)
def _models():  # type: ignore[no-untyped-def]
    with pytest.MonkeyPatch.context() as patch:
        catalogue(patch)
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chain files of all that the figures of chains need."""
    folder = tmp_path_factory.mktemp("results")
    of = paper_study()
    scales = {"dp-sgld-published": 0.7**0.5, "dp-sgnht-published": 1.5**0.5, "dp-penalty": 1.3}
    for name in ("paper-posteriors", "paper-directions"):
        for cell in synthetic.module_of(name).cells_of(of, declared_figure(of.path, name)):
            write_runs(folder, of, cell, scales.get(cell[1], 1.0))
    return folder


def draw(name: str, of: Study, *folders: Path) -> Figure:
    figure = synthetic.draw(name, table_of(of, plausible), of, PUBLISHED, *folders)
    assert isinstance(figure, Figure)
    return figure


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def boxes(figure: Figure, panel: int) -> list[PathPatch]:
    return [patch for patch in figure.axes[panel].patches if isinstance(patch, PathPatch)]


def medians(figure: Figure, panel: int) -> list[float]:
    lines = [line for line in figure.axes[panel].lines if line.get_label() == MEDIAN]
    return [float(line.get_ydata()[0]) for line in sorted(lines, key=lambda line: line.get_xdata()[0])]


def ticks(figure: Figure, panel: int) -> list[float]:
    """The medians of slim bars, from left to right."""
    lines = [line for line in figure.axes[panel].lines if line.get_linewidth() == 1.1]
    return [float(line.get_ydata()[0]) for line in sorted(lines, key=lambda line: line.get_xdata()[0])]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in legend_texts(figure)]


def test_comparison_shows_five_methods_on_two_models() -> None:
    of = paper_study()
    figure = draw("comparison", of)
    assert_readable(figure)
    names = [style.MODEL_TITLES[model] for model in (BANANA, GAUSS)]
    assert titles(figure) == [f"{name}: {what}" for name in names for what in ("MMD", "error of the mean")]
    expected = [plausible(GAUSS, method, e, "mean_error") for e in EPSILONS for method in MAIN]
    assert medians(figure, 3) == pytest.approx(expected)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    corrected = {"dp-sgld": ", corrected", "dp-sgnht": ", corrected"}
    names = [style.STYLES[method].title + corrected.get(method, "") for method in MAIN]
    assert legend == [*names, "10 exact samples"]


def test_single_runs_are_the_best_the_median_and_the_worst(results: Path) -> None:
    of = paper_study()
    table = table_of(of, plausible)
    values = Results.of_study(typed(table), of)
    chosen = paper_posteriors.chosen_runs(values, (BANANA, "dp-hmc", "15"))
    assert [(name, seed) for name, seed, _ in chosen] == [("best", "0"), ("median", "4"), ("worst", "9")]
    assert paper_posteriors.chosen_runs(values, (BANANA, "none", "15")) == []
    figure = draw("paper-posteriors", of, results)
    assert_readable(figure)
    assert titles(figure)[:5] == [
        style.STYLES[method].title for method in ("dp-hmc", "dp-penalty", "dp-mala", "dp-sgld", "dp-sgnht")
    ]
    assert titles(figure)[10] == f"MMD {chosen[0][2]:.3f}"  # above the panel, not on its contours
    assert [len(axes.lines) for axes in figure.axes[:10]] == [3] * 10
    assert [len(axes.collections) for axes in figure.axes[10:]] == [1] * 15
    path = path_of(results, of, (BANANA, "dp-hmc", "15"), int(chosen[2][1]))
    (shown,) = figure.axes[20].lines
    assert set(map(tuple, shown.get_xydata())) <= set(map(tuple, kept_draws(path)))
    assert len(shown.get_xydata()) == paper_posteriors.DRAWS


def test_exact_marginals_are_normalised_and_those_of_the_posterior(results: Path) -> None:
    figure = draw("paper-posteriors", paper_study(), results)
    problem = datasets.build(BANANA, BANANA, "fresh-0")
    for row, panel in enumerate((0, 5)):
        path = figure.axes[panel].collections[0].get_paths()[0].vertices
        grid, density = path[:, 0], path[:, 1]
        upper = density > 0.0
        order = np.argsort(grid[upper])
        x, y = grid[upper][order], density[upper][order]
        mass = np.trapezoid(y, x)
        mean = np.trapezoid(x * y, x) / mass
        assert mass == pytest.approx(1.0, abs=0.02)
        assert mean == pytest.approx(problem.posterior_mean[row], abs=0.03)


def test_exact_regions_hold_their_shares() -> None:
    problem = datasets.build(BANANA, BANANA, "fresh-0")
    low, high = paper_posteriors._box(problem)
    surface = paper_posteriors.Surface.of(problem, low, high)
    outer, inner = paper_posteriors._levels_of_grid(surface.values)
    # A normal law in the plane drops by −ln(1 − p) from its peak to the edge of its region of mass p.
    assert (outer, inner) == pytest.approx((np.log(0.05), np.log(0.5)), abs=0.05)


def test_a_run_that_never_moved_has_no_density(tmp_path: Path) -> None:
    of = paper_study()
    of.methods = {"dp-hmc": of.methods["dp-hmc"], "dp-penalty": of.methods["dp-penalty"]}
    for cell in paper_posteriors.cells_of(of, declared_figure(of.path, "paper-posteriors")):
        write_runs(tmp_path, of, cell, scale=0.0 if cell[1] == "dp-hmc" else 1.0)
    table = table_of(of, plausible)
    table = table[~((table.method == "dp-penalty") & (table.metric == "mmd"))]
    figure = synthetic.draw("paper-posteriors", table, of, PUBLISHED, tmp_path)
    assert_readable(figure)
    assert len(figure.axes[0].lines) == 0 and len(figure.axes[4].lines[0].get_xydata()) > 100
    assert titles(figure)[5] == "no run has an MMD"


def test_clipping_shows_boxes_by_bound_and_every_run_by_fraction() -> None:
    of = paper_study()
    figure = draw("paper-clipping", of)
    assert_readable(figure)
    assert titles(figure)[:5] == [
        *("paper's banana: MMD", "by the fraction clipped"),
        *("paper's banana: error of the mean", "paper's banana: clipped log ratios", "paper's Gaussian: MMD"),
    ]
    for panel, model in ((0, BANANA), (4, GAUSS)):
        ticks = [tick.get_text() for tick in figure.axes[panel].get_xticklabels()]
        assert ticks == [bound.removeprefix("0") for bound in BOUNDS[model]]
        for further, metric in ((0, "mmd"), (2, "mean_error"), (3, "ratio_clip_fraction")):
            expected = [
                plausible(f"{model}-clipping", f"{algorithm}-{model}-{bound}", "inf", metric)
                for bound in BOUNDS[model]
                for algorithm in ("rwmh", "hmc")
            ]
            assert medians(figure, panel + further) == pytest.approx(expected)
    points = [line for line in figure.axes[1].lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in points) == 12 * 10
    guidelines = [line for axes in figure.axes for line in axes.lines if line.get_linestyle() == "--"]
    assert len(guidelines) == 4


def test_clipping_says_what_is_missing() -> None:
    of = paper_study()
    table = table_of(of, plausible, seeds=2)
    gone = (table.method == f"hmc-{BANANA}-10") & (table.metric == "mmd")
    figure = synthetic.draw("paper-clipping", table[~gone], of, PUBLISHED)
    assert_readable(figure)
    assert [one.get_text() for one in figure.axes[0].texts] == ["no box: not computed"]


def test_errata_are_corrected_boxes_and_slim_bars_as_published() -> None:
    figure = draw("paper-errata", paper_study())
    assert_readable(figure)
    assert titles(figure) == [style.MODEL_TITLES[model] for model in (BANANA, GAUSS)]
    assert legend(figure) == [*CORRECTED, "as published", "10 exact samples"]
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "log"]
    corrected = [plausible(GAUSS, m, e, "mmd") for e in EPSILONS for m in ("dp-sgld", "dp-sgnht")]
    assert medians(figure, 1) == pytest.approx(corrected)
    assert ticks(figure, 1) == pytest.approx([1.2 * median for median in corrected])


def test_priors_are_compared_where_both_have_chains() -> None:
    of = paper_study()
    of.models[WIDE].epsilons = ("4", "12")
    figure = draw("paper-prior", of)
    assert_readable(figure)
    assert titles(figure) == ["MMD", "error of the mean", "covariance error"]
    assert legend(figure) == ["DP-HMC", "DP penalty", "prior of the code, σ₀² = 1,000", "10 exact samples"]
    for panel in range(3):
        assert len(boxes(figure, panel)) == len(ticks(figure, panel)) == 4


def test_directions_show_the_variance_of_either_version(results: Path) -> None:
    figure = draw("paper-directions", paper_study(), results)
    assert_readable(figure)
    assert titles(figure) == [f"{name}, ε = 15" for name in CORRECTED]
    assert legend(figure) == [*CORRECTED, "as published"]
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "log"]
    # The made-up chains: 0.7 and 1.5 of the exact variance as published, all of it corrected.
    for panel, ratio in enumerate((0.7, 1.5)):
        assert np.mean(medians(figure, panel)) == pytest.approx(1.0, abs=0.05)
        assert np.mean(ticks(figure, panel)) == pytest.approx(ratio, abs=0.05)


def test_variance_ratios_are_ordered_from_the_stiffest_direction() -> None:
    problem = datasets.build(GAUSS, GAUSS, "fresh-0")
    draws = problem.baselines.reshape(-1, 10).copy()
    stiffest = int(np.argmin(np.diag(problem.posterior_covariance)))
    draws[:, stiffest] *= 2.0
    ratios = directions.variance_ratios(draws, problem)
    assert ratios == pytest.approx([4.0, *[1.0] * 9], rel=0.1)


def test_directions_of_a_part_of_the_study() -> None:
    of = paper_study()
    del of.methods["dp-sgnht-published"]
    cells = directions.cells_of(of, declared_figure(of.path, "paper-directions"))
    assert cells == [(GAUSS, "dp-sgld", "15"), (GAUSS, "dp-sgld-published", "15")]
    of.methods["dp-sgld-published"].models = (BANANA,)
    with pytest.raises(DpmcError, match="no method runs with its partner on paper-gauss"):
        directions.cells_of(of, declared_figure(of.path, "paper-directions"))


def test_a_run_that_is_not_finite_has_no_variance(tmp_path: Path) -> None:
    of = paper_study()
    del of.methods["dp-sgnht"]
    corrected, published = directions.cells_of(of, declared_figure(of.path, "paper-directions"))
    write_runs(tmp_path, of, corrected, np.inf)
    write_runs(tmp_path, of, published)
    figure = draw("paper-directions", of, tmp_path)
    assert [text.get_text() for text in figure.axes[0].texts] == ["no finite run"]
    assert medians(figure, 0) == [] and len(ticks(figure, 0)) == 10


def test_studies_without_the_needed_cells_are_refused() -> None:
    easy = study(EASY[:1])
    cases = {
        "paper-clipping": "it has no clipping experiment",
        "paper-errata": "it has no pair that this figure shows: dp-sgld beside dp-sgld-published, ",
        "paper-directions": "it has no pair that this figure shows: dp-sgld beside dp-sgld-published, ",
        "paper-prior": "it has no pair that this figure shows: paper-banana-wide beside paper-banana",
        "paper-posteriors": "none of its models belongs to this figure, which shows paper-banana",
    }
    for name, message in cases.items():
        folders = () if name == "paper-clipping" else (Path(),)
        with pytest.raises(DpmcError, match=message):
            synthetic.draw(name, metrics(easy), easy, PUBLISHED, *folders)


def test_chain_files_are_those_of_the_cells_that_a_figure_needs() -> None:
    of = paper_study()
    files = chain_files("paper-posteriors", of, Path("results"))
    assert len(files) == len(MAIN) * of.seeds
    assert files[0] == Path("results/made-up/chains/paper-banana/dp-hmc/eps-15/seed-0.nc")
    assert chain_files("comparison", of, Path("results")) == []
    of.methods["dp-hmc"].from_study = "other"
    assert path_of(Path("r"), of, (BANANA, "dp-hmc", "15"), 3) == Path(
        "r/other/chains/paper-banana/dp-hmc/eps-15/seed-3.nc"
    )


def test_kept_draws_are_the_pooled_second_halves(results: Path) -> None:
    path = chain_files("paper-posteriors", paper_study(), results)[0]
    draws = kept_draws(path)
    assert draws.shape == (4 * 201, 2)  # 400 iterations keep 200 ... 400


def test_plot_finds_chains_and_names_a_missing_one(tmp_path: Path, results: Path) -> None:
    of, table = paper_study(), tmp_path / "metrics.csv"
    of.methods = {"dp-hmc": of.methods["dp-hmc"]}
    table_of(of, plausible).to_csv(table, index=False)
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    plot("paper-posteriors", of, [table], PUBLISHED, [first], results)
    plot("paper-posteriors", of, [table], PUBLISHED, [second], results)
    assert first.read_bytes() == second.read_bytes()
    with pytest.raises(DpmcError, match="eps-15/seed-0.nc: no such file"):
        plot("paper-posteriors", of, [table], PUBLISHED, [tmp_path / "c.png"], tmp_path)
    assert not (tmp_path / "c.png").exists()
