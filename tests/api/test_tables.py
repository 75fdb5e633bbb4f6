"""Rows from tables: reading, and refusals that name the place."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import xarray

from dpmc.common.errors import DpmcError
from dpmc.data.tables import Persons, read_rows

FRAME = pandas.DataFrame({"y": [1.0, 2.0], "name": ["a", "b"], "x": [3, 4]})
WANTED = [[3.0, 1.0], [4.0, 2.0]]


def dataset() -> xarray.Dataset:
    return xarray.Dataset({"y": ("row", [1.0, 2.0]), "x": ("row", [3, 4])})


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "xlsx"])
def test_columns_are_taken_by_name_in_the_order_asked_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table.{suffix}"
    if suffix.startswith("csv"):
        FRAME.to_csv(path, index=False)
    elif suffix == "xlsx":
        pytest.importorskip("openpyxl")
        FRAME.to_excel(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        FRAME.to_parquet(path)
    for source in (path, str(path), FRAME, dataset()):
        rows = read_rows(source, ("x", "y"))
        assert rows.tolist() == WANTED and rows.dtype == float
    with pytest.raises(DpmcError, match=r"table\.[\w.]+: has no column 'z'; it has y, "):
        read_rows(path, ("z",))


@pytest.mark.parametrize(
    "source",
    [
        np.array([[1, 2], [3, 4]]),
        [[1, 2], [3, 4]],
        pandas.DataFrame([[1, 2], [3, 4]]),
        xarray.DataArray([[1, 2], [3, 4]], dims=("row", "column")),
    ],
)
def test_tables_without_names_are_taken_as_they_are_or_get_names(source: Any) -> None:
    for columns in (None, ("a", "b")):
        assert read_rows(source, columns).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(DpmcError, match="has 2 columns without names, must be a, b, c"):
        read_rows(source, ("a", "b", "c"))
    column = source[:, 0] if isinstance(source, np.ndarray) else [1, 3]
    assert read_rows(column).tolist() == [[1.0], [3.0]]


def test_a_text_with_commas_in_an_unused_column_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text('name,age\n"Smith, Jo",40\n"Li ""X"" Wei",50\n')
    assert read_rows(path, ("age",)).tolist() == [[40.0], [50.0]]
    with pytest.raises(DpmcError, match=r"people\.csv: line 2: column name: 'Smith, Jo' is not a number"):
        read_rows(path)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (pandas.DataFrame({"x": [1.0, None]}), "row 2, column x: is NaN or infinite"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "row 2, column 2: is NaN or infinite"),
        (FRAME, "column name: 'a' is not a number"),
        (pandas.DataFrame({"x": []}, dtype=float), "holds no rows"),
        (np.array(["a"]), "row 1, column 1: 'a' is not a number"),
        ([[1.0], [1.0, 2.0]], "row 2: has 2 entries, must have 1"),
        (xarray.DataArray(np.zeros((2, 2, 2))), "has 3 dimensions"),
        (xarray.Dataset({"x": ("a", [1.0]), "y": ("b", [1.0])}), "along one and the same dimension"),
    ],
)
def test_refused_tables_are_reported_with_line_and_column(source: Any, words: str) -> None:
    with pytest.raises(DpmcError, match=re.escape(words)):
        read_rows(source)


@pytest.mark.parametrize(
    ("name", "words"), [("a.nc", "must end in"), ("a.parquet", ""), ("a.xlsx", ""), ("a.csv.gz", "")]
)
def test_files_that_are_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / name).write_text("1\n")
    with pytest.raises(DpmcError, match=re.escape(f"{name}: {words}")):
        read_rows(tmp_path / name)


def test_columns_are_counted_in_a_line_whatever_ends_it(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"1,2\r" * 10_001)
    assert read_rows(tmp_path / "rows.csv").shape == (10_001, 2)


@pytest.mark.parametrize("text", ["\ufeffx\n1\n2\n", '"x"\n 1\n2 \r\n', "1\n2", "1\r2\r"])
def test_correct_files_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_rows(path).tolist() == [[1.0], [2.0]]


#: What programs write for a missing value. R and pandas write a blank line for one in a table of one column.
NO_VALUE = ["", " ", '""', "NA", "na", "N/A", "n.a.", "NaN", "nan(ind)", "NULL", "None", "?", "-", ".", "_"]


@pytest.mark.parametrize("value", NO_VALUE)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_row_without_a_value_is_refused_wherever_it_is(tmp_path: Path, value: str, end: str) -> None:
    """Otherwise n, and with it delta and noise, would depend on the rows."""
    path = tmp_path / "one.csv"
    for header, place in ((h, p) for h in (True, False) for p in range(h, 5)):
        lines = ["x", "1", "2", "3"] if header else ["1", "2", "3", "4"]
        lines.insert(place, value)
        path.write_bytes((end.join(lines) + end).encode())
        with pytest.raises(DpmcError, match=rf"one\.csv: line {place + 1}: "):
            read_rows(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x\n", "no rows"),
        ("x,y\n1,2\n\n3,4\n", "line 3: column x is missing"),
        ("x,y\n1,2\n3,4\n\n", "line 4: "),
        ("\ufeff\n1\n2\n", "line 1: is blank"),
        ("1.2.3\n1\n", "line 1: '1.2.3' is neither a number nor a column's name"),
        ("x,y,x\n1,2,3\n", "two columns have the same name, x: rename one"),
        (
            ",x,y\n0,1,2\n",
            "line 1: column 1 has no name; if it only numbers the rows, write the table without",
        ),
        ("x;y\n1;2\n", "line 1: 'x;y'"),
        ("x,y\n1\n", "line 2: column y is missing"),
        ("x,y\n1,2\n3,\n", "line 3: column y is missing"),
        ("x,y\n1,2\n3,inf\n", "line 3: column y: 'inf' is not a number"),
        ("x,y\n1,2\nNA,4\n", "line 3: column x: 'NA' is not a number"),
        ("1\n2\x0c3\n", "line 2"),
        ("1\n" + "9" * 200_000 + "\n", "line 2: "),
        ("x,y\n1,2\n3,4,5\n", "line 3: has 3 entries, must have 2"),
        ('1\n"2\n"\n3\n', "line 2: is not CSV (a quoted line break; every row must be one line)"),
        ('x,note\n1,"a\nb"\n2,c\n', "line 2: is not CSV (a quoted line break"),
        (b"\xff\xfe1\0\n\0", "UTF-8"),
    ],
)
def test_every_line_is_a_row(tmp_path: Path, text: str | bytes, words: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DpmcError, match="rows.csv: .*" + re.escape(words)):
        read_rows(path, ("x",) if "note" in str(text) else None)


@pytest.mark.parametrize(("suffix", "package"), [("xlsx", "openpyxl"), ("parquet", "pyarrow")])
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, suffix: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise ImportError(package)

    monkeypatch.setattr(pandas, "read_excel", missing)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / f"a.{suffix}").write_bytes(b"x")
    with pytest.raises(DpmcError, match=f"needs {package}: pip install {package}"):
        read_rows(tmp_path / f"a.{suffix}")


PEOPLE = pandas.DataFrame({"who": ["a", "b", "a", "a", "c", "b"], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})


@pytest.mark.parametrize(("most", "kept"), [(1, [1, 2, 5]), (2, [1, 2, 3, 5, 6]), (3, [1, 2, 3, 4, 5, 6])])
def test_the_first_rows_of_each_person_are_kept(tmp_path: Path, most: int, kept: list[float]) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    for source in (PEOPLE, PEOPLE.to_xarray(), tmp_path / "people.csv"):
        assert read_rows(source, ["x"], persons=Persons("who", most))[:, 0].tolist() == kept


def test_whether_a_row_is_kept_depends_on_the_rows_of_its_person_alone() -> None:
    """And not on their values: all rows of "a" are replaced, those of the others stay as they are."""
    other = PEOPLE.assign(x=np.where(PEOPLE["who"] == "a", -PEOPLE["x"] * 7.0, PEOPLE["x"]))
    before, after = (read_rows(table, ["x"], persons=Persons("who", 2))[:, 0] for table in (PEOPLE, other))
    assert (np.abs(before) != np.abs(after)).tolist() == [True, False, True, False, False]


def test_persons_need_a_column_that_says_who(tmp_path: Path) -> None:
    for source, words in (
        (PEOPLE.rename(columns={"who": "name"}), "has no column 'who'; it has name, x"),
        (PEOPLE.assign(who=["a", None, "a", "a", "c", "b"]), "row 2, column who: says not whose the row is"),
        (np.zeros((2, 2)), "has no names of columns, so no column 'who'"),
    ):
        with pytest.raises(DpmcError, match=re.escape(words)):
            read_rows(source, None if isinstance(source, np.ndarray) else ["x"], persons=Persons("who", 1))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (np.ma.masked_array(["a", "b"], mask=[0, 1]), "row 1, column 1: 'a' is not a number"),
        (xarray.DataArray(3.0), "has 0 dimensions, must have rows and columns"),
        (pandas.DataFrame({"who": [[1], [2]], "x": [1.0, 2.0]}), "column who: must be texts or numbers"),
    ],
)
def test_what_is_no_table_is_refused_in_words(source: Any, words: str) -> None:
    with pytest.raises(DpmcError, match=words):
        read_rows(source, persons=Persons("who", 1) if isinstance(source, pandas.DataFrame) else None)


def test_a_number_and_its_text_are_one_person() -> None:
    """They were two, and so more rows of the person were kept than the privacy loss counts."""
    table = {"who": ["1", 1, 1.0, "2"], "x": [1.0, 2.0, 3.0, 4.0]}
    assert read_rows(table, ["x"], persons=Persons("who", 1))[:, 0].tolist() == [1.0, 4.0]


def test_a_person_is_one_person_whatever_blanks_stand_beside_the_name(tmp_path: Path) -> None:
    table = pandas.DataFrame({"who": ["a", "a ", " b", "b"], "x": [1.0, 2.0, 3.0, 4.0]})
    table.to_csv(tmp_path / "people.csv", index=False)
    for source in (table, tmp_path / "people.csv"):
        assert read_rows(source, ["x"], persons=Persons("who", 1))[:, 0].tolist() == [1.0, 3.0]


@pytest.mark.parametrize("word", ["NA", "nan", "None", "unknown", " ", ""])
def test_a_word_for_a_missing_value_is_no_person(word: str, tmp_path: Path) -> None:
    """Its rows may be those of others who have rows under their own names."""
    table = pandas.DataFrame({"who": ["a", word, word], "x": [1.0, 2.0, 3.0]})
    table.to_csv(tmp_path / "people.csv", index=False)
    for source, place in ((table, "row 2, "), (tmp_path / "people.csv", "line 3: ")):
        with pytest.raises(DpmcError, match=f"{place}column who: says not whose the row is"):
            read_rows(source, ["x"], persons=Persons("who", 1))


def test_the_column_of_persons_is_read_only_if_it_is_named(tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    numbers = PEOPLE.assign(who=[1, 2, 1, 1, 3, 2])
    for source in (PEOPLE, numbers, tmp_path / "people.csv"):
        assert read_rows(source, persons=Persons("who", 1)).tolist() == [[1.0], [2.0], [5.0]]
        with pytest.raises(DpmcError, match="has no column besides who"):
            table = source if isinstance(source, Path) else source[["who"]]
            if isinstance(source, Path):
                PEOPLE[["who"]].to_csv(table, index=False)
            read_rows(table, persons=Persons("who", 1))
    assert read_rows(numbers, ["who", "x"], persons=Persons("who", 1))[:, 0].tolist() == [1.0, 2.0, 3.0]


def test_lines_of_errors_are_those_of_the_file_also_after_rows_were_dropped(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("who,x\na,1\na,2\nb,oops\n")
    with pytest.raises(DpmcError, match="line 4: column x: 'oops' is not a number"):
        read_rows(tmp_path / "people.csv", ["x"], persons=Persons("who", 1))
    (tmp_path / "people.csv").write_text("who,x\na,1\n,2\nb,3\n")
    with pytest.raises(DpmcError, match="line 3: column who: says not whose the row is"):
        read_rows(tmp_path / "people.csv", ["x"], persons=Persons("who", 1))
    table = pandas.DataFrame({"who": ["a", "a", "b"], "x": [1.0, 2.0, np.nan]})
    with pytest.raises(DpmcError, match="row 3, column x: is NaN"):
        read_rows(table, ["x"], persons=Persons("who", 1))
