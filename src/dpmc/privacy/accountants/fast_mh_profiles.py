"""Dominating pairs of one accept bit of corrected DP-Fast MH: of each test, and the worst of four.

`BarkerBit` is a test without noise, `PoissonBatch` one on a minibatch, `Maximum` the worst of those
that may occur. The statements and proofs are in docs/explanation/accounting.md; this module is their
formulas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import pdtrc

from dpmc.privacy.accountants.profiles import Amplified, Array, Pair, Profile, Shift, Tails, highest, mixed
from dpmc.privacy.events import FastMetropolisRelease

LEAST_EPSILON, MOST_NOISE = 1e-12, 1e100
"""Smaller sensitivities and larger multipliers are replaced by these, which can only raise delta."""
REST = 1e-46
"""Probability of multiplicities, and of numbers of rows, that are counted as an infinite loss."""


@dataclass(frozen=True)
class BarkerBit:
    """A bit that is 1 with probability sigma(x), x any real number that a row moves by <= Delta.

    For 0 <= epsilon <= Delta the largest curve of two such bits is
        (e^(Delta/2) - e^(epsilon/2))^2 / (e^Delta - 1),
    attained at e^x = (1 - s)/(s e^Delta - 1), s = e^((epsilon - Delta)/2); beyond Delta it is 0.
    It is its own mirror image.
    """

    sensitivity: float

    @property
    def scale(self) -> float:
        """Delta, but at most 1: on a minibatch, losses of the drawn share are typical."""
        return min(1.0, self.sensitivity)

    def tails(self, losses: Array) -> Tails:
        """sigma(x + Delta) and sigma(x) at the x that attains the curve."""
        below = np.minimum(0.5 * (losses - self.sensitivity), 0.0)
        upper = np.expm1(below) / math.expm1(-self.sensitivity)
        return upper, upper * np.exp(-0.5 * (losses + self.sensitivity))


@dataclass(frozen=True)
class Multiplicities:
    """A test on `draws` rows drawn with replacement, given that the row in question is among them.

    Drawn m times it moves the log ratio m times as far. The pair says how often it was drawn; m has
    the law Binomial(draws, 1/n) given m > 0. Without `noisy`, `once` is the sensitivity of a
    Barker bit, with it 1/multiplier of normal noise.
    """

    draws: int
    n: int
    once: float
    noisy: bool

    @property
    def scale(self) -> float:
        """Return the scale for a row drawn once."""
        return min(1.0, self.once)

    def tails(self, epsilon: Array) -> Tails:
        """The mean over m; the far tail of m counts as an infinite loss."""
        weights = multiplicities(self.draws, self.n)
        kind = Shift if self.noisy else BarkerBit
        return mixed(((weight, kind(m * self.once)) for m, weight in enumerate(weights, 1)), epsilon, REST)


@lru_cache(maxsize=64)
def multiplicities(draws: int, n: int) -> tuple[float, ...]:
    """P(a row is drawn m times | at least once), m = 1, 2, ..., in `draws` draws of n rows.

    Without the last ones, of probability at most `REST` together.
    """
    if n == 1:
        return (0.0,) * (draws - 1) + (1.0,)
    # Chernoff: P(m or more) <= (e mean / m)^m, below 1e-46 for m >= 6 mean and m >= 134.
    most = min(draws, math.ceil(6.0 * draws / n) + 134)
    m = np.arange(1, most + 1)
    # ln of the binomial probabilities, from the ratio of each to the one before.
    ratios = np.log((draws - m + 1) / m) - math.log(n - 1)
    log_mass = draws * math.log1p(-1.0 / n) + np.cumsum(ratios)
    mass = np.exp(log_mass) / drawn(draws, n)
    beyond = np.cumsum(mass[::-1])[::-1]
    return tuple(mass[beyond > 0.5 * REST].tolist())


def drawn(draws: int, n: int) -> float:
    """1 - (1 - 1/n)^draws: the probability that a row is among `draws` draws of n rows."""
    return 1.0 if n == 1 else -math.expm1(draws * math.log1p(-1.0 / n))


@dataclass(frozen=True)
class PoissonBatch:
    """A test on Poisson(`mean`) rows drawn with replacement, the number of them public.

    The mean of the curves for each number; numbers are rounded up to the next of a few levels.
    `once` and `noisy` as for `Multiplicities`. It covers every smaller mean.
    """

    mean: float
    n: int
    once: float
    noisy: bool

    @property
    def scale(self) -> float:
        """Return the scale for the mean number of rows."""
        return drawn(math.ceil(self.mean), self.n) * min(1.0, self.once)

    def tails(self, losses: Array) -> Tails:
        """The mean over the levels; the far tail counts as an infinite loss."""

        def batch(draws: int) -> Pair:
            return Amplified(Multiplicities(draws, self.n, self.once, self.noisy), drawn(draws, self.n))

        return mixed(((weight, batch(draws)) for draws, weight in levels(self.mean)), losses, REST)


@lru_cache(maxsize=64)
def levels(mean: float) -> tuple[tuple[int, float], ...]:
    """(b, probability) of a Poisson(`mean`) variable rounded up to b; without 0: no release."""
    sd, steps = math.sqrt(mean), -2.0
    found, below = [], 0
    while pdtrc(below, mean) > REST:
        level = max(below + 1, math.ceil(mean + steps * sd))
        found.append((level, float(pdtrc(below, mean) - pdtrc(level, mean))))
        below, steps = level, max(steps + 0.5, 1.25 * steps)
    return tuple(found)


@dataclass(frozen=True)
class Maximum:
    """The worst of several pairs at each epsilon: for a release that is one of them, publicly."""

    profiles: tuple[Profile, ...]

    @property
    def scale(self) -> float:
        """The largest: smaller losses matter less."""
        return max(profile.scale for profile in self.profiles)

    def tails(self, losses: Array) -> Tails:
        """Return the tails of the pair whose curve is highest at each loss."""
        return highest([profile.tails(losses) for profile in self.profiles], losses)


def profiles(event: FastMetropolisRelease) -> dict[str, Profile]:
    """The pair of each of the four tests that may occur, by name: "full-free", "batch-noisy", ..."""
    found: dict[str, Profile] = {}
    if event.epsilon:
        found["full-free"] = BarkerBit(max(event.epsilon, LEAST_EPSILON))
    if event.noise_multiplier:
        found["full-noisy"] = Shift(1.0 / min(event.noise_multiplier, MOST_NOISE))
    if event.batch_epsilon:
        once = max(event.batch_epsilon, LEAST_EPSILON)
        found["batch-free"] = PoissonBatch(float(event.most_rows), event.n, once, False)
    if event.batch_noise_multiplier:
        once = 1.0 / min(event.batch_noise_multiplier, MOST_NOISE)
        found["batch-noisy"] = PoissonBatch(float(event.most_rows), event.n, once, True)
    return found


def worst(event: FastMetropolisRelease) -> Profile:
    """The pair that dominates one such release."""
    return Maximum(tuple(profiles(event).values()))
