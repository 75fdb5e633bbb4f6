"""The published results as data: complete, in order, and consistent with each other."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmc.common import threefry
from dpmc.metrics.mmd import published_mmd
from dpmc.models import published
from dpmc.models.banana import Banana, BananaPosterior
from dpmc.reports.plots.published import published_boxes
from dpmc.reports.plots.style import MODEL_TITLES, STYLES
from dpmc.studies import load_study

FOLDER = Path(__file__).parents[2] / "data" / "published"
BOXES = {
    "mmd": 197,
    "ratio_clip_fraction": 204,
    "acceptance_rate": 197,
    "gradient_clip_fraction": 45,
    "mean_error": 6,
}


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(FOLDER / f"{name}.csv", dtype={"epsilon": str}, keep_default_na=False)


@pytest.mark.parametrize("name", BOXES)
def test_boxes(name: str) -> None:
    table = read(name)
    assert list(table.columns) == ["model", "method", "epsilon", "statistic", "index", "value"]
    assert set(table.method) <= set(STYLES) | {"baseline"}
    assert set(table.model) <= set(MODEL_TITLES)
    boxes = table[(table.method != "baseline") & (table.statistic != "outlier")]
    wide = boxes.pivot(index=["model", "method", "epsilon"], columns="statistic", values="value")
    assert len(wide) == BOXES[name]
    order = ["min", "whisker_low", "q1", "median", "q3", "whisker_high", "max"]
    assert (np.diff(wide[order].to_numpy(float), axis=1) >= -1e-8).all()


def test_acceptance_rates_are_whole_numbers_of_iterations() -> None:
    iterations = read("iterations").set_index(["model", "method", "epsilon"]).iterations
    table = read("acceptance_rate")
    single = table[table.statistic.isin(["min", "max", "outlier"])]
    k = iterations.loc[list(zip(single.model, single.method, single.epsilon, strict=True))]
    accepted = single.value.to_numpy() * k.to_numpy()
    assert (np.abs(accepted - accepted.round()) < 1e-8 * k.to_numpy()).all()


def test_every_published_box_has_a_cell_of_the_thesis() -> None:
    study = load_study(FOLDER.parents[1] / "config" / "studies" / "thesis.yaml")
    boxes = [
        (metric, *cell) for metric in BOXES for cell in published_boxes(FOLDER, metric, study) if cell[2]
    ]
    assert len(boxes) == sum(BOXES.values()) == 649
    assert {cell[1:] for cell in boxes} <= set(study.cells())


@pytest.mark.parametrize(("model", "temperature"), [("flat-banana-2d", 1.0), ("tempered-banana-2d", 0.01)])
def test_our_mmd_of_the_baselines_is_the_published_one(model: str, temperature: float) -> None:
    # Same exact samples, in the same order; only the 500 pairs behind the bandwidth differ.
    variance, n, a = np.array([20.0, 2.5]), 100_000, 20.0
    banana = Banana(a, 0.0, 0.0, variance, 1000.0)
    key = threefry.key_of_seed(published.BANANA_SEED)
    rows = banana.simulate(published.normals(key), np.array([0.0, 3.0]), n)
    precision = temperature * n / variance + 1.0 / 1000.0
    mean = temperature * n / variance * rows.mean(axis=0) / precision

    def exact(key: threefry.Key) -> np.ndarray:
        return BananaPosterior(mean, 1.0 / precision, banana).draws(published.normals(key), 1000)

    reference, *baselines = map(exact, published.posterior_keys("banana"))
    ours = [
        published_mmd(draws, reference, np.random.default_rng(index)) for index, draws in enumerate(baselines)
    ]
    table = read("mmd")
    theirs = table[(table.model == model) & (table.method == "baseline")].sort_values("index").value
    assert ours == pytest.approx(list(theirs), abs=0.004)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.95
