"""The correction of DP Barker: its errors, its draws, and that wrong ones are caught."""

import math

import numpy as np
import pytest

from dpmc.privacy import barker_correction
from dpmc.privacy.barker_correction import PROBABILITIES, VALUES

Table = tuple[tuple[float, ...], tuple[float, ...]]
TABLE: Table = (VALUES, PROBABILITIES)

#: The errors that the module states, and the one that is allowed.
ALLOWED = 1e-3
STATED = 8.14e-4
BALANCE = {4.0: 0.0102, 6.0: 0.0103, 8.0: 0.0610}
SMALLEST = 5.872e-4


def noisy_cdf(x: float, table: Table, variance: float = 2.0) -> float:
    """P(N(0, variance) + V ≤ x) in the standard library's terms alone."""
    return sum(p * 0.5 * math.erfc((v - x) / math.sqrt(2.0 * variance)) for v, p in zip(*table, strict=True))


def logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def cdf_error(table: Table, variance: float = 2.0) -> float:
    return max(abs(noisy_cdf(k / 200.0, table, variance) - logistic(k / 200.0)) for k in range(-6000, 6001))


def balance_error(table: Table, furthest: float, variance: float = 2.0) -> float:
    errors = []
    for k in range(round(200 * furthest) + 1):
        ratio = k / 200.0
        up, down = noisy_cdf(ratio, table, variance), noisy_cdf(-ratio, table, variance)
        errors.append(abs(math.log(up / down) - ratio))
    return max(errors)


def is_right(table: Table, variance: float = 2.0) -> bool:
    return cdf_error(table, variance) <= ALLOWED and balance_error(table, 4.0, variance) <= BALANCE[4.0]


def test_errors_are_the_stated_ones() -> None:
    assert SMALLEST < cdf_error(TABLE) < STATED < ALLOWED
    for furthest, error in BALANCE.items():
        assert 0.98 * error < balance_error(TABLE, furthest) < error


def test_table_is_a_symmetric_law() -> None:
    assert math.fsum(PROBABILITIES) == pytest.approx(1.0, abs=1e-15)
    assert min(PROBABILITIES) > 0.0
    assert list(VALUES) == sorted(VALUES)
    assert [-v for v in reversed(VALUES)] == list(VALUES)
    assert list(reversed(PROBABILITIES)) == list(PROBABILITIES)


def test_no_correction_can_be_nearly_exact() -> None:
    """For symmetric V the error, averaged over points with signed weights, is an average over V of f."""
    points, weights = (0.62, 1.92, 3.40, 5.26, 8.24), (-0.446, 0.3222, -0.1734, 0.057, -0.0014)

    def f(v: float) -> float:
        pair = ((-v, v), (0.5, 0.5))
        terms = zip(points, weights, strict=True)
        return sum(w * (noisy_cdf(x, pair) - logistic(x)) for x, w in terms) / sum(map(abs, weights))

    curvature, step = math.exp(-0.5) / math.sqrt(8.0 * math.pi), 0.005  # of f, at most
    least = min(f(k * step) for k in range(10_000)) - curvature * step**2 / 8.0
    assert 5.80e-4 < least < SMALLEST  # the linear programme in benchmarks/ gives SMALLEST itself


# Draws


def test_draws_of_equally_spaced_uniforms_have_the_law() -> None:
    count = 1_000_000
    found = barker_correction.barker_correction((np.arange(count) + 0.5) / count)
    for value, probability in zip(*TABLE, strict=True):
        assert np.mean(found == value) == pytest.approx(probability, abs=1.01 / count)


# Faults


def scaled(factor: float) -> Table:
    return tuple(factor * v for v in VALUES), PROBABILITIES


SIDE = PROBABILITIES[1]
FAULTS = {
    "variance 10 % too large": (scaled(math.sqrt(1.1)), 2.0),
    "variance 10 % too small": (scaled(math.sqrt(0.9)), 2.0),
    "no V": (((0.0,), (1.0,)), 2.0),
    "tails cut off": ((VALUES[1:-1], (SIDE, 1.0 - 2.0 * SIDE, SIDE)), 2.0),
    "V fitted to N(0, 2), noise N(0, 1)": (TABLE, 1.0),
    "noise of sd 2": (TABLE, 4.0),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_caught(fault: tuple[Table, float]) -> None:
    assert not is_right(*fault)
