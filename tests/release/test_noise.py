"""Noise of a release: its law, its scale, and the price of what is not Gaussian about it."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpmc
from dpmc.common.errors import DpmcError
from dpmc.evaluators.lattice import Lattice, LatticeEvaluator
from dpmc.privacy import lattice, secure_noise
from dpmc.privacy.events import (
    BarkerQuery,
    FastMetropolisQuery,
    GaussianQuery,
    SubsampledGaussianQuery,
)
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.secure_noise import SecureNoise, whole_scale


def laws(scale: float, t: float = 60.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return integers, the probabilities of a rounded normal number, and of a discrete Gaussian."""
    most = math.ceil(t * scale)
    z = np.arange(-most, most + 1)
    rounded = np.diff(stats.norm.cdf(np.arange(-most - 0.5, most + 1.0) / scale))
    rounded[most:] = rounded[most::-1]  # upper tails by symmetry: 1 − cdf has no small values
    discrete = np.exp(-0.5 * (z / scale) ** 2)
    return z, rounded, discrete / discrete.sum()


@pytest.mark.parametrize("scale", [1.0, 1.3, 2.0, 3.7, 10.0, 40.0])
def test_the_price_in_total_variation_is_above_the_distance_and_close(scale: float) -> None:
    _, rounded, discrete = laws(scale, 12.0)
    distance = 0.5 * np.abs(rounded - discrete).sum()
    assert 0.9 < distance / (lattice.VARIATION / scale**2) <= 1.0 or scale == 1.0
    assert distance <= lattice.VARIATION / scale**2


def events(count: int, multiplier: float = 50.0) -> tuple[Any, ...]:
    return (
        GaussianQuery("log-ratio", multiplier, count),
        GaussianQuery("gradient", 2.0 * multiplier, 5 * count),
    )


def test_prices_add_up_over_queries_and_their_numbers() -> None:
    price = lattice.price_of(events(10**6), 1000, 7, 0, 2.0, 1e-6)
    scales = [2.0 * lattice.units(multiplier, 1000) * multiplier for multiplier in (50.0, 100.0)]
    eta = 0.021 * (10**6 / scales[0] ** 2 + 35 * 10**6 / scales[1] ** 2)
    assert price.delta == pytest.approx((1.0 + math.exp(2.0)) * eta) and price.epsilon == 0.0
    assert price.numbers == 36 * 10**6 and min(scales) >= 2**30
    assert price.delta < 1e-9


def test_a_sum_is_priced_by_the_number_of_its_summaries() -> None:
    of_sum = GaussianQuery("sum", 3.0, sensitivity=4.0)
    price = lattice.price_of([of_sum], 1000, 7, 44, 2.0, 1e-6)
    assert price.numbers == 44
    assert price.delta == pytest.approx((1.0 + math.exp(2.0)) * 0.021 * 44 / 2.0**60)
    assert lattice.lattice_of([of_sum], 1000) == (1, 1)  # it has one of its own


@given(st.floats(1e-3, 1e3), st.floats(1.0, 10.0), st.sampled_from([10, 10**7]), st.floats(0.1, 200.0))
def test_more_noise_has_no_larger_price(multiplier: float, more: float, n: int, epsilon: float) -> None:
    """So noise calibrated to what a price leaves is covered by that price."""
    prices = []
    for noise in (multiplier, multiplier * more):
        try:
            prices.append(lattice.price_of([GaussianQuery("sum", noise)], n, 3, 9, epsilon, 1e-6))
        except DpmcError:
            return
        assert 2.0 * lattice.units(noise, n) * noise >= prices[-1].least_scale * (1.0 - 1e-12)
    assert prices[1].delta <= prices[0].delta


def test_the_scale_of_a_barker_test_is_priced_as_a_float() -> None:
    """Of two normal laws with nearly equal scales the distance stays below the price."""
    (event,) = events = [BarkerQuery("batch log-ratio", 400, 10**5, 5000)]
    by_variation = lattice.price_of(events, 10**5, 3, 0, 2.0, 1e-6)
    assert lattice.lattice_of(events, 10**5) == (math.ceil(2**30 / 20.0), 1)
    assert by_variation.least_scale == 2.0**30 and by_variation.numbers == event.count
    eta = 5000 * (0.021 / 2.0**60 + 2.0**-52)
    assert by_variation.delta == pytest.approx((1.0 + math.exp(2.0)) * eta)
    x = np.linspace(-9.0, 9.0, 200_001)
    for error in (2.0**-8, -(2.0**-8)):
        some, others = stats.norm.logpdf(x), stats.norm.logpdf(x, scale=1.0 + error)
        distance = 0.5 * np.abs(np.exp(some) - np.exp(others)).sum() * (x[1] - x[0])
        assert 0.4 * abs(error) < distance < abs(error)


def test_a_price_beyond_half_of_the_budget_is_refused() -> None:
    with pytest.raises(DpmcError, match="more than half of the budget"):
        lattice.price_of([GaussianQuery("log-ratio", 1e-9, 1)], 10, 1, 0, 1.0, 1e-6)
    for epsilon in (60.0, 700.0):
        with pytest.raises(DpmcError, match="a smaller epsilon"):
            lattice.price_of(events(10**6), 1000, 7, 0, epsilon, 1e-6)


def test_only_gaussian_noise_has_a_lattice() -> None:
    with pytest.raises(DpmcError, match="exact random bits"):
        lattice.lattice_of([FastMetropolisQuery("acceptance test", 0.1, 2.0, 100)], 100)
    with pytest.raises(DpmcError, match="too large"):
        lattice.lattice_of([GaussianQuery("log-ratio", 1e17)], 100)
    found = lattice.lattice_of([SubsampledGaussianQuery("batch gradient", 3.0, 10, 100)], 100)
    assert found == (1, math.ceil(2**30 / 6.0))
    assert lattice.units(1e-3, 10) == lattice.MOST_UNITS
    assert lattice.units(100.0, 10**8) == 5 * 10**8  # the noise is 1000 units for each row


@given(st.floats(1e-200, 1e200), st.floats(1e-3, 1e9))
def test_a_scale_is_whole_and_not_below_what_was_asked(unit: float, multiple: float) -> None:
    sd = unit * multiple
    (scale,) = whole_scale(np.array([sd]), np.array([unit]))
    assert scale == int(scale) and scale >= multiple
    assert scale <= multiple * (1.0 + 1e-11) + 3.0


def test_noise_is_added_to_integers_of_any_size() -> None:
    total = np.array([2**61 + 1, -(2**61) - 1, 0])
    noisy = SecureNoise().vectors(total[None], 1.0, 1000.0, 0)[0]
    assert (np.abs(noisy - total.astype(float)) < 20_000.0).all()


def test_noise_has_the_law_of_its_scale() -> None:
    source, k = SecureNoise(), 40_000
    drawn = source.vectors(np.zeros((k, 1), np.int64), 0.5, 1.0, 0)[:, 0] / 0.5
    scale = float(whole_scale(np.ones(1), 0.5 * np.ones(1))[0])
    z, _, discrete = laws(scale, 10.0)
    found = np.bincount((drawn + len(z) // 2).astype(int), minlength=len(z))
    seen = k * discrete > 10.0
    assert (
        stats.chisquare(found[seen], k * discrete[seen] * found[seen].sum() / (k * discrete[seen]).sum())[1]
        > 1e-6
    )
    wrong = np.exp(-0.5 * (z / (scale * 1.1)) ** 2)
    wrong *= k / wrong.sum()
    assert stats.chisquare(found[seen], wrong[seen] * found[seen].sum() / wrong[seen].sum())[1] < 1e-6


@pytest.mark.parametrize(("unit", "error"), [(0.5, 1e-12), (0.4, 2e-3), (0.04, 1e-4)])
def test_the_correction_leaves_a_ratio_in_detailed_balance(unit: float, error: float) -> None:
    """Exactly where ½s² is a multiple of half a unit, s = 2 units; else the error vanishes with the unit."""
    scale, k = 2.0, 3
    z, _, discrete = laws(scale)
    there, back = (
        np.exp(np.minimum(unit * (total + z) - 0.5 * (unit * scale) ** 2, 0.0)) @ discrete
        for total in (k, -k)
    )
    assert there / back == pytest.approx(math.exp(unit * k), rel=error)


def test_where_no_rows_are_read_the_answer_is_public() -> None:
    total, unit = np.array([0, 5, 7, 9]), np.array([0.0, np.nan, 1e-3, 1.0])
    sd = np.array([0.0, 1.0, 1e20, 2.0])
    noisy = SecureNoise().corrected(total, unit, sd)
    assert noisy[0] == 0.0 and np.isnan(noisy[1:3]).all() and np.isfinite(noisy[3])


def test_other_versions_of_opendp_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    secure_noise.require()
    for other in ("0.14.1", "0.16.0rc1", "0.16.0+own"):  # a file with these would be refused in the end
        monkeypatch.setattr(secure_noise, "version", lambda name, other=other: other)
        with pytest.raises(DpmcError, match=rf"OpenDP {re.escape(other)} must be 0.16.\*"):
            secure_noise.require()
    pinned = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'release = ["opendp>={secure_noise.EXACT[:-1]},<0.17"]' in pinned


def test_a_tempered_unit_that_is_rounded_coarsely_has_no_answer() -> None:
    theta, proposal = np.zeros((1, 2)), np.ones((1, 2))
    rows = np.random.default_rng(1).standard_normal((40, 2))
    evaluator = LatticeEvaluator(dpmc.LinearRegression("y", ["x"]), rows, Lattice(2**20, 2**20))
    for temperature, finite in ((1.0, True), (1e-45, False)):
        private = PrivateData(evaluator, temperature, SecureNoise(), np.zeros((1, 1, 0), np.uint64))
        for answer in (
            private.penalty_log_ratio(theta, proposal, 1e-270, 1.0),
            private.gradient(theta, 1e-270, 1.0, 0),
        ):
            assert np.isfinite(answer).all() if finite else np.isnan(answer).all()
