"""Zero-concentrated differential privacy (zCDP): a simple, looser bound (Theorems 3.1, 4.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpmc.privacy.accountants.base import Accountant
from dpmc.privacy.accountants.rounding import ROUNDED_UP, exp_rounded_up
from dpmc.privacy.events import GaussianRelease, Release, total_mu


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
