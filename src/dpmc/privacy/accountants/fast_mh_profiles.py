"""Dominating pairs of one accept bit of corrected DP-Fast MH: of each test, and the worst of four.

`BarkerBit` is a test without noise, `PoissonBatch` a test on a minibatch, `Maximum` the worst of the tests
that may occur. This module has the formulas; statements and proofs are in docs/explanation/accounting.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import pdtrc

from dpmc.privacy.accountants.profiles import (
    MOST_NOISE,
    Amplified,
    Pair,
    Profile,
    Shift,
    Tails,
    Vector,
    highest,
    mixed,
)
from dpmc.privacy.events import FastMetropolisQuery

LEAST_EPSILON = 1e-12
"""A smaller sensitivity is replaced by this, as a multiplier above `MOST_NOISE`: it can only raise delta."""
REST = 1e-46
"""Probability of the largest multiplicities and numbers of rows, which count as an infinite loss."""


@dataclass(frozen=True)
class BarkerBit:
    """A bit that is 1 with probability sigma(x) = 1/(1 + e^-x); replacing a row moves x by at most Delta.

    For 0 <= epsilon <= Delta the largest curve over all x is
        (e^(Delta/2) - e^(epsilon/2))^2 / (e^Delta - 1),
    attained at e^x = (1 - s)/(s e^Delta - 1), s = e^((epsilon - Delta)/2). For larger epsilon it is 0.
    The pair is symmetric.
    """

    sensitivity: float

    @property
    def scale(self) -> float:
        """Return Delta, but at most 1: on a minibatch, losses of the size of the share drawn are typical."""
        return min(1.0, self.sensitivity)

    def tails(self, losses: Vector) -> Tails:
        """Return sigma(x + Delta) and sigma(x) at the x that attains the curve."""
        # 0 beyond Delta, where the test is empty.
        below = np.minimum(0.5 * (losses - self.sensitivity), 0.0)
        upper = np.expm1(below) / math.expm1(-self.sensitivity)
        return upper, upper * np.exp(-0.5 * (losses + self.sensitivity))


@dataclass(frozen=True)
class Multiplicities:
    """A test on `draws` rows drawn with replacement, given that the replaced row is among them.

    A row drawn m times moves the log ratio m times as far. The pair reveals m, with the distribution
    Binomial(draws, 1/n) given m > 0. `once` is for a row drawn once: the sensitivity of a Barker bit,
    or 1/multiplier of normal noise if `noisy`.
    """

    draws: int
    n: int
    once: float
    noisy: bool

    @property
    def scale(self) -> float:
        return min(1.0, self.once)

    def tails(self, epsilon: Vector) -> Tails:
        """Return the mean over m; the far tail of m counts as an infinite loss."""
        weights = multiplicities(self.draws, self.n)
        kind = Shift if self.noisy else BarkerBit
        return mixed(((weight, kind(m * self.once)) for m, weight in enumerate(weights, 1)), epsilon, REST)


@lru_cache(maxsize=64)
def multiplicities(draws: int, n: int) -> tuple[float, ...]:
    """Return P(a row is drawn m times | at least once), m = 1, 2, …, of `draws` from n, but for `REST`."""
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
    """Return the probability 1 - (1 - 1/n)^draws that a row is among `draws` draws of n rows."""
    # Not 1 - (1 - 1/n)^draws, which loses digits for large n.
    return 1.0 if n == 1 else -math.expm1(draws * math.log1p(-1.0 / n))


@dataclass(frozen=True)
class PoissonBatch:
    """A test on a public Poisson(`mean`) number of rows drawn with replacement.

    Its curve is the mean of the curves for each number, rounded up to the next of a few levels. It bounds
    tests with any smaller mean. `once` and `noisy` as for `Multiplicities`.
    """

    mean: float
    n: int
    once: float
    noisy: bool

    @property
    def scale(self) -> float:
        return drawn(math.ceil(self.mean), self.n) * min(1.0, self.once)

    def tails(self, losses: Vector) -> Tails:

        def batch(draws: int) -> Pair:
            return Amplified(Multiplicities(draws, self.n, self.once, self.noisy), drawn(draws, self.n))

        return mixed(((weight, batch(draws)) for draws, weight in levels(self.mean)), losses, REST)


@lru_cache(maxsize=64)
def levels(mean: float) -> tuple[tuple[int, float], ...]:
    """Return (b, probability) of a Poisson(`mean`) number rounded up to b > 0, but for `REST` at most."""
    sd, steps = math.sqrt(mean), -2.0
    groups, below = [], 0
    while pdtrc(below, mean) > REST:
        # Half a standard deviation wide around the mean, wider in the tail, which weighs little.
        level = max(below + 1, math.ceil(mean + steps * sd))
        groups.append((level, float(pdtrc(below, mean) - pdtrc(level, mean))))
        below, steps = level, max(steps + 0.5, 1.25 * steps)
    return tuple(groups)


@dataclass(frozen=True)
class Maximum:
    """The worst of several pairs at each epsilon, for a query whose pair is a public choice among them."""

    profiles: tuple[Profile, ...]

    @property
    def scale(self) -> float:
        return max(profile.scale for profile in self.profiles)

    def tails(self, losses: Vector) -> Tails:
        return highest([profile.tails(losses) for profile in self.profiles], losses)


def profiles(event: FastMetropolisQuery) -> dict[str, Profile]:
    """Return the pair of each test that may occur, by name: "full-free", "full-noisy", "batch-free", ..."""
    pairs: dict[str, Profile] = {}
    if event.epsilon:
        pairs["full-free"] = BarkerBit(max(event.epsilon, LEAST_EPSILON))
    if event.noise_multiplier:
        pairs["full-noisy"] = Shift(1.0 / min(event.noise_multiplier, MOST_NOISE))
    if event.batch_epsilon:
        once = max(event.batch_epsilon, LEAST_EPSILON)
        pairs["batch-free"] = PoissonBatch(float(event.most_rows), event.n, once, False)
    if event.batch_noise_multiplier:
        once = 1.0 / min(event.batch_noise_multiplier, MOST_NOISE)
        pairs["batch-noisy"] = PoissonBatch(float(event.most_rows), event.n, once, True)
    return pairs


def worst(event: FastMetropolisQuery) -> Profile:
    """Return the pair that dominates one such query."""
    return Maximum(tuple(profiles(event).values()))
