"""What is given, how it is declared, and what both an experiment and a release make of it."""

import random
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from both_readers import both
from dpmc.common.errors import DpmcError
from dpmc.data.tables import read_rows
from dpmc.models.columns import Coding, Declared, Dialect

NAN = float("nan")
SEXES = Declared("boolean", true=("2", "f"), false=("1", "m"), missing=("9",))
PLANS = Declared("string", levels=("none", "public"), fill="public")

#: Entries of a column, how it is declared, what they are, and words of the message for the first odd one.
COLUMNS: dict[str, tuple[list[Any], Declared, list[float], str]] = {
    "marks": (["1,234.50", "-2", "12,34"], Declared("number", group=","), [1234.5, -2, NAN], "declares its"),
    "comma": (["1.234,50", "2,5", "1.5"], Declared("number", decimal=",", group="."), [1234.5, 2.5, NAN], ""),
    "spaces": (["1 234", "5 6"], Declared("integer", group=" "), [1234, NAN], "`groupChar`"),
    "no marks": (["1", "1,234.50"], Declared("number"), [1, NAN], "its marks, `decimalChar` and `groupChar`"),
    "outcome": (["Yes", "no", "?"], Declared("string", true=("yes",), false=("No",)), [1, 0, NAN], "'?' is"),
    "words": (["Yes", "1", "x"], Declared(true=("yes",)), [1, 1, NAN], "words for true and false"),
    "truth": (["True", "FALSE", "1", "0", "t"], Declared("boolean"), [1, 0, 1, 0, NAN], "'t' is not"),
    "truth as numbers": ([True, False], Declared("number"), [1, 0], ""),
    "sexes": ([1, 2, 2.0, 9], SEXES, [0, 1, 1, NAN], "is not a number; `fills`, or"),
    "sexes as texts": (["1", "F", "2.0", "0"], SEXES, [0, 1, 1, NAN], "'0' is not a number"),
    "whole": ([1, 2.0, 2.5], Declared("integer"), [1, 2, NAN], "2.5 must be a whole number"),
    "bounds": ([0, 5, 6], Declared("number", minimum=0, maximum=5), [0, 5, NAN], "6 must be at most 5"),
    "below": ([0, -1e-9], Declared("number", minimum=0), [0, NAN], "must be at least 0"),
    "missing": (
        [-9, 3],
        Declared("number", missing=("-9",)),
        [NAN, 3],
        "says what stands for a missing value",
    ),
    "filled": ([-9, None, 3], Declared("number", missing=("-9", ""), fill=1.5), [1.5, 1.5, 3], ""),
    "other missing": (["NA", "."], Declared(missing=(".",), fill=7), [NAN, 7], "'NA' is not a number"),
    "a level is not missing": (["none", "public", ""], PLANS, [0, 1, 1], ""),
    "case": (["no", "No"], Declared(levels=("no", "yes")), [0, NAN], "'No' is not a level (write 'no')"),
    "no level": (["a", ""], Declared(levels=("a", "b")), [0, NAN], "says what stands for a missing value"),
    "codes": (["01", "1", "02", "3"], Declared("string", levels=("01", "02")), [0, 0, 1, NAN], "(01, 02)"),
    "seven digits": ([1234567, 1234568], Declared(levels=("1234567", "7654321")), [0, NAN], "1234568 is not"),
    "decimals": ([Decimal("1.50"), Decimal(2)], Declared("number"), [1.5, 2], ""),
    "dates": (["2020-01-01", "1"], Declared("number"), [NAN, 1], "a number; write days since a public"),
    "dates with dots": (
        ["1.2.2020", "1"],
        Declared("number"),
        [NAN, 1],
        "a number; write days since a public",
    ),
}


def in_mapping(entries: list[Any], _: Path) -> Any:
    return {"x": entries, "y": [0.0] * len(entries)}


def in_objects(entries: list[Any], _: Path) -> Any:
    return pandas.DataFrame({"y": 0.0, "x": pandas.Series(entries, dtype=object)})


def in_csv(entries: list[Any], folder: Path) -> Any:
    in_objects(entries, folder).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def by_pandas(entries: list[Any], folder: Path) -> Any:
    return pandas.read_csv(in_csv(entries, folder), keep_default_na=False)


def in_categories(entries: list[Any], folder: Path) -> Any:
    return in_objects(entries, folder).astype({"x": "category"})


def in_polars(entries: list[Any], folder: Path) -> Any:
    return pytest.importorskip("polars").DataFrame(in_mapping(entries, folder), strict=False)


def in_arrow(entries: list[Any], folder: Path) -> Any:
    return pytest.importorskip("pyarrow").table(in_mapping(entries, folder))


WAYS = [in_mapping, in_objects, in_csv, by_pandas, in_categories, in_polars, in_arrow]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", COLUMNS)
def test_an_entry_is_what_is_declared(given: str, way: Callable[..., Any], tmp_path: Path) -> None:
    entries, declared, wanted, words = COLUMNS[given]
    coding = Coding({"x": declared})
    rows, message = both(way(entries, tmp_path), ["x"], coding)
    stored_as_texts = way in (in_polars, in_arrow) and isinstance(entries[0], str)
    if stored_as_texts and declared.type in ("number", "integer"):
        assert f"tring is declared {declared.type}: cast it" in rows
    elif way is by_pandas and given == "codes":  # pandas has made numbers of them: 1, 1, 2, 3
        np.testing.assert_array_equal(rows, [[0], [0], [1], [NAN]])
    else:
        np.testing.assert_array_equal(rows[:, 0], wanted)
        assert words in message or way in (in_csv, by_pandas, in_polars)


FRAME = pandas.DataFrame({"x": [1.0, 2.0], "y": [10.0, 20.0]})
ROWS = [[10.0, 1.0], [20.0, 2.0]]
EUROPE = Coding({"x": Declared("number", decimal=",")}, Dialect(";", "latin-1", "#", "'"))
JAPAN = Coding({}, Dialect(encoding="cp932"))
#: Bytes of a CSV file, how it is declared, and its columns y and x, or words of the refusal.
CSV: dict[str, tuple[bytes, Coding, Any]] = {
    "plain": (b"x,y\n1,10\n2,20\n", Coding(), ROWS),
    "BOM, CR": (b"\xef\xbb\xbfx,y\r1,10\r2,20", Coding(), ROWS),
    "quoted": (b'"x","y","a, b"\n1,"10","1, 2"\n2,20,""\n', Coding(), ROWS),
    "no name of an unread column": (b",x,y\n0,1,10\n1,2,20\n", Coding(), ROWS),
    "declared": (b"# caf\xe9\n#\nx;\xe9;'y'\n1;\xe9;10\n2,0;'a;b';20\n", EUROPE, ROWS),
    "semicolons": (b"x;y\n1;10\n", Coding(), "line 1: 'x;y': columns must be separated by ','; or declare"),
    "tabs": (b"x\ty\n1\t10\n", Coding(), "declare another `delimiter`"),
    "commas": (b"x,y\n1,10\n", EUROPE, "'x,y': columns must be separated by ';'"),
    "comment": (b"# x\nx,y\n1,10\n", Coding(), "line 1: '# x': is a comment: remove it, or declare"),
    "Latin": (b"x,y,\xe9\n1,10,2\n", Coding(), "line 1: is not text in UTF-8: declare `encoding`"),
    "UTF-16": ("x,y\n1,10\n".encode("utf-16"), Coding(), "is not text in UTF-8: declare `encoding`"),
    "declared UTF-16": (b"x,y\n", Coding({}, Dialect(encoding="utf-16")), "write the file in UTF-8"),
    "declared no text": (b"x,y\n", Coding({}, Dialect(encoding="idna")), "encoding: 'idna' is not known"),
    "declared a zero": (b"x,y\n", Coding({}, Dialect(encoding="utf-8\0")), "is not known or has line"),
    "declared nonsense": (b"x,y\n", Coding({}, Dialect(encoding="latin-99")), "encoding: 'latin-99' is not"),
    "no rows": (b"x,y\n", Coding(), "holds no rows"),
    "nothing": (b"", Coding(), "line 1: is blank"),
    "only comments": (b"#\n#\n", EUROPE, "line 3: is blank"),
    "no column": (b"x,z\n1,2\n", Coding(), "has no column 'y'; it has x, z"),
    "two": (b"x,y,x\n1,2,3\n", Coding(), "two columns have the same name, x: rename one"),
    "alike": ("x,y,\u00e2,a\u0302, y\n1,2,3,4,5\n".encode(), Coding(), "have the same name, y: rename one"),
    "short line": (b"x,y\n1,10\n2\n", Coding(), [[10, 1], [NAN, NAN]]),
    "short line, filled": (b"x,y\n1,10\n2\n", Coding.of({}, {"y": 7.0}), [[10, 1], [NAN, NAN]]),
    "long line": (b"x,y\n1,10\n2,20,3\n", Coding(), [[10, 1], [NAN, NAN]]),
    "open quote": (b'x,y\n1,10\n2,"20\n', Coding(), [[10, 1], [NAN, NAN]]),
    "comment among rows": (b"x;y\n1;10\n# 2\n", EUROPE, [[10, 1], [NAN, NAN]]),
    "blank line": (b"x,y\n1,10\n\n2,20\n", Coding(), [[10, 1], [NAN, NAN], [20, 2]]),
    "odd bytes of an unread column": (b"x,y,z\n1,10,\xff\n2,20,\x81\n", Coding(), ROWS),
    "odd bytes": (b"x,y\n1,10\n2,\xff\n", Coding(), [[10, 1], [NAN, 2]]),
    "odd bytes at an end": (b"x,y\n1,10\x81\n2,20\n", JAPAN, [[NAN, 1], [20, 2]]),
}


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".Csv.GZ"])
@pytest.mark.parametrize("given", CSV)
def test_a_file_is_read_as_it_is_declared(given: str, suffix: str, tmp_path: Path) -> None:
    import gzip

    content, coding, wanted = CSV[given]
    path = tmp_path / f"t{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("GZ") else content)
    rows, _ = both(path, ["y", "x"], coding)
    if isinstance(wanted, str):
        assert isinstance(rows, str) and wanted in rows
    else:
        np.testing.assert_array_equal(rows, wanted)


def test_only_a_release_wants_a_line_of_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,2\n3,4\n")
    assert read_rows(tmp_path / "t.csv").tolist() == [[1, 2], [3, 4]]
    with pytest.raises(DpmcError, match="line 1: must be the names of the columns; a release reads no other"):
        read_rows(tmp_path / "t.csv", private=True)


def test_tables_of_other_libraries_are_read_by_name() -> None:
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    content = {"x": [1.0, 2.0], "z": [date(2020, 1, 1)] * 2, "y": [10.0, 20.0]}
    for source in (
        polars.DataFrame(content),
        arrow.table(content),
        {name: polars.Series(column) for name, column in content.items()},
        {name: arrow.chunked_array([column]) for name, column in content.items()},
    ):
        assert both(source, ["y", "x"])[0].tolist() == ROWS
        assert "column z: type date" in both(source, ["z"])[0].lower()
    assert "convert it" in both(polars.DataFrame(content).lazy(), ["y", "x"])[0]
    two = arrow.table([[1.0], [2.0]], names=["x", "x"])
    assert "two columns have the same name, x: rename one" in both(two, ["x"])[0]
    floats = polars.Series([0.1, 0.2, None], dtype=polars.Float32)
    codes = polars.DataFrame({"x": [1234567, None, 1234568], "f": floats})
    coding = Coding.of({"x": ("1234567", "1234568"), "f": ("0.1", "0.2")}, {"x": "1234567"})
    np.testing.assert_array_equal(both(codes, ["x", "f"], coding)[0], [[0, 0], [0, 1], [1, NAN]])


ODD: list[Any] = [
    None,
    NAN,
    True,
    2.5,
    -9,
    10**400,
    Decimal("sNaN"),
    date(2020, 1, 1),
    [1],
    b"1",
    1j,
    object(),
]
ODD += ["", " ", "NA", "x", "1,5", "1e400", '"', "'", "#", ",", ";", "\ufffd", "\x00", "yes", "No", "01", "1"]
ODD += ["\u0661", "a\u0302", "  2 "]
BASE = {"y": ["yes", "no"] * 2, "x": ["1.5", "2", "-9", "4"], "g": ["01", "02"] * 2, "z": list("abcd")}
DECLARED = {
    "y": Declared("string", true=("yes",), false=("no",)),
    "x": Declared("number", minimum=0, maximum=50, missing=("-9", ""), fill=3.0),
    "g": Declared("string", levels=("01", "02")),
}


def mutated(number: int, folder: Path, way: Callable[..., Any]) -> tuple[Any, set[int]]:
    """Return a table of which some entries are replaced, and the rows that these are in."""
    generator = random.Random(number)
    table = {name: list(column) for name, column in BASE.items()}
    changed = {generator.randrange(4) for _ in range(generator.randrange(1, 4))}
    lines = [",".join(parts).encode() for parts in zip(*BASE.values(), strict=True)]
    for row in changed:
        entry = generator.choice(ODD)
        table[generator.choice(list(table))][row] = entry
        byte = bytes([generator.randrange(256)])
        odd = b"" if byte in b"\r\n" else generator.choice([byte, b'"', b",", str(entry).encode()])
        at = generator.randrange(len(lines[row]) + 1)
        lines[row] = lines[row][:at] + odd + lines[row][at:]
    if way is in_csv:
        end = generator.choice([b"\n", b"\r\n", b"\r"])
        (folder / "t.csv").write_bytes(end.join([b"y,x,g,z", *lines]) + generator.choice([b"", end]))
        return folder / "t.csv", changed
    if way is by_pandas:
        pandas.DataFrame(table).astype(object).map(str).to_csv(folder / "t.csv", index=False)
        return pandas.read_csv(folder / "t.csv", dtype={"g": str}), changed
    return table if way is in_mapping else pandas.DataFrame(table).astype(object), changed


@pytest.mark.slow
@pytest.mark.parametrize("way", [in_mapping, in_objects, in_csv, by_pandas])
def test_no_entry_of_a_row_changes_what_is_read_of_others(way: Callable[..., Any], tmp_path: Path) -> None:
    """2,000 mutated tables: no traceback, no difference between experiment and release, and the same n."""
    wanted = np.array([[1, 1.5, 0], [0, 2, 1], [1, 3, 0], [0, 4, 1]])
    for number in range(500):
        source, changed = mutated(number, tmp_path, way)
        rows, _ = both(source, ["y", "x", "g"], Coding(DECLARED))
        assert not isinstance(rows, str), (number, rows)
        assert rows.shape == wanted.shape, number
        others = [row for row in range(4) if row not in changed]
        np.testing.assert_array_equal(rows[others], wanted[others], str(number))


@pytest.mark.slow
def test_names_and_dialects_that_are_odd_are_read_or_refused_alike(tmp_path: Path) -> None:
    generator = random.Random(0)
    marks = ["", *",;\t#\"' y1\n\r", "\ufeff", "NA", "\u00e2", "a\u0302"]
    path, kinds = tmp_path / "t.csv", (",;\t", ["utf-8", "latin-1", "cp932", "x"], ["", "#"], ['"', "'", ""])
    read = 0
    for number in range(500):
        names = ["".join(generator.choices(marks, k=generator.randrange(3))) for _ in range(3)]
        encoding = generator.choice(["utf-8", "utf-16", "utf-8-sig"])
        path.write_text(",".join(["y", *names]) + "\n1,2,3,4\n5,6,7,8\n", encoding=encoding, newline="")
        dialect = Dialect(*map(generator.choice, kinds))
        for columns in (["y"], ["y", names[0]]):
            rows, _ = both(path, columns, Coding({}, dialect))
            assert isinstance(rows, str) or len(columns) == rows.shape[1], number
            read += not isinstance(rows, str)
    assert read > 20
