"""Privacy loss distributions: one query on a grid, rounded up, and their composition by Fourier sums.

A pair of distributions (P, Q) *dominates* a query if no test between the outputs on neighbouring
data does better than the best test between P and Q. The sum of independent losses L = ln dP/dQ, L ~ P,
then bounds any adaptive composition: delta(epsilon) = E[(1 - e^(epsilon - L))_+]. All pairs here are
*symmetric*: L under P is distributed as -L under Q, so the positive losses determine the pair.

Delta is computed in two steps, which err upwards (proofs, estimates of rounding and measurements:
docs/explanation/accounting.md):

1. `discretised` moves the mass between two grid points to these two, keeping its mass under P and under
   Q. This spreads the likelihood ratios and can only help a test.
2. `delta` tilts masses by e^(s L), s near the saddle point, so that the sum is centred at epsilon. It
   composes them as Fourier series over a window and pairs them with (1 - e^(epsilon - L))_+. Mass that
   wraps around the window adds to delta. Mass above the window is bounded by Chernoff's inequality and
   added, as is a bound on rounding errors. Tilting makes these terms small *relative to delta*, unless
   the window at full tilt is too long (`_tilt_and_window`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from dpmc.privacy.accountants.profiles import Profile, Vector

WIDEST_STEP = 1e-4
"""Grid step of losses; halved until a typical loss of one query is `STEPS_OF_LOSS` steps or more."""
STEPS_OF_LOSS = 48
MOST_HALVINGS = 3
"""Limit of halvings: for batches below a few thousandths of the rows the bound is looser."""
LARGEST_LOSS = 700.0
"""Losses above it count as infinite: e^700 is near the largest double."""
FINE = 2**15
"""Grid points at the full resolution; beyond them the spacing doubles with each doubling of the loss."""
MOST_POINTS = 2**21
"""Length of the longest Fourier sum; for a longer window the tilt is reduced or the step doubled."""
SMALLEST_TAIL = 1e-45
"""Probability of losses beyond the grid of one query; they count as infinite."""
NEGLIGIBLE = 28.0
"""-ln of the largest tilted mass on either side of the window; that mass adds to delta."""


@dataclass(frozen=True, eq=False)
class Discretised:
    """A symmetric loss distribution on multiples of `step`: one query, rounded up.

    Compared by identity, so that results for it can be cached; `known` caches `moments` by s.
    """

    step: float
    index: NDArray[np.int64]  # (m,) losses in steps, increasing
    log_mass: Vector  # (m,) ln of their probabilities
    infinite: float  # probability of an infinite loss
    known: dict[float, tuple[float, float, float]] = field(default_factory=dict, repr=False)

    def tilted(self, s: float) -> tuple[float, Vector]:
        """Return ln E[e^(s L); L finite], and the tilted masses (m,): masses times e^(s L), normalised."""
        exponents: Vector = (s * self.step) * self.index + self.log_mass
        top = float(exponents.max())
        weights: Vector = np.exp(exponents - top)
        # np.sum throughout: its order of additions does not depend on the number of cores.
        total = float(np.sum(weights))
        return top + math.log(total), weights / total

    def moments(self, s: float) -> tuple[float, float, float]:
        """Return ln E[e^(s L); L finite] and its first two derivatives: the tilted mean and variance."""
        if s not in self.known:
            log_moment, weights = self.tilted(s)
            losses = self.step * self.index
            mean = float(np.sum(weights * losses))
            variance = float(np.sum((losses - mean) * (losses - mean) * weights))
            self.known[s] = log_moment, mean, variance
        return self.known[s]


@lru_cache(maxsize=16)
def discretised(profile: Profile, step: float) -> Discretised:
    """Return one query on the grid: mass between grid points is split between them, keeping P and Q mass.

    Masses at positive losses l are differences of tails, those at -l are e^-l times as large, and the rest
    is at 0.
    """
    index = _grid(max(2, math.ceil(_largest_loss(profile) / step)))
    losses: Vector = step * index.astype(np.float64)
    upper, lower = profile.tails(losses)
    in_p, in_q = upper[:-1] - upper[1:], (lower[:-1] - lower[1:]) * np.exp(losses[:-1])
    # Between grid points l and l + w: to_right + to_left = in_p, to_right e^-w + to_left = in_q. Rounding
    # errors of the difference and of the tails (of normal noise: some 5 units of 2^-53 for each nat of -ln
    # tail; 12 are added) would lower the curve; P mass further right raises all of it.
    lost = 2.0**-51 * (upper[:-1] + 3.0 * entr(upper[:-1]))
    to_right = np.clip((in_p - in_q + lost) / -np.expm1(-np.diff(losses)), 0.0, in_p)
    last = float(lower[-1]) * math.exp(float(losses[-1]))
    positive = to_right.copy()
    positive[:-1] += in_p[1:] - to_right[1:]
    positive[-1] += min(last, float(upper[-1]))
    infinite = max(0.0, float(upper[-1]) - last)
    negative = positive * np.exp(-losses[1:])
    zero = 1.0 - infinite - float(positive.sum() + negative.sum())
    assert zero > -1e-9, "not a symmetric profile"
    masses = np.concatenate([negative[::-1], [max(0.0, zero)], positive])
    places = np.concatenate([-index[:0:-1], index])
    kept = np.flatnonzero(masses > 0.0)
    return Discretised(step, places[kept], np.log(masses[kept]), infinite)


def delta(parts: Sequence[tuple[Discretised, int]], epsilon: float) -> float:
    """Return an upper bound on E[(1 - e^(epsilon - L))_+], L a sum of independent losses, epsilon >= 0.

    `parts` are (distribution, number of such losses); all distributions have the same step. Raises
    `TooManyPoints` if the window has more than MOST_POINTS grid points at each tilt tried.
    """
    if any(part.infinite >= 1.0 for part, _ in parts):
        return 1.0
    # One infinite loss makes the sum infinite; written so that tiny probabilities keep their digits.
    infinite = -math.expm1(math.fsum(count * math.log1p(-part.infinite) for part, count in parts))
    most = math.fsum(count * part.step * int(part.index[-1]) for part, count in parts)
    if most <= epsilon:
        return infinite
    # P(L <= l) <= E[e^(-L/2)] e^(l/2): if L exceeds epsilon + 37 nearly always, delta is 1.
    if _moments(parts, -0.5)[0] + 0.5 * (epsilon + 37.0) < -37.0:
        return 1.0
    tilt, start, points = _tilt_and_window(parts, epsilon)
    log_factor = _moments(parts, tilt)[0] - tilt * epsilon
    # Losses above the window: at most their tilted mass, times the largest factor that undoes the tilt.
    end = (start + points - 1) * parts[0][0].step
    rounding = 2.0**-50 * (sum(count for _, count in parts) + tilt * epsilon + 8.0)  # of the exponents
    above = math.exp(min(0.0, log_factor + rounding - NEGLIGIBLE - tilt * (end - epsilon)))
    value, error = _pairing(parts, tilt, epsilon, start, points)
    inside = math.exp(min(0.0, log_factor + rounding + math.log(value + error + math.ulp(0.0))))
    return min(1.0, infinite + inside + above)


class TooManyPoints(Exception):
    """The window of a composition has too many grid points for this step."""


def _pairing(
    parts: Sequence[tuple[Discretised, int]], tilt: float, epsilon: float, start: int, points: int
) -> tuple[float, float]:
    """Return the sum over losses l in the window of tilted mass (wrapped) times a function, and its error.

    The function is e^(-tilt y) (1 - e^-y) of y = l - epsilon > 0. By Parseval's equation this is
    a sum over frequencies, so composition takes powers of Fourier coefficients.
    """
    y = np.arange(start, start + points) * parts[0][0].step
    y -= epsilon
    first = int(np.searchsorted(y, 0.0, side="right"))  # the function is 0 before it
    y = y[first:]
    values = np.zeros(points)
    values[first:] = np.exp(-tilt * y) * -np.expm1(-y)
    # Loss l is at place l mod points, as in `_coefficients`.
    function = np.fft.rfft(np.roll(values, start % points))
    # `rfft` keeps half of the frequencies; all but the first, and the last of an even length, stand for two.
    weights = np.full(function.size, 2.0 / points)
    weights[0] = 1.0 / points
    if points % 2 == 0:
        weights[-1] = 1.0 / points
    unit = _unit(points)
    powers = [(_coefficients(part, tilt, points), count) for part, count in parts]
    log_size = np.zeros(function.size)
    for coefficients, count in powers:
        log_size += count * coefficients.log_size
    # Smaller coefficients are negligible compared with the error bound.
    seen = np.flatnonzero(log_size > -80.0)
    log_power, angle, relative = np.zeros((3, seen.size))
    for coefficients, count in powers:
        log_power += count * coefficients.log_modulus[seen]
        angle += count * coefficients.angle[seen]
        relative += (count * unit) * np.exp(-coefficients.log_size[seen])
    weights, function, log_size = weights[seen], function[seen], log_size[seen]
    products = np.cos(angle) * function.real
    products += np.sin(angle) * function.imag
    products *= weights
    value = float(np.sum(np.exp(log_power) * products))
    error = weights * np.abs(function) * np.exp(np.minimum(0.0, log_size)) * (relative + unit)
    return max(0.0, value), float(np.sum(error)) + math.exp(-80.0) * math.sqrt(points)


class Coefficients(NamedTuple):
    """Fourier coefficients as modulus and angle: NumPy has vector instructions for real functions only."""

    log_modulus: Vector  # (points // 2 + 1,)
    angle: Vector
    log_size: Vector  # of the modulus with its error


def _unit(points: int) -> float:
    """Return about the rounding error of a Fourier coefficient of probabilities (modulus at most 1)."""
    return 2.0**-52 * math.log2(points)


@lru_cache(maxsize=2)  # a search uses the same tilts repeatedly; an entry can take 25 MB
def _coefficients(part: Discretised, tilt: float, points: int) -> Coefficients:
    """Return the coefficients of the masses times e^(tilt L), normalised, wrapped to `points` places."""
    wrapped = np.bincount(part.index % points, weights=part.tilted(tilt)[1], minlength=points)
    transform = np.fft.rfft(wrapped)
    modulus = np.abs(transform)
    return Coefficients(
        np.log(np.maximum(modulus, 1e-300)),
        np.arctan2(transform.imag, transform.real),
        np.log(modulus + _unit(points)),
    )


def _moments(parts: Sequence[tuple[Discretised, int]], s: float) -> tuple[float, float, float]:
    """Return `Discretised.moments` of the sum of all parts."""
    each = [(count, part.moments(s)) for part, count in parts]
    first, second, third = (math.fsum(count * moments[i] for count, moments in each) for i in range(3))
    return first, second, third


def _saddle_point(parts: Sequence[tuple[Discretised, int]], epsilon: float) -> float:
    """Return s >= 0 with tilted mean near epsilon; 0 if the mean exceeds epsilon without tilt.

    Newton's method within bounds. s is rounded to few digits, so that nearby calls share cached values. Any
    s gives a valid bound, this one a sharp bound.
    """
    # Beyond 100 / step all tilted mass is at the largest loss.
    low, high, s = 0.0, 100.0 / parts[0][0].step, 0.0
    for _ in range(60):
        _, mean, variance = _moments(parts, s)
        if mean >= epsilon:
            high = s
        else:
            low = s
        if high == 0.0 or abs(mean - epsilon) <= 0.05 * math.sqrt(variance):
            break
        # Newton's step overshoots where the variance is small, so it is limited.
        s = _rounded(min(max(s + (epsilon - mean) / max(variance, 1e-300), low), 4.0 * low + 1.0))
        if not low < s < high:
            s = _rounded(0.5 * (low + high))
        if s in (low, high):
            break
    return s


def _rounded(s: float) -> float:
    """Return s rounded to six binary digits."""
    fraction, exponent = math.frexp(s)
    return math.ldexp(round(64.0 * fraction) / 64.0, exponent)


def _tilt_and_window(parts: Sequence[tuple[Discretised, int]], epsilon: float) -> tuple[float, int, int]:
    """Return tilt, first grid point and length of the window: at the saddle point, or with less tilt.

    Full tilt can put much weight on rare, very large losses, which need a long window and hardly
    matter for delta. With half the tilt the factor e^(K(s) - s epsilon) still has half its exponent.
    """
    tilt = _saddle_point(parts, epsilon)
    for share in (1.0, 0.5, 0.25, 0.125, 0.0):
        start, points = _window(parts, share * tilt, epsilon)
        if points <= MOST_POINTS:
            return share * tilt, start, points
        if tilt == 0.0:
            break
    raise TooManyPoints


def _window(parts: Sequence[tuple[Discretised, int]], tilt: float, epsilon: float) -> tuple[int, int]:
    """Return first grid point and length of a window with all tilted mass but e^-NEGLIGIBLE on each side.

    It contains epsilon. By Chernoff's bound the tilted P(L > l) is at most exp(K(tilt + t) - K(tilt) - t l)
    for any t > 0, K(s) = ln E[e^(sL)].
    """
    centre, _, variance = _moments(parts, tilt)
    # The best t for a normal loss. Every t gives a bound, so a few around it do for other losses.
    unit = math.sqrt(2.0 * NEGLIGIBLE / max(variance, 1e-300))
    shifts = unit * np.exp2([-6.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0])
    above = min((_moments(parts, tilt + t)[0] - centre + NEGLIGIBLE) / t for t in shifts)
    below = max(-(_moments(parts, tilt - t)[0] - centre + NEGLIGIBLE) / t for t in shifts)
    step = parts[0][0].step
    most = sum(count * int(part.index[-1]) for part, count in parts)
    lowest = sum(count * int(part.index[0]) for part, count in parts)
    # Not beyond the losses that are possible.
    start = min(max(math.floor(below / step), lowest), math.floor(epsilon / step))
    end = max(min(math.ceil(above / step), most), math.ceil(epsilon / step) + 2)
    least = end - start + 1
    power = max(0, least.bit_length() - 4)  # a length m 2^e with a fast FFT
    return start, min(m << e for e in (power, power + 1) for m in (8, 9, 10, 12, 15) if m << e >= least)


def _largest_loss(profile: Profile) -> float:
    """Return a loss with a tail of at most `SMALLEST_TAIL`; `LARGEST_LOSS` if it would be larger."""

    def tail(loss: float) -> float:
        return float(profile.tails(np.array([loss]))[0][0])

    low, high = 0.0, LARGEST_LOSS
    if tail(high) > SMALLEST_TAIL:
        return high
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tail(middle) > SMALLEST_TAIL else (low, middle)
    return high


def _grid(last: int) -> NDArray[np.int64]:
    """Return 0 to at least `last`: every integer up to `FINE`, then every 2nd up to 2 FINE, every 4th, ..."""
    pieces, end, stride = [np.arange(min(last, FINE) + 1)], FINE, 1
    while end < last:
        stride *= 2
        pieces.append(np.arange(end + stride, min(2 * end, last + stride) + 1, stride))
        end *= 2
    return np.concatenate(pieces)


def grid_step(scale: float, epsilon: float) -> float:
    """Return the grid step for queries whose typical loss is `scale`: WIDEST_STEP / 2^j.

    The step is at most scale / STEPS_OF_LOSS if that needs at most `MOST_HALVINGS` halvings j. At large ε
    it is doubled until the window fits. It does not depend on the number of queries, because delta must rise
    with that number.
    """
    halvings = min(MOST_HALVINGS, max(0, math.ceil(math.log2(STEPS_OF_LOSS * WIDEST_STEP / scale))))
    step = WIDEST_STEP * 2.0**-halvings
    while epsilon + 16.0 > step * MOST_POINTS:
        step *= 2.0
    return step
