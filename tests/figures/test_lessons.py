"""The figure of the results of all searches of a study: every number is at its place."""

from pathlib import Path
from typing import Any

import lessons
import pytest

from dpmc.reports.plots import style
from dpmc.studies import Study, load_study

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
