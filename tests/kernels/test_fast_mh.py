"""TunaMH and DP-Fast MH: exactness of their accept bits, and faults in each of them.

Acceptance probabilities of the paper's text, computed exactly on three rows (`kernels.fast_mh`), are in
detailed balance or not; the kernels accept as often as they say. Random tests are seeded; each fails a right
kernel with probability 1e-4 or less.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernels import ladder
from kernels.cells import read
from kernels.fast_mh import FEW, Case, Line, LineSetting, imbalance
from kernels.ladder import FAULT_P, P_VALUE, Kernel

FREE = {"batch_mean": 3.0, "most_rows": 60, "epsilon": 250.0, "delta": 0.5}
NOISY = {"batch_mean": 3.0, "most_rows": 25, "epsilon": 60.0, "delta": 0.9}
ON_ALL = {"batch_mean": 3.0, "most_rows": 5, "epsilon": 1.0, "delta": 0.9}
FULL_FREE, FULL_NOISY = {"epsilon": 3.0, "delta": 0.5}, {"epsilon": 1.0, "delta": 0.9}
PUBLISHED, AS_CODED = {"variant": "published"}, {"variant": "as_coded"}
CORRECTED = {"variant": "corrected", "clip": 1.1}
TUNA = {"variant": "tuna", "batch_mean": 0.6}
COOL = replace(FEW, temperature=0.4)

#: Reversible by quadrature, each with its mean number of rows, and whether noise is drawn.
BALANCED = {
    "tuna-mh": Case("tuna-mh", TUNA, COOL),
    "published, minibatch without noise": Case("dp-fast-mh", {**PUBLISHED, **FREE}),
    "published, minibatch with noise": Case("dp-fast-mh", {**PUBLISHED, **NOISY}),
    "published, all rows without noise": Case("dp-fast-mh-full", {**PUBLISHED, **FULL_FREE}),
    "published, all rows with noise": Case("dp-fast-mh-full", {**PUBLISHED, **FULL_NOISY}),
    "corrected, minibatch without noise": Case("dp-fast-mh", {**CORRECTED, **FREE}),
    "corrected, minibatch with noise": Case("dp-fast-mh", {**CORRECTED, **NOISY}),
    "corrected, sent to all rows": Case("dp-fast-mh", {**CORRECTED, **ON_ALL}),
    "corrected, all rows without noise": Case("dp-fast-mh-full", {**CORRECTED, **FULL_FREE}),
    "corrected, all rows with noise": Case("dp-fast-mh-full", {**CORRECTED, **FULL_NOISY}),
    "as coded, minibatch without noise": Case("dp-fast-mh", {**AS_CODED, **FREE}),
    "as coded, all rows without noise": Case("dp-fast-mh-full", {**AS_CODED, **FULL_FREE}),
}
#: Rows of very different bounds, and all weight of a move in one of them.
UNEVEN = LineSetting(Line(2.0), np.array([[1.5, 0.0], [0.0, 0.2], [0.1, -0.1]]), 0.9)
CASES = {
    **BALANCED,
    "published, uneven rows": Case("dp-fast-mh", {**PUBLISHED, **FREE}, UNEVEN),
    "corrected, all rows, cool": Case("dp-fast-mh-full", {**CORRECTED, **FULL_FREE}, COOL),
}
#: Not reversible, with the least error: uniform noise, and a branch on the number of rows drawn.
UNBALANCED = {
    "as coded, minibatch with noise": (Case("dp-fast-mh", {**AS_CODED, **NOISY}), 0.3),
    "as coded, all rows with noise": (Case("dp-fast-mh-full", {**AS_CODED, **FULL_NOISY}), 0.1),
    "as coded, sensitivity inverted": (
        Case("dp-fast-mh", {**AS_CODED, **NOISY, "epsilon": 10.0, "inverted_sensitivity": True}),
        0.1,
    ),
    "published, K near the mean number of rows": (
        Case("dp-fast-mh", {**PUBLISHED, **FREE, "most_rows": 6, "epsilon": 100.0}),
        0.05,
    ),
}


# --- detailed balance ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BALANCED)
def test_detailed_balance_by_quadrature(name: str) -> None:
    assert abs(imbalance(BALANCED[name])) < ladder.IMBALANCE


@pytest.mark.parametrize("name", UNBALANCED)
def test_where_detailed_balance_fails_by_quadrature(name: str) -> None:
    case, least = UNBALANCED[name]
    assert abs(imbalance(case)) > least


@pytest.mark.parametrize("name", [*BALANCED, *UNBALANCED])
def test_the_kernel_accepts_as_often_as_quadrature_says(name: str) -> None:
    case = BALANCED[name] if name in BALANCED else UNBALANCED[name][0]
    _, private = case.one_test(case.kernel, False, 1000)
    if name in BALANCED:  # it is the test that the name says
        assert (private.tests.noise_drawn == ("with noise" in name or "sent to" in name)).all()
        assert (private.tests.all_rows == ("all rows" in name)).all()
    assert not private.ratio_clipped.any()
    assert case.frequency_p(20_000) > P_VALUE


# --- stationarity --------------------------------------------------------------------------------

MANY = LineSetting(Line(0.5), np.random.default_rng(12).normal([0.6, -0.4], 0.8, (60, 2)), 0.1)
STEPS = {"proposal_sd": [0.7, 0.7]}
MOVES = {
    "tuna-mh": ("tuna-mh", {"batch_mean": 5.0}),
    "published, minibatch": ("dp-fast-mh", {**PUBLISHED, **FREE, "epsilon": 40.0, "delta": 0.9}),
    "published, all rows": ("dp-fast-mh-full", {**PUBLISHED, "epsilon": 0.2, "delta": 0.9}),
    "corrected": (
        "dp-fast-mh",
        {**CORRECTED, "clip": 4.0, "batch_mean": 30.0, "most_rows": 48, "epsilon": 10.0, "delta": 0.9},
    ),
    "corrected, all rows": (
        "dp-fast-mh-full",
        {**CORRECTED, "clip": 4.0, "epsilon": 0.8, "delta": 0.9},
    ),
}


def kernel_of(method: str, values: dict[str, Any]) -> Kernel:
    return Kernel(read(method, {**values, **STEPS}), MANY)


@pytest.mark.parametrize("name", MOVES)
def test_exact_draws_stay_exact(name: str) -> None:
    kernel = kernel_of(*MOVES[name])
    assert ladder.invariance(kernel, chains=2000, iterations=30) > P_VALUE


def test_exact_draws_do_not_stay_exact_with_uniform_noise() -> None:
    method, values = MOVES["published, all rows"]
    kernel = kernel_of(method, {**values, **AS_CODED})
    assert ladder.invariance(kernel, chains=20_000, iterations=60) < FAULT_P
