"""Posteriors and the leapfrog trajectory: drawn from real problems and the real sampler."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpmc.common.errors import DpmcError
from dpmc.data import datasets
from dpmc.models.own import OwnModel
from dpmc.privacy.accountants import get
from dpmc.reports.plots import Given, maps, trajectory
from dpmc.reports.plots.maps import GRID, Surface, box_of, log_posterior
from dpmc.studies import Hyperparameters, Study, build_algorithm, load_study, pinned_hyperparameters
from dpmc.studies.figures import declared_figure
from figures import synthetic
from figures.reading import assert_readable
from figures.synthetic import Method, Model
from figures.synthetic import Study as MadeUp

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "data" / "published"
DECLARED = declared_figure(Path("none.yaml"), "posteriors")
MODELS = DECLARED.models


@pytest.fixture(scope="module")
def thesis() -> Study:
    return load_study(ROOT / "config" / "studies" / "thesis.yaml")


@pytest.mark.parametrize("model", [*MODELS, "flat-banana-10d"])
def test_log_posterior_is_the_sum_over_rows(model: str) -> None:
    problem = datasets.build(model, model, "published", 1000)
    points = problem.starts
    direct = [
        problem.temperature * problem.model.log_likelihood(theta, problem.rows).sum()
        + problem.model.log_prior(theta)
        for theta in points
    ]
    ours = log_posterior(problem, points)
    assert ours - ours[0] == pytest.approx(np.array(direct) - direct[0], rel=1e-8, abs=1e-8)


class Own:
    """A normal model as a user might write it, its prior for one θ at a time."""

    dimension = 2

    def log_likelihood(self, theta, rows):
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)

    def log_prior(self, theta):
        return -0.5 * (theta * theta).sum() if theta[0] > -9.0 else -np.inf

    def ratio_form(self, theta, proposal):
        return proposal - theta, -0.5 * (proposal**2 - theta**2).sum(axis=1)

    def statistics(self, rows):
        return rows


def test_log_posterior_of_a_model_of_ones_own() -> None:
    problem = datasets.build("flat-banana-2d", "flat-banana-2d", "published", 500)
    problem.model, problem.model_id = OwnModel(Own(), "mine:Own"), "mine:Own"
    points, rows = problem.starts, problem.rows
    direct = [
        problem.temperature * -0.5 * ((rows - theta) ** 2).sum() - 0.5 * (theta**2).sum() for theta in points
    ]
    ours = log_posterior(problem, points)
    assert ours - ours[0] == pytest.approx(np.array(direct) - direct[0], rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("model", MODELS)
def test_the_box_contains_start_points_and_the_posterior(model: str) -> None:
    problem = datasets.build(model, model, "published", 2000)
    low, high = box_of(problem, DECLARED.half_widths.get(model))
    assert (problem.starts > low).all() and (problem.starts < high).all()
    surface = Surface.of(problem, low, high)
    assert surface.values.shape == (GRID, GRID)
    assert -0.5 < surface.values.max() <= 0.0
    # The second component runs down the rows of the grid.
    corner = np.array([[surface.first[-1], surface.second[0]], [surface.first[0]] * 2])
    corner[1] = surface.first[0], surface.second[0]
    difference = np.diff(log_posterior(problem, corner))[0]
    assert surface.values[0, 0] - surface.values[0, -1] == pytest.approx(difference)


def test_posteriors_show_the_start_points_of_the_chains() -> None:
    of = MadeUp({m: Model(m, n=2000) for m in MODELS}, {"dp-hmc": Method("dp-hmc", MODELS)})
    of.models["clipping-2d"] = Model("flat-banana-2d", ("inf",), 2000)
    figure = synthetic.draw("posteriors", pd.DataFrame(), of, PUBLISHED)  # type: ignore[arg-type]
    assert_readable(figure)
    assert len(figure.axes) == len(MODELS)
    for axes, model in zip(figure.axes, MODELS, strict=True):
        (points,) = axes.lines
        expected = datasets.build(model, model, "published", 2000).starts
        assert np.array_equal(points.get_xydata(), expected)
        assert len(axes.collections) == 1  # the contours


def test_start_points_are_the_published_ones_and_the_circle_is_round(thesis: Study) -> None:
    table = pd.read_csv(PUBLISHED / "posterior_starts.csv")
    figure = synthetic.draw("posteriors", pd.DataFrame(), thesis, PUBLISHED)
    for axes, model in zip(figure.axes, MODELS, strict=True):
        published = table[table.model == model][["theta_1", "theta_2"]].to_numpy()
        assert axes.lines[0].get_xydata() == pytest.approx(published, rel=0.0, abs=1e-8)
        width, height = np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())
        assert axes.get_box_aspect() == 1.0
        one_scale = model not in ("tempered-banana-2d", "narrow-banana")
        assert (width == pytest.approx(height)) == one_scale


def test_a_map_of_one_s_own_rows(tmp_path: Path) -> None:
    rows = datasets.build("flat-banana-2d", "flat-banana-2d", "fresh-3", 200).rows
    pd.DataFrame(rows, columns=["a", "b"]).to_csv(tmp_path / "mine.csv", index=False)
    (tmp_path / "own.yaml").write_text(
        "title: own\ndelta: 0.1/n\nseeds: 1\ntuning: {mode: none}\nmethods: {dp-penalty: {}}\n"
        "models: {own: {model: flat-banana-2d, data: mine.csv, epsilons: [1]}}\n"
    )
    declared, study = DECLARED.model_copy(update={"models": ()}), load_study(tmp_path / "own.yaml")
    (axes,) = maps.draw(Given(declared, pd.DataFrame(), study, PUBLISHED, tmp_path)).axes
    expected = datasets.with_exact_posterior(datasets.from_rows("own", "flat-banana-2d", "mine", rows))
    assert axes.lines[0].get_xydata() == pytest.approx(expected.starts)
    assert (expected.reference > [axes.get_xlim()[0], axes.get_ylim()[0]]).all(axis=1).mean() > 0.9


def test_a_map_needs_a_model_of_two_parameters() -> None:
    of: Any = MadeUp({"gauss-30d": Model("gauss-30d", n=100)}, {})
    with pytest.raises(DpmcError, match="kind maps needs a model of two parameters"):
        maps.draw(Given(DECLARED.model_copy(update={"models": ()}), pd.DataFrame(), of, PUBLISHED, ROOT))


def test_the_trajectory_is_one_of_the_sampler(thesis: Study) -> None:
    problem = datasets.build("circle", "circle", "published")
    points = trajectory.trajectory(thesis, "circle", problem)
    assert points.shape == (trajectory.STEPS + 1, 2)
    assert np.array_equal(points, trajectory.trajectory(thesis, "circle", problem))
    # Leapfrog: without the gradients' steps the points would be equally spaced on a line.
    values, _ = pinned_hyperparameters(thesis, "circle", "dp-hmc")
    kick = np.diff(points, n=2, axis=0) / values["step_size"] ** 2  # = gradient, M = 1
    noise_sd = 2.0 * values["tau_g"] * np.sqrt(problem.n) * values["clip_g"]
    gradients = np.empty_like(kick)
    for i, theta in enumerate(points[1:-1]):
        residual = problem.rows[:, 0] ** 2 - theta @ theta
        rows = 4.0 * problem.model.a * residual[:, np.newaxis] * theta
        norm = np.linalg.norm(rows, axis=1)
        scale = np.minimum(1.0, values["clip_g"] / np.maximum(norm, 1e-300))
        gradients[i] = (rows * scale[:, np.newaxis]).sum(axis=0)
    z = (kick - gradients) / noise_sd
    assert abs(z.mean()) < 4.0 / np.sqrt(z.size)
    assert 0.7 < z.std() < 1.3
    assert np.abs(gradients).max() > noise_sd  # else the test would see nothing of the gradient


def test_the_trajectory_fits_the_budget(thesis: Study) -> None:
    values, source = pinned_hyperparameters(thesis, "circle", "dp-hmc")
    given = Hyperparameters({**values, "steps": trajectory.STEPS}, source)
    algorithm = build_algorithm(thesis, "dp-hmc", given, 2)
    once, each = algorithm.releases(100_000)
    assert get("tight").iterations(once, each, trajectory.EPSILON, 1e-6) > 10


def test_the_thesis_s_frames_grow_by_four_steps_from_none(thesis: Study) -> None:
    figure = synthetic.draw("trajectory", pd.DataFrame(), thesis, PUBLISHED)
    assert_readable(figure)
    with_path = [axes.lines[0].get_xydata() for axes in figure.axes]
    published = pd.read_csv(PUBLISHED / "hmc_trajectory.csv")
    assert [len(path) - 1 for path in with_path] == [j - 1 for j in sorted(set(published.frame))]
    for one, other in zip(with_path, with_path[1:], strict=False):
        assert np.array_equal(one, other[: len(one)])
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["start of the trajectory", "steps so far", "the step of the title", "posterior"]


def test_a_study_without_a_circle() -> None:
    of = MadeUp({MODELS[0]: Model(MODELS[0])}, {})
    with pytest.raises(DpmcError, match="none of its models belongs to this figure"):
        synthetic.draw("trajectory", pd.DataFrame(), of, PUBLISHED)  # type: ignore[arg-type]
