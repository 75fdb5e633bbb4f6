"""Rows from a user's table: an array, a data frame, an xarray data set, or a file."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import decimal, shown

SUFFIXES = (".csv", ".parquet", ".nc")  #: of files

#: Usual words for a missing value. As names of columns they are refused: the first row may lack a value.
MISSING = re.compile(
    r"n[./]?a\.?|nan(\(.*\))?|nat|null|none|nil|missing|unknown|undefined|not available|no data|_+", re.I
)


def read_table(source: Any, columns: Sequence[str] | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return rows (n, k) of a table and the names of their columns; () if they have none.

    Parameters
    ----------
    source : an array (n, k) or (n,), a DataFrame or Series of pandas, a DataArray or Dataset of xarray with
        one dimension shared by its variables, or the path of a .csv, .parquet (needs pyarrow) or .nc file.
    columns : names of the columns to read, in this order; None: all. Other columns may hold anything. If the
        table has no names, these are the names of its columns, which must be as many.

    Raises DpmcError naming place, row and column of a value that is missing, infinite or not a number.
    """
    if isinstance(source, str | Path):
        return _file(Path(source), columns)
    where = f"data: {type(source).__name__}"
    kind = type(source).__module__.partition(".")[0]
    if kind == "xarray":
        source = _frame(source, where)
        kind = "pandas"
    if kind == "pandas":
        frame = source.to_frame() if source.ndim == 1 else source
        return _from_frame(frame, columns, where)
    try:
        rows = np.asarray(_masked_as_nan(source))
    except ValueError:  # lists of different lengths
        rows = np.asarray(None)
    if rows.dtype.kind not in "fiub" or rows.ndim not in (1, 2):
        raise DpmcError(f"{where}: must be numbers, rows by columns, as an array, a table or a path")
    rows = rows[:, None] if rows.ndim == 1 else rows
    names = _all_of_them(columns, rows.shape[1], where)
    with np.errstate(
        all="ignore"
    ):  # a number beyond those of double precision becomes infinite, and is refused
        rows = rows.astype(float)
    return _checked(rows, names, where), names


def _file(path: Path, columns: Sequence[str] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Read rows and names of a file, by its suffix."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise DpmcError(f"{path}: {error.strerror}") from None
    if path.suffix == ".csv":
        return _read_csv(path, columns)
    if path.suffix not in SUFFIXES:
        raise DpmcError(f"{path}: must end in {', '.join(SUFFIXES)}, or be read by pandas and given as table")
    try:
        if path.suffix == ".parquet":
            import pandas

            frame = pandas.read_parquet(path)
        else:
            import xarray

            with xarray.open_dataset(path) as dataset:
                frame = _frame(dataset.map(_unwritten_as_nan), str(path))
    except ImportError:
        raise DpmcError(f"{path}: needs pyarrow: pip install pyarrow") from None
    except (OSError, ValueError) as error:
        raise DpmcError(f"{path}: cannot be read ({' '.join(str(error).split())[:100]})") from None
    return _from_frame(frame, columns, str(path))


def _masked_as_nan(source: Any) -> Any:
    """Return an array with NaN for values that a mask of NumPy hides; others as they are."""
    return np.ma.filled(source.astype(float), np.nan) if np.ma.isMaskedArray(source) else source


def _unwritten_as_nan(variable: Any) -> Any:
    """Return a variable of a NetCDF file with NaN for values that were never written.

    They hold the default fill value, of which xarray knows only if the variable names it. Whole numbers of
    one byte have none. Raises ValueError for packed values, and for limits of validity, which xarray ignores.
    """
    from netCDF4 import default_fillvals

    for key in ("scale_factor", "add_offset", "valid_min", "valid_max", "valid_range"):
        if key in variable.attrs or key in variable.encoding:
            raise ValueError(f"{variable.name}: has {key}, must be plain numbers")
    kind = variable.dtype
    fill = default_fillvals.get(f"{kind.kind}{kind.itemsize}") if kind.itemsize >= 2 else None
    if fill is None or not (variable == kind.type(fill)).any():
        return variable
    return variable.where(variable != kind.type(fill))


def _frame(data: Any, where: str) -> Any:
    """Return the data frame of a DataArray (rows, columns) or of a Dataset with one variable per column."""
    if hasattr(data, "data_vars"):
        sizes = {variable.dims for variable in data.data_vars.values()}
        if len(sizes) != 1 or len(next(iter(sizes))) != 1:
            raise DpmcError(f"{where}: must have variables along one and the same dimension, one a column")
        return data.to_dataframe()[list(data.data_vars)]
    if data.ndim > 2:
        raise DpmcError(f"{where}: has {data.ndim} dimensions, must have rows and columns")
    return data.to_series().to_frame() if data.ndim == 1 else data.to_pandas()


def _from_frame(frame: Any, columns: Sequence[str] | None, where: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return rows and names of a data frame; numbered columns have no names."""
    named = any(isinstance(name, str) for name in frame.columns)
    names = tuple(map(str, frame.columns)) if named else ()
    chosen, names = _chosen(names, frame.shape[1], columns, where)
    parts = []
    for i, name in zip(chosen, names or map(str, chosen), strict=True):
        column = frame.iloc[:, i]
        if not (column.dtype.kind in "fiub" if hasattr(column.dtype, "kind") else False):
            wrong = next((value for value in column if not isinstance(value, int | float)), column.dtype)
            raise DpmcError(f"{where}: column {name}: {shown(wrong)} is not a number")
        parts.append(column.to_numpy(dtype=float, na_value=np.nan))
    rows = np.column_stack(parts) if parts else np.empty((len(frame), 0))
    return _checked(rows, names, where), names


def _read_csv(path: Path, columns: Sequence[str] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Read rows and names of a CSV file with or without a header line.

    Every line is a row, whatever its values, so that n is the number of lines. Numbers are read strictly.
    Raises DpmcError naming the first line that cannot be read.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DpmcError(f"{path}: is not text in UTF-8, must be rows as CSV") from None
    table = _lines(text, path)
    first, items = table[0]
    width = len(items)
    if width == 1 and (";" in items[0] or "\t" in items[0]):
        raise DpmcError(f"{path}: line {first}: {shown(items[0])}: columns must be separated by commas")
    header = table.pop(0)[1] if _is_header(*table[0], path) else []
    for number, items in table:
        if len(items) != width:
            what = "names" if header else "numbers"
            raise DpmcError(f"{path}: line {number}: {len(items)} numbers, line {first} has {width} {what}")
    for name in header:
        if header.count(name) > 1:
            raise DpmcError(f"{path}: line {first}: two columns have the same name, {name}")
    chosen, names = _chosen(tuple(header), width, columns, str(path))
    labels = [header[i] if header else str(i + 1) for i in chosen]
    rows = np.array([_numbers(items, chosen, labels, f"{path}: line {number}") for number, items in table])
    if not len(rows):
        raise DpmcError(f"{path}: holds no rows")
    for row, column in np.argwhere(~np.isfinite(rows))[:1]:
        where = f"{path}: line {table[row][0]}: column {labels[column]}"
        raise DpmcError(f"{where}: is NaN or infinite, must be a number")
    return _checked(rows, names, str(path)), names


def _lines(text: str, path: Path) -> list[tuple[int, list[str]]]:
    """Return number and items of each line; raise DpmcError for a blank one, and for a row of several lines.

    A blank line may be a row of one column without a value, and so may one after the last row.
    """
    if not text.strip():
        raise DpmcError(f"{path}: holds no rows")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise DpmcError(
                f"{path}: line {number}: is blank, must be a row: every line counts as one; remove or fill it"
            )
    table: list[tuple[int, list[str]]] = []
    try:
        reader = csv.reader(lines, skipinitialspace=True, strict=True)
        for number, items in enumerate(reader, 1):
            if reader.line_num != number:
                raise csv.Error("a quoted line break; every row must be one line")
            table.append((number, [item.strip() for item in items]))
    except csv.Error as error:
        raise DpmcError(f"{path}: line {len(table) + 1}: is not CSV ({error})") from None
    return table


def _numbers(items: list[str], chosen: Sequence[int], labels: Sequence[str], where: str) -> list[float]:
    """Return the numbers of a line in the chosen columns; raise DpmcError for the first that is not one."""
    found = []
    for i, label in zip(chosen, labels, strict=True):
        try:  # `float` is much faster, but also accepts 1_0 and the digits of other scripts
            plain = items[i].isascii() and "_" not in items[i]
            found.append(float(items[i]) if plain else decimal(items[i]))
        except ValueError:
            what = f": {shown(items[i])} is not a number" if items[i] else " is missing"
            raise DpmcError(f"{where}: column {label}{what}") from None
    return found


def _is_header(number: int, items: list[str], path: Path) -> bool:
    """Return whether a line has names: each begins with a letter or _, and none is a number such as nan.

    Raises DpmcError for an entry that is neither a name nor a number, and for a name that is a usual word for
    a missing value: it may be the value of the first row.
    """
    names = [(item[:1].isalpha() or item[:1] == "_") and not _is_number(item) for item in items]
    for item, is_name in zip(items, names, strict=True):
        if item and not is_name and not _is_number(item):
            raise DpmcError(f"{path}: line {number}: {shown(item)} is neither a number nor a column's name")
        if MISSING.fullmatch(item) and not _is_number(item):
            raise DpmcError(
                f"{path}: line {number}: {shown(item)} may be a missing value or a column's name: "
                "fill or remove the value, or give the column another name"
            )
    return all(names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def _chosen(
    names: tuple[str, ...], width: int, columns: Sequence[str] | None, where: str
) -> tuple[list[int], tuple[str, ...]]:
    """Return indices and names of the requested columns."""
    if columns is None or not names:
        return list(range(width)), _all_of_them(columns, width, where) or names
    for column in columns:
        if names.count(column) != 1:
            raise DpmcError(f"{where}: has no column {shown(column)}; it has {', '.join(names)}")
    return [names.index(column) for column in columns], tuple(columns)


def _all_of_them(columns: Sequence[str] | None, width: int, where: str) -> tuple[str, ...]:
    """Return `columns` as names of columns without names; () if None."""
    if columns is not None and len(columns) != width:
        raise DpmcError(f"{where}: has {width} columns without names, must be {', '.join(columns)}")
    return tuple(columns or ())


def _checked(rows: np.ndarray, names: tuple[str, ...], where: str) -> np.ndarray:
    """Return the rows if all values are finite; raise DpmcError naming the first that is not."""
    if not len(rows) or not rows.shape[1]:
        raise DpmcError(f"{where}: holds no rows")
    wrong = np.argwhere(~np.isfinite(rows))
    if len(wrong):
        row, column = wrong[0]
        name = names[column] if names else column
        raise DpmcError(f"{where}: row {row}, column {name}: is NaN or infinite, must be a number")
    return rows
