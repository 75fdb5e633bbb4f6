"""A proposal that diverges is a rejection, is counted, and costs its releases all the same."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dpmc.sampling import sample
from kernels import ladder
from kernels.cells import HYPERPARAMETERS, cell
from kernels.ladder import KERNELS, Kernel

each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@each_kernel
@pytest.mark.parametrize("bad", [1e40, -1e200, np.inf, -np.inf, np.nan])
def test_only_the_iteration_that_diverges_is_lost(kernel: Kernel, bad: float) -> None:
    start = kernel.setting.posterior.draws(np.random.default_rng(1), 3)
    given = ladder.numbers(kernel.algorithm, np.random.default_rng(2), 3, 6, 2)
    given.draws.normal[1, 3] = bad
    record = ladder.run(kernel, kernel.door_of(kernel.setting), start, given)
    assert np.argwhere(record.diverging).tolist() == [[1, 3]]
    assert record.accepted[1, 3] == 0
    np.testing.assert_array_equal(record.theta[1, 3], record.theta[1, 2])
    assert np.isfinite(record.theta).all()
    given.draws.normal[1, 3] = 0.1
    other = ladder.run(kernel, kernel.door_of(kernel.setting), start, given)
    np.testing.assert_array_equal(record.theta[[0, 2]], other.theta[[0, 2]])


@pytest.mark.parametrize("method", HYPERPARAMETERS)
def test_a_chain_that_always_diverges_pays_and_stays(method: str) -> None:
    key = "step_size" if "hmc" in method else "proposal_sd"
    lost = sample(cell(method, chains=2, **{key: 1e60}), [0])[0]
    kept = sample(cell(method, chains=2), [0])[0]
    assert lost.totals[0].tolist() == [0, 0]
    assert lost.totals[1].tolist() == [40, 40]
    assert (lost.draws == lost.start[:, None]).all()
    spent = [json.loads(run.attributes["ledger"])["performed"] for run in (lost, kept)]
    assert spent[0] == spent[1]
    assert kept.totals[1].tolist() == [0, 0]


@each_kernel
def test_private_diagnostics_are_not_read(kernel: Kernel) -> None:
    # whatever the clip counts hold, the chain is the same
    start = kernel.setting.posterior.draws(np.random.default_rng(1), 3)
    given = ladder.numbers(kernel.algorithm, np.random.default_rng(2), 3, 6, 2)
    wanted = ladder.run(kernel, kernel.door_of(kernel.setting), start, given)

    class Miscounting:
        def __init__(self, inner: object) -> None:
            self._inner = inner

        def ratio_sums(self, model, theta, proposal, bound, sums, counts):  # type: ignore[no-untyped-def]
            self._inner.ratio_sums(model, theta, proposal, bound, sums, counts)
            counts += 1000

        def batch_sums(self, model, theta, proposal, bound, words, i, sums, squares, counts):  # type: ignore[no-untyped-def]
            self._inner.batch_sums(model, theta, proposal, bound, words, i, sums, squares, counts)
            counts += 1000

        def gradient_sums(self, model, theta, bound, sums, counts):  # type: ignore[no-untyped-def]
            self._inner.gradient_sums(model, theta, bound, sums, counts)
            counts += 1000

    door = kernel.door_of(kernel.setting)
    found = ladder.run(kernel, kernel.door_of(kernel.setting, Miscounting(door.evaluator)), start, given)
    np.testing.assert_array_equal(found.theta, wanted.theta)
    assert (found.ratio_clipped - wanted.ratio_clipped == 1000).all()


class HalfLine:
    """Normal rows with mean θ_1 > 0; beyond that the log-likelihood is not a number."""

    dimension = 2

    def log_prior(self, theta):  # type: ignore[no-untyped-def]
        return 0.0

    def log_prior_gradient(self, theta, out):  # type: ignore[no-untyped-def]
        out[:] = 0.0

    def log_likelihood(self, theta, rows):  # type: ignore[no-untyped-def]
        return -0.5 * (rows[:, 0] - theta[0]) ** 2 + (0.0 if theta[0] > 0.0 else np.nan)

    def log_likelihood_gradient(self, theta, rows):  # type: ignore[no-untyped-def]
        return np.column_stack([rows[:, 0] - theta[0], 0.0 * rows[:, 0]])


@each_kernel
def test_no_chain_moves_to_where_the_likelihood_is_not_a_number(kernel: Kernel) -> None:
    batches = kernel.algorithm.batch_size > 0
    n = 2500 if batches else 8
    setting = ladder.Setting(HalfLine(), np.random.default_rng(3).normal(0.3, 1.0, (n, 2)), 4.0 / n)
    if batches:  # of a size with which all rows together outweigh noise and correction
        changes = {"batch_size": 400, "clip": 100.0, "proposal_sd": ladder.lengths(0.7, 0.7)}
        fields = {key: value for key, value in changes.items() if key in kernel.algorithm._fields}
        kernel = replace(kernel, algorithm=kernel.algorithm._replace(**fields))
    given = ladder.numbers(kernel.algorithm, np.random.default_rng(4), 20, 20, 2)
    start = np.full((20, 2), 0.5)
    record = ladder.run(kernel, kernel.door_of(setting), start, given)
    assert (record.theta[:, :, 0] > 0.0).all()
    assert record.accepted.any()
    assert record.ratio_clipped.max() == (kernel.algorithm.batch_size or n)  # all rows spoke against it
