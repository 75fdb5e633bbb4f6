"""Quantiles of z against the standard normal."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import thesis_figures

from figures.synthetic import NONE, draw, study


def test_expected_quantiles_are_those_of_sorted_normal_numbers() -> None:
    draws = np.sort(np.random.default_rng(3).standard_normal((40_000, 6)))
    simulated = np.quantile(draws, [0.5, 0.025, 0.975], axis=0)
    assert np.array(thesis_figures.expected(6)) == pytest.approx(simulated, abs=0.05)


def test_each_metric_has_its_sorted_z(tmp_path: Path) -> None:
    scores = {"mmd": [2.0, -3.5, 0.5], "acceptance_rate": [1.0, 4.0]}
    rows = [(metric, z) for metric, values in scores.items() for z in values] + [("mmd", np.nan)]
    (tmp_path / "made-up").mkdir()
    table = pd.DataFrame(rows, columns=["metric", "z"])
    table.to_csv(tmp_path / "made-up/published_comparison.csv", index=False, na_rep="nan")
    panels = draw("z-scores", study(), NONE, results=tmp_path).axes
    expected = [sum(scores.values(), []), *scores.values()]
    for axes, values in zip(panels, expected, strict=True):
        near, far = (set(line.get_ydata()) for line in axes.lines[-2:])
        assert far == {z for z in values if abs(z) > 3.0} and near | far == set(values)
    assert panels[1].get_title(loc="left") == "MMD: 3\nrms 2.35, 1 beyond 3"
