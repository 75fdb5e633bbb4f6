"""Chains of `chains.npz` made again: whole, or one iteration at a time from each known position.

Samplers with trajectories multiply a difference of rounding, so that whole chains part from each other in the
end. A single iteration from a known position, with that iteration's random numbers, must agree all the same.
"""

import dataclasses
import functools
import json
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

from dpmc.base import State
from dpmc.data import datasets
from dpmc.sampling import loop
from dpmc.studies import load_study, make_cell, pinned_hyperparameters
from oracle import chains

FEW = 30  #: iterations of a chain that is compared whole although it has trajectories


class Compared(NamedTuple):
    """Differences between a chain and its replay."""

    how: str  # "whole" or "single" iterations
    iterations: int  # compared, of each chain
    decisions: int  # that differ
    clipped: int  # iterations in which another number of rows was clipped
    difference: float  # largest |Δθ|, in posterior standard deviations


def compare(name: str, known: dict[str, Any]) -> Compared:
    """Replay a cell, "study/model/method/epsilon", and compare it with what is known.

    The momentum and thermostat of SGNHT are not known: its first iterations are compared whole.
    """
    cell = cell_of(*name.split("/"))
    if "sgnht" in cell.method:
        return _whole(cell, known, FEW)
    return _single(cell, known) if has_trajectories(name) else _whole(cell, known, chains.MOST)


def has_trajectories(name: str) -> bool:
    """Return whether a cell's sampler follows gradients."""
    return any(word in name.split("/")[2] for word in ("hmc", "mala", "sgld", "sgnht"))


def cell_of(study: str, model: str, method: str, epsilon: str) -> loop.Cell:
    """The cell of a chain; every draw is kept."""
    found = load_study(study)
    given = pinned_hyperparameters(found, model, method)
    cell = make_cell(found, _problem(study, model), method, epsilon, given)
    return dataclasses.replace(cell, thin=1, most_draws=None)


@functools.lru_cache(2)
def _problem(study: str, model: str) -> Any:
    found = load_study(study)
    spec = found.model(model)
    return datasets.build(model, spec.model, spec.data, spec.n, found.start_points, spec.start)


def _whole(cell: loop.Cell, known: dict[str, Any], most: int) -> Compared:
    total = min(json.loads(str(known["about"]))["iterations"], most)
    found = loop.sample(dataclasses.replace(cell, iterations=total), [chains.SEED])[0]
    counts = np.stack([found.counts[name] for name in ("accepted", "ratio_clipped", "gradient_clipped")])
    return _compared("whole", cell, known, found.draws, counts)


def _single(cell: loop.Cell, known: dict[str, Any]) -> Compared:
    """Run the loop in blocks of one iteration; after each, put the chains where they were known to be.

    The sampler prepares anew each time, so that HMC computes the gradient at the known position.
    """
    total = int((known["iteration"] <= chains.WHOLE).sum())
    run = loop.begin(dataclasses.replace(cell, iterations=total), chains.SEED)
    job = loop.Loop([run], cell.problem.evaluator)

    def put_back(done: int, _: int) -> None:
        theta, no = known["theta"][:, done - 1].copy(), np.zeros(cell.chains, np.bool_)
        job.state, job.prepared = State(theta, np.zeros((cell.chains, 0)), no, no), False

    blocks_of_one = mock.patch.multiple(loop, FIRST_BLOCK=1, BLOCK_SECONDS=0.0)
    with blocks_of_one, threadpool_limits(1, user_api="blas"):
        job.make_chains(None, np.inf, put_back, None, None)
    (found,) = (made.chains for made in job.all_runs)
    counts = np.stack([found.counts[name] for name in ("accepted", "ratio_clipped", "gradient_clipped")])
    return _compared("single", cell, known, found.draws, counts)


def _compared(
    how: str, cell: loop.Cell, known: dict[str, Any], draws: np.ndarray, counts: np.ndarray
) -> Compared:
    """Compare draws (chains, m, d) and counts (3, chains, m) of m iterations with the known chains."""
    total = draws.shape[1]
    early = known["iteration"] <= total
    kept = known["iteration"][early] - 1
    sd = np.sqrt(np.diag(cell.problem.exact.posterior_covariance))
    sd = np.where(sd > 0.0, sd, known["theta"].std(axis=(0, 1)))  # it is NaN where it is unknown
    difference = np.abs(draws[:, kept] - known["theta"][:, early]) / sd
    decisions = np.unpackbits(known["accepted"], axis=1)[:, :total] != counts[0]
    clipped = known["clipped"][:, :, early] != counts[1:, :, kept]
    return Compared(how, total, int(decisions.sum()), int(clipped.sum()), float(difference.max()))
