"""A proposal that diverges is a rejection, is counted, and costs its queries all the same."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmc.privacy import noise
from dpmc.sampling.loop import sample
from kernels import ladder
from kernels.cells import HYPERPARAMETERS, LANGEVIN, cell
from kernels.ladder import KERNELS, Kernel
from kernels.problems import Setting

each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def three_chains(kernel: Kernel) -> tuple[np.ndarray, ladder.Numbers]:
    start = kernel.setting.posterior.draws(np.random.default_rng(1), 3)
    return start, ladder.numbers(kernel, np.random.default_rng(2), 3, 6)


@each_kernel
@pytest.mark.parametrize("bad", [1e40, -np.inf, np.nan])
def test_only_the_iteration_that_diverges_is_lost(kernel: Kernel, bad: float) -> None:
    start, given = three_chains(kernel)
    given.normal[3, 1] = bad
    path = ladder.run(kernel, start, given)
    assert np.argwhere(path.diverging).tolist() == [[3, 1]]
    assert not path.accepted[3, 1]
    np.testing.assert_array_equal(path.theta[3, 1], path.theta[2, 1])
    assert np.isfinite(path.theta).all()
    given.normal[3, 1] = 0.1
    other = ladder.run(kernel, start, given)
    np.testing.assert_array_equal(path.theta[:, [0, 2]], other.theta[:, [0, 2]])


@pytest.mark.parametrize("method", LANGEVIN)
@pytest.mark.parametrize("bad", [1e80, np.inf, np.nan])
def test_only_the_step_that_diverges_is_not_made(method: str, bad: float, monkeypatch: Any) -> None:
    whole = sample(cell(method, iterations=6), [0, 1])
    vectors, calls = noise.LabNoise.vectors, iter(range(6))

    def sick(self: Any, *arguments: Any) -> np.ndarray:
        answer = vectors(self, *arguments)
        if next(calls) == 3:
            answer[1] = bad
        return answer

    monkeypatch.setattr(noise.LabNoise, "vectors", sick)
    found = sample(cell(method, iterations=6), [0, 1])
    np.testing.assert_array_equal(found[0].draws, whole[0].draws)
    assert found[1].counts["diverging"].tolist() == [[0, 0, 0, 1, 0, 0]]
    assert found[1].counts["accepted"].tolist() == [[1, 1, 1, 0, 1, 1]]
    np.testing.assert_array_equal(found[1].draws[0, 3], found[1].draws[0, 2])
    assert np.isfinite(found[1].draws).all()


@pytest.mark.parametrize("method", [m for m in HYPERPARAMETERS if not m.startswith("noisy")])
def test_a_chain_that_always_diverges_stays_and_spends_its_budget(method: str) -> None:
    moves = method in LANGEVIN  # without an acceptance test
    key = "proposal_sd" if "proposal_sd" in HYPERPARAMETERS[method] else "step_size"
    far = {key: 1e80, "accountant": "rdp"} if moves else {key: 1e60}
    lost = sample(cell(method, chains=2, **far), [0])[0]
    kept = sample(cell(method, chains=2), [0])[0]
    assert [lost.totals[name].tolist() for name in ("accepted", "diverging")] == [[0, 0], [40, 40]]
    assert kept.totals["diverging"].tolist() == [0, 0]
    assert (lost.draws == lost.start[:, None]).all()
    spent = [json.loads(run.attrs["ledger"])["performed"] for run in (lost, kept)]
    assert [event["count"] for event in spent[0]] == [event["count"] for event in spent[1]]
    assert moves or spent[0] == spent[1]  # the multiplier of a Langevin step depends on its size


class HalfLine:
    """Normal rows with mean θ_1 > 0; beyond that the log-likelihood is not a number."""

    dimension = 2

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        return np.zeros(theta.shape[:-1])

    def log_prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        return np.zeros_like(theta)

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5 * (rows[:, 0] - theta[0]) ** 2 + (0.0 if theta[0] > 0.0 else np.nan))

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.column_stack([rows[:, 0] - theta[0], 0.0 * rows[:, 0]])


@each_kernel
def test_no_chain_moves_to_where_the_likelihood_is_not_a_number(kernel: Kernel) -> None:
    batches = kernel.algorithm.batch_size > 0
    n = 2500 if batches else 8
    setting = Setting(HalfLine(), np.random.default_rng(3).normal(0.3, 1.0, (n, 2)), 4.0 / n)
    if batches:  # of a size with which all rows together outweigh noise and correction
        changes = {"batch_size": 400, "clip": 100.0, "proposal_sd": np.array([0.7, 0.7])}
        kernel = kernel.but(**{k: v for k, v in changes.items() if hasattr(kernel.algorithm, k)})
    kernel = replace(kernel, setting=setting)
    given = ladder.numbers(kernel, np.random.default_rng(4), 20, 20)
    path = ladder.run(kernel, np.full((20, 2), 0.5), given)
    assert (path.theta[:, :, 0] > 0.0).all()
    assert path.accepted.any()
    assert path.ratio_clipped.max() == (kernel.algorithm.batch_size or n)  # all rows spoke against it
