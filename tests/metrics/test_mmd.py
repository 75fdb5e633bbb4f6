"""MMD against a double loop, its known limits, its memory, and the published baselines' scale."""

import math

import numpy as np
import pytest

from dpmc.evaluators.kernels import BLOCK
from dpmc.metrics.mmd import bandwidth, equally_spaced, fixed_mmd, fixed_width, published_mmd, squared_mmd


def brute_force(x: np.ndarray, y: np.ndarray, width: float) -> float:
    """The unbiased estimate, term by term as in Gretton et al. (2012), equation 3."""

    def kernel(a: np.ndarray, b: np.ndarray) -> float:
        return math.exp(-sum((s - t) ** 2 for s, t in zip(a, b, strict=True)) / (2.0 * width**2))

    n, m = len(x), len(y)
    xx = math.fsum(kernel(x[i], x[j]) for i in range(n) for j in range(n) if i != j)
    yy = math.fsum(kernel(y[i], y[j]) for i in range(m) for j in range(m) if i != j)
    xy = math.fsum(kernel(a, b) for a in x for b in y)
    return xx / (n * (n - 1)) + yy / (m * (m - 1)) - 2.0 * xy / (n * m)


@pytest.mark.parametrize(("n", "m", "d"), [(2, 2, 1), (7, 40, 3), (BLOCK + 31, 60, 2)])
def test_equals_the_double_loop(n: int, m: int, d: int) -> None:
    generator = np.random.default_rng(5)
    x, y = generator.normal(0.3, 1.0, (n, d)), generator.normal(0.0, 1.2, (m, d))
    assert squared_mmd(x, y, 0.9) == pytest.approx(brute_force(x, y, 0.9), abs=1e-10)


def test_two_tight_distant_samples_have_mmd_0_887() -> None:
    generator = np.random.default_rng(7)
    x = generator.normal(0.0, 1e-4, (300, 2))
    y = generator.normal(100.0, 1e-4, (400, 2))
    limit = math.sqrt(2.0 - 2.0 * math.exp(-0.5))
    assert limit == pytest.approx(0.887, abs=5e-4)
    assert published_mmd(x, y, generator) == pytest.approx(limit, abs=1e-5)


def test_the_estimate_is_unbiased_where_the_laws_agree() -> None:
    generator = np.random.default_rng(9)
    estimates = [
        squared_mmd(generator.normal(0, 1, (20, 2)), generator.normal(0, 1, (20, 2)), 1.0) for _ in range(500)
    ]
    error = float(np.std(estimates)) / math.sqrt(len(estimates))
    assert abs(float(np.mean(estimates))) < 4.0 * error
    assert error < 1.0 / 20 / 10  # the biased estimate would be off by about 1/20


def test_bandwidth_is_the_median_over_seeded_cross_pairs() -> None:
    x, y = np.zeros((3, 2)), np.full((2, 2), 3.0)
    assert bandwidth(x, y, np.random.default_rng(0)) == pytest.approx(3.0 * math.sqrt(2.0))
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(100, 2)), generator.normal(size=(200, 2))
    first = published_mmd(x, y, np.random.default_rng(2))
    assert first == published_mmd(x, y, np.random.default_rng(2))
    assert first != published_mmd(x, y, np.random.default_rng(3))


@pytest.mark.parametrize("away", [1.0, 30.0])
def test_with_a_fixed_kernel_it_is_the_closed_form_of_two_normals(away: float) -> None:
    generator, d = np.random.default_rng(3), 2
    exact = generator.standard_normal((4000, d))
    chain = generator.standard_normal((4000, d)) + [away, 0.0]
    width = math.sqrt(2.0) * math.sqrt(2.0 * math.log(2.0))  # the median of √2 times a Rayleigh variable
    assert fixed_width(exact) == pytest.approx(width, rel=0.05)
    within = (width**2 / (width**2 + 2.0)) ** (d / 2)
    closed = 2.0 * within * (1.0 - math.exp(-0.5 * away**2 / (width**2 + 2.0)))
    assert fixed_mmd(chain, exact) == pytest.approx(math.sqrt(closed), rel=0.05)
    if away > 10.0:  # by the published rule the chain decides the kernel, and 2 - 2 exp(-1/2) is all there is
        published = published_mmd(chain, exact, np.random.default_rng(0))
        assert published == pytest.approx(math.sqrt(2.0 - 2.0 * math.exp(-0.5)), rel=0.02)


def test_bad_samples_are_refused() -> None:
    generator = np.random.default_rng(1)
    with pytest.raises(ValueError, match="at least 2 draws"):
        published_mmd(np.zeros((1, 2)), np.ones((5, 2)), generator)
    with pytest.raises(ValueError, match="bandwidth is 0"):
        published_mmd(np.zeros((4, 2)), np.zeros((5, 2)), generator)
    with pytest.raises(ValueError, match="bandwidth is inf"):
        squared_mmd(np.zeros((4, 2)), np.zeros((5, 2)), math.inf)
    with pytest.raises(ValueError, match="bandwidth is 1e-170"):  # its square is not a number above 0
        squared_mmd(np.zeros((4, 2)), np.ones((5, 2)), 1e-170)


@pytest.mark.parametrize("count", [1, 4999, 5000, 5001, 12322, 44824])
def test_equally_spaced_draws(count: int) -> None:
    draws = np.arange(count, dtype=float)[:, None]
    chosen = equally_spaced(draws)[:, 0]
    assert len(chosen) == min(count, 5000)
    assert chosen[-1] == count - 1
    gaps = np.diff(np.concatenate([[-1.0], chosen]))
    assert gaps.min() >= 1 and gaps.max() - gaps.min() <= 1
