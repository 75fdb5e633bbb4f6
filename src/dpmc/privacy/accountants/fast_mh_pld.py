"""Accept bits of corrected DP-Fast MH: the smaller of two bounds.

Which of four tests gives the bit is public, so that the largest of their curves bounds one bit, and
its loss distribution any number of them. For many bits a bound on moments is sharper: no single
Barker bit attains its curve at every epsilon, and its moments are those of a normal loss at most.
Proofs: docs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from dpmc.privacy.accountants.fast_mh_profiles import BarkerBit, profiles, worst
from dpmc.privacy.accountants.pld import LEAST_NOISE, BatchAccountant, discretised, grid_step
from dpmc.privacy.accountants.profiles import Profile, Shift
from dpmc.privacy.events import (
    BarkerRelease,
    FastMetropolisRelease,
    GaussianRelease,
    Release,
    SubsampledGaussianRelease,
)

ORDERS_PER_DOUBLING, LARGEST_ORDER = 32, 2.0**12
"""Moments E[e^(s L)] are tried at s = 2^(j/32), from 1/4096 to 4096: every s gives a bound."""


@dataclass(frozen=True)
class FastMetropolisPld(BatchAccountant):
    """Bits of DP-Fast MH by the worst of their tests."""

    name: ClassVar[str] = "fast-mh-pld"
    version: ClassVar[str] = "2"
    handles: ClassVar[tuple[type[Release], ...]] = (FastMetropolisRelease,)
    beside: ClassVar[tuple[type[Release], ...]] = (
        GaussianRelease,
        BarkerRelease,
        SubsampledGaussianRelease,
    )

    def _obstacle(self, event: Release) -> str | None:
        if isinstance(event, FastMetropolisRelease):
            for key in ("noise_multiplier", "batch_noise_multiplier"):
                if 0.0 < getattr(event, key) < LEAST_NOISE:
                    return f"{key} = {getattr(event, key)}: must be 0 or at least {LEAST_NOISE:g}"
        return super()._obstacle(event)

    def _profile(self, event: Release) -> Profile:
        return worst(event) if isinstance(event, FastMetropolisRelease) else super()._profile(event)

    def _delta(self, events: tuple[Release, ...], epsilon: float) -> float:
        composed = super()._delta(events, epsilon)
        return min(composed, self._by_moments(events, epsilon)) if composed < 1.0 else 1.0

    def _by_moments(self, events: tuple[Release, ...], epsilon: float) -> float:
        """Delta <= inf over s > 0 of E[e^(s (L - epsilon))] s^s / (1 + s)^(1 + s), plus P(L = inf)."""
        parts = [
            (tuple(profiles(event).values()), event.count)
            for event in events
            if isinstance(event, FastMetropolisRelease)
        ]
        others = tuple(event for event in events if not isinstance(event, FastMetropolisRelease))
        parts += [((profile,), count) for profile, count in self._profiles(others)]
        infinite = sum(count * max(_moment(p, 1.0)[1] for p in choice) for choice, count in parts)
        return min(1.0, infinite + math.exp(min(0.0, _least_exponent(parts, epsilon))))


def _least_exponent(parts: Sequence[tuple[tuple[Profile, ...], int]], epsilon: float) -> float:
    """ln of the bound at the best s; `parts` are (pairs of which each release is one, how many)."""

    def exponent(j: int) -> float:
        s: float = 2.0 ** (j / ORDERS_PER_DOUBLING)
        moments = math.fsum(count * max(_moment(p, s)[0] for p in choice) for choice, count in parts)
        return moments - s * epsilon + s * math.log(s) - (1.0 + s) * math.log1p(s)

    # Convex in s, so that it falls and then rises.
    high = round(ORDERS_PER_DOUBLING * math.log2(LARGEST_ORDER))
    low = -high
    while high - low > 2:
        middle = (low + high) // 2
        low, high = (middle, high) if exponent(middle + 1) < exponent(middle) else (low, middle + 1)
    return min(exponent(j) for j in range(low, high + 1))


@lru_cache(maxsize=4096)
def _moment(profile: Profile, s: float) -> tuple[float, float]:
    """(ln E[e^(s L); L finite], P(L = inf)), rounded up.

    A Barker bit's loss takes two values Delta apart, so that its tilted variance is at most
    Delta^2/4, and ln E[e^(s L)] <= s (s + 1) Delta^2/8, as for normal noise with multiplier 2/Delta.
    """
    if isinstance(profile, BarkerBit):
        return 0.125 * s * (s + 1.0) * profile.sensitivity**2, 0.0
    if isinstance(profile, Shift):
        return 0.5 * s * (s + 1.0) * profile.d**2, 0.0
    pair = discretised(profile, grid_step(profile.scale, 0.0))
    return pair.tilted(s)[0] + 2.0**-50, pair.infinite
