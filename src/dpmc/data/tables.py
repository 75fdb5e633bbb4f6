"""Rows from a user's table: an array, a data frame, an xarray data set, or a file."""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import DECIMAL, shown

if TYPE_CHECKING:
    from pandas import DataFrame

SUFFIXES = (".csv", ".parquet")  #: of files

#: Usual words for a missing value. As names of columns they are refused: the first row may lack a value.
MISSING = re.compile(
    r"n[./]?a\.?|nan(\(.*\))?|nat|null|none|nil|missing|unknown|undefined|not available|no data|_+", re.I
)


def read_rows(source: Any, columns: Sequence[str] | None = None) -> np.ndarray:
    """Return the rows (n, k) of a table.

    Parameters
    ----------
    source : an array (n, k) or (n,), a DataFrame or Series of pandas, a DataArray or Dataset of xarray with
        one dimension shared by its variables, or the path of a .csv or .parquet file (needs pyarrow).
    columns : names of the columns to read, in this order; None: all. Other columns may hold anything. If the
        table has no names, these are the names of its columns, which must be as many.

    Raises DpmcError naming place, row and column of a value that is missing, infinite or not a number.
    """
    import pandas  # slow to import

    if isinstance(source, str | Path):
        return _read_file(Path(source), columns)
    where = f"data: {type(source).__name__}"
    kind = type(source).__module__.partition(".")[0]
    if kind == "xarray":
        source = table_of(source, where)
    elif kind != "pandas":
        if np.ma.isMaskedArray(source):
            source = np.ma.filled(source.astype(float), np.nan)
        try:
            source = np.asarray(source)
        except ValueError:  # lists of different lengths
            source = np.asarray(None)
        if source.dtype.kind not in "fiub" or source.ndim not in (1, 2):
            raise DpmcError(f"{where}: must be numbers, rows by columns, as an array, a table or a path")
        source = pandas.DataFrame(source)
    return _rows_of(source.to_frame() if source.ndim == 1 else source, columns, where)


def _read_file(path: Path, columns: Sequence[str] | None) -> np.ndarray:
    """Read the rows of a file, by its suffix."""
    import pandas

    if path.suffix not in SUFFIXES:
        raise DpmcError(f"{path}: must end in {', '.join(SUFFIXES)}, or be read by pandas and given as table")
    try:
        if path.suffix == ".csv":
            return _read_csv(path, columns)
        # First, so that a missing file is not reported as missing pyarrow.
        path.open("rb").close()
        return _rows_of(pandas.read_parquet(path), columns, str(path))
    except ImportError:
        raise DpmcError(f"{path}: needs pyarrow: pip install pyarrow") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or f"cannot be read ({' '.join(str(error).split())[:100]})"
        raise DpmcError(f"{path}: {reason}") from None


def table_of(data: Any, where: str) -> Any:
    """Return the data frame of a DataArray (rows, columns) or of a Dataset with one variable per column."""
    if hasattr(data, "data_vars"):
        sizes = {variable.dims for variable in data.data_vars.values()}
        if len(sizes) != 1 or len(next(iter(sizes))) != 1:
            raise DpmcError(f"{where}: must have variables along one and the same dimension, one a column")
        return data.to_dataframe()[list(data.data_vars)]
    if data.ndim > 2:
        raise DpmcError(f"{where}: has {data.ndim} dimensions, must have rows and columns")
    return data.to_series().to_frame() if data.ndim == 1 else data.to_pandas()


def _rows_of(table: "DataFrame", columns: Sequence[str] | None, where: str) -> np.ndarray:
    """Return the rows of a data frame, whose columns may have no names."""
    named = any(isinstance(name, str) for name in table.columns)
    chosen = chosen_columns(list(map(str, table.columns)) if named else [], table.shape[1], columns, where)
    if table.empty:
        raise DpmcError(f"{where}: holds no rows")
    parts = []
    for i, label in chosen.items():
        column = table.iloc[:, i]
        if getattr(column.dtype, "kind", "O") not in "fiub":
            wrong = next((value for value in column if not isinstance(value, int | float)), column.dtype)
            raise DpmcError(f"{where}: column {label}: {shown(wrong)} is not a number")
        with np.errstate(all="ignore"):  # a number beyond those of double precision becomes infinite
            parts.append(column.to_numpy(dtype=float, na_value=np.nan))
    rows = np.column_stack(parts)
    for row, i in np.argwhere(~np.isfinite(rows))[:1]:
        label = list(chosen.values())[i]
        raise DpmcError(f"{where}: row {row}, column {label}: is NaN or infinite, must be a number")
    return rows


def _read_csv(path: Path, columns: Sequence[str] | None) -> np.ndarray:
    """Read the rows of a CSV file with or without a line of names.

    Every line is a row, whatever its values, so that n is the number of lines: otherwise n, and with it δ and
    the noise, would depend on the rows. A blank line is a row without values, which is refused.

    Raises DpmcError naming the first line that cannot be read.
    """
    import pandas

    try:
        text = path.read_bytes().decode("utf-8-sig")  # without the mark at the start
    except UnicodeDecodeError:
        raise DpmcError(f"{path}: is not text in UTF-8, must be rows as CSV") from None
    if not text.strip():
        raise DpmcError(f"{path}: holds no rows")
    how: dict[str, Any] = {"header": None, "dtype": str, "na_filter": False, "skip_blank_lines": False}
    try:
        table = pandas.read_csv(io.StringIO(text), skipinitialspace=True, **how)
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
    chosen = list(chosen_columns(header, width, columns, str(path)))
    table = table.iloc[1 if header else 0 :, chosen]
    if table.empty:
        raise DpmcError(f"{path}: holds no rows")
    numbers = table.apply(lambda column: column.str.fullmatch(DECIMAL))
    rows: np.ndarray = table.where(numbers, "nan").to_numpy().astype(float)  # exact, unlike pandas' own
    for row, i in np.argwhere(~np.isfinite(rows))[:1]:
        value, label = table.iloc[row, i], header[chosen[i]] if header else chosen[i] + 1
        what = f": {shown(value)} is not a number" if value else " is missing; every line must be a row"
        raise DpmcError(f"{path}: line {table.index[row] + 1}: column {label}{what}")
    return rows


def _is_header(items: list[str], path: Path) -> bool:
    """Return whether a first line has names, which begin with a letter or _.

    Raises DpmcError for an entry that is neither a name nor a number, and for a name that is a usual word for
    a missing value: it may be the value of the first row.
    """
    numbers = [
        DECIMAL.fullmatch(item) or re.fullmatch("[-+]?(nan|inf(inity)?)", item, re.I) for item in items
    ]
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
            raise DpmcError(f"{where}: two columns have the same name, {name}")
        if name not in names:
            raise DpmcError(f"{where}: has no column {shown(name)}; it has {', '.join(names)}")
    return {names.index(name): name for name in columns or names}
