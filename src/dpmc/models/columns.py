"""Columns of a table as numbers, entry by entry: one rule for experiments and releases.

Levels of categories and fills of missing values are public. An entry that is no number becomes NaN, and no
entry decides how another one is read. What is refused is a column's type, if no entry of it can be a number.
"""

from __future__ import annotations

import numbers
import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import DECIMAL, shown

if TYPE_CHECKING:
    from pandas import Index

#: Places in messages: rows of a table from 0, lines of a file from 1.
ROW, LINE = "row {}, column {}", "line {}: column {}"
#: Usual words for a missing value. As names of columns they are refused: the first row may lack a value.
MISSING = re.compile(
    r"n[./]?a\.?|nan(\(.*\))?|nat|null|none|nil|missing|unknown|undefined|not available|no data|_+", re.I
)
USUALLY_MISSING = (
    *("", "na", "n/a", "n.a.", "n.a", "na.", "n/a.", "nan", "nat", "null", "none", "nil", "missing", "unknown"),
    *("undefined", "not available", "no data"),
)
TRUTH = {"true": 1, "false": 0}


@dataclass(frozen=True)
class Declared:
    """How the entries of one column are read: all of it is public, and the same for every row.

    Words are compared without blanks around them and without case; a level is compared with case, and comes
    before a word for a missing value.
    """

    type: str = "any"  # "number", "integer", "boolean", "string", or "any": a number, or one of `levels`
    levels: tuple[str, ...] = ()  # of a category: an entry becomes its place, 0, 1, …
    fill: float | str | None = None  # stands for a missing entry: a number, or a level; None: it is odd
    true: tuple[str, ...] = ("true",)  # words that are 1, also of the outcome of a logistic regression
    false: tuple[str, ...] = ("false",)  # words that are 0
    missing: tuple[str, ...] = USUALLY_MISSING  # texts that say that an entry is missing
    decimal: str = "."  # mark before the decimals of a number in a text
    group: str = ""  # mark between groups of digits
    minimum: float | None = None  # a number below it is odd, as is
    maximum: float | None = None  # one above


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written: public."""

    delimiter: str = ","
    encoding: str = "utf-8"
    comment: str = ""  # begins lines that are no rows; "": none does
    quote: str = '"'


class Coding(NamedTuple):
    """How columns become numbers, by their names; public, and the same for every row."""

    levels: Mapping[str, tuple[str, ...]] = {}  # of categories: a level becomes its place, 0, 1, …
    fills: Mapping[str, Any] = {}  # what stands for a missing value: a number, or a level

    def rule(self, name: str) -> Rule:
        """Return the rule of a column.

        A level has its place by its text and, if it is a number that no other level is, by this number.
        """
        texts = self.levels.get(name, ())
        places: dict[str | Decimal | None, int] = {text: i for i, text in enumerate(texts)}
        values = [_value_of(text) for text in texts]
        places.update((x, i) for i, x in enumerate(values) if x is not None and values.count(x) == 1)
        return Rule(places, self.fills.get(name))


class Rule(NamedTuple):
    """How the entries of a column become numbers; public, and the same for every row."""

    levels: Mapping[str | Decimal | None, int] = {}  # of a category, as texts and as numbers; {}: numbers
    fill: Any = None  # what stands for a missing value; None: NaN

    def number(self, entry: object) -> float:
        """Return an entry as a number, that of a category as the place of its level; NaN for what is none."""
        try:
            if self.fill is not None and is_missing(entry):
                entry = self.fill
            if isinstance(entry, complex | np.complexfloating) and entry.imag == 0.0:
                entry = entry.real  # one complex number makes all entries of an array complex
            if not self.levels:
                return number(entry)
            # A number and its text have one place, because one row may decide which of them a column holds.
            keys = text_of(entry), _value_of(entry)
            return next((float(self.levels[key]) for key in keys if key in self.levels), np.nan)
        except Exception:  # of methods of the entry
            return np.nan

    def wrong(self, entry: object) -> str:
        """Return what is wrong with an entry whose number is not finite."""
        entry = entry.item() if isinstance(entry, np.generic) else entry
        if self.levels:
            known = ", ".join(level for level in self.levels if isinstance(level, str))
            return f": {shown(entry)} is not a level ({known})"
        if isinstance(entry, str) and not str.strip(entry):
            return " is missing, must be a number"
        if not isinstance(entry, str) and is_missing(entry) or np.isinf(self.number(entry)):
            return ": is NaN or infinite, must be a number"
        return f": {shown(entry)} is not a number"


class Unreadable:
    """An entry that its library cannot make an object of Python, such as a date beyond the year 9999."""

    def __repr__(self) -> str:
        return "an entry that cannot be read"


UNREADABLE = Unreadable()


def same_name(text: object) -> str:
    """Return a name or level in composed Unicode: one that looks like it is the same."""
    return unicodedata.normalize("NFC", str(text))


def text_of(value: Any) -> str:
    """Return a level as text: a whole number in its digits, another one as Python shows it.

    1, 1.0, true and "1" are the same level. Floats beyond 2⁵³ skip whole numbers and keep their own text.
    """
    if not is_number(value):
        return same_name(value).strip()
    if isinstance(value, numbers.Integral | np.bool_):
        return str(int(value))
    whole = abs(value) <= 2**53 and value == int(value)  # false for NaN
    return str(int(value)) if whole else str(float(value) if isinstance(value, Fraction) else value)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number or truth value of Python or NumPy, also NaN."""
    # NumPy's time spans are whole numbers for Python.
    return isinstance(value, numbers.Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def number(value: Any) -> float:
    """Return a number or truth value of Python, NumPy or text as a float; NaN for anything else.

    Raises OverflowError or ValueError for a number that no float is near.
    """
    if isinstance(value, str):
        value = str.strip(value)
        return float(value) if DECIMAL.fullmatch(value) else float(TRUTH.get(value.lower(), np.nan))
    return float(value) if is_number(value) else np.nan


def _value_of(value: Any) -> Decimal | None:
    """Return the exact number that an entry shows; None for what is no number."""
    text = str.strip(value) if isinstance(value, str) else text_of(value)
    if text.lower() in TRUTH:
        return Decimal(TRUTH[text.lower()])
    return Decimal(text) if DECIMAL.fullmatch(text) else None


def is_missing(value: object) -> bool:
    """Return whether an entry is empty, None, NaN or one of the usual words for a missing value."""
    if isinstance(value, str):
        return bool(MISSING.fullmatch(str.strip(value) or "NA"))
    import pandas  # slow to import

    try:
        return pandas.isna(value) is True  # an array for a list
    except Exception:  # of methods of the entry
        return False


def labels_of(index: Index, where: str) -> list[str]:
    """Return the names of a table's columns; [] if they are 0, 1, …: it has none."""
    if index.nlevels > 1:
        raise DpmcError(
            f"{where}: has names of {index.nlevels} levels; make them one: "
            'table.columns = ["_".join(map(str, name)) for name in table.columns]'
        )
    names = list(index)
    return [] if names == list(range(len(names))) else list(map(same_name, names))


def numbers_of(column: Any, rule: Rule, where: str) -> np.ndarray:
    """Return a column (n,) as floats, NaN for entries that are no numbers.

    A column is a list, an array, a series of pandas or a chunked array of pyarrow. Raises DpmcError naming
    `where` for a type of which no entry is a number.
    """
    import pandas

    kind = _kind_of(column, bool(rule.levels), where)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of an entry's methods, and of numbers beyond double precision
        if rule == Rule() and kind in ("f", "i", "u", "b"):
            if isinstance(column, pandas.Series):
                return column.to_numpy(dtype=float, na_value=np.nan)
            return np.asarray(column, dtype=float)
        return np.array([rule.number(entry) for entry in entries_of(column)], dtype=float)


def entries_of(column: Any) -> Sequence[Any]:
    """Return the entries of a column as objects of Python or NumPy."""
    import pandas

    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, pandas.CategoricalDtype):
        known = entries_of(column.cat.categories.to_series())
        return [known[code] if code >= 0 else None for code in column.cat.codes]
    if isinstance(dtype, np.dtype) and dtype.kind in "fiu":
        column = np.asarray(column)  # whose entries keep their type: as float 0.1 of 32 bits is not 0.1
    at = column.array if hasattr(column, "array") else column
    try:
        return at.to_pylist() if hasattr(at, "to_pylist") else list(at)
    except Exception:  # one entry cannot be read: it must not decide whether the others are
        return [_entry(at, i) for i in range(len(at))]


def _entry(column: Any, place: int) -> Any:
    """Return one entry, or what stands for an entry that cannot be read."""
    try:
        entry = column[place]
        return entry.as_py() if hasattr(entry, "as_py") else entry
    except Exception:  # of the library that holds it
        return UNREADABLE


def _kind_of(column: Any, coded: bool, where: str) -> str:
    """Return the kind of a column's type, as NumPy's; raise DpmcError for one that holds no numbers.

    A type that one odd entry gives to a column of numbers (texts, objects, complex numbers) is read by entry.
    Dates and times may be levels.
    """
    import pandas

    dtype = shown_type = getattr(column, "dtype", None)
    if isinstance(dtype, pandas.CategoricalDtype):
        shown_type = dtype.categories.dtype
    elif dtype is None and hasattr(column, "type"):  # not a list
        shown_type = column.type
    kind = str(getattr(dtype, "kind", "O"))
    if isinstance(shown_type, pandas.ArrowDtype):
        holds = _of_arrow(shown_type.pyarrow_dtype)
    elif dtype is None and shown_type is not None:
        holds = _of_arrow(shown_type)
        kind = "f" if holds == "numbers" else "O"
    else:
        spans = isinstance(shown_type, pandas.PeriodDtype | pandas.IntervalDtype)
        holds = "times" if spans or getattr(shown_type, "kind", "O") in "mM" else "objects"
    if holds == "nothing" or (holds == "times" and not coded):
        rule = "holds no numbers: write numbers, such as days since a public date"
        raise DpmcError(f"{where}: type {shown_type} {rule}")
    return kind


def _of_arrow(kind: Any) -> str:
    """Return what a column of a type of Arrow holds: numbers, objects that may be some, times, or nothing."""
    import pyarrow
    from pyarrow import types

    if isinstance(kind, pyarrow.BaseExtensionType):
        return _of_arrow(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        held = _of_arrow(kind.value_type)
        return "objects" if held == "numbers" else held
    if types.is_integer(kind) or types.is_floating(kind):
        return "numbers"
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if texts or types.is_decimal(kind) or types.is_boolean(kind) or types.is_null(kind):
        return "objects"
    return "times" if types.is_temporal(kind) else "nothing"
