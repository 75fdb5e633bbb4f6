"""The lattice of a release: how fine sums are rounded, and what discrete noise costs beside Gaussian noise.

A query of noise multiplier ν has sums in units of bound/m and discrete Gaussian noise of scale S ≥ 2mν
units, 2m the sensitivity. Accountants bound R, normal noise of the same scale around the same integer,
rounded to the nearest integer: it is post-processing of the Gaussian mechanism. The difference is at most
0.021/S² in total variation for each number, η for all, chosen adaptively. Its price: δ grows by (1 + e^ε) η.

The scale of DP Barker's noise depends on the rows and is no whole number: it is rounded to a float, which
adds to η. Proofs: docs/explanation/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

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
PRICE_DIGITS, SCALE_DIGITS = 8, 10  #: of δ of a price, and of its scale: 2³⁰ has ten
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
    bound: str = "total variation"

    def to_json(self) -> dict[str, Any]:
        """Return the price for the ledger."""
        return {"for": "discrete noise", **asdict(self)}


def units(multiplier: float, n: int) -> int:
    """Return m, the units in a clip bound, for noise of this multiplier on n rows."""
    return max(1, min(MOST_UNITS, math.ceil(max(LEAST_SCALE, PER_ROW * n) / (2.0 * multiplier))))


def numbers_in(event: Query, dimension: int, summaries: int) -> int:
    """Return how many numbers a query has: d, `summaries`, or of scores d + d(d + 1)/2 + 2 at most."""
    scores = dimension + dimension * (dimension + 1) // 2 + 2
    each = dict.fromkeys((*VECTORS, SIMULATED), dimension)
    return {SUM: summaries, SCORES: scores, **each}.get(event.name, 1)


def lattice_of(events: Iterable[Query], n: int) -> Lattice:
    """Return the finest lattices of numbers and of vectors that these queries need, or raise DpmcError."""
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
    scales are those that `units` guarantees. δ is rounded up, and the scale down, to fewer digits than
    libraries of mathematics differ in: a release has them, and no digit says anything else. Raises DpmcError
    if more than half of δ would be spent.
    """
    parts = []  # numbers of a query, the scale of their noise, and the relative error of this
    for event in noisy(events):
        rounded = ROUNDED if isinstance(event, BarkerQuery) else 0.0
        number = event.count * numbers_in(event, dimension, summaries)
        parts.append((number, scale_of(multiplier_of(event), n), rounded))
    numbers, least = sum(part[0] for part in parts), min((part[1] for part in parts), default=math.inf)
    eta = math.fsum(number * (VARIATION / scale**2 + rounded) for number, scale, rounded in parts)
    cost = (1.0 + math.exp(epsilon)) * eta * UP if epsilon < 700.0 else math.inf
    if not (least >= 1.0 and cost <= 0.5 * delta):
        raise DpmcError(
            f"epsilon, delta: rounding {numbers} numbers to a lattice would cost delta {cost:.3g}, more than "
            "half of the budget: a smaller epsilon, or more noise in each query (hyperparameters), costs less"
        )
    return Price(0.0, rounded_up(cost, PRICE_DIGITS), numbers, -rounded_up(-least, SCALE_DIGITS))
