"""Whole runs over many seeds: means and squares are the exact ones within their own errors."""

import numpy as np
import pytest
from scipy import stats

from dpmc.data.problem import Problem
from dpmc.sampling.loop import sample
from kernels.cells import cell, problem, unclipped
from kernels.ladder import BATCHES, KERNELS, REUSING
from kernels.problems import bent

SEEDS = 120
#: With many rows, whose batches have no bias.
OVER_BATCHES = {
    "minibatch-penalty": {"tau": 0.01, "batch_size": 50, "clip": 10.0, "proposal_sd": [0.2, 0.1]},
    "minibatch-penalty-guided": {"tau": 0.01, "batch_size": 50, "clip": 10.0, "proposal_sd": [0.28, 0.15]},
    "dp-barker": {"batch_size": 400, "clip_factor": 1.0, "proposal_sd": [0.15, 0.075]},
}
METHODS = [name for name in (*KERNELS, *REUSING) if name not in BATCHES] + list(OVER_BATCHES)


def moment_z(method: str, on: Problem, told: Problem) -> tuple[np.ndarray, np.ndarray]:
    """z of each moment (4,) over all seeds, and of each seed (S, 4) by its own batch means.

    Moments are the scores of φ(θ) under `told`'s posterior and their squares; `on` is sampled.
    """
    runs = sample(
        cell(method, on, iterations=3000, **(OVER_BATCHES.get(method) or unclipped(method))),
        list(range(SEEDS)),
    )
    posterior = told.model.posterior(told.rows, told.temperature)
    scores = np.stack([bent(told.model, run.draws[0]) for run in runs]) - posterior.mu
    scores /= np.sqrt(posterior.variance)
    values = np.concatenate([scores, scores**2 - 1.0], axis=2)
    batches = values.reshape(SEEDS, 20, -1, 4).mean(axis=2)
    means = batches.mean(axis=1)
    own = means / (batches.std(axis=1, ddof=1) / np.sqrt(20.0))
    return means.mean(axis=0) / (means.std(axis=0, ddof=1) / np.sqrt(SEEDS)), own


def unbiased(method: str) -> Problem:
    """A problem with which a method has no bias: for batches, many rows (see `kernels.ladder`)."""
    return problem(n=2500, starts=SEEDS, temperature=0.01) if method in BATCHES else problem(starts=SEEDS)


@pytest.mark.parametrize("method", METHODS)
def test_means_and_squares_over_many_seeds(method: str) -> None:
    on = unbiased(method)
    over_seeds, own = moment_z(method, on, on)
    assert np.abs(over_seeds).max() < stats.t.isf(0.5e-4 / 4, SEEDS - 1)
    # each chain's own error is an honest one: z is Student's t with 19 degrees, a little wider
    # because batches are still correlated
    assert 0.8 < own.std() < 1.4
    assert np.mean(np.abs(own) > stats.t.isf(0.025, 19)) < 0.13


@pytest.mark.parametrize("method", ["dp-penalty", *BATCHES])
def test_a_wrong_temperature_is_detected(method: str) -> None:
    right, wrong = unbiased(method), unbiased(method)
    wrong.temperature *= 1.1
    assert np.abs(moment_z(method, wrong, right)[0]).max() > (4.0 if method == "dp-barker" else 6.0)
