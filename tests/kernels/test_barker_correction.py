"""The correction of DP Barker: its errors, its draws, and a bound for any correction."""

import math

import numpy as np
import pytest

from dpmc.privacy import barker_correction
from dpmc.privacy.barker_correction import PROBABILITIES, VALUES

Law = tuple[tuple[float, ...], tuple[float, ...]]  # values and their probabilities
TABLE: Law = (VALUES, PROBABILITIES)

#: The errors that the module states.
STATED, SMALLEST = 8.14e-4, 5.872e-4
BALANCE = {4.0: 0.0102, 6.0: 0.0103, 8.0: 0.0610}


def noisy_cdf(x: float, law: Law) -> float:
    """P(N(0, 2) + V ≤ x) in the standard library's terms alone."""
    return sum(p * 0.5 * math.erfc((v - x) / 2.0) for v, p in zip(*law, strict=True))


def logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def test_errors_are_the_stated_ones() -> None:
    """To 2 %: other values or probabilities, and noise of another variance, have other errors."""
    points = [k / 200.0 for k in range(-6000, 6001)]
    assert 0.98 * STATED < max(abs(noisy_cdf(x, TABLE) - logistic(x)) for x in points) < STATED
    for furthest, error in BALANCE.items():
        ratios = [x for x in points if 0.0 <= x <= furthest]
        balance = [math.log(noisy_cdf(x, TABLE) / noisy_cdf(-x, TABLE)) - x for x in ratios]
        assert 0.98 * error < max(map(abs, balance)) < error


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
