"""Rows from a user's table: an array, a data frame, an xarray data set, or a file.

`read_rows` treats an odd entry in one of two ways: for experiments it is refused, with its place; for
releases it becomes NaN, and says nothing. The same code decides which entries are odd (`models/columns.py`),
and what is refused in a release is a matter of files, names, types and shapes, which are public.
"""

import codecs
import csv
import gzip
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.logs import LOGGER
from dpmc.common.values import DECIMAL, shown
from dpmc.models.columns import Coding, Declared, Dialect, Unreadable, entries_of, same_name, text_of
from dpmc.models.in_memory import Table, table_of


class Persons(NamedTuple):
    """The column that says whose a row is (None: the codebook's); of each person `most` rows are kept.

    Whether a row is kept depends on the rows of the same person alone, and on no value of them.
    """

    column: str | None
    most: int


def read_rows(
    source: Any,
    columns: Sequence[str] | None = None,
    coding: Coding | None = None,
    persons: Persons | None = None,
    private: bool = False,
) -> np.ndarray:
    """Return the rows (n, k) of a table.

    Parameters
    ----------
    source : an array (n, k) or (n,), a list of rows, a mapping of columns, a data frame or series that
        narwhals takes, a DataArray or Dataset of xarray with one dimension shared by its variables, or the
        path of a .csv, .csv.gz, .parquet (needs pyarrow) or .xlsx file (needs openpyxl; its first sheet).
    columns : names of the columns to read, in this order; None: all but that of `persons`. If the table has
        no names, these are the names of its columns, which must be as many.
    coding : what is declared of columns and of a CSV file; without names a category is its level's place.
    persons : drops rows beyond the first `most` of each person.
    private : for a release. All rows are kept, odd entries are NaN or infinite, a CSV file must begin with a
        line of names, a list needs `columns`, and .xlsx is refused.

    Raises DpmcError for a table that is refused; if not `private` also for an odd entry.
    """
    coding = coding or Coding()
    table = _opened(source, columns, coding, private)
    places = table.chosen(columns)
    if columns is None and persons is not None and persons.column is not None and table.names:
        places = {i: name for i, name in places.items() if name != same_name(persons.column)}
        if not places:
            raise DpmcError(f"{table.where}: has no column besides {persons.column}")
    return table.rows(places, coding, None if private else _kept(table, persons, coding))


def odd_entries(
    source: Any, columns: Sequence[str], coding: Coding, most: int = 5
) -> Iterator[tuple[str, int, list[str]]]:
    """Yield each column's name, its number of odd entries, and what is wrong with the first `most`.

    All of it depends on rows: it is for the eyes of their holder.
    """
    table = _opened(source, columns, coding, private=True)
    for i, name in table.chosen(columns).items():
        odd = np.flatnonzero(~np.isfinite(table.rows({i: name}, coding)[:, 0]))
        entries, declared = entries_of(table.column(i)) if len(odd) else (), coding.declared[name]
        yield name, len(odd), [table.wrong(row, name, entries[row], declared) for row in odd[:most]]


def names_in(path: Path) -> tuple[list[str], str]:
    """Return the names of a file's columns, and what separates them in a CSV file; no row counts.

    Raises DpmcError for a file that cannot be read, and for a first line that can be no names.
    """
    if not path.name.lower().endswith((".csv", ".csv.gz")):
        return _of_file(path, None, Dialect(), private=True).names, ","
    try:
        with (gzip.open if path.name.lower().endswith(".gz") else open)(path, "rb") as file:
            line = re.split(rb"[\r\n]", file.readline().removeprefix(codecs.BOM_UTF8))[0]
    except (OSError, EOFError, zlib.error) as error:
        raise DpmcError(f"{path}: {getattr(error, 'strerror', None) or 'cannot be read'}") from None
    first = line.decode(errors="replace")
    dialect = Dialect(max(",;\t|", key=lambda mark: len(_fields(first, Dialect(mark)))))
    found = _names([item.strip() for item in _fields(first, dialect)], f"{path}: line 1", None, dialect, True)
    return list(map(same_name, found)), dialect.delimiter


def _opened(source: Any, columns: Sequence[str] | None, coding: Coding, private: bool) -> Table:
    """Return what holds rows as a table; see `read_rows`."""
    if isinstance(source, str | Path):
        return _of_file(Path(source), columns, coding.dialect, private)
    where = f"data: {type(source).__name__}"
    if private and isinstance(source, Sequence) and columns is None:
        raise DpmcError(f"{where}: a list needs a model with `column_names`; give an array or a table")
    return table_of(source, where, len(columns) if private and columns is not None else None)


def of_length(rows: np.ndarray, n: int | None) -> np.ndarray:
    """Return the first n rows (n, columns), rows of NaN where there are fewer; all if n is None."""
    if n is None:
        return rows
    lacking = np.full((max(0, n - len(rows)), rows.shape[1]), np.nan)
    return np.concatenate([rows[:n], lacking])


def _kept(table: Table, persons: Persons | None, coding: Coding) -> np.ndarray:
    """Return which rows (n,) are among the first `most` of their person."""
    column = persons and (persons.column or (coding.person if table.names else None))
    if persons is None or column is None:
        return np.ones(table.shape[0], bool)
    if not table.names:
        raise DpmcError(f"{table.where}: has no names of columns, so no column {shown(column)}")
    (place,) = table.chosen([column])
    declared = coding.declared.get(column, Declared())
    counts: Counter[Any] = Counter()
    kept = np.zeros(table.shape[0], bool)
    for row, entry in enumerate(entries_of(table.column(place))):
        # Blanks around a text, and a word for a missing value, would hide whose the row is.
        if isinstance(entry, Unreadable) or declared.is_missing(entry):
            raise DpmcError(f"{table.place(row, column)}: says not whose the row is")
        try:
            hash(entry)
            who = text_of(entry)
        except Exception:  # a list, or another value that cannot be looked up
            raise DpmcError(f"{table.where}: column {column}: must be texts or numbers") from None
        counts[who] += 1
        kept[row] = counts[who] <= persons.most
    if persons.column is None and not kept.all():
        text = "%s: n = %d rows are kept, at most %d of each %s, as the codebook says"
        LOGGER.info(text, table.where, kept.sum(), persons.most, column)
    return kept


def _of_file(path: Path, columns: Sequence[str] | None, dialect: Dialect, private: bool) -> Table:
    """Return a file as a table, by its suffix."""
    name = path.name.lower()
    if not files.is_table(path) or (private and name.endswith(".xlsx")):
        ends = ", ".join(end for end in files.TABLES if not (private and end == ".xlsx"))
        raise DpmcError(f"{path}: must end in {ends}, or be read by pandas and given as table")
    try:
        with path.open("rb") as file:
            content = file.read() if name.endswith((".csv", ".gz")) else b""
        if name.endswith(".parquet"):
            return _of_parquet(path)
        if name.endswith(".xlsx"):
            import pandas

            # Texts such as NA stay texts, to be refused or filled as in a CSV.
            return table_of(pandas.read_excel(path, keep_default_na=False), str(path))
        content = gzip.decompress(content) if name.endswith(".gz") else content
    except ImportError:
        package = "openpyxl" if name.endswith(".xlsx") else "pyarrow"
        raise DpmcError(f"{path}: needs {package}: pip install {package}") from None
    except DpmcError:
        raise
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        reason = "" if private else f" ({' '.join(str(error).split())[:100]})"
        raise DpmcError(f"{path}: {getattr(error, 'strerror', None) or f'cannot be read{reason}'}") from None
    return _of_csv(content, path, columns, dialect, private)


def _of_parquet(path: Path) -> Table:
    """Return a Parquet file as a table, read by column; an index that pandas wrote is no column."""
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


def _of_csv(
    content: bytes, path: Path, columns: Sequence[str] | None, dialect: Dialect, private: bool
) -> Table:
    """Return a CSV file as a table.

    Every line is a row, whatever its values: otherwise n, and with it δ and the noise, would depend on the
    rows. A line ends as the first one does. Entries of a line that is none of CSV are `Unreadable`.
    """
    try:
        bytes(range(256)).decode(dialect.encoding, "replace")
        if "\n".encode(dialect.encoding) != b"\n":
            raise LookupError
    except (LookupError, ValueError):
        rule = f"encoding: {shown(dialect.encoding)} is not known or has line breaks of its own"
        raise DpmcError(f"{path}: {rule}: write the file in UTF-8") from None
    content = content.removeprefix(codecs.BOM_UTF8)
    end = b"\r" if re.match(rb"[^\r\n]*\r(?!\n)", content) else b"\n"
    # Lines before texts: a byte that is no text must not hide the end of its line.
    parts = [line.removesuffix(b"\r") for line in content.removesuffix(end).split(end)]
    lines = [part.decode(dialect.encoding, "replace") for part in parts]
    above = 0
    while dialect.comment and above < len(lines) and lines[above].startswith(dialect.comment):
        above += 1
    first = [item.strip() for item in _fields(lines[above], dialect)] if above < len(lines) else []
    names = _names(first, f"{path}: line {above + 1}", columns, dialect, private)
    below = above + bool(names)
    rows = [_row(line, names, len(first), dialect) for line in lines[below:]]
    shape, names = (len(rows), len(first)), list(map(same_name, names))
    return Table(str(path), names, shape, lambda i: [row[i] for row in rows], "line", 1 + below)


def _row(line: str, names: list[str], width: int, dialect: Dialect) -> list[Any]:
    """Return the entries of a line."""
    fields = _fields(line, dialect)
    if len(fields) == width:
        return fields
    if not fields:
        reason = "is not CSV (a quoted line break; every row must be one line)"
    elif len(fields) > width:
        reason = f"has {len(fields)} entries, must have {width}"
    else:
        lacking = 0 if fields == [""] else len(fields)
        reason = f"column {names[lacking] if names else lacking + 1} is missing; every line must be a row"
    return [Unreadable(reason)] * width


def _fields(line: str, dialect: Dialect) -> list[str]:
    """Return the fields of one line of CSV; [] if `csv` refuses it or a quote stays open."""
    if not dialect.quote or dialect.quote not in line:
        return line.split(dialect.delimiter)
    options: dict[str, Any] = {"delimiter": dialect.delimiter, "quotechar": dialect.quote}
    reader = csv.reader([f"{line}\n", ""], skipinitialspace=True, **options)
    try:
        fields = next(reader)
    except csv.Error:
        return []
    return fields if reader.line_num == 1 else []  # else a quote is open


def _names(
    first: list[str], where: str, columns: Sequence[str] | None, dialect: Dialect, private: bool
) -> list[str]:
    """Return the names in the first line; [] if it is a row of numbers, which of private rows it must not be.

    If the names are not asked for, each must begin with a letter or _ and be no usual word for a missing
    value: it may be the value of the first row.
    """
    if not any(first):
        raise DpmcError(f"{where}: is blank, must be the names of the columns")
    if not dialect.comment and first[0].startswith("#"):
        raise DpmcError(f"{where}: {shown(first[0])}: is a comment: remove it, or declare `commentChar`")
    if len(first) == 1 and re.search(r"[,;\t|]", first[0]):
        rule = f"columns must be separated by {shown(dialect.delimiter)}; or declare another `delimiter`"
        raise DpmcError(f"{where}: {shown(first[0])}: {rule}")
    if "\ufffd" in "".join(first):
        raise DpmcError(f"{where}: is not text in {dialect.encoding.upper()}: declare `encoding`")
    if all(DECIMAL.fullmatch(item) for item in first):
        if private:
            raise DpmcError(f"{where}: must be the names of the columns; a release reads no other file")
        return []
    for i, item in enumerate(first if columns is None else ()):
        if not item:
            raise DpmcError(
                f"{where}: column {i + 1} has no name; if it only numbers the rows, "
                "write the table without it (pandas: index=False; R: row.names=FALSE), else name it"
            )
        if not (item[0].isalpha() or item[0] == "_" != item) or Declared().is_missing(item):
            rule = "is neither a number nor a column's name: a first row must not lack a value"
            raise DpmcError(f"{where}: {shown(item)} {rule}")
    return first
