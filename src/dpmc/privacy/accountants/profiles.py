"""Dominating pairs (P, Q) of one query: tests between P and Q do at least as well as on the query.

A pair's curve is delta(epsilon) = sup over tests S of P(S) - e^epsilon Q(S). The pair dominates a query
if its curve is nowhere below that of the query, for all neighbouring data sets, in both orders. This
module has the formulas; statements and proofs are in docs/explanation/accounting.md.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Vector = NDArray[np.float64]
Tails = tuple[Vector, Vector]

LEAST_NOISE, MOST_NOISE = 1e-6, 1e100
"""Noise multipliers whose squares and exponentials stay within doubles."""
SMALLEST_BARKER_BATCH = 100
"""Smallest batch size for which `BarkerTest` is proven to dominate."""


class Pair(Protocol):
    """A dominating pair (P, Q) of a query, or of a query on a known batch."""

    def __hash__(self) -> int:
        """Return equal hashes for equal pairs, which are then discretised once."""

    @property
    def scale(self) -> float:
        """Return the size of a typical loss, which a grid of losses must resolve."""

    def tails(self, losses: Vector) -> Tails:
        """Return P(L > l) and Q(L > l), L = ln dP/dQ, at losses l >= 0 (m,), each (m,).

        Rounding errors are in their last digits, more in small tails, as if the edge of the test moved.
        {L > l} is the test S that attains sup P(S) - e^l Q(S).
        """


class Profile(Pair, Protocol):
    """A symmetric pair: ln dP/dQ under P is distributed as ln dQ/dP under Q. Only these are composed."""


def highest(tails: Sequence[Tails], losses: Vector) -> Tails:
    """Return at each loss the tails of the pair whose curve is highest there; the first of equal ones."""
    # e^l overflows above 709.
    factor = np.exp(np.minimum(losses, 700.0))
    place = np.argmax([upper - factor * lower for upper, lower in tails], axis=0)
    upper, lower = (np.choose(place, [both[side] for both in tails]) for side in (0, 1))
    return upper, lower


def mixed(pairs: Iterable[tuple[float, Pair]], losses: Vector, rest: float) -> Tails:
    """Return the tails of a mixture of pairs with these probabilities; `rest` counts as an infinite loss."""
    upper, lower = np.full_like(losses, rest), np.zeros_like(losses)
    for weight, pair in pairs:
        each = pair.tails(losses)
        upper += weight * each[0]
        lower += weight * each[1]
    return upper, lower


@dataclass(frozen=True)
class Shift:
    """N(d, 1) against N(0, 1): a Gaussian query with noise multiplier 1/d (Theorem 2.11)."""

    d: float

    @property
    def scale(self) -> float:
        """Return d, but at most 1: after amplification losses of -q are typical however large d is."""
        return min(1.0, self.d)

    def tails(self, epsilon: Vector) -> Tails:
        edge = epsilon / self.d + 0.5 * self.d
        return ndtr(self.d - edge), ndtr(-edge)


@dataclass(frozen=True)
class BarkerTest:
    """Test of DP Barker: sum(z_i) + N(0, 2 - s^2) on a batch of b rows with |z_i| <= 1/sqrt(b) (Section 3.3).

    Replacing a row moves the mean by at most D = 2/sqrt(b) and the variance, which lies in [1, 2],
    by at most 4/b. Of all such pairs of normals, two have the largest curves: N(D, 1) against N(0, 1) at
    some epsilon, N(D, 1 + 4/b) against N(0, 1) at all others. Proven for b >= 100.
    """

    batch_size: int

    @property
    def scale(self) -> float:
        return 2.0 / math.sqrt(self.batch_size)

    def tails(self, epsilon: Vector) -> Tails:
        """Return at each epsilon the tails of the pair whose curve is higher there."""
        # The wider normal, v = 1 + 4/b: its log ratio exceeds epsilon if (4/b) x^2 + 2 D x > c with
        # c = D^2 + v (ln v + 2 epsilon), that is for x outside an interval.
        d, excess = self.scale, 4.0 / self.batch_size
        v = 1.0 + excess
        c = d * d + v * (math.log1p(excess) + 2.0 * epsilon)
        root = np.sqrt(d * d + excess * c)
        right, left = c / (d + root), -(d + root) / excess
        sd = math.sqrt(v)
        wider = ndtr((d - right) / sd) + ndtr((left - d) / sd), ndtr(-right) + ndtr(left)
        return highest([wider, Shift(d).tails(epsilon)], epsilon)


@dataclass(frozen=True)
class Amplified:
    """Symmetric profile of a query on a batch of q n of n rows, drawn without replacement.

    delta(epsilon) = q base(ln(1 + (e^epsilon - 1)/q)) for epsilon >= 0, mirrored below 0: attained by some
    data, at each sign of epsilon. With q = 1 it is the base itself.
    """

    base: Pair
    q: float

    @property
    def scale(self) -> float:
        return self.q * self.base.scale

    def tails(self, losses: Vector) -> Tails:
        """Return q A(S) + (1 - q) B(S) and B(S); (A, B) is the base, S its test at ln(1 + (e^l - 1)/q)."""
        # ln(1 + (e^l - 1)/q) in two forms: the first keeps its digits near 0, the second does not overflow.
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
        return self.q * min(1.0, 1.0 / math.sqrt(self.tau))

    def tails(self, losses: Vector) -> Tails:
        """Return the probabilities of x above the point at which the log ratio is l.

        The ratio is e^l at the positive root y = e^(x/tau) of
        q a y^2 - (1 - q)(e^l - 1) y - q a e^l = 0, a = e^(-1/(2 tau)). All is computed in logs.
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


def _log(value: Vector | float) -> Vector:
    """Return ln(value), -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(value), float)
