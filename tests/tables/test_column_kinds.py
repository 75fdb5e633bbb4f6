"""Types of columns: one odd row changes no other, whether its column is read or not."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from both_readers import both
from dpmc.common.errors import DpmcError
from dpmc.data.tables import read_rows
from dpmc.models.columns import Coding

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

BIG = 2**62


def as_texts(kind: Any, *texts: bytes) -> Any:
    """Return an array of texts, which may be none of UTF-8."""
    wide = pa.large_binary() if kind == pa.large_string() else pa.binary()
    return pa.Array.from_buffers(kind, len(texts), pa.array(texts, wide).buffers())


def of_64(kind: Any, odd: int) -> tuple[Any, Any]:
    """Return a column without and with an odd entry, kept as whole numbers of 64 bits."""
    return pa.array([1, 2, 3]).view(kind), pa.array([1, odd, 3]).view(kind)


def of_32(kind: Any, odd: int) -> tuple[Any, Any]:
    """Return a column without and with an odd entry, kept as whole numbers of 32 bits."""
    return pa.array([1, 2, 3], pa.int32()).view(kind), pa.array([1, odd, 3], pa.int32()).view(kind)


def of(kind: Any, plain: list[Any], odd: Any) -> tuple[Any, Any]:
    """Return a column without and with an odd entry."""
    return pa.array(plain, kind), pa.array([plain[0], odd, plain[2]], kind)


def of_category(values: Any, odd: Any) -> tuple[Any, Any]:
    """Return a column of a dictionary without and with an odd entry."""
    codes = pa.array([0, 1, 0], pa.int8())
    return tuple(pa.DictionaryArray.from_arrays(codes, each) for each in (values, odd))  # type: ignore[return-value]


#: Types of which an entry may be a number: they are read by entry.
NUMBERS: dict[str, tuple[Any, Any]] = {
    "int8": of(pa.int8(), [1, 2, 3], None),
    "int64": of(pa.int64(), [2**53 + 1, 2, 3], None),
    "uint64": of(pa.uint64(), [1, 2, 3], 2**64 - 1),
    "float16": of(pa.float16(), [np.float16(1), np.float16(2), np.float16(3)], np.float16("nan")),
    "float32": of(pa.float32(), [1.5, 2.0, 3.0], float("inf")),
    "double": of(pa.float64(), [1.5, 2.0, 3.0], None),
    "bool": of(pa.bool_(), [True, False, True], None),
    "null": (pa.nulls(3), pa.nulls(3)),
    "decimal128": of(pa.decimal128(38, 2), [Decimal("1.50")] * 3, Decimal("9" * 36 + ".99")),
    "decimal256": of(pa.decimal256(60, 2), [Decimal("1.50")] * 3, None),
    "string": (as_texts(pa.string(), b"1", b"2", b"3"), as_texts(pa.string(), b"1", b"M\xfcller", b"3")),
    "large string": (
        as_texts(pa.large_string(), b"1", b"2", b"3"),
        as_texts(pa.large_string(), b"1", b"\xff\xfe", b"3"),
    ),
    "dictionary of texts": of_category(
        as_texts(pa.string(), b"1", b"2"), as_texts(pa.string(), b"1", b"\xff")
    ),
    "dictionary of numbers": of_category(pa.array([1.0, 2.0]), pa.array([1.0, np.inf])),
    "dictionary of decimals": of_category(
        pa.array([Decimal("1.5"), Decimal("2.5")]), pa.array([Decimal("1.5"), Decimal("-9.5")])
    ),
}

#: Types of which no entry is a number; those of time may be levels.
TIMES: dict[str, tuple[Any, Any]] = {
    "date32": of_32(pa.date32(), 5_000_000),
    "date32 before the first year": of_32(pa.date32(), -5_000_000),
    "date64": (
        pa.array([0, 86_400_000, 0]).view(pa.date64()),
        pa.array([0, 86_400_000 * 10**9, 0]).view(pa.date64()),
    ),
    **{
        f"timestamp {unit}": of_64(pa.timestamp(unit), 10**15 if unit == "s" else BIG)
        for unit in ("s", "ms", "us", "ns")
    },
    **{f"timestamp {unit} UTC": of_64(pa.timestamp(unit, "UTC"), 10**15) for unit in ("s", "ns")},
    "time32": of_32(pa.time32("ms"), 2**31 - 1),
    "time64": of_64(pa.time64("us"), BIG),
    "time64 below 0": of_64(pa.time64("us"), -5),
    "duration": of_64(pa.duration("ms"), BIG),
    "dictionary of dates": of_category(*(each[:2] for each in of_32(pa.date32(), 5_000_000))),
}
NOTHING: dict[str, tuple[Any, Any]] = {
    "binary": of(pa.binary(), [b"1", b"2", b"3"], b"\xff"),
    "binary of fixed size": of(pa.binary(1), [b"1", b"2", b"3"], None),
    "list": of(pa.list_(pa.int32()), [[1], [2], [3]], None),
    "map": of(pa.map_(pa.string(), pa.int64()), [[("a", 1)], [], []], [("a", 1), ("a", 2)]),
    "struct": of(pa.struct([("a", pa.int64())]), [{"a": 1}] * 3, None),
}
ALL = NUMBERS | TIMES | NOTHING


def in_file(column: Any, place: Path) -> Any:
    """Return the path of a Parquet file with this column; of durations and the like with Arrow's types."""
    parquet.write_table(pa.table({"y": [1.0, 2.0, 3.0], "c": column}), place / "t.parquet")
    return place / "t.parquet"


def in_frame(column: Any, place: Path) -> Any:
    """Return a data frame with this column, of Arrow's type."""
    array = pandas.arrays.ArrowExtensionArray(pa.chunked_array([column]))
    return pandas.DataFrame({"y": [1.0, 2.0, 3.0], "c": pandas.Series(array)})


WAYS = [in_file, in_frame]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ALL)
def test_an_odd_entry_of_a_column_that_is_not_read_changes_nothing(
    kind: str, way: Any, tmp_path: Path
) -> None:
    for column in ALL[kind]:
        assert both(way(column, tmp_path), ("y",))[0].tolist() == [[1.0], [2.0], [3.0]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", NUMBERS)
def test_an_odd_entry_of_a_column_that_is_read_changes_no_other_row(
    kind: str, way: Any, tmp_path: Path
) -> None:
    (plain, _), (odd, message) = (both(way(column, tmp_path), ("c",)) for column in NUMBERS[kind])
    assert plain.shape == odd.shape == (3, 1)
    np.testing.assert_array_equal(plain[[0, 2]], odd[[0, 2]])
    if kind != "null":
        assert np.isfinite(plain).all()
        assert np.isfinite(odd).all() or ", column c: " in message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", TIMES | NOTHING)
def test_a_type_that_holds_no_numbers_is_refused_by_name_whatever_the_entries(
    kind: str, way: Any, tmp_path: Path
) -> None:
    (words,) = {both(way(column, tmp_path), ("c",))[0] for column in ALL[kind]}
    assert "column c: type " in words and "holds no numbers" in words


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", TIMES)
def test_dates_and_times_may_be_levels(kind: str, way: Any, tmp_path: Path) -> None:
    plain, odd = TIMES[kind]
    levels = tuple(dict.fromkeys(str(entry) for entry in pandas.Series(in_frame(plain, tmp_path)["c"])))
    if way is in_file:
        levels = tuple(dict.fromkeys(str(entry.as_py()) for entry in plain))
    coding = Coding.of({"c": levels})
    wanted, _ = both(way(plain, tmp_path), ("c",), coding)
    assert wanted[0, 0] == 0.0 and np.isfinite(wanted).all()
    found, message = both(way(odd, tmp_path), ("c",), coding)
    np.testing.assert_array_equal(found[[0, 2]], wanted[[0, 2]])
    assert np.isnan(found[1, 0]) and "row 2, column c: " in message


def test_an_index_that_pandas_wrote_is_no_column(tmp_path: Path) -> None:
    table = pandas.DataFrame({"x": [1.0, 2.0], "who": [5, 6]}, index=pandas.Index([7, 8]))
    for frame in (table, table.set_index("who")):
        frame.to_parquet(tmp_path / "t.parquet")
        assert both(tmp_path / "t.parquet")[0].tolist() == frame.to_numpy().tolist()


def test_names_with_points_and_of_unread_structures_do_no_harm(tmp_path: Path) -> None:
    columns = {"a.b": pa.array([1.0, 2.0]), "c": pa.array([{"d": 1}] * 2), "c.e": pa.array([3, 4])}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert both(tmp_path / "t.parquet", ["c.e", "a.b"])[0].tolist() == [[3.0, 1.0], [4.0, 2.0]]


def test_a_file_that_is_cut_is_refused_in_words(tmp_path: Path) -> None:
    path = in_file(pa.array([1, 2, 3]), tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    for private in (False, True):
        with pytest.raises(DpmcError, match="t.parquet: cannot be read"):
            read_rows(path, ("c",), private=private)
