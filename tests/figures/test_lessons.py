"""The figure of the results of all searches of a study: every number is at its place."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpmc.data import datasets
from dpmc.reports.plots import lessons, style
from dpmc.studies import Study, load_study
from dpmc.tuning import reach

MARKERS = [style.STYLES[method].marker for method in ("dp-hmc", "dp-penalty")]
STUDY = """
title: searched
delta: 0.1/n
seeds: 2
models:
  wide: {model: gauss-30d, epsilons: [4], tuning_epsilon: 4}
  second: {model: flat-banana-2d, epsilons: [4], tuning_epsilon: 4}
  first: {model: flat-banana-2d, epsilons: [2], tuning_epsilon: 2}
methods:
  dp-hmc: {}
  dp-penalty: {}
figures: []
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "config" / "studies" / "searched.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(STUDY)
    return load_study(path)


def found(model: str, method: str, dimension: int, pinned: float, chosen: float) -> dict[str, Any]:
    """Return the result of a search, with every quantity derived from one number."""

    def summary(x: float) -> dict[str, float]:
        return {
            "mmd": x,
            "mmd_error": 0.01,
            "iterations": 1000 * x,
            "acceptance_rate": x / 2,
            "ratio_clip_fraction": x / 10,
            "noise_sd": 3 * x,
        }

    search = {"dimension": dimension, "pinned": summary(pinned), "chosen": summary(chosen)}
    return {"model": model, "method": method, "search": search}


def points(axes: Any) -> list[tuple[int, float]]:
    """(model, y) of each single marker."""
    lines = [line for line in axes.lines if len(line.get_xdata()) == 1 and line.get_marker() in MARKERS]
    return sorted((round(line.get_xdata()[0]), round(line.get_ydata()[0], 6)) for line in lines)


def test_models_are_ordered_by_dimension_then_budget(study: Study) -> None:
    searches = [
        found("wide", "dp-penalty", 30, 0.5, 0.4),
        found("second", "dp-penalty", 2, 0.3, 0.1),
        found("first", "dp-hmc", 2, 0.6, 0.2),
    ]
    figure = lessons.draw(searches, study)
    # model by model, pinned and chosen
    assert points(figure.axes[0]) == [(0, 0.2), (0, 0.6), (1, 0.1), (1, 0.3), (2, 0.4), (2, 0.5)]
    assert points(figure.axes[1]) == [(0, 200), (0, 600), (1, 100), (1, 300), (2, 400), (2, 500)]
    assert [y for _, y in points(figure.axes[3])[-2:]] == pytest.approx([0.04, 0.05])
    assert [y for _, y in points(figure.axes[4])[-2:]] == pytest.approx([1.2, 1.5])


def test_the_reach_of_a_walk_and_the_most_it_can_be() -> None:
    problem = datasets.build("flat-banana-2d", "flat-banana-2d", "tuning", 2000, 4)
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    mu, tau, clip = 0.8, 0.3, 2.0
    for factor, best in ((1.0, True), (0.5, False)):
        # A step for which the noise has the best sd, and one for which it has half of that; both are small.
        # Of normal steps those that are accepted are shorter, by simulation.
        step = factor * reach.BEST_NOISE_SD / (2.0 * tau * np.sqrt(2000) * clip * np.sqrt(2.0))
        sd_of_noise = factor * reach.BEST_NOISE_SD
        k, rate = mu**2 * 2000 * tau**2, 2.0 * norm.cdf(-0.5 * sd_of_noise)
        summary = {"iterations": k, "acceptance_rate": rate}
        setting = {"tau": tau, "clip": clip, "proposal_sd": step}
        search = {"algorithm": "dp-penalty", "free": ["tau", "clip"], "pinned": dict(summary), "chosen": {}}
        one = {"pinned": setting, "hyperparameters": setting, "search": search}
        reach.add_reach(one, problem)
        made = one["search"]["pinned"]
        squares = np.random.default_rng(1).chisquare(2, 200_000) / 2.0
        taken = norm.cdf(-0.5 * sd_of_noise * np.sqrt(squares))
        shorter = (squares * taken).mean() / taken.mean()
        assert made["reach"] == pytest.approx(step * np.sqrt(k * rate * shorter) / sd.max(), rel=0.01)
        assert (made["reach"] == pytest.approx(made["most_reach"] * np.sqrt(shorter), rel=0.01)) == best
        assert made["reach"] < made["most_reach"]
        assert one["search"]["chosen"] == {}
