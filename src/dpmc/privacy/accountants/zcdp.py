"""Zero-concentrated differential privacy: the simple, looser bound (Theorems 3.1, 4.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpmc.privacy.accountants import Accountant
from dpmc.privacy.events import GaussianRelease, Release, total_mu


def largest_rho(epsilon: float, delta: float) -> float:
    """Largest rho whose zCDP implies (epsilon, delta).

    (sqrt(epsilon + L) - sqrt(L))^2 with L = -ln delta (Theorem 3.1). Written as a quotient: the
    difference of the roots loses all digits for small epsilon.
    """
    log_inverse = -math.log(delta)
    root = epsilon / (math.sqrt(epsilon + log_inverse) + math.sqrt(log_inverse))
    return root * root


#: More than the few roundings that a sum of costs has had.
ROUNDED_UP = 1.0 + 2.0**-49
#: More than the relative and the absolute error of a ln delta: the difference of two values of erfcx, the
#: larger error, loses two digits of sixteen.
LOG_ERROR = 2.0**-42


def exp_rounded_up(log_delta: float) -> float:
    """e^log_delta, at most 1, rounded up by more than the error of a computed `log_delta` <= 0."""
    if log_delta == -math.inf:
        return 0.0
    return math.exp(min(0.0, log_delta + LOG_ERROR * (1.0 - log_delta)))


def guess_iterations(
    once: tuple[Release, ...], per_iteration: tuple[Release, ...], epsilon: float, delta: float
) -> int:
    """The zCDP number of iterations, up to rounding; 1 where it is not a finite number."""
    spent, each = total_mu(once), total_mu(per_iteration)
    if spent is None or not each:
        return 1
    quotient = (largest_rho(epsilon, delta) - spent) / each
    return int(quotient) if math.isfinite(quotient) else 1


@dataclass(frozen=True)
class ZeroConcentrated(Accountant):
    """zCDP of Gaussian releases: each costs rho = 1/(2 s^2), costs add, and rho gives epsilon.

    rho-zCDP implies (epsilon, delta) for delta = exp(-(epsilon - rho)^2 / (4 rho)) if epsilon > rho
    (Bun and Steinke 2016, Proposition 1.3).
    """

    name: ClassVar[str] = "zcdp"
    version: ClassVar[str] = "1"
    is_filter: ClassVar[bool] = True  # Whitehouse, Ramdas, Rogers and Wu 2023
    handles: ClassVar[tuple[type[Release], ...]] = (GaussianRelease,)

    def _delta(self, events: tuple[Release, ...], epsilon: float) -> float:
        rho = total_mu(events)
        assert rho is not None  # every kind of release in `handles` has one
        if rho == 0.0:
            return 0.0
        rho *= ROUNDED_UP
        if rho >= epsilon:
            return 1.0
        excess = (epsilon - rho) / (2.0 * math.sqrt(rho))
        return exp_rounded_up(-excess * excess)

    def _first_guess(
        self,
        once: tuple[Release, ...],
        per_iteration: tuple[Release, ...],
        epsilon: float,
        delta: float,
    ) -> int:
        return guess_iterations(once, per_iteration, epsilon, delta)
