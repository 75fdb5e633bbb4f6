"""Posteriors and the leapfrog trajectory: drawn from real problems and the real sampler."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from thesis_figures import LEAPFROGS, leapfrog_points

from dpmc.data import datasets
from dpmc.reports.plots.maps import GRID, Surface, box_of, log_posterior
from dpmc.studies import Study, load_study, pinned_hyperparameters
from dpmc.studies.figures import declared_figure
from figures.synthetic import NONE, PUBLISHED, draw

ROOT = Path(__file__).parents[2]
DECLARED = declared_figure(Path("none.yaml"), "posteriors")
MODELS = DECLARED.models


@pytest.fixture(scope="module")
def thesis() -> Study:
    return load_study(ROOT / "config" / "studies" / "thesis.yaml")


@pytest.mark.parametrize("model", [*MODELS, "flat-banana-10d"])
def test_log_posterior_is_the_sum_over_rows(model: str) -> None:
    problem = datasets.build(model, model, "published", 1000)
    likelihood = [problem.model.log_likelihood(theta, problem.rows).sum() for theta in problem.starts]
    priors = [float(problem.model.log_prior(theta[np.newaxis])[0]) for theta in problem.starts]
    direct = problem.temperature * np.array(likelihood) + priors
    ours = log_posterior(problem, problem.starts)
    assert ours - ours[0] == pytest.approx(direct - direct[0], rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("model", MODELS)
def test_the_box_contains_start_points_and_the_posterior(model: str) -> None:
    problem = datasets.build(model, model, "published", 2000)
    low, high = box_of(problem, DECLARED.half_widths.get(model))
    margin = 0.02 * (high - low)  # no start lies on the frame
    assert (problem.starts > low + margin).all() and (problem.starts < high - margin).all()
    surface = Surface(problem, low, high)
    assert surface.values.shape == (GRID, GRID)
    assert -0.5 < surface.values.max() <= 0.0
    # The second component runs down the rows of the grid.
    corners = np.array([[surface.first[-1], surface.second[0]], [surface.first[0], surface.second[0]]])
    difference = np.diff(log_posterior(problem, corners))[0]
    assert surface.values[0, 0] - surface.values[0, -1] == pytest.approx(difference)


def test_start_points_are_the_published_ones(thesis: Study) -> None:
    table = pd.read_csv(PUBLISHED / "posterior_starts.csv")
    for axes, model in zip(draw("posteriors", thesis, NONE).axes, MODELS, strict=True):
        published = table[table.model == model][["theta_1", "theta_2"]].to_numpy()
        assert axes.lines[0].get_xydata() == pytest.approx(published, rel=0.0, abs=1e-8)


def test_the_trajectory_is_one_of_the_sampler(thesis: Study) -> None:
    problem = datasets.build("circle", "circle", "published")
    points = leapfrog_points(thesis, "circle", problem)
    assert points.shape == (LEAPFROGS + 1, 2)
    assert np.array_equal(points, leapfrog_points(thesis, "circle", problem))
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


def test_frames_grow_by_four_steps_and_have_the_published_path(thesis: Study) -> None:
    panels = draw("trajectory", thesis, NONE).axes
    paths = [axes.lines[0].get_xydata() for axes in panels]
    known = pd.read_csv(PUBLISHED / "hmc_trajectory.csv")
    assert [len(path) - 1 for path in paths] == [j - 1 for j in sorted(set(known.frame))]
    for before, after in itertools.pairwise(paths):
        assert np.array_equal(before, after[: len(before)])
    last = known[(known.frame == known.frame.max()) & (known.object == "trajectory")]
    assert np.array_equal(panels[-1].lines[1].get_xydata(), last[["theta_1", "theta_2"]])
    start = known[(known.frame == 1) & (known.object == "start")][["theta_1", "theta_2"]].to_numpy()
    for axes in panels:  # either path has a start of its own look
        ours, theirs = axes.lines[-1], axes.lines[2]
        assert theirs.get_xydata() == pytest.approx(start) and np.array_equal(ours.get_xydata(), paths[0])
        assert ours.get_marker() != theirs.get_marker()
