"""The ledger of a data set: a file from which a release takes its (epsilon, delta) before it uses rows.

A file of JSON lines. The first line has the totals; each further line is an entry, what one run took. Each
line has the SHA-256 hash of its content, which contains the hash of the line before. The file only grows.

Totals compose by sums of epsilon and of delta, which stay valid if a run's share is chosen by earlier answers
(Rogers et al. 2016). Nothing is returned: a run that fails has spent its entry.

Each ε and δ counts as the decimal number that its text says, and sums of these are exact: ten entries of 0.1
fit in a total of 1. The double that is nearest to 0.1 is more than 0.1, so a run has to keep to doubles that
are not above the texts of its entry (`values.not_above_text`): what is (b, c)-DP with b ≤ ε and c ≤ δ is
(ε, δ)-DP, whatever the accountant.

After a kill: `take` returns when its line is on the disk, and rows are used after that. So a last line that
is incomplete was used by nobody: it is left out, and overwritten by the next entry. A complete last line
counts, whether or not `take` returned.
"""

import hashlib
import json
import math
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.logs import LOGGER
from dpmc.common.values import MOST, checked, shown
from dpmc.common.version import __version__
from dpmc.privacy.accountants.base import checked_delta, checked_epsilon
from dpmc.privacy.events import NEIGHBOURS
from dpmc.privacy.ledger import Budget, BudgetExceeded

KIND = "dpmc ledger of a data set, format 1"  #: of the first line
HEADER = {"kind", "name", "id", "neighbours", "epsilon", "delta", "dpmc_version", "hash"}
ENTRY = {"ledger", "number", "id", "epsilon", "delta", "about", "previous", "hash"}
DIGITS = {"id": 32, "ledger": 32, "previous": 64, "hash": 64}  #: hexadecimal ones of parts of a line
SOON = 100  #: runs: if delta is left for fewer, and for fewer than epsilon, a warning says so

Record = dict[str, Any]  #: a line: the header or an entry


class Share(NamedTuple):
    """What an entry takes; δ may be 0, of another library's pure ε."""

    epsilon: float
    delta: float


class DataLedger:
    """A verified ledger, as it was when it was read; `take` adds an entry to the file.

    `header` is the first line, `entries` are the others. An entry has `ledger` (the header's id), `number`
    (from 1), `id` (random), `epsilon`, `delta`, `about` (public facts of the run), `previous` and `hash`.
    """

    def __init__(self, path: Path, records: list[Record], torn: bool = False) -> None:
        self.path = path
        self.header, *self.entries = records
        self.torn = torn  # whether an incomplete last line was left out

    @classmethod
    def create(cls, path: str | Path, epsilon: float, delta: float, name: str = "") -> Self:
        """Create a ledger with these totals and its owner's name for the data; DpmcError if it cannot be."""
        path, total = files.given_path(path, "ledger"), Budget(epsilon, delta)
        header = _sealed(
            {
                "kind": KIND,
                "name": str(name),
                "id": secrets.token_hex(16),
                "neighbours": NEIGHBOURS,
                "epsilon": total.epsilon,
                "delta": total.delta,
                "dpmc_version": __version__,
            }
        )
        try:
            with open(path, "xb", buffering=0) as file:
                _write(file, path, _line(header) + b"\n")
        except FileExistsError:
            raise DpmcError(f"{path}: exists; a ledger is never replaced") from None
        except OSError as error:
            raise files.unwritten(path, error) from None
        return cls(path, [header])

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Read and verify a ledger; raise DpmcError, naming the line, if it is missing or wrong."""
        path = files.given_path(path, "ledger")
        with _opened(path, "rb") as file:
            with suppress(OSError):  # no locks, or not for readers: an unfinished line is left out anyway
                files.lock(file, _waiting(path))
            content = _read(path, file)
        return cls(path, content.records, content.torn)

    @property
    def head(self) -> str:
        """Return the hash of the last line."""
        return str([self.header, *self.entries][-1]["hash"])

    @property
    def total(self) -> tuple[float, float]:
        """Return the totals of epsilon and delta."""
        return self.header["epsilon"], self.header["delta"]

    @property
    def spent(self) -> tuple[float, float]:
        """Return the sums of epsilon and of delta over all entries; their texts are rounded up."""
        epsilon, delta = _sums(self.entries)
        return _rounded(epsilon, math.inf), _rounded(delta, math.inf)

    @property
    def left(self) -> tuple[float, float]:
        """Return the totals minus the sums; their texts are rounded down, so that they can be taken."""
        epsilon, delta = _left(self.header, self.entries)
        return _rounded(epsilon, 0.0), _rounded(delta, 0.0)

    def take(self, epsilon: float, delta: float, about: Mapping[str, Any]) -> Record:
        """Append an entry and return it when it is on the disk; after that a run may use rows.

        `about` has public facts of the run, as for JSON. Other processes wait. Logs a warning if delta is
        left for fewer than `SOON` such runs, and for fewer than epsilon. Raises BudgetExceeded, and writes
        nothing, if the totals would be exceeded. Raises DpmcError if `about` is nothing for JSON, and if the
        file cannot be locked or written, is broken, or is not a continuation of what was opened.
        """
        asked = _share(epsilon, delta)
        try:
            facts = json.loads(json.dumps(about, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise DpmcError(f"about: {shown(about)}: must be facts as JSON has them ({error})") from None
        with _opened(self.path, "r+b") as file:
            try:
                files.lock(file, _waiting(self.path))
            except OSError as error:
                raise DpmcError(f"{self.path}: cannot be locked ({error.strerror or error})") from None
            if not files.is_at(file, self.path):
                raise DpmcError(f"{self.path}: was replaced or removed meanwhile")
            content = _read(self.path, file)
            header, *entries = content.records
            self._require_continued(content.records)
            entry = _sealed(
                {
                    "ledger": header["id"],
                    "number": len(content.records),
                    "id": secrets.token_hex(16),
                    "epsilon": asked.epsilon,
                    "delta": asked.delta,
                    "about": facts,
                    "previous": content.records[-1]["hash"],
                }
            )
            self._require_left(header, entries, asked)
            file.truncate(content.size)  # of an incomplete line
            file.seek(content.size)
            _write(file, self.path, b"\n" * content.open_line + _line(entry) + b"\n")
        self.entries, self.torn = [*entries, entry], False
        return entry

    def verify(self, against: Mapping[str, Any] | None = None) -> None:
        """Read and verify the file again, and look for the entry of a release if given; else DpmcError."""
        now = DataLedger.open(self.path)
        self._require_continued([now.header, *now.entries])
        if against is None or dict(against) in now.entries:
            return
        name = f"entry {shown(against.get('number'))} of a release, {shown(against.get('id'))}"
        if against.get("ledger") != now.header["id"]:
            raise DpmcError(f"{self.path}: {name}: belongs to another ledger")
        raise DpmcError(
            f"{self.path}: {name}: is not in this ledger, which has {len(now.entries)}: it is an older copy, "
            "or lines were removed or changed"
        )

    def _require_left(self, header: Record, entries: list[Record], asked: Share) -> None:
        """Raise BudgetExceeded for more than is left; log which delta would last as long as epsilon."""
        left, share = _left(header, entries), (_exact(asked.epsilon), _exact(asked.delta))
        if share[0] > left[0] or share[1] > left[1]:
            epsilon, delta = (_rounded(part, 0.0) for part in left)
            hint = f"; a delta of at most {delta!r} would fit" if delta and share[0] <= left[0] else ""
            raise BudgetExceeded(
                f"{self.path}: epsilon {asked.epsilon!r}, delta {asked.delta!r} asked for, but only "
                f"epsilon {epsilon!r}, delta {delta!r} left of the data set's total{hint}"
            )
        if share[1] == 0:
            return
        runs = left[0] // share[0], left[1] // share[1]
        if runs[1] < min(runs[0], SOON):
            part = left[1] / runs[0]
            even = Context(prec=2, rounding=ROUND_DOWN).divide(part.numerator, part.denominator)
            LOGGER.warning(
                f"{self.path}: delta {asked.delta!r} can be taken {shown(runs[1])} times from what is left, "
                f"epsilon {asked.epsilon!r} {shown(runs[0])} times: delta is spent first; with delta "
                f"{float(even)!r} both last"
            )

    def _require_continued(self, records: list[Record]) -> None:
        if self.head not in [record["hash"] for record in records]:
            raise DpmcError(f"{self.path}: is not the ledger that was opened, or an older copy of it")


def _share(epsilon: float, delta: float) -> Share:
    """Return a share; raise DpmcError unless 0 < epsilon < inf and 0 ≤ delta < 1."""
    zero = not isinstance(delta, bool) and isinstance(delta, float | int) and delta == 0.0
    return Share(checked_epsilon(epsilon), 0.0 if zero else checked_delta(delta))


class _Content(NamedTuple):
    """What a file holds: verified records, the bytes that they take, and how it ends."""

    records: list[Record]
    size: int
    open_line: bool  # whether the last record has no line break
    torn: bool  # whether more bytes follow, of an incomplete line


def require_entry(value: object) -> None:
    """Raise ValueError unless a value is an entry: with its keys, values of their types, and its own hash."""
    try:
        _require_right(value, ENTRY)
    except ValueError as error:
        raise ValueError(f"is not an entry of a ledger of a data set: {error}") from None


def _require_right(record: object, keys: set[str]) -> None:
    """Raise ValueError unless a value is a record with these keys, right values, and its own hash."""
    if not isinstance(record, dict) or set(record) != keys:
        raise ValueError("is no line of a ledger")
    try:
        sealed = _sealed({key: value for key, value in record.items() if key != "hash"})
    except (ValueError, RecursionError):  # a number that is not finite, or nested too deeply
        raise ValueError("is no line of a ledger") from None
    if sealed["hash"] != record["hash"]:
        raise ValueError("does not fit its hash, it was changed")
    for key, value in record.items():
        kind = {"epsilon": float, "delta": float, "number": int, "about": dict}.get(key, str)
        digits = key not in DIGITS or re.fullmatch(f"[0-9a-f]{{{DIGITS[key]}}}", str(value))
        if type(value) is not kind or not digits:
            raise ValueError(f"{key}: {shown(value)} is not what dpmc writes")
    _share(record["epsilon"], record["delta"])
    if "number" in record and not 1 <= record["number"] <= MOST:
        raise ValueError(f"number: {shown(record['number'])} must be from 1 to {MOST}")


def _sealed(content: Record) -> Record:
    """Return a record with the hash of its content."""
    return {**content, "hash": hashlib.sha256(_line(content)).hexdigest()}


def _line(record: Record) -> bytes:
    """Return a record's one text: keys sorted, ASCII."""
    return json.dumps(record, sort_keys=True, allow_nan=False).encode("ascii")


def _read(path: Path, file: IO[bytes]) -> _Content:
    """Read and verify all records of an open file; raise DpmcError if there is none or one is wrong."""
    data = file.read()
    *lines, rest = data.split(b"\n")
    records: list[Record] = []
    for number, line in enumerate(lines, 1):
        records.append(checked(f"{path}: line {number}", _verified, line, records))
    complete = False
    with suppress(ValueError):
        if rest:
            # An editor may have removed the last line break.
            records.append(_verified(rest, records))
            complete = True
    if not records:
        raise DpmcError(
            f"{path}: has no complete first line, so nothing was taken from it if it was always so: remove "
            "it, or restore the ledger that it was"
        )
    if min(_left(records[0], records[1:])) < 0:
        raise DpmcError(f"{path}: its entries exceed its totals")
    size = len(data) if complete else len(data) - len(rest)
    return _Content(records, size, complete, bool(rest) and not complete)


def _verified(line: bytes, before: list[Record]) -> Record:
    """Return a line's record; raise ValueError unless it is right and follows the records before it."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("is no line of a ledger") from None
    _require_right(record, ENTRY if before else HEADER)
    if _line(record) != line:
        raise ValueError("does not fit its hash, it was changed")
    if not before:
        if record["kind"] != KIND or record["neighbours"] != NEIGHBOURS:
            raise ValueError(f"is of another kind than {KIND!r} with neighbours {NEIGHBOURS!r}")
    elif (record["previous"], record["number"]) != (before[-1]["hash"], len(before)):
        raise ValueError("does not follow the line before it: lines were removed, added or exchanged")
    elif record["ledger"] != before[0]["id"]:
        raise ValueError("belongs to another ledger")
    return record


def _exact(number: float) -> Fraction:
    """Return the decimal number that is the text of a double."""
    return Fraction(repr(number))


def _sums(entries: list[Record]) -> tuple[Fraction, Fraction]:
    """Return the exact sums of epsilon and of delta."""
    return (
        sum((_exact(entry["epsilon"]) for entry in entries), Fraction()),
        sum((_exact(entry["delta"]) for entry in entries), Fraction()),
    )


def _left(header: Record, entries: list[Record]) -> tuple[Fraction, Fraction]:
    """Return the totals minus the exact sums; below 0 if they are exceeded."""
    epsilon, delta = _sums(entries)
    return _exact(header["epsilon"]) - epsilon, _exact(header["delta"]) - delta


def _rounded(exact: Fraction, towards: float) -> float:
    """Return a number of at least 0 as the nearest double whose text is not beyond it, towards 0 or inf."""
    nearest = float(exact)
    wrong = _exact(nearest) > exact if towards == 0.0 else _exact(nearest) < exact
    return math.nextafter(nearest, towards) if wrong else nearest


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[IO[bytes]]:
    """Open the file of a ledger; raise DpmcError if it is none or cannot be opened."""
    try:
        if not path.is_file():  # a pipe would wait for ever
            absent = "no such ledger; dpmc ledger init creates one"
            raise DpmcError(f"{path}: {'is not a regular file' if path.exists() else absent}")
        with open(path, mode, buffering=0) as file:
            yield file
    except OSError as error:
        text = f"cannot be {'read' if mode == 'rb' else 'written'} ({error.strerror or error})"
        raise DpmcError(f"{path}: {text}") from None


def _waiting(path: Path) -> str:
    return f"{path}: waiting for another process that uses this ledger"


def _write(file: IO[bytes], path: Path, data: bytes) -> None:
    """Write all of `data` and wait until the file and its name are on the disk."""
    while data:
        data = data[file.write(data) :]
    files.sync(file, path)
