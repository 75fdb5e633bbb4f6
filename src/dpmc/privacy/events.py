"""Queries as data: frozen values that describe what is asked about the rows, convertible to JSON.

A *query* asks for one noisy answer about the private rows. Algorithms declare the queries of one iteration
as a tuple of events, the ledger counts them, and accountants turn them into (epsilon, delta). Equal events
are represented once, with a `count`.

A new kind of query is a frozen dataclass derived from `Query` with `name` and `count`, listed in `TYPES`.
The accountants that can bound it list it in `handles`.
"""

import dataclasses
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown

NEIGHBOURS = "substitute"
"""The neighbour relation of all queries: one row is replaced; the number of rows is public."""

_LEAST = {"count": 1, "n": 1, "batch_size": 1, "most_rows": 0}
"""Whole-number attributes of events, and the smallest allowed value of each."""
MOST_QUERIES = 10**40  #: more than any run has; a product of larger numbers may be beyond all doubles
FINITE = sys.float_info.max


class Query:
    """Base of all kinds of queries; raises DpmcError, naming query and attribute, for a wrong value."""

    name: str  # what is asked, e.g. "log-likelihood ratio"
    count: int  # number of such queries, >= 1; each query on a batch draws a new batch
    zero_allowed: ClassVar[bool] = False  # whether numbers that are not whole may be 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise DpmcError(f"query name = {shown(self.name)}: must be a non-empty text")
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            key, value = field.name, getattr(self, field.name)
            if key == "name" or (value is None and field.default is None):
                continue
            if key == "neighbours":
                right, rule = value == NEIGHBOURS, repr(NEIGHBOURS)
            elif key in _LEAST:
                right = _is(value, Integral) and _LEAST[key] <= value <= MOST_QUERIES
                rule = f"an integer >= {_LEAST[key]}, at most {MOST_QUERIES:g}"
            else:
                right = _is(value, Real) and (0.0 < value <= FINITE or (value == 0 and self.zero_allowed))
                rule = f"a finite number {'of at least 0' if self.zero_allowed else 'greater than 0'}"
            if not right:
                raise self._refusal(key, f"must be {rule}")
            # The dataclass is frozen. NumPy scalars become Python numbers, for JSON.
            plain = value if key == "neighbours" else int(value) if key in _LEAST else float(value)
            object.__setattr__(self, key, plain)

    def _refusal(self, key: str, rule: str) -> DpmcError:
        return DpmcError(f"query {shown(self.name)}: {key} = {shown(getattr(self, key))}: {rule}")

    @property
    def mu(self) -> float | None:
        """Return the mean of one query's privacy loss N(mu, 2 mu); None if that loss is not Gaussian."""
        return None


@dataclass(frozen=True)
class GaussianQuery(Query):
    """A statistic of all rows plus Gaussian noise; its privacy loss is N(mu, 2 mu), mu = 1/(2 s^2)."""

    name: str
    noise_multiplier: float  # s = noise sd / sensitivity
    count: int = 1
    # Euclidean, in the statistic's own units; None if it varies from query to query (a public function of
    # the parameters), so that only the multiplier is fixed.
    sensitivity: float | None = None
    neighbours: str = "substitute"

    @property
    def mu(self) -> float:
        """Return 1/(2 s^2); infinite if it overflows (Theorem 2.11(3))."""
        # Products, because ** raises on overflow, where * gives inf, the correct cost of no noise.
        inverse = 1.0 / self.noise_multiplier
        return 0.5 * inverse * inverse


class BatchQuery(Query):
    """A query on a secret batch of b of the n rows, drawn uniformly without replacement for each query."""

    batch_size: int  # b, 1 <= b <= n
    n: int  # number of rows

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size > self.n:
            raise self._refusal("batch_size", f"must be at most n = {self.n}")

    @property
    def sampling_fraction(self) -> float:
        """Return q = b / n, in (0, 1]."""
        return self.batch_size / self.n


@dataclass(frozen=True)
class SubsampledGaussianQuery(BatchQuery):
    """A statistic of a batch plus Gaussian noise, e.g. minibatch penalty's (Section 3.4).

    The sensitivity is the largest change when one row *of the batch* is replaced, not the norm bound of a row
    (which is half of it for clipped sums). The thesis's tau is s^2.
    """

    name: str
    noise_multiplier: float  # s = noise sd / sensitivity
    batch_size: int
    n: int
    count: int = 1
    neighbours: str = "substitute"
    sensitivity: float | None = None  # as of a `GaussianQuery`


@dataclass(frozen=True)
class BarkerQuery(BatchQuery):
    """One test of DP Barker on a batch (Section 3.3, Algorithm 3), with noise variance 2.

    The answer is sum(z_i) + N(0, 2 - s^2). Here z_i = (nT/b) r_i is clipped to ±1/sqrt(b), that is r_i to
    ±sqrt(b)/(nT), and s^2 = sum(z_i^2) - sum(z_i)^2 / b <= 1 is the variance of the batch. A tighter clip
    bound costs no more.
    """

    name: str
    batch_size: int
    n: int
    count: int = 1
    neighbours: str = "substitute"


@dataclass(frozen=True)
class FastMetropolisQuery(Query):
    """One accept bit of corrected DP-Fast MH (Zhang and Zhang, Algorithm 2, corrected).

    One of four tests is made; the choice is a public function of the state and the proposal. A test is on all
    rows, or on a minibatch: a Poisson number of rows with mean at most `most_rows`, drawn uniformly *with*
    replacement, the number public. Each is either without noise, by Barker's acceptance ("free"), or with
    normal noise on the log ratio. The sensitivity is the change of the log ratio when one row, drawn once, is
    replaced. A value of 0 means that the test is never made; one on all rows must be possible, and one on a
    minibatch if and only if `most_rows` > 0.
    """

    name: str
    epsilon: float  # largest sensitivity of a free test on all rows
    noise_multiplier: float  # noise sd / sensitivity of a noisy test on all rows
    n: int
    most_rows: int = 0  # K, the largest mean number of rows of a minibatch; 0: there are no minibatches
    batch_epsilon: float = 0.0  # as `epsilon`, on a minibatch, for each time that the row is drawn
    batch_noise_multiplier: float = 0.0  # as `noise_multiplier`, on a minibatch, for a row drawn once
    count: int = 1
    neighbours: str = "substitute"
    zero_allowed = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.epsilon or self.noise_multiplier):
            raise DpmcError(
                f"query {self.name!r}: epsilon and noise_multiplier are both 0: one must be greater, "
                "because a far proposal takes all rows"
            )
        if bool(self.batch_epsilon or self.batch_noise_multiplier) != (self.most_rows > 0):
            rule = "must be greater than 0 if and only if batch_epsilon or batch_noise_multiplier is"
            raise self._refusal("most_rows", rule)


@dataclass(frozen=True)
class NonPrivateQuery(Query):
    """A query with an exact answer: its epsilon is infinite."""

    name: str
    count: int = 1

    @property
    def mu(self) -> float:
        """Return infinity."""
        return math.inf


@dataclass(frozen=True)
class ApproximateQuery(Query):
    """A query of which (ε, δ)-DP alone is known, for a replaced row."""

    name: str
    epsilon: float
    delta: float
    count: int = 1
    neighbours: str = "substitute"
    zero_allowed = True


TYPES: dict[str, type[Query]] = {
    "gaussian": GaussianQuery,
    "subsampled-gaussian": SubsampledGaussianQuery,
    "barker": BarkerQuery,
    "fast-metropolis": FastMetropolisQuery,
    "approximate": ApproximateQuery,
    "non-private": NonPrivateQuery,
}
"""Every kind of query, by its `type` in JSON."""


def repeat(events: Iterable[Query], times: int) -> tuple[Query, ...]:
    """Return the events of `times` rounds of `events`: every count multiplied; () for 0 rounds."""
    return tuple(_with_count(event, event.count * times) for event in events) if times else ()


def merge(events: Iterable[Query]) -> tuple[Query, ...]:
    """Return the same queries with equal ones merged into one count, in order of first appearance."""
    return from_counts(counts(events))


def counts(events: Iterable[Query]) -> Counter[Query]:
    """Return how often each query happens: event of count 1 -> total count, in order of appearance."""
    totals: Counter[Query] = Counter()
    for event in events:
        totals[_with_count(event, 1)] += event.count
    return totals


def from_counts(totals: Mapping[Query, int]) -> tuple[Query, ...]:
    """Return events from counts, the inverse of `counts`; entries of 0 are left out."""
    return tuple(_with_count(single, total) for single, total in totals.items() if total)


def total_mu(events: Iterable[Query]) -> float | None:
    """Return Σ count · mu, the same in any order (Theorems 2.11(3), 4.3); None if one is not Gaussian."""
    # Counts are whole, so adding them first makes no rounding error; `fsum` then rounds once, in any order.
    multiplicity: Counter[float] = Counter()
    for event in events:
        if event.mu is None:
            return None
        multiplicity[event.mu] += event.count
    # fsum raises if a partial sum overflows, hence the test first.
    costs = [count * mu for mu, count in multiplicity.items()]
    return math.inf if math.inf in costs else math.fsum(costs)


def to_json(events: Iterable[Query]) -> list[dict[str, Any]]:
    """Return the events as JSON-compatible objects, each with its `type`; nothing is merged."""
    tags = {kind: tag for tag, kind in TYPES.items()}
    return [{"type": tags[type(event)], **dataclasses.asdict(event)} for event in events]  # type: ignore[call-overload]


def from_json(objects: Iterable[Mapping[str, Any]]) -> tuple[Query, ...]:
    """Return events from JSON objects; DpmcError for an unknown type, a wrong key or value."""
    events = []
    for entry in objects:
        if not isinstance(entry, Mapping):
            raise DpmcError(f"event {shown(entry)}: must be an object with a type")
        values = dict(entry)
        tag = values.pop("type", None)
        if not isinstance(tag, str) or tag not in TYPES:
            raise DpmcError(f"event type = {shown(tag)}: must be one of {', '.join(sorted(TYPES))}")
        try:
            events.append(TYPES[tag](**values))
        except TypeError as error:  # it names a key that is missing or unknown
            raise DpmcError(f"event of type {tag!r}: {error}") from None
    return tuple(events)


def _with_count(event: Query, count: int) -> Query:
    if event.count == count:
        return event
    return dataclasses.replace(event, count=count)  # type: ignore[type-var]


def _is(value: Any, kind: type) -> bool:
    # True is a whole number for Python, and a mistake here.
    return isinstance(value, kind) and not isinstance(value, bool)
