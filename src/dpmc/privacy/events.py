"""Releases as data: what was told about the rows, in frozen values that go to JSON and back.

A *release* is one noisy answer about the private rows. Algorithms declare the releases of one
iteration as a tuple of events, the ledger counts them, accountants turn them into (epsilon, delta).
Equal events are run-length coded by `count`.

A new kind of release is a frozen dataclass that derives from `Release`, carries `name` and `count`,
and is named for JSON by `@_json_type("...")`; the accountants that can bound it list it in
`handles`.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dpmc.errors import DpmcError

if TYPE_CHECKING:
    from dp_accounting import DpEvent

NEIGHBOURS = ("substitute", "add-remove")
"""Neighbour relations that an event may name: one row replaced; one row added or removed."""


class Release:
    """What every kind of release has: a name, and how many times it happens."""

    name: str
    count: int

    @property
    def mu(self) -> float | None:
        """Mean of one release's privacy loss N(mu, 2 mu); None if that loss is not Gaussian."""
        return None


_TYPES: dict[str, type[Release]] = {}
_R = TypeVar("_R", bound=type[Release])


def _json_type(tag: str) -> Callable[[_R], _R]:
    """Register a kind of release under the name that its JSON form carries as `type`."""

    def register(kind: _R) -> _R:
        _TYPES[tag] = kind
        return kind

    return register


@_json_type("gaussian")
@dataclass(frozen=True)
class GaussianRelease(Release):
    """A statistic of all rows plus Gaussian noise; its privacy loss is N(mu, 2 mu), mu = 1/(2 s^2).

    Attributes
    ----------
    name : what is released, e.g. "log-likelihood ratio".
    noise_multiplier : s = noise sd / sensitivity, finite and > 0.
    count : how many such releases, >= 1.
    sensitivity : Euclidean sensitivity of the statistic in its own units; None if it varies from
        release to release (a public function of the parameters): only the multiplier is fixed.
    neighbours : the neighbour relation to which the sensitivity refers.
    """

    name: str
    noise_multiplier: float
    count: int = 1
    sensitivity: float | None = None
    neighbours: str = "substitute"

    def __post_init__(self) -> None:
        _check_name_and_count(self)
        _set(self, "noise_multiplier", _positive(self, "noise_multiplier"))
        if self.sensitivity is not None:
            _set(self, "sensitivity", _positive(self, "sensitivity"))
        if self.neighbours not in NEIGHBOURS:
            known = ", ".join(NEIGHBOURS)
            raise DpmcError(
                f"release {self.name!r}: neighbours = {self.neighbours!r}: must be one of {known}"
            )

    @property
    def mu(self) -> float:
        """1/(2 s^2); infinite where it overflows (Theorem 2.11(3))."""
        # Products, because ** raises on overflow where * gives inf, the right cost of no noise.
        inverse = 1.0 / self.noise_multiplier
        return 0.5 * inverse * inverse


class BatchRelease(Release):
    """A release about a batch of b of the n rows, drawn uniformly without replacement, anew each time.

    Which rows were drawn stays secret, and the batch size is public. Such a batch only makes sense
    where n is public too, hence the one neighbour relation: one row replaced.
    """

    batch_size: int
    n: int
    neighbours: str

    @property
    def sampling_fraction(self) -> float:
        """q = b / n, in (0, 1]."""
        return self.batch_size / self.n


@_json_type("subsampled-gaussian")
@dataclass(frozen=True)
class SubsampledGaussianRelease(BatchRelease):
    """A statistic of a batch plus Gaussian noise, e.g. minibatch penalty's (Section 3.4).

    Attributes
    ----------
    name : what is released, e.g. "batch log-likelihood ratio".
    noise_multiplier : s = noise sd / sensitivity, finite and > 0. The sensitivity is the largest
        change when one row *of the batch* is replaced, not the norm bound of a row (which is half
        of it for clipped sums). The thesis's tau is s^2.
    batch_size : b, 1 <= b <= n.
    n : number of rows.
    count : how many such releases, each with a fresh batch, >= 1.
    neighbours : "substitute".
    sensitivity : that sensitivity in the statistic's own units; None if it varies from release to
        release (a public function of the parameters): only the multiplier is fixed.
    """

    name: str
    noise_multiplier: float
    batch_size: int
    n: int
    count: int = 1
    neighbours: str = "substitute"
    sensitivity: float | None = None

    def __post_init__(self) -> None:
        _check_name_and_count(self)
        _set(self, "noise_multiplier", _positive(self, "noise_multiplier"))
        if self.sensitivity is not None:
            _set(self, "sensitivity", _positive(self, "sensitivity"))
        _check_batch(self)


@_json_type("barker")
@dataclass(frozen=True)
class BarkerRelease(BatchRelease):
    """One test of DP Barker on a batch (Section 3.3, Algorithm 3), with noise variance 2.

    What is released is sum(z_i) + N(0, 2 - s^2), where z_i = (nT/b) r_i is clipped such that
    |z_i| <= 1/sqrt(b), that is |r_i| <= sqrt(b)/(nT), and s^2 = sum(z_i^2) - sum(z_i)^2 / b <= 1 is
    the batch's own variance. A tighter clip bound costs no more.

    Attributes
    ----------
    name : what is released, e.g. "acceptance test".
    batch_size : b, 1 <= b <= n.
    n : number of rows.
    count : how many such releases, each with a fresh batch, >= 1.
    neighbours : "substitute".
    """

    name: str
    batch_size: int
    n: int
    count: int = 1
    neighbours: str = "substitute"

    def __post_init__(self) -> None:
        _check_name_and_count(self)
        _check_batch(self)


@_json_type("fast-metropolis")
@dataclass(frozen=True)
class FastMetropolisRelease(Release):
    """One accept bit of corrected DP-Fast MH (Zhang and Zhang, Algorithm 2, put right).

    Which of four tests is made is a public function of the state and the proposal: on all rows, or
    on a minibatch of a Poisson number of rows with mean at most `most_rows`, drawn uniformly *with*
    replacement, the number public; and there without noise by Barker's acceptance ("free"), or with
    normal noise on the log ratio. Sensitivity: how far one replaced row, drawn once, moves the log
    ratio. A number of 0 says that this test is never made.

    Attributes
    ----------
    name : what is released, e.g. "acceptance test".
    epsilon : largest sensitivity of a free test on all rows, >= 0.
    noise_multiplier : noise sd / sensitivity of a noisy test on all rows, >= 0.
    n : number of rows.
    most_rows : K, the largest mean number of rows of a minibatch; 0: there are no minibatches.
    batch_epsilon : as `epsilon`, on a minibatch, per time that the row is drawn.
    batch_noise_multiplier : as `noise_multiplier`, on a minibatch, for a row drawn once.
    count : how many such releases, >= 1.
    neighbours : "substitute".

    Raises DpmcError for a number out of its range, and if no test at all, or none on a minibatch
    although `most_rows` > 0, is ever made.
    """

    name: str
    epsilon: float
    noise_multiplier: float
    n: int
    most_rows: int = 0
    batch_epsilon: float = 0.0
    batch_noise_multiplier: float = 0.0
    count: int = 1
    neighbours: str = "substitute"

    def __post_init__(self) -> None:
        _check_name_and_count(self)
        for key, least in (("n", 1), ("most_rows", 0)):
            value = _integer(f"release {self.name!r}: {key}", getattr(self, key))
            if value < least:
                raise DpmcError(f"release {self.name!r}: {key} = {value}: must be an integer >= {least}")
            _set(self, key, value)
        on_all, on_batch = ("epsilon", "noise_multiplier"), ("batch_epsilon", "batch_noise_multiplier")
        for key in on_all + on_batch:
            # 0 means "never".
            _set(self, key, _positive(self, key) if getattr(self, key) != 0 else 0.0)
        if not any(getattr(self, key) for key in on_all):
            raise DpmcError(
                f"release {self.name!r}: epsilon and noise_multiplier are both 0: one must be greater, "
                "because a far proposal takes all rows"
            )
        if any(getattr(self, key) for key in on_batch) != (self.most_rows > 0):
            raise DpmcError(
                f"release {self.name!r}: most_rows = {self.most_rows}: must be greater than 0 if and only "
                "if batch_epsilon or batch_noise_multiplier is"
            )
        if self.neighbours != "substitute":
            raise DpmcError(
                f"release {self.name!r}: neighbours = {self.neighbours!r}: must be 'substitute' where the "
                "number of rows is public"
            )


@_json_type("non-private")
@dataclass(frozen=True)
class NonPrivateRelease(Release):
    """An exact answer about the rows: no accountant can bound it, epsilon is infinite."""

    name: str
    count: int = 1

    def __post_init__(self) -> None:
        _check_name_and_count(self)

    @property
    def mu(self) -> float:
        """Infinite."""
        return math.inf


def repeat(events: Iterable[Release], times: int) -> tuple[Release, ...]:
    """The events of `times` rounds of `events`: every count multiplied; nothing for 0 rounds.

    Raises DpmcError if `times` is negative or not an integer.
    """
    rounds = _integer("times", times)
    if rounds < 0:
        raise DpmcError(f"times = {times!r}: must be an integer >= 0")
    if rounds == 0:
        return ()
    return tuple(_with_count(event, event.count * rounds) for event in events)


def merge(events: Iterable[Release]) -> tuple[Release, ...]:
    """The same releases, equal ones added up into one count, in order of first appearance."""
    return from_counts(counts(events))


def counts(events: Iterable[Release]) -> Counter[Release]:
    """How often each release happens: events of count 1 -> total count, in order of appearance."""
    totals: Counter[Release] = Counter()
    for event in events:
        totals[_with_count(event, 1)] += event.count
    return totals


def from_counts(totals: Mapping[Release, int]) -> tuple[Release, ...]:
    """Inverse of `counts`; entries of 0 are left out."""
    return tuple(_with_count(single, total) for single, total in totals.items() if total)


def total_mu(events: Iterable[Release]) -> float | None:
    """Sum of the Gaussian costs mu of all releases; None if one of them has no Gaussian loss.

    Costs add over adaptive Gaussian releases (Theorems 2.11(3), 4.3). The sum depends only on which
    releases happened, to the last bit: not on their order or on how a run was cut into blocks.
    """
    multiplicity: dict[float, int] = {}
    for event in events:
        mu = event.mu
        if mu is None:
            return None
        multiplicity[mu] = multiplicity.get(mu, 0) + event.count
    # fsum cannot add infinities that arise on the way, hence the test first.
    costs = [count * mu for mu, count in multiplicity.items()]
    return math.inf if math.inf in costs else math.fsum(costs)


def to_json(events: Iterable[Release]) -> list[dict[str, Any]]:
    """The events as JSON-able objects, each with its `type`; nothing is merged."""
    return [{"type": _tag(event), **dataclasses.asdict(event)} for event in events]  # type: ignore[call-overload]


def from_json(objects: Iterable[Mapping[str, Any]]) -> tuple[Release, ...]:
    """Inverse of `to_json`.

    Raises DpmcError for an unknown type, a missing or unknown key, or a value out of its range.
    """
    return tuple(_event_from_json(entry) for entry in objects)


def to_dp_accounting(events: Iterable[Release]) -> DpEvent:
    """The same composition as a dp-accounting event, for cross-checks with that library.

    Multipliers are passed on as sd / sensitivity; such an event has no neighbour relation (a
    Gaussian release on all rows, divided by its sensitivity, has the same loss under each). A
    Gaussian release on a batch becomes one sampled without replacement; dp-accounting bounds it
    under replace-one only (`RdpAccountant`), and reads its multiplier as sd / replace sensitivity.
    Raises DpmcError for a kind of release that has no counterpart there (a Barker test: its noise
    depends on the batch; a bit of DP-Fast MH: it comes from one of four tests).
    """
    import dp_accounting  # heavy, and not needed for running a chain

    parts: list[DpEvent] = []
    for event in events:
        if isinstance(event, GaussianRelease):
            single: DpEvent = dp_accounting.GaussianDpEvent(event.noise_multiplier)
        elif isinstance(event, NonPrivateRelease):
            single = dp_accounting.NonPrivateDpEvent()
        elif isinstance(event, SubsampledGaussianRelease):
            single = dp_accounting.SampledWithoutReplacementDpEvent(
                event.n, event.batch_size, dp_accounting.GaussianDpEvent(event.noise_multiplier)
            )
        else:
            raise DpmcError(
                f"release {event.name!r}: a {type(event).__name__} has no dp-accounting counterpart"
            )
        parts.append(dp_accounting.SelfComposedDpEvent(single, event.count))
    return dp_accounting.ComposedDpEvent(parts)


def _event_from_json(entry: Mapping[str, Any]) -> Release:
    if not isinstance(entry, Mapping):
        raise DpmcError(f"event {entry!r}: must be an object with a type")
    values = dict(entry)
    tag = values.pop("type", None)
    if not isinstance(tag, str) or tag not in _TYPES:
        raise DpmcError(f"event type = {tag!r}: must be one of {', '.join(sorted(_TYPES))}")
    kind = _TYPES[tag]
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    unknown = sorted(set(values) - {field.name for field in fields})
    if unknown:
        raise DpmcError(f"event of type {tag!r}: unknown key {unknown[0]!r}")
    for field in fields:
        if field.default is dataclasses.MISSING and field.name not in values:
            raise DpmcError(f"event of type {tag!r}: key {field.name!r} is missing")
    return kind(**values)


def _tag(event: Release) -> str:
    for tag, kind in _TYPES.items():
        if type(event) is kind:
            return tag
    raise DpmcError(f"release {event.name!r}: {type(event).__name__} has no JSON form")


def _with_count(event: Release, count: int) -> Release:
    if event.count == count:
        return event
    changed: Release = dataclasses.replace(event, count=count)  # type: ignore[type-var]
    return changed


def _set(event: Release, key: str, value: Any) -> None:
    # The dataclass is frozen for everyone else; NumPy scalars become plain ones, for JSON.
    object.__setattr__(event, key, value)


def _check_name_and_count(event: Release) -> None:
    if not isinstance(event.name, str) or not event.name:
        raise DpmcError(f"release name = {event.name!r}: must be a non-empty text")
    count = _integer(f"release {event.name!r}: count", event.count)
    if count < 1:
        raise DpmcError(f"release {event.name!r}: count = {event.count!r}: must be an integer >= 1")
    _set(event, "count", count)


def _check_batch(event: BatchRelease) -> None:
    for key in ("batch_size", "n"):
        value = _integer(f"release {event.name!r}: {key}", getattr(event, key))
        if value < 1:
            raise DpmcError(f"release {event.name!r}: {key} = {value!r}: must be an integer >= 1")
        _set(event, key, value)
    if event.batch_size > event.n:
        raise DpmcError(
            f"release {event.name!r}: batch_size = {event.batch_size}: must be at most n = {event.n}"
        )
    if event.neighbours != "substitute":
        raise DpmcError(
            f"release {event.name!r}: neighbours = {event.neighbours!r}: must be 'substitute' for a batch "
            "of fixed size"
        )


def _integer(what: str, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise DpmcError(f"{what} = {value!r}: must be an integer") from None


def _positive(event: Release, key: str) -> float:
    value = getattr(event, key)
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not 0.0 < float(value) < math.inf:
        raise DpmcError(f"release {event.name!r}: {key} = {value!r}: must be a finite number greater than 0")
    return float(value)
