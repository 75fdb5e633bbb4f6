"""Closed-form accountants round up: never below the exact delta, in 80 digits, and little above it."""

import mpmath
import numpy as np
import pytest

from dpmc.privacy import accountants
from dpmc.privacy.events import GaussianRelease

MULTIPLIERS = np.geomspace(0.05, 1e4, 23)
COUNTS = (1, 7, 4702, 10**8)
EPSILONS = (1e-3, 0.05, 0.5, 1.0, 4.0, 20.0, 300.0)


def exact(name: str, multiplier: float, count: int, epsilon: float) -> mpmath.mpf:
    """Delta of `count` Gaussian releases by the formulas of Theorem 2.11(3) and of zCDP, in exact numbers."""
    mu = mpmath.mpf(count) / (2 * mpmath.mpf(multiplier) ** 2)
    eps = mpmath.mpf(epsilon)
    if name == "zcdp":
        return mpmath.mpf(1) if mu >= eps else mpmath.exp(-((eps - mu) ** 2) / (4 * mu))
    root = 2 * mpmath.sqrt(mu)
    return (mpmath.erfc((eps - mu) / root) - mpmath.exp(eps) * mpmath.erfc((eps + mu) / root)) / 2


@pytest.mark.parametrize("name", ["tight", "zcdp"])
def test_delta_is_rounded_up_and_by_little(name: str) -> None:
    accountant, compared = accountants.get(name), 0
    with mpmath.workdps(80):
        for multiplier in map(float, MULTIPLIERS):
            for count in COUNTS:
                for epsilon in EPSILONS:
                    wanted = exact(name, multiplier, count, epsilon)
                    if wanted < mpmath.mpf("1e-290"):
                        continue
                    found = accountant.delta((GaussianRelease("ratio", multiplier, count),), epsilon)
                    assert found >= min(wanted, 1), (multiplier, count, epsilon)
                    assert found <= wanted * (1 + mpmath.mpf("1e-12") * (1 - mpmath.log(wanted))), (
                        multiplier,
                        count,
                        epsilon,
                    )
                    compared += 1
    assert compared > 300
