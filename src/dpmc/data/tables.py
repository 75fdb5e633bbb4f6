"""Rows from a user's table: an array, a data frame, an xarray data set, or a file.

`read_rows` reads them for experiments, and says what is wrong with them. `release_rows` reads them for
releases, and says nothing of them. Both read a table by `opened`, and its entries by `models/columns.py`.
"""

import csv
import gzip
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.values import DECIMAL, shown
from dpmc.models.columns import LINE, MISSING, UNREADABLE, Coding, entries_of, is_missing, same_name
from dpmc.models.in_memory import Table, table_of


class Persons(NamedTuple):
    """The column that says whose a row is; of each person the first `most` rows of the table are kept.

    Whether a row is kept depends on the rows of the same person alone, and on no value of them.
    """

    column: str
    most: int


def read_rows(
    source: Any,
    columns: Sequence[str] | None = None,
    coding: Coding | None = None,
    persons: Persons | None = None,
) -> np.ndarray:
    """Return the rows (n, k) of a table.

    Parameters
    ----------
    source : an array (n, k) or (n,), a DataFrame or Series of pandas, a DataArray or Dataset of xarray with
        one dimension shared by its variables, or the path of a .csv, .csv.gz, .parquet (needs pyarrow) or
        .xlsx file (needs openpyxl; its first sheet).
    columns : names of the columns to read, in this order; None: all but that of `persons`. Other columns may
        hold anything. If the table has no names, these are the names of its columns, which must be as many.
    coding : public levels of categories and fills of missing values, in tables with names; without names
        a category is the place of its level.
    persons : drops rows beyond the first `most` of each person.

    Raises DpmcError naming place, row and column of a value that is missing, infinite or not a number.
    """
    table = opened(source, columns)
    places = table.chosen(columns)
    if columns is None and persons is not None and table.names:
        places = {i: name for i, name in places.items() if name != same_name(persons.column)}
        if not places:
            raise DpmcError(f"{table.where}: has no column besides {persons.column}")
    return table.rows(places, coding or Coding(), _kept(table, persons))


def _kept(table: Table, persons: Persons | None) -> np.ndarray:
    """Return which rows (n,) are among the first `most` of their person."""
    if persons is None:
        return np.ones(table.shape[0], bool)
    if not table.names:
        raise DpmcError(f"{table.where}: has no names of columns, so no column {shown(persons.column)}")
    (place,) = table.chosen([persons.column])
    counts: Counter[Any] = Counter()
    kept = np.zeros(table.shape[0], bool)
    for row, entry in enumerate(entries_of(table.column(place))):
        # Blanks around a text, and a usual word for a missing value, would hide whose the row is.
        if is_missing(entry) or entry is UNREADABLE:
            raise DpmcError(f"{table.place(row, persons.column)}: says not whose the row is")
        who = same_name(entry).strip() if isinstance(entry, str) else entry
        try:
            counts[who] += 1
        except TypeError:  # a list, or another value that cannot be looked up
            raise DpmcError(f"{table.where}: column {persons.column}: must be texts or numbers") from None
        kept[row] = counts[who] <= persons.most
    return kept


def opened(source: Any, columns: Sequence[str] | None, private: bool = False) -> Table:
    """Return a table or a file as a table.

    If the rows are `private`, what is refused does not depend on an entry, and the width of a list is that of
    `columns`.
    """
    if isinstance(source, str | Path):
        return _of_file(Path(source), private)
    width = len(columns) if private and columns is not None else None
    if private and isinstance(source, Sequence) and width is None:
        where = f"data: {type(source).__name__}"
        raise DpmcError(f"{where}: a list needs a model with `column_names`; give an array or a table")
    return table_of(source, f"data: {type(source).__name__}", width)


def _of_file(path: Path, private: bool) -> Table:
    """Return a file as a table, by its suffix."""
    name = path.name.lower()
    if not files.is_table(path) or (private and name.endswith(".xlsx")):
        ends = ", ".join(end for end in files.TABLES if not (private and end == ".xlsx"))
        raise DpmcError(f"{path}: must end in {ends}, or be read by pandas and given as table")
    try:
        if name.endswith(".parquet"):
            path.open("rb").close()
            return _of_parquet(path)
        if name.endswith(".xlsx"):
            import pandas

            path.open("rb").close()
            # Texts such as NA stay texts, to be refused or filled as in a CSV.
            return table_of(pandas.read_excel(path, keep_default_na=False), str(path))
        content = path.read_bytes()
        content = gzip.decompress(content) if name.endswith(".gz") else content
        return _of_csv(content.decode("utf-8-sig", "replace" if private else "strict"), path, private)
    except ImportError:
        package = "openpyxl" if name.endswith(".xlsx") else "pyarrow"
        raise DpmcError(f"{path}: needs {package}: pip install {package}") from None
    except DpmcError:
        raise
    except UnicodeDecodeError:
        raise DpmcError(f"{path}: is not text in UTF-8, must be rows as CSV") from None
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        reason = "" if private else f" ({' '.join(str(error).split())[:100]})"
        raise DpmcError(f"{path}: {getattr(error, 'strerror', None) or f'cannot be read{reason}'}") from None


def _of_parquet(path: Path) -> Table:
    """Return a Parquet file as a table, of which a column is read when it is asked for.

    An index that pandas wrote is no column, as in its data frame.
    """
    from pyarrow import ArrowException, parquet, types

    with parquet.ParquetFile(path) as file:
        schema, n = file.schema_arrow, file.metadata.num_rows
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    names = [name for name in schema.names if name not in index]

    def column(i: int) -> Any:
        # As it is: a cast to the dictionary's type would check all of its texts, and refuse all for one.
        dictionary = [names[i]] if types.is_dictionary(schema.field(names[i]).type) else []
        try:
            with parquet.ParquetFile(path, read_dictionary=dictionary) as file:
                return file.read(columns=[names[i]], use_pandas_metadata=False).column(names[i])
        except (OSError, ArrowException):
            raise DpmcError(f"{path}: column {names[i]}: cannot be read") from None

    return Table(str(path), list(map(same_name, names)), (n, len(names)), column)


def _of_csv(text: str, path: Path, private: bool) -> Table:
    """Return a CSV file with or without a line of names as a table; private rows have names.

    Every line is a row, whatever its values, so that n is the number of lines: otherwise n, and with it δ and
    the noise, would depend on the rows. A line ends as the first one does.

    Entries of a line that is none of CSV or has too few or too many are no numbers; if rows are not private,
    such a line is refused.
    """
    if not private and not text.strip():
        raise DpmcError(f"{path}: holds no rows")
    end = "\r" if re.match(r"[^\r\n]*\r(?!\n)", text) else "\n"
    lines = [line.removesuffix("\r") for line in text.removesuffix(end).split(end)]
    first = [item.strip() for item in _fields(lines[0])]
    names = _names(first, path, private)
    width = len(first)
    rows: list[list[Any]] = list(map(_fields, lines[1 if names else 0 :]))
    for row, fields in enumerate(rows):
        if len(fields) != width and not private:
            line = row + 1 + bool(names)
            raise DpmcError(f"{path}: line {line}: {_lacking(fields, names, width)}")
        if len(fields) != width:
            rows[row] = [UNREADABLE] * width
    shape, names = (len(rows), width), list(map(same_name, names))
    return Table(str(path), names, shape, lambda i: [row[i] for row in rows], LINE, 1 + bool(names))


def _lacking(fields: list[str], names: list[str], width: int) -> str:
    """Return what is wrong with a line of CSV that has not `width` fields."""
    if not fields:
        return "is not CSV (a quoted line break; every row must be one line)"
    if len(fields) > width:
        return f"has {len(fields)} entries, must have {width}"
    lacking = 0 if fields == [""] else len(fields)
    return f"column {names[lacking] if names else lacking + 1} is missing; every line must be a row"


def _fields(line: str) -> list[str]:
    """Return the fields of one line of CSV; [] if it is none."""
    if '"' not in line:
        return line.split(",")
    reader = csv.reader([f"{line}\n", ""], skipinitialspace=True)
    try:
        fields = next(reader)
    except csv.Error:
        return []
    return fields if reader.line_num == 1 else []  # else a quote is open


def _names(first: list[str], path: Path, private: bool) -> list[str]:
    """Return the names in a first line; [] if it is a row, which of private rows it must not be."""
    if first and first[0].startswith("#"):
        raise DpmcError(f"{path}: line 1: {shown(first[0])}: is a comment: remove it, the names come first")
    if len(first) == 1 and (";" in first[0] or "\t" in first[0]):
        raise DpmcError(
            f"{path}: line 1: {shown(first[0])}: columns must be separated by commas, and decimals have a "
            'point: write the table so, or read it by pandas (sep=";", decimal=",")'
        )
    if private:
        if all(DECIMAL.fullmatch(name) for name in first) or not any(first):
            raise DpmcError(
                f"{path}: line 1: must be the names of the columns; a release reads no other file"
            )
        return first
    if not any(first):
        raise DpmcError(f"{path}: line 1: is blank, must be a row or the names of the columns")
    return first if _is_header(first, path) else []


def _is_header(items: list[str], path: Path) -> bool:
    """Return whether a first line has names, which begin with a letter or _.

    Raises DpmcError for an entry that is neither a name nor a number, and for a name that is a usual word for
    a missing value: it may be the value of the first row.
    """
    numbers = [
        DECIMAL.fullmatch(item) or re.fullmatch("[-+]?(nan|inf(inity)?)", item, re.I) for item in items
    ]
    if "" in items and any(items) and not any(numbers):
        raise DpmcError(
            f"{path}: line 1: column {items.index('') + 1} has no name; if it only numbers the rows, "
            "write the table without it (pandas: index=False; R: row.names=FALSE), else name it"
        )
    for item, number in zip(items, numbers, strict=True):
        if item and not number and not (item[0].isalpha() or item[0] == "_"):
            raise DpmcError(f"{path}: line 1: {shown(item)} is neither a number nor a column's name")
        if MISSING.fullmatch(item) and not number:
            raise DpmcError(
                f"{path}: line 1: {shown(item)} may be a missing value or a column's name: "
                "fill or remove the value, or give the column another name"
            )
    return all(item and not number for item, number in zip(items, numbers, strict=True))
