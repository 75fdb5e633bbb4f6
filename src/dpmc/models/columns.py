"""Columns of a table as numbers, entry by entry, as declared: one rule for experiments and releases.

What is declared is public. An entry that is odd becomes NaN, and no entry decides how another one is read.
What is refused is a column's stored type, if no entry of it can be what is declared.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import DECIMAL, shown

#: Texts that usually say that an entry is missing.
USUALLY_MISSING = (
    *("", "not available", "no data"),
    *"na n/a n.a. n.a na. nan nan(ind) nat null none nil missing unknown undefined".split(),
)
#: Stored types by the beginnings of their names in NumPy, pandas, Arrow and polars.
_TEXTS = re.compile("(large_)?string", re.I)  # not pandas' `str`, which one odd entry gives to a column
_TIMES = re.compile("date|time|duration|period", re.I)
OF_DATES = "write days since a public date"  #: in place of a date
#: Types of entries that come again.
AGAIN = (str, bool, int, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8)
_NOTHING = re.compile("(large_|fixed_size_)?(list|binary)|array|map|struct|interval|.*union", re.I)


@dataclass(frozen=True)
class Declared:
    """How the entries of one column are read: all of it is public, and the same for every row.

    An entry is one of `levels`, else missing, else a word for true or false, else a number, else odd. Blanks
    around a text do not count, nor does the case of a word; that of a level does.
    """

    type: str = "any"  # "number", "integer"; "boolean", "string": words, no other numbers; "any": as "number"
    levels: tuple[str, ...] = ()  # of a category: an entry becomes its place, 0, 1, …
    fill: float | str | None = None  # stands for a missing entry: a number, or a level; None: it is odd
    true: tuple[str, ...] = ("true", "1")  # words that are 1, also of a text outcome
    false: tuple[str, ...] = ("false", "0")  # words that are 0
    missing: tuple[str, ...] = USUALLY_MISSING  # texts that say that an entry is missing
    decimal: str = "."  # mark before the decimals of a number in a text
    group: str = ""  # mark between groups of three digits
    minimum: float | None = None  # a number below it is odd
    maximum: float | None = None  # a number above it is odd
    required: bool = False  # no fill is a cure for a missing entry

    @cached_property
    def _places(self) -> dict[str, float]:
        """Return the places of levels by text."""
        return {same_name(text): float(i) for i, text in enumerate(self.levels)}

    @cached_property
    def _filled(self) -> float:
        """Return what a missing entry is: the fill, or NaN."""
        fill = self._places[text_of(self.fill)] if self.levels and self.fill is not None else self.fill
        return np.nan if fill is None else float(fill)

    @cached_property
    def _words(self) -> dict[str, float]:
        """Return what words for true, false and a missing entry are, in lower case."""
        words = {} if self.levels else dict.fromkeys(self.false, 0.0) | dict.fromkeys(self.true, 1.0)
        words |= dict.fromkeys(self.missing, self._filled)
        return {same_name(word).casefold(): x for word, x in words.items()}

    @cached_property
    def _codes(self) -> dict[Decimal | None, float]:
        """Return what levels and words that are numbers are, by number; not a number of two levels."""
        values = [value_of(text) for text in self.levels]
        codes: dict[Decimal | None, float]
        codes = {Decimal(word): x for word, x in self._words.items() if DECIMAL.fullmatch(word)}
        return codes | {x: float(i) for i, x in enumerate(values) if x is not None and values.count(x) == 1}

    @cached_property
    def _by_text(self) -> bool:
        """Return whether a number must be compared with levels or words."""
        other = self.levels or self.type in ("boolean", "string")
        return bool(other) or any(code != x for code, x in self._codes.items())

    @cached_property
    def _written(self) -> re.Pattern[str]:
        """Return the form of a number with the declared marks."""
        digits, mark = "[0-9]+", re.escape(self.decimal)
        if self.group:
            digits = f"(?:[0-9]{{1,3}}(?:{re.escape(self.group)}[0-9]{{3}})+|[0-9]+)"
        return re.compile(f"[-+]?(?:{digits}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][-+]?[0-9]+)?")

    def is_missing(self, entry: object) -> bool:
        """Return whether an entry is None, NaN or a declared text for a missing one, and no level."""
        try:
            text = text_of(entry)
            word = text not in self._places and text.casefold() in map(str.casefold, self.missing)
            return word or (not isinstance(entry, str) and _is_none(entry))
        except Exception:  # of methods of the entry
            return False

    def number(self, entry: Any) -> float:
        """Return an entry as a number, that of a category as the place of its level; NaN for what is odd."""
        try:
            if isinstance(entry, complex | np.complexfloating) and entry.imag == 0.0:
                entry = entry.real  # one complex number makes all entries of an array complex
            text = same_name(entry) if isinstance(entry, str) else None
            if text is None and _is_none(entry):
                return self._filled
            truth = isinstance(entry, bool | np.bool_) and not self.levels
            if text is not None or (self._by_text and not truth):
                key = text_of(entry) if text is None else text
                found = self._places.get(key, self._words.get(key.casefold()))
                if found is None and self._by_text:
                    # A number and its text are the same: one row may decide which of them a column holds.
                    found = self._codes.get(value_of(entry))
                if found is not None or self.levels:
                    return np.nan if found is None else found
            if not truth and self.type in ("boolean", "string"):
                return np.nan
            if text is not None:
                plain = text.replace(self.group, "").replace(self.decimal, ".")
                return float(plain) if self._written.fullmatch(text) else np.nan
            return float(entry) if is_number(entry) else np.nan
        except Exception:  # of methods of the entry; or a number that no float is near
            return np.nan

    def numbers(self, column: Any, where: str) -> np.ndarray:
        """Return a column (n,) as floats, with NaN or infinity for odd entries.

        A column is a list, an array, or what narwhals takes as a series. Raises DpmcError naming `where` for
        a stored type that cannot be what is declared.
        """
        stored = stored_type(column)
        if _NOTHING.match(stored) or (_TIMES.match(stored) and not self.levels):
            raise DpmcError(f"{where}: type {stored} holds no numbers: {OF_DATES}, …")
        if self.type in ("number", "integer") and _TEXTS.match(stored) and not self.levels:
            raise DpmcError(f"{where}: type {stored} is declared {self.type}: cast it, or declare a string")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of an entry's methods, and of numbers beyond double precision
            entries = entries_of(column)
            if isinstance(entries, np.ndarray) and entries.dtype.kind in "fiub" and not self._by_text:
                x = np.array(entries, dtype=float)
                x[np.isnan(x)] = self._filled
            else:
                x = np.array(self._read(entries), dtype=float)
        if self.type == "integer" or self.minimum is not None or self.maximum is not None:
            x[[bool(self._beyond(value)) for value in x.tolist()]] = np.nan
        return x

    def _read(self, entries: Sequence[Any] | np.ndarray) -> list[float]:
        """Return `number` of each entry; faster if in a text, or a text or whole number that came before."""
        is_usual = not self._by_text and (self.decimal, self.group) == (".", "")
        known: dict[Any, float] = {}
        found = []
        for entry in entries:
            if type(entry) not in AGAIN:
                found.append(self.number(entry))
            elif is_usual and type(entry) is str and self._written.fullmatch(entry):
                found.append(float(entry))
            else:
                key = (type(entry), entry)  # 1 and True are equal
                if key not in known:
                    known[key] = self.number(entry)
                found.append(known[key])
        return found

    def _beyond(self, x: float) -> str:
        """Return the rule that a number breaks; "" if none."""
        if self.levels or not np.isfinite(x):
            return ""
        if self.type == "integer" and x != np.floor(x):
            return "must be a whole number"
        if self.minimum is not None and x < self.minimum:
            return f"must be at least {self.minimum:g}"
        return f"must be at most {self.maximum:g}" if self.maximum is not None and x > self.maximum else ""

    def wrong(self, entry: Any) -> str:
        """Return what is wrong with an odd entry, and its cure."""
        entry = entry.item() if isinstance(entry, np.generic) else entry
        x, text = self.number(entry), same_name(entry) if isinstance(entry, str) else ""
        missing, alike = self.is_missing(entry), [k for k in self.levels if k.casefold() == text.casefold()]
        if rule := self._beyond(x):
            return f": {shown(entry)} {rule}"
        cure = "; a text needs `levels`, or a codebook with words for true and false" if text else ""
        if missing:
            cure = "; `fills`, or `fill` of a codebook, says what stands for a missing value"
            cure = "; no fill may stand for it: leave its row out" if self.required else cure
        elif re.match(r"\d{4}-\d\d?-\d|\d\d?[./]\d\d?[./]\d", text):
            cure = f"; {OF_DATES}"
        elif re.fullmatch(r"[-+]?[0-9][0-9.,'\s]*", text):
            cure = "; a codebook declares its marks, `decimalChar` and `groupChar`"
        elif "\ufffd" in text:
            cure = "; it is no text in the file's `encoding`, which a codebook declares"
        if self.levels:
            known = f"write {shown(alike[0])}" if alike else ", ".join(self.levels)
            return f": {shown(entry)} is not a level ({known}){cure if missing else ''}"
        if isinstance(entry, str):
            return f"{f': {shown(entry)} is not' if text else ' is missing, must be'} a number{cure}"
        nothing = np.isinf(x) or (missing and not (is_number(entry) and entry == entry))  # NaN is not itself
        return f": {'is NaN or infinite, must be' if nothing else f'{shown(entry)} is not'} a number{cure}"


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written: public."""

    delimiter: str = ","
    encoding: str = "utf-8"  # a code in which a line break is the byte 10 or 13
    comment: str = ""  # begins lines above the names that are skipped; "": none
    quote: str = '"'  # "": none


class Coding(NamedTuple):
    """How the columns of a table are read, by their names: public, and the same for every row."""

    declared: Mapping[str, Declared] = {}  # other columns are `Declared()`
    dialect: Dialect = Dialect()
    person: str | None = None  # column that says whose a row is

    @classmethod
    def of(cls, levels: Mapping[str, tuple[str, ...]], fills: Mapping[str, Any] = {}) -> Coding:
        """Return the coding of levels of categories and fills of missing values."""
        names = dict.fromkeys([*levels, *fills])
        return cls({name: Declared(levels=levels.get(name, ()), fill=fills.get(name)) for name in names})

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """Return the levels of categories by column."""
        return {name: column.levels for name, column in self.declared.items() if column.levels}

    @property
    def fills(self) -> dict[str, Any]:
        """Return what stands for missing values by column."""
        return {name: column.fill for name, column in self.declared.items() if column.fill is not None}


class Unreadable(NamedTuple):
    """An entry that its library cannot make an object of Python, or one of a line that is no row."""

    reason: str = ""  # why the whole line is no row

    def __repr__(self) -> str:
        return "an entry that cannot be read"


def same_name(text: object) -> str:
    """Return a name or level in composed Unicode, stripped: one that looks like it is the same."""
    return unicodedata.normalize("NFC", str(text)).strip()


def text_of(value: Any) -> str:
    """Return a level as text: a whole number in its digits, another one as Python shows it.

    1, 1.0, True and "1" are the same level. Beyond 2⁵³ only integers have their digits: floats skip some.
    """
    if not is_number(value):
        return same_name(value)
    if isinstance(value, Integral | np.bool_):
        return str(int(value))
    whole = value == value and abs(value) <= 2**53 and value == int(value)  # not NaN
    return str(int(value)) if whole else str(float(value) if isinstance(value, Fraction) else value)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number or truth value of Python or NumPy, also NaN."""
    # NumPy's time spans are whole numbers for Python.
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def _is_none(entry: Any) -> bool:
    """Return whether an entry that is no text is None or NaN."""
    import pandas  # slow to import

    return pandas.isna(entry) is True  # an array for a list


def value_of(value: Any) -> Decimal | None:
    """Return the exact number that a level shows, of a truth value 1 or 0; None for what is no number."""
    text = text_of(value)
    text = {"true": "1", "false": "0"}.get(text.lower(), text)
    return Decimal(text) if DECIMAL.fullmatch(text) else None


def stored_type(column: Any) -> str:
    """Return the name of the type that a column is stored as, of a category that of its levels; "": none."""
    kind: Any = getattr(column, "dtype", getattr(column, "type", ""))
    kind = getattr(getattr(kind, "categories", None), "dtype", getattr(kind, "pyarrow_dtype", kind))
    return str(kind.value_type if str(kind).startswith(("dictionary", "run_end")) else kind)


def unmasked(array: Any) -> Any:
    """Return an array with NaN for what is masked; anything else as it is."""
    return np.ma.filled(array.astype(object), np.nan) if np.ma.isMaskedArray(array) else array


def entries_of(column: Any) -> Sequence[Any] | np.ndarray:
    """Return the entries of a column as objects of Python or NumPy; of plain numbers as an array (n,)."""
    import narwhals  # slow to import

    series: Any = column
    try:
        series = narwhals.from_native(column, series_only=True, pass_through=True)
        if not hasattr(series, "to_native"):
            return np.asarray(unmasked(column)) if hasattr(column, "__array__") else list(column)
        # As a float of Python 0.1 of 32 bits is not 0.1; and with nulls whole numbers would become floats.
        plain = series.dtype.is_float() or (series.dtype.is_integer() and not series.null_count())
        return series.to_numpy() if plain else series.to_list()
    except Exception:  # one entry cannot be read: it must not decide whether the others are
        return [_entry(series, i) for i in range(len(series))]


def _entry(column: Any, place: int) -> Any:
    """Return one entry, or what stands for an entry that cannot be read."""
    try:
        return column[place]
    except Exception:  # of the library that holds it
        return Unreadable()
