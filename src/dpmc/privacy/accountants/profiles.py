"""Dominating pairs of one release: (P, Q) on which tests do at least as well as on the release.

A pair's curve is delta(epsilon) = sup over tests S of P(S) - e^epsilon Q(S), and the pair dominates
a release if its curve is nowhere below the release's, for all neighbouring data sets, in both
orders. The statements and proofs are in docs/explanation/accounting.md; this module is their formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]
Tails = tuple[Array, Array]

SMALLEST_BARKER_BATCH = 100
"""Batches for which the domination of `BarkerTest` is proven."""


class Pair(Protocol):
    """A dominating pair (P, Q) of a release, or of a release on a known batch."""

    def __hash__(self) -> int:
        """Equal pairs are discretised once."""

    @property
    def scale(self) -> float:
        """Return the size of a typical loss, which a grid of losses must resolve."""

    def tails(self, losses: Array) -> Tails:
        """P(L > l) and Q(L > l), L = ln dP/dQ, at losses l >= 0, to a few roundings each.

        That is, of the test that attains sup P(S) - e^l Q(S).
        """


class Profile(Pair, Protocol):
    """A symmetric pair: ln dP/dQ under P and ln dQ/dP under Q have one law. Only these are composed."""


def highest(tails: Sequence[Tails], losses: Array) -> Tails:
    """At each loss the tails of that pair whose curve is highest there; of equal ones the first."""
    factor = np.exp(np.minimum(losses, 700.0))
    place = np.argmax([upper - factor * lower for upper, lower in tails], axis=0)
    upper, lower = (np.choose(place, [both[side] for both in tails]) for side in (0, 1))
    return upper, lower


def mixed(pairs: Iterable[tuple[float, Pair]], losses: Array, rest: float) -> Tails:
    """The mean of pairs with these probabilities; the `rest` counts as an infinite loss."""
    upper, lower = np.full_like(losses, rest), np.zeros_like(losses)
    for weight, pair in pairs:
        each = pair.tails(losses)
        upper += weight * each[0]
        lower += weight * each[1]
    return upper, lower


@dataclass(frozen=True)
class Shift:
    """N(d, 1) against N(0, 1): a Gaussian release with noise multiplier 1/d (Theorem 2.11)."""

    d: float

    @property
    def scale(self) -> float:
        """d, but at most 1: amplified, losses of -q are typical however large d is."""
        return min(1.0, self.d)

    def tails(self, epsilon: Array) -> Tails:
        """Probabilities of x > epsilon/d + d/2."""
        edge = epsilon / self.d + 0.5 * self.d
        return ndtr(self.d - edge), ndtr(-edge)


@dataclass(frozen=True)
class BarkerTest:
    """sum(z_i) + N(0, 2 - s^2) on batches of b rows with |z_i| <= 1/sqrt(b) (Section 3.3).

    Replacing a row moves the mean by at most D = 2/sqrt(b) and the variance, which lies in [1, 2],
    by at most 4/b. Of all such pairs of normals, N(D, 1) against N(0, 1) and N(D, 1 + 4/b) against
    N(0, 1) have the largest curves, one at small epsilon, one at large. Proven for b >= 100.
    """

    batch_size: int

    @property
    def scale(self) -> float:
        """D."""
        return 2.0 / math.sqrt(self.batch_size)

    def tails(self, epsilon: Array) -> Tails:
        """At each epsilon those of the pair whose curve is higher there."""
        wider = _wider(self.scale, 4.0 / self.batch_size, epsilon)
        return highest([wider, Shift(self.scale).tails(epsilon)], epsilon)


def _wider(d: float, excess: float, epsilon: Array) -> Tails:
    """Best test between N(d, v) and N(0, 1), v = 1 + excess: x outside an interval.

    The log ratio exceeds epsilon where excess x^2 + 2 d x > c, c = d^2 + v (ln v + 2 epsilon).
    """
    v = 1.0 + excess
    c = d * d + v * (math.log1p(excess) + 2.0 * epsilon)
    root = np.sqrt(d * d + excess * c)
    right, left = c / (d + root), -(d + root) / excess
    sd = math.sqrt(v)
    return ndtr((d - right) / sd) + ndtr((left - d) / sd), ndtr(-right) + ndtr(left)


@dataclass(frozen=True)
class Amplified:
    """The symmetric profile of a release about a batch of q n of n rows, without replacement.

    delta(epsilon) = q base(ln(1 + (e^epsilon - 1)/q)) for epsilon >= 0, mirrored below 0. With
    q = 1 it is the base itself.
    """

    base: Pair
    q: float

    @property
    def scale(self) -> float:
        """q times the base's."""
        return self.q * self.base.scale

    def tails(self, losses: Array) -> Tails:
        """q A(S) + (1 - q) B(S) and B(S), with the base's S at ln(1 + (e^l - 1)/q)."""
        small = np.log1p(np.expm1(np.minimum(losses, 1.0)) / self.q)
        large = losses + np.log1p((self.q - 1.0) * np.exp(-np.maximum(losses, 1.0))) - math.log(self.q)
        upper, lower = self.base.tails(np.where(losses > 1.0, large, small))
        return self.q * upper + (1.0 - self.q) * lower, lower


@dataclass(frozen=True)
class ReplacePair:
    """(1 - q) N(0, tau) + q N(1, tau) against (1 - q) N(0, tau) + q N(-1, tau).

    The pair that the thesis's Fourier accountant composes (Section 3.4). It dominates
    `Amplified(Shift(1/sqrt(tau)), q)`.
    """

    tau: float
    q: float

    @property
    def scale(self) -> float:
        """q, or q/sqrt(tau) where the noise is large."""
        return self.q * min(1.0, 1.0 / math.sqrt(self.tau))

    def tails(self, losses: Array) -> Tails:
        """Probabilities of x above the point where the log ratio is l.

        The ratio is e^l at the positive root y = e^(x/tau) of
        q a y^2 - (1 - q)(e^l - 1) y - q a e^l = 0, a = e^(-1/(2 tau)); in logs throughout.
        """
        log_a = -0.5 / self.tau
        # Half the linear coefficient, over e^(l/2); the root is then a sum of positive terms.
        log_half = _log(0.5 * (1.0 - self.q)) + 0.5 * losses + _log(-np.expm1(-losses))
        log_qa = math.log(self.q) + log_a
        log_root = 0.5 * np.logaddexp(2.0 * log_half, 2.0 * log_qa)
        log_y = 0.5 * losses + np.logaddexp(log_half, log_root) - log_qa
        x = self.tau * log_y
        sd = math.sqrt(self.tau)
        beside = (1.0 - self.q) * ndtr(-x / sd)
        return beside + self.q * ndtr((1.0 - x) / sd), beside + self.q * ndtr((-1.0 - x) / sd)


def _log(value: Array | float) -> Array:
    """ln, with -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(value), float)
