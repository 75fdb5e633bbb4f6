"""The public guesses of the study `peers` are what its comments say: they follow from public tuning rows."""

from pathlib import Path

import numpy as np
import pytest

from dpmc.data import datasets
from dpmc.studies.hyperparameters import pinned_hyperparameters
from dpmc.studies.loading import load_study

ROOT = Path(__file__).parents[2]
PEERS = load_study(ROOT / "config" / "studies" / "peers.yaml")
ROWS_KEPT = 1.0 - 1.0 / 2000.0
OFF = {"sum": 0.0, "sum-off-3": 3.0, "sum-off-10": 10.0, "sum-off-3-narrow": 3.0}


@pytest.mark.parametrize("model", PEERS.models)
def test_sums_ask_what_public_rows_suggest(model: str) -> None:
    problem = datasets.build(model, model, "tuning")
    summaries = problem.model.summaries(problem.rows)
    for label, off in OFF.items():
        given = pinned_hyperparameters(PEERS, model, label).values
        moved = summaries.mean(axis=0) + off * summaries.std(axis=0) / np.sqrt(summaries.shape[1])
        around = summaries.mean(axis=0) if label.endswith("narrow") else moved
        norms = np.linalg.norm(summaries - around, axis=1)
        np.testing.assert_allclose(given["centre"], moved, rtol=1e-3, atol=1e-6)
        assert given["clip"] == pytest.approx(np.quantile(norms, ROWS_KEPT), rel=2e-2)
