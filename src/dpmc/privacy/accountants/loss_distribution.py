"""Accountants that compose privacy loss distributions: of batches, Barker tests and bits of DP-Fast MH.

Each accountant defines the pair that dominates one query; `pld` composes the pairs. Proofs:
docs/explanation/accounting.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dpmc.privacy.accountants.base import Accountant
from dpmc.privacy.accountants.fast_mh_profiles import BarkerBit, worst
from dpmc.privacy.accountants.fast_mh_profiles import profiles as bit_profiles
from dpmc.privacy.accountants.pld import TooManyPoints, delta, discretised, grid_step
from dpmc.privacy.accountants.profiles import (
    LEAST_NOISE,
    MOST_NOISE,
    SMALLEST_BARKER_BATCH,
    Amplified,
    BarkerTest,
    Profile,
    ReplacePair,
    Shift,
)
from dpmc.privacy.events import (
    BarkerQuery,
    FastMetropolisQuery,
    GaussianQuery,
    Query,
    SubsampledGaussianQuery,
    total_mu,
)

LARGEST_EPSILON = 1e7
"""Delta at a larger epsilon is replaced by delta here, an upper bound: the grid would be too coarse."""
ORDERS_PER_DOUBLING, HIGHEST_ORDER = 32, 2.0**12
"""Moments E[e^(s L)] are tried at s = 2^(j/32), from 1/4096 to 4096: every s gives a bound."""


@dataclass(frozen=True)
class LossDistributionAccountant(Accountant):
    """An accountant that composes dominating pairs."""

    epsilon_resolution = 1e-9

    def _profile(self, event: Query) -> Profile:
        """Return the dominating pair of a query that is not Gaussian; here the symmetric one of a batch."""
        if isinstance(event, BarkerQuery):
            return Amplified(BarkerTest(event.batch_size), event.sampling_fraction)
        assert isinstance(event, SubsampledGaussianQuery)
        return Amplified(Shift(1.0 / _noise_multiplier(event)), event.sampling_fraction)

    def _delta(self, events: tuple[Query, ...], epsilon: float) -> float:
        profiles = self._profiles(events)
        if not profiles:
            return 0.0
        epsilon = min(epsilon, LARGEST_EPSILON)
        step = grid_step(min(profile.scale for profile, _ in profiles), epsilon)
        while True:
            try:
                return delta([(discretised(profile, step), count) for profile, count in profiles], epsilon)
            except TooManyPoints:
                # Every step gives an upper bound; a wider one is only less sharp.
                step *= 2.0

    def _mean_loss(self, events: tuple[Query, ...]) -> float:
        parts = [(discretised(p, grid_step(p.scale, 1.0)), count) for p, count in self._profiles(events)]
        if any(part.infinite >= 1.0 for part, _ in parts):
            return math.inf
        return 0.5 * math.fsum(count * part.moments(0.0)[2] for part, count in parts)

    def _profiles(self, events: Sequence[Query]) -> list[tuple[Profile, int]]:
        """Return the pairs and their counts; all Gaussian queries on all rows form one exact pair."""
        profiles: dict[Profile, int] = {}
        for event in events:
            if not isinstance(event, GaussianQuery):
                profile = self._profile(event)
                # Equal pairs are discretised once and composed by one power.
                profiles[profile] = profiles.get(profile, 0) + event.count
        mu = total_mu(event for event in events if isinstance(event, GaussianQuery))
        if mu:
            shift = min(math.sqrt(2.0 * mu), 1.0 / LEAST_NOISE)  # far below, delta is 1 already
            profiles[Amplified(Shift(shift), 1.0)] = 1
        return list(profiles.items())

    def _obstacle(self, event: Query) -> str | None:
        if isinstance(event, SubsampledGaussianQuery) and event.noise_multiplier < LEAST_NOISE:
            return f"noise_multiplier = {event.noise_multiplier}: must be at least {LEAST_NOISE:g}"
        if isinstance(event, BarkerQuery) and event.batch_size < SMALLEST_BARKER_BATCH:
            return f"batch_size = {event.batch_size}: must be at least {SMALLEST_BARKER_BATCH}"
        return None


@dataclass(frozen=True)
class ReplacePld(LossDistributionAccountant):
    """Subsampled Gaussian queries as the published figures account for them (Section 3.4).

    The thesis composes this pair by its Fourier accountant, an approximation without an error bound. Here
    it is rounded up. The pair dominates that of `wor-pld`, so the result is valid but conservative.
    """

    name = "replace-pld"
    version = "3"
    handles = (SubsampledGaussianQuery,)
    beside = (GaussianQuery,)

    def _profile(self, event: Query) -> Profile:
        assert isinstance(event, SubsampledGaussianQuery)
        s = _noise_multiplier(event)
        return ReplacePair(s * s, event.sampling_fraction)


@dataclass(frozen=True)
class WithoutReplacementPld(LossDistributionAccountant):
    """Subsampled Gaussian queries by `Amplified`, the smallest symmetric profile that bounds one of them."""

    name = "wor-pld"
    version = "3"
    handles = (SubsampledGaussianQuery,)
    beside = (GaussianQuery, BarkerQuery)


@dataclass(frozen=True)
class BarkerPld(LossDistributionAccountant):
    """Barker tests by the profile of their worst batch (`BarkerTest`), in place of Theorem 3.3's bound."""

    name = "barker-pld"
    version = "3"
    handles = (BarkerQuery,)
    beside = (GaussianQuery, SubsampledGaussianQuery)


@dataclass(frozen=True)
class FastMetropolisPld(LossDistributionAccountant):
    """Accept bits of DP-Fast MH by the worst of their four tests: the smaller of two bounds.

    The choice of the test is public, so the largest of the four curves bounds one bit, and its loss
    distribution bounds any number of bits. For many bits a bound on moments is sharper: no single Barker bit
    attains its curve at every epsilon, and its moments are at most those of a normal loss.
    """

    name = "fast-mh-pld"
    version = "3"
    handles = (FastMetropolisQuery,)
    beside = (GaussianQuery, BarkerQuery, SubsampledGaussianQuery)

    def _profile(self, event: Query) -> Profile:
        return worst(event) if isinstance(event, FastMetropolisQuery) else super()._profile(event)

    def _delta(self, events: tuple[Query, ...], epsilon: float) -> float:
        composed = super()._delta(events, epsilon)
        return min(composed, self._by_moments(events, epsilon)) if composed < 1.0 else 1.0

    def _by_moments(self, events: tuple[Query, ...], epsilon: float) -> float:
        """Return a bound: inf over s > 0 of E[e^(s (L - epsilon))] s^s / (1 + s)^(1 + s), plus P(L = inf)."""
        bits = [event for event in events if isinstance(event, FastMetropolisQuery)]
        others = [event for event in events if not isinstance(event, FastMetropolisQuery)]
        # Possible pairs of a query, and the number of such queries.
        parts = [(tuple(bit_profiles(event).values()), event.count) for event in bits]
        parts += [((profile,), count) for profile, count in self._profiles(others)]
        infinite = sum(count * max(_moment(p, 1.0)[1] for p in choice) for choice, count in parts)
        return min(1.0, infinite + math.exp(min(0.0, _least_exponent(parts, epsilon))))

    def _obstacle(self, event: Query) -> str | None:
        if isinstance(event, FastMetropolisQuery):
            for key in ("noise_multiplier", "batch_noise_multiplier"):
                if 0.0 < getattr(event, key) < LEAST_NOISE:
                    return f"{key} = {getattr(event, key)}: must be 0 or at least {LEAST_NOISE:g}"
        return super()._obstacle(event)


def _noise_multiplier(event: SubsampledGaussianQuery) -> float:
    """Return the noise multiplier, at most `MOST_NOISE`: assuming less noise can only raise delta."""
    return min(event.noise_multiplier, MOST_NOISE)


def _least_exponent(parts: Sequence[tuple[tuple[Profile, ...], int]], epsilon: float) -> float:
    """Return ln of the bound by moments at the best s; `parts` as in `_by_moments`."""

    def exponent(j: int) -> float:
        s: float = 2.0 ** (j / ORDERS_PER_DOUBLING)
        moments = math.fsum(count * max(_moment(p, s)[0] for p in choice) for choice, count in parts)
        return moments - s * epsilon + s * math.log(s) - (1.0 + s) * math.log1p(s)

    # The exponent is convex in s: it falls, then rises.
    high = round(ORDERS_PER_DOUBLING * math.log2(HIGHEST_ORDER))
    low = -high
    while high - low > 2:
        middle = (low + high) // 2
        low, high = (middle, high) if exponent(middle + 1) < exponent(middle) else (low, middle + 1)
    return min(exponent(j) for j in range(low, high + 1))


@lru_cache(maxsize=4096)
def _moment(profile: Profile, s: float) -> tuple[float, float]:
    """Return ln E[e^(s L); L finite] and P(L = inf), both rounded up.

    A Barker bit's loss takes two values Delta apart, so its tilted variance is at most Delta^2/4.
    Hence ln E[e^(s L)] <= s (s + 1) Delta^2/8, as for normal noise with multiplier 2/Delta.
    """
    if isinstance(profile, BarkerBit):
        return 0.125 * s * (s + 1.0) * profile.sensitivity**2, 0.0
    if isinstance(profile, Shift):
        return 0.5 * s * (s + 1.0) * profile.d**2, 0.0
    pair = discretised(profile, grid_step(profile.scale, 0.0))
    return pair.moments(s)[0] + 2.0**-50, pair.infinite
