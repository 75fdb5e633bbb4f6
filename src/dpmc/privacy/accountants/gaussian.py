"""Gaussian queries on all rows: their exact privacy curve, and the looser one of zCDP.

The loss of a composition is N(mu, 2 mu) with mu the sum of 1/(2 s^2) (Theorems 2.11(3), 4.3), so that
    delta(epsilon) = [erfc(x) - e^epsilon erfc(y)] / 2,
    x = (epsilon - mu) / (2 sqrt mu),  y = x + sqrt mu.
This is Gaussian differential privacy with parameter sqrt(2 mu). Since y^2 = x^2 + epsilon,
    delta(epsilon) = e^(-x^2) [erfcx(x) - erfcx(y)] / 2,  erfcx(t) = e^(t^2) erfc(t),
in which nothing overflows. If the two erfcx are close, they cancel: `_log_fall_of_erfcx` then integrates.
For epsilon > mu zero-concentrated DP has delta = exp(-(epsilon - mu)^2 / (4 mu)) (Theorems 3.1, 4.2).
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

from numpy.polynomial.legendre import leggauss
from scipy.special import erfcx

from dpmc.privacy.accountants.base import Accountant
from dpmc.privacy.events import GaussianQuery, Query, total_mu

#: Exceeds the relative rounding error of a sum of costs.
MU_ROUNDED_UP = 1.0 + 2.0**-49
#: Exceeds the relative and the absolute error of ln delta. The larger error is that of the difference of two
#: values of erfcx, which loses two digits of sixteen.
LOG_ERROR = 2.0**-42

_GAUSS_LEGENDRE = tuple(zip(*(values.tolist() for values in leggauss(5)), strict=True))


def log_delta(mu: float, epsilon: float) -> float:
    """Return ln delta(epsilon) <= 0 of a loss N(mu, 2 mu), for 0 <= mu <= inf and 0 <= epsilon < inf.

    It is -inf if mu = 0 (nothing was asked) or if x^2 overflows. The relative error is about 1e-13.
    """
    if mu == 0.0:
        return -math.inf
    if math.isinf(mu):
        return 0.0
    root = math.sqrt(mu)
    x = (epsilon - mu) / root * 0.5
    y = (epsilon + mu) / root * 0.5
    if x < -1.0:
        # 1 - delta is a sum of positive terms, so it is accurate if delta is close to 1.
        return math.log1p(-0.5 * math.exp(-x * x) * (float(erfcx(-x)) + float(erfcx(y))))
    if math.isinf(x * x):
        return -math.inf
    return -x * x + math.log(0.5) + _log_fall_of_erfcx(x, y, root)


def _log_fall_of_erfcx(x: float, y: float, width: float) -> float:
    """Return ln [erfcx(x) - erfcx(y)] for x >= -1 and y = x + width, without cancellation."""
    if x > 1000.0:
        # erfcx(t) = 1 / (t sqrt pi) up to a factor 1 - 1/(2 t^2), so the difference has a closed form.
        return math.log(width) - math.log(x) - math.log(y) - 0.5 * math.log(math.pi)
    left, right = float(erfcx(x)), float(erfcx(y))
    if right < 0.99 * left:
        return math.log(left - right)
    # Within 1 % of each other: integrate -erfcx'(t) = 2/sqrt(pi) - 2 t erfcx(t) instead.
    total = 0.0
    for node, weight in _GAUSS_LEGENDRE:
        t = x + 0.5 * width * (1.0 + node)
        total += weight * (2.0 / math.sqrt(math.pi) - 2.0 * t * float(erfcx(t)))
    return math.log(0.5 * width * total)


class _OfAllRows(Accountant):
    """An accountant of Gaussian queries on all rows; delta is rounded up by less than 1e-9 of it."""

    is_filter = True
    handles = (GaussianQuery,)

    @staticmethod
    @abstractmethod
    def log_delta(mu: float, epsilon: float) -> float:
        """Return ln delta(epsilon) <= 0 of queries whose costs 1/(2 s^2) add up to `mu` > 0."""

    def _delta(self, events: tuple[Query, ...], epsilon: float) -> float:
        mu = total_mu(events)
        assert mu is not None  # every kind of query in `handles` has one
        exponent = self.log_delta(mu * MU_ROUNDED_UP, epsilon) if mu else -math.inf
        if exponent == -math.inf:
            return 0.0
        # Up by more than the error of the exponent: a delta below the true one would be no guarantee.
        return math.exp(min(0.0, exponent + LOG_ERROR * (1.0 - exponent)))


@dataclass(frozen=True)
class GaussianDp(_OfAllRows):
    """The exact accountant. Chain files and studies call it "tight", as they call the preset that uses it."""

    name = "tight"
    version = "1"
    # A filter: Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023.
    log_delta = staticmethod(log_delta)


@dataclass(frozen=True)
class ZeroConcentrated(_OfAllRows):
    """zCDP (Bun and Steinke 2016, Proposition 1.3): rho is mu."""

    name = "zcdp"
    version = "1"
    # A filter: Whitehouse, Ramdas, Rogers and Wu 2023.

    @staticmethod
    def log_delta(mu: float, epsilon: float) -> float:
        """Return ln delta(epsilon); 0 where mu >= epsilon, which zCDP does not bound."""
        excess = max(0.0, epsilon - mu) / (2.0 * math.sqrt(mu))
        return -excess * excess
