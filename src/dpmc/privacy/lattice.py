"""The lattice of a release: how fine sums are rounded, and what discrete noise costs beside Gaussian noise.

A query of noise multiplier ν has sums in units of bound/m and discrete Gaussian noise of scale S ≥ 2mν
units, 2m the sensitivity. Accountants bound R, normal noise of the same scale around the same integer,
rounded to the nearest integer: it is post-processing of the Gaussian mechanism. The price of the difference:

- in total variation, at most 0.021/S² for each number: η for all, and δ grows by (1 + e^ε) η;
- or in the ratio of the probabilities, e^±a with a = ((t + 1/ν)² + 1)/(24 S²) for noise within t + 1/ν
  standard deviations: for N numbers ε grows by 2Na, δ by the factor e^{Na} and by (1 + e^ε) N 2e^{−t²/2} for
  noise beyond, cut off on both data sets.

Both hold for numbers chosen adaptively. The scale of DP Barker's noise depends on the rows and is no whole
number: it is rounded to a float, which adds to either price. Proofs: docs/explanation/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from dpmc.common.errors import DpmcError
from dpmc.common.values import rounded_up
from dpmc.evaluators.lattice import LARGEST_SCALE, LEAST_SCALE, MOST_UNITS, PER_ROW, Lattice, scale_of
from dpmc.privacy.events import (
    BarkerQuery,
    FastMetropolisQuery,
    GaussianQuery,
    NonPrivateQuery,
    Query,
    SubsampledGaussianQuery,
)

VARIATION = 0.021  #: S² times the total variation of one number, for S ≥ 1
ROUNDED = 2.0**-52  #: relative error of a scale that is a float (`barker_sd`)
SMALL = 1e-3  #: part of δ up to which the price in total variation is taken
PRICE_DIGITS, SCALE_DIGITS = 8, 10  #: of ε and δ of a price, and of its scale: 2³⁰ has ten
UP = 1.0 + 1e-9  #: more than rounding errors of a price

Noisy = GaussianQuery | SubsampledGaussianQuery | BarkerQuery

VECTORS = ("gradient", "batch gradient")  #: names of queries of one number for each parameter
SUM, SCORES, LENGTH = "sum", "scores", "length"  #: names of the queries of answers
SIMULATED = "simulated scores"  #: the same, of a number for each parameter

#: Why a kind of query has no discrete noise.
REFUSED: dict[type[Query], str] = {
    FastMetropolisQuery: "tests without noise would need exact random bits",
    NonPrivateQuery: "has no noise, or not enough for any guarantee",
}


@dataclass(frozen=True)
class Price:
    """What discrete noise of a run costs beside Gaussian noise, reserved from its ε and δ."""

    epsilon: float
    delta: float
    numbers: int  # in the answers, all chains together
    least_scale: float  # of the noise, in units
    bound: str  # "total variation" or "probability ratio"

    def to_json(self) -> dict[str, Any]:
        """Return the price for the ledger."""
        return {"for": "discrete noise", **asdict(self)}


def units(multiplier: float, n: int) -> int:
    """Return m, the units in a clip bound, for noise of this multiplier on n rows."""
    return max(1, min(MOST_UNITS, math.ceil(max(LEAST_SCALE, PER_ROW * n) / (2.0 * multiplier))))


def numbers_in(event: Query, dimension: int, summaries: int) -> int:
    """Return how many numbers a query has: d of a gradient, `summaries` of a sum of them.

    Scores have d, d(d + 1)/2 of their information and two more, at most.
    """
    scores = dimension + dimension * (dimension + 1) // 2 + 2
    each = dict.fromkeys((*VECTORS, SIMULATED), dimension)
    return {SUM: summaries, SCORES: scores, **each}.get(event.name, 1)


def lattice_of(events: Iterable[Query], n: int) -> Lattice:
    """Return the lattice for these queries on n rows; raise DpmcError if they have no Gaussian noise.

    Numbers and vectors have one lattice each, the finest that a query of the kind needs. A kind that is not
    asked gets the coarsest.
    """
    m = {True: 1, False: 1}
    for event in noisy(events):
        # Answers have lattices of their own (`LatticeEvaluator.answer_sums`).
        if event.name in (SUM, SCORES, LENGTH, SIMULATED):
            continue
        is_vector, multiplier = event.name in VECTORS, multiplier_of(event)
        m[is_vector] = max(m[is_vector], units(multiplier, n))
        if 2.0 * m[is_vector] * multiplier > LARGEST_SCALE:
            raise DpmcError(f"query {event.name!r}: a noise multiplier of {multiplier:g} is too large")
    return Lattice(ratio=m[False], gradient=m[True])


def noisy(events: Iterable[Query]) -> list[Noisy]:
    """Return the events, which have Gaussian noise; raise DpmcError for any other."""
    found: list[Noisy] = []
    for event in events:
        if not isinstance(event, Noisy):
            reason = REFUSED.get(type(event), "has no Gaussian noise")
            raise DpmcError(f"query {event.name!r}: {reason}, so no release can have it")
        found.append(event)
    return found


def multiplier_of(event: Noisy) -> float:
    """Return the least noise sd of a query over its sensitivity: √b/2 of a Barker test, as s² ≤ 1."""
    return 0.5 * math.sqrt(event.batch_size) if isinstance(event, BarkerQuery) else event.noise_multiplier


def price_of(
    events: Iterable[Query], n: int, dimension: int, summaries: int, epsilon: float, delta: float
) -> Price:
    """Return the price of these queries, all of a run, at its budget (ε, δ).

    `summaries` is the number of a row's summaries, which sums have. More noise has no larger price: the
    scales are those that `units` guarantees. ε and δ are rounded up, and the scale down, to fewer digits than
    libraries of mathematics differ in: a release has them, and no digit says anything else. Raises DpmcError
    if more than half of ε or δ would be spent.
    """
    parts = []
    for event in noisy(events):
        scale = scale_of(multiplier_of(event), n)
        rounded = ROUNDED if isinstance(event, BarkerQuery) else 0.0
        parts.append(Part(event.count * numbers_in(event, dimension, summaries), scale, rounded))
    numbers = sum(part.numbers for part in parts)
    least = min((part.scale for part in parts), default=math.inf)
    price = Price(0.0, variation_price(parts, epsilon), numbers, least, "total variation")
    if price.delta > SMALL * delta:
        shift = 1.0 / min(multiplier_of(event) for event in noisy(events))
        others = price, ratio_price(parts, shift, epsilon, delta)
        price = min(others, key=lambda other: other.delta / delta + other.epsilon / epsilon)
    if not (least >= 1.0 and price.delta <= 0.5 * delta and price.epsilon <= 0.5 * epsilon):
        raise DpmcError(
            f"epsilon, delta: rounding {numbers} numbers to a lattice would cost epsilon {price.epsilon:.3g} "
            f"and delta {price.delta:.3g}, more than half of the budget: more noise in each query "
            "(hyperparameters) makes fewer and cheaper ones"
        )
    return replace(
        price,
        epsilon=rounded_up(price.epsilon, PRICE_DIGITS),
        delta=rounded_up(price.delta, PRICE_DIGITS),
        least_scale=-rounded_up(-price.least_scale, SCALE_DIGITS),
    )


class Part(NamedTuple):
    """Numbers of a query, the scale of their noise, and the relative error with which it is rounded."""

    numbers: int
    scale: float
    rounded: float


def variation_price(parts: list[Part], epsilon: float) -> float:
    """Return (1 + e^ε) η, η = Σ count (0.021/S² + rounded); inf if it overflows."""
    eta = math.fsum(part.numbers * (VARIATION / part.scale**2 + part.rounded) for part in parts)
    return (1.0 + math.exp(epsilon)) * eta * UP if epsilon < 700.0 else math.inf


def ratio_price(parts: list[Part], shift: float, epsilon: float, delta: float) -> Price:
    """Return the price in the ratio of probabilities, with tails of `SMALL` times δ.

    `shift` is the most by which neighbouring data move a number, in standard deviations of its noise.
    """
    numbers, least = sum(part.numbers for part in parts), min(part.scale for part in parts)
    # ln((1 + e^ε) N 2 e^{−t²/2}) = ln(SMALL δ)
    t = math.sqrt(2.0 * max(0.0, epsilon + math.log(4.0 * max(numbers, 1)) - math.log(SMALL * delta)))
    square = (t + shift) ** 2 + 1.0
    log_ratio = math.fsum(
        part.numbers * square * (1.0 / (24.0 * part.scale**2) + 2.0 * part.rounded) for part in parts
    )
    grown = delta * -math.expm1(-log_ratio)  # δ_acc e^{Na} ≤ δ
    return Price(2.0 * log_ratio * UP, (SMALL * delta + grown) * UP, numbers, least, "probability ratio")
