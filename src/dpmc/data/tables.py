"""Rows from a user's table: an array, a data frame, an xarray data set, or a file."""

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.values import DECIMAL, shown
from dpmc.models.columns import LINE, MISSING, ROW, Coding, translated

if TYPE_CHECKING:
    from pandas import DataFrame


MOST_COLUMNS = 10_000  #: of a CSV file: pandas needs half a millisecond for each, however few rows there are


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
    import pandas  # slow to import

    how = Reading(columns, coding or Coding(), persons)
    if isinstance(source, str | Path):
        return _read_file(Path(source), how)
    where = f"data: {type(source).__name__}"
    kind = type(source).__module__.partition(".")[0]
    if kind == "xarray":
        source = table_of(source, where)
    elif kind != "pandas":
        try:
            if np.ma.isMaskedArray(source):
                source = np.ma.filled(source.astype(float), np.nan)
            source = np.asarray(source)
        except ValueError:  # lists of different lengths, or a masked array of texts
            source = np.asarray(None)
        if source.dtype.kind not in "fiub" or source.ndim not in (1, 2):
            raise DpmcError(f"{where}: must be numbers, rows by columns, as an array, a table or a path")
        source = pandas.DataFrame(source)
    return _rows_of(source.to_frame() if source.ndim == 1 else source, how, where)


class Reading(NamedTuple):
    """What to read of a table, as `read_rows`."""

    columns: Sequence[str] | None
    coding: Coding
    persons: Persons | None

    def chosen(self, names: list[str], width: int, where: str) -> dict[int, str]:
        """Return the indices of the columns to read; if none are named, without that of persons."""
        places = chosen_columns(names, width, self.columns, where)
        if self.columns is None and self.persons is not None and names:
            places = {i: name for i, name in places.items() if name != self.persons.column}
            if not places:
                raise DpmcError(f"{where}: has no column besides {self.persons.column}")
        return places

    def kept(self, table: "DataFrame", names: list[str], where: str, form: str = ROW) -> "DataFrame":
        """Return the table, columns numbered, without rows beyond the first `most` of each person."""
        if self.persons is None:
            return table
        (place,) = chosen_columns(names, table.shape[1], [self.persons.column], where) if names else (None,)
        if place is None:
            raise DpmcError(f"{where}: has no names of columns, so no column {shown(self.persons.column)}")
        # Blanks around a text, and a usual word for a missing value, would hide whose the row is.
        whose = table.iloc[:, place].map(lambda value: value.strip() if isinstance(value, str) else value)
        unknown = whose.isna() | whose.astype(str).str.fullmatch(rf"(?i:{MISSING.pattern})|")
        for row in table.index[unknown][:1]:
            raise DpmcError(f"{where}: {form.format(row, self.persons.column)}: says not whose the row is")
        try:
            return table[(table.groupby(whose, sort=False).cumcount() < self.persons.most).to_numpy()]
        except TypeError:  # a list, or another value that cannot be looked up
            raise DpmcError(f"{where}: column {self.persons.column}: must be texts or numbers") from None


def _read_file(path: Path, how: Reading) -> np.ndarray:
    """Read the rows of a file, by its suffix."""
    import pandas

    if not files.is_table(path):
        raise DpmcError(
            f"{path}: must end in {', '.join(files.TABLES)}, or be read by pandas and given as table"
        )
    try:
        if path.name.endswith((".csv", ".csv.gz")):
            return _read_csv(path, how)
        path.open("rb").close()
        excel = path.suffix == ".xlsx"
        # Texts such as NA stay texts, to be refused or filled as in a CSV.
        table = pandas.read_excel(path, keep_default_na=False) if excel else pandas.read_parquet(path)
        return _rows_of(table, how, str(path))
    except ImportError:
        package = "openpyxl" if path.suffix == ".xlsx" else "pyarrow"
        raise DpmcError(f"{path}: needs {package}: pip install {package}") from None
    except (OSError, ValueError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or f"cannot be read ({' '.join(str(error).split())[:100]})"
        raise DpmcError(f"{path}: {reason}") from None


def table_of(data: Any, where: str) -> "DataFrame":
    """Return the data frame of a DataArray (rows, columns) or of a Dataset with one variable per column."""
    if hasattr(data, "data_vars"):
        sizes = {variable.dims for variable in data.data_vars.values()}
        if len(sizes) != 1 or len(next(iter(sizes))) != 1:
            raise DpmcError(f"{where}: must have variables along one and the same dimension, one a column")
        return data.to_dataframe()[list(data.data_vars)]
    if data.ndim not in (1, 2):
        raise DpmcError(f"{where}: has {data.ndim} dimensions, must have rows and columns")
    return data.to_series().to_frame() if data.ndim == 1 else data.to_pandas()


def _rows_of(table: "DataFrame", how: Reading, where: str) -> np.ndarray:
    """Return the rows of a data frame, whose columns may have no names."""
    named = any(isinstance(name, str) for name in table.columns)
    names = list(map(str, table.columns)) if named else []
    chosen = how.chosen(names, table.shape[1], where)
    if table.empty:
        raise DpmcError(f"{where}: holds no rows")
    table = how.kept(table.reset_index(drop=True), names, where)
    parts = []
    for i, label in chosen.items():
        column = table.iloc[:, i].infer_objects()  # numbers kept as objects
        if names:
            column = translated(column, label, how.coding, where)
        if getattr(column.dtype, "kind", "O") not in "fiub":
            wrong = next((value for value in column if not isinstance(value, int | float)), column.dtype)
            raise DpmcError(f"{where}: column {label}: {shown(wrong)} is not a number")
        with np.errstate(all="ignore"):  # a number beyond those of double precision becomes infinite
            parts.append(column.to_numpy(dtype=float, na_value=np.nan))
    rows = np.column_stack(parts)
    for row, i in np.argwhere(~np.isfinite(rows))[:1]:
        label = list(chosen.values())[i]
        raise DpmcError(
            f"{where}: {ROW.format(table.index[row], label)}: is NaN or infinite, must be a number"
        )
    return rows


def _read_csv(path: Path, how: Reading) -> np.ndarray:
    """Read the rows of a CSV file with or without a line of names.

    Every line is a row, whatever its values, so that n is the number of lines: otherwise n, and with it δ and
    the noise, would depend on the rows. A blank line is a row without values, which is refused.

    Raises DpmcError naming the first line that cannot be read.
    """
    import pandas

    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DpmcError(f"{path}: is not text in UTF-8, must be rows as CSV") from None
    if not text.strip():
        raise DpmcError(f"{path}: holds no rows")
    if (width := re.split("[\r\n]", text, maxsplit=1)[0].count(",") + 1) > MOST_COLUMNS:
        raise DpmcError(f"{path}: line 1: has {width} columns, at most {MOST_COLUMNS} are read")
    as_it_is: dict[str, Any] = {"header": None, "dtype": str, "na_filter": False, "skip_blank_lines": False}
    try:
        table = pandas.read_csv(io.StringIO(text), skipinitialspace=True, **as_it_is)
    except pandas.errors.EmptyDataError:
        raise DpmcError(f"{path}: line 1: is blank, must be a row or the names of the columns") from None
    except pandas.errors.ParserError as error:
        raise DpmcError(f"{path}: is not CSV ({' '.join(str(error).split())})") from None
    # Only quotes can hide a line break.
    if '"' in text:
        broken = table.apply(lambda column: column.str.contains(r"[\r\n]")).any(axis=1)
        if broken.any():
            rule = "is not CSV (a quoted line break; every row must be one line)"
            raise DpmcError(f"{path}: line {broken.argmax() + 1}: {rule}")
    table = table.apply(lambda column: column.str.strip())
    width, first = table.shape[1], list(table.iloc[0])
    if width == 1 and (";" in first[0] or "\t" in first[0]):
        raise DpmcError(f"{path}: line 1: {shown(first[0])}: columns must be separated by commas")
    header = first if _is_header(first, path) else []
    places = how.chosen(header, width, str(path))
    chosen = list(places)
    table.index += 1  # lines, for messages
    table = how.kept(table.iloc[1 if header else 0 :], header, str(path), LINE).iloc[:, chosen]
    if table.empty:
        raise DpmcError(f"{path}: holds no rows")
    if header and how.coding != Coding():
        table = pandas.concat(
            [translated(table.iloc[:, i], name, how.coding, str(path), LINE).astype(str)
             for i, name in enumerate(places.values())], axis=1)  # fmt: skip
    numbers = table.apply(lambda column: column.str.fullmatch(DECIMAL))
    rows: np.ndarray = table.where(numbers, "nan").to_numpy().astype(float)  # exact, unlike pandas' own
    for row, i in np.argwhere(~np.isfinite(rows))[:1]:
        value, label = table.iloc[row, i], header[chosen[i]] if header else chosen[i] + 1
        what = f": {shown(value)} is not a number" if value else " is missing; every line must be a row"
        raise DpmcError(f"{path}: {LINE.format(table.index[row], label)}{what}")
    return rows


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


def chosen_columns(names: list[str], width: int, columns: Sequence[str] | None, where: str) -> dict[int, str]:
    """Return the indices of the requested columns, each with its name, or its number as text."""
    if not names:
        if columns is not None and len(columns) != width:
            raise DpmcError(f"{where}: has {width} columns without names, must be {', '.join(columns)}")
        return dict(enumerate(columns or map(str, range(width))))
    for name in columns or names:
        if names.count(name) > 1:
            raise DpmcError(f"{where}: two columns have the same name, {name}: rename one")
        if name not in names:
            raise DpmcError(f"{where}: has no column {shown(name)}; it has {', '.join(names)}")
    return {names.index(name): name for name in columns or names}
