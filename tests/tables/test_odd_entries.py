"""One odd entry among numbers: NaN or its number in a release, its number or its place in the lab."""

import datetime
import warnings
from collections import UserList
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from both_readers import both
from dpmc.models.columns import Coding, Declared

NAN = float("nan")


def broken(name: str, *bases: type) -> Any:
    """Return an object whose method of this name raises."""

    def method(self: Any, *_: Any) -> Any:
        raise RuntimeError("secret")

    return type("Broken", bases, {name: method, **({"__hash__": None} if name == "__eq__" else {})})()


class Loud:
    """An object whose conversion warns."""

    def __float__(self) -> float:
        warnings.warn("secret", stacklevel=1)
        return 1.0

    __str__ = __repr__ = lambda self: warnings.warn("secret", stacklevel=1) or "loud"  # type: ignore[func-returns-value,assignment]


class Real(float):
    """A number of a class of its own, which warns."""

    def __float__(self) -> float:
        warnings.warn("secret", stacklevel=1)
        return 5.0


#: Texts, also as entries of a CSV file, with what they are as numbers.
TEXTS: dict[str, float] = {
    "": NAN,
    " ": NAN,
    "NA": NAN,
    "n/a": NAN,
    "NaN": NAN,
    "nan(ind)": NAN,
    "None": NAN,
    "null": NAN,
    "?": NAN,
    "inf": NAN,
    "-Infinity": NAN,
    " 1 ": 1.0,
    "\t2.5": 2.5,
    "+3": 3.0,
    ".5": 0.5,
    "1e3": 1000.0,
    "1e400": np.inf,
    "9" * 400: np.inf,
    "1_000": NAN,
    "1 000": NAN,
    "1.5.2": NAN,
    "0x10": NAN,
    "٣": NAN,
    "１": NAN,
    "½": NAN,
    "−1": NAN,
    "1-": NAN,
    "$5": NAN,
    "5%": NAN,
    "1+0j": NAN,
    "True": 1.0,
    "FALSE": 0.0,
    "Yes": NAN,
    "2020-01-01": NAN,
    "x": NAN,
    "é": NAN,
    "\udcff": NAN,
    "a\x00b": NAN,
    "=1+1": NAN,
}
QUOTED = {"1,234.50": NAN, "1,5": NAN, 'a"b': NAN}
METHODS = [f"__{name}__" for name in "str repr float eq ne hash bool len class getattr array".split()]
OBJECTS: dict[str, tuple[Any, float]] = {
    "None": (None, NAN),
    "NaN": (NAN, NAN),
    "inf": (np.inf, np.inf),
    "NA of pandas": (pandas.NA, NAN),
    "NaT": (pandas.NaT, NAN),
    "masked": (np.ma.masked, NAN),
    "True": (True, 1.0),
    "True of NumPy": (np.True_, 1.0),
    "int8": (np.int8(-3), -3.0),
    "uint64": (np.uint64(2**64 - 1), 2.0**64),
    "float16": (np.float16(0.5), 0.5),
    "float32": (np.float32(2.5), 2.5),
    "long double": (np.longdouble(1.5), 1.5),
    "long double beyond double": (np.longdouble("1e4000"), np.inf),
    "Decimal": (Decimal("1.25"), 1.25),
    "Decimal NaN": (Decimal("NaN"), NAN),
    "Decimal sNaN": (Decimal("sNaN"), NAN),
    "Decimal infinite": (Decimal("-Infinity"), -np.inf),
    "Decimal beyond double": (Decimal("1e999999"), np.inf),
    "Fraction": (Fraction(1, 4), 0.25),
    "Fraction beyond double": (Fraction(10**400, 3), NAN),
    "10**400": (10**400, NAN),
    "-10**5000": (-(10**5000), NAN),
    "complex": (1 + 2j, NAN),
    "complex of NumPy": (np.complex64(3 + 1j), NAN),
    "complex without imaginary part": (4 + 0j, 4.0),
    "bytes": (b"1", NAN),
    "text of NumPy": (np.str_("7"), 7.0),
    "bytes of NumPy": (np.bytes_(b"7"), NAN),
    "date": (datetime.date(2020, 1, 1), NAN),
    "datetime": (datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), NAN),
    "time": (datetime.time(1), NAN),
    "timedelta": (datetime.timedelta(1), NAN),
    "Timestamp": (pandas.Timestamp(0), NAN),
    "datetime64": (np.datetime64("2020-01-01"), NAN),
    "timedelta64": (np.timedelta64(5, "s"), NAN),
    "Period": (pandas.Period("2020"), NAN),
    "Interval": (pandas.Interval(0, 1), NAN),
    "list": ([1.0], NAN),
    "nested list": ([[1.0], [2.0]], NAN),
    "empty list": ([], NAN),
    "tuple": ((1.0, 2.0), NAN),
    "dict": ({"a": 1}, NAN),
    "set": ({1}, NAN),
    "array": (np.zeros((2, 2)), NAN),
    "Series": (pandas.Series([1.0]), NAN),
    "function": (len, NAN),
    "class": (int, NAN),
    "Ellipsis": (..., NAN),
    "number that warns": (Real(2.0), 5.0),
    "object": (object(), NAN),
    "object that warns": (Loud(), NAN),
    **{
        f"{name} raises": (broken(name), NAN)
        for name in ("__str__", "__repr__", "__float__", "__eq__", "__ne__")
    },
    **{f"{name} raises": (broken(name), NAN) for name in ("__hash__", "__bool__", "__len__", "__class__")},
    "__float__ of a number raises": (broken("__float__", float), NAN),
    "__int__ of a number raises": (broken("__int__", int), 0.0),
    "strip of a text raises": (broken("strip", str), NAN),
}
ENTRIES = {repr(text)[:20]: (text, x) for text, x in (TEXTS | QUOTED).items()} | OBJECTS
PLAIN = [1.0, 2.0, 3.0, 4.0]
CATEGORY = Coding.of({"x": ("1.0", "2", "3", "four")})
FILLED = Coding.of({}, {"x": 9.0})


def in_list(entry: Any) -> Any:
    return UserList([[1.0, 1.0], [entry, 2.0], [3.0, 3.0], [4.0, 4.0]])


def in_frame(entry: Any) -> pandas.DataFrame:
    column = np.array([1.0, None, 3.0, 4.0], object)
    column[1] = entry
    return pandas.DataFrame({"y": PLAIN, "x": pandas.Series(column, dtype=object)})


def in_mapping(entry: Any) -> dict[str, Any]:
    return {"y": PLAIN, "x": [1.0, entry, 3.0, 4.0]}


def check(source: Any, number: float, place: str) -> None:
    """Compare: the entry's number or NaN, and the other rows; and the place of an odd entry."""
    found, message = both(source, ["x", "y"])
    np.testing.assert_array_equal(found, [[1.0, 1.0], [number, 2.0], [3.0, 3.0], [4.0, 4.0]])
    assert np.isfinite(number) or place in message


@pytest.mark.parametrize("way", [in_list, in_frame, in_mapping])
@pytest.mark.parametrize("kind", ENTRIES)
def test_an_odd_entry_is_its_number_or_none_and_changes_no_other_row(kind: str, way: Any) -> None:
    entry, number = ENTRIES[kind]
    check(way(entry), number, "row 2, column x")


@pytest.mark.parametrize("text", TEXTS | QUOTED)
def test_an_odd_entry_of_a_file_is_the_same_as_in_a_frame(text: str, tmp_path: Path) -> None:
    quoted = '"' + text.replace('"', '""') + '"' if text in QUOTED else text
    for end in ("\n", "\r\n", "\r"):
        path = tmp_path / "t.CSV"
        lines = ["y,x", "1,1", f"2,{quoted}", "3,3", "4,4"]
        path.write_bytes(end.join(lines).encode("utf-8", "replace"))
        check(path, (TEXTS | QUOTED)[text], "line 3: column x")


@pytest.mark.parametrize("kind", ENTRIES)
def test_an_odd_entry_among_levels_and_fills_changes_no_other_row(kind: str) -> None:
    entry, number = ENTRIES[kind]
    for coding, wanted in ((CATEGORY, [0.0, 2.0]), (FILLED, [1.0, 3.0])):
        found, message = both(in_frame(entry).iloc[:3], ["x", "y"], coding)
        np.testing.assert_array_equal(found[[0, 2], 0], wanted)
        assert np.isfinite(found[1, 0]) or "row 2, column x" in message


def test_entries_that_come_again_are_read_as_they_are_alone() -> None:
    """1 and True are equal, and not the same entry."""
    declared = Declared(type="boolean", true=("yes",), false=("no",))
    entries = [
        True,
        1,
        "yes",
        "1",
        np.int64(1),
        np.bool_(True),
        False,
        0,
        *[1, True, "yes", np.bool_(True)] * 3,
    ]
    alone = [declared.number(entry) for entry in entries]
    np.testing.assert_array_equal(declared.numbers(entries, "x"), alone)
    assert np.isnan(alone[1]) and alone[0] == 1.0
