"""Private rows for a release: every entry that is no number becomes NaN, and no message depends on an entry.

Rows are counted as they are: the lines of a CSV file below its line of names, whatever is in them. An entry
that is missing or no number is NaN; so is every entry of a row with too few or too many. Lists are read entry
by entry, and true is 1 also as text, because the type of one entry may decide those of a whole table. Where
they are used such rows count as 0 (`evaluators/lattice.py`). What is refused is a matter of files, names and
shapes, which are public. `tables` reads rows for experiments, and says what is wrong with them.
"""

import csv
import gzip
import numbers
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import DECIMAL
from dpmc.data.tables import chosen_columns, table_of
from dpmc.models.columns import MISSING, Coding, text_of

if TYPE_CHECKING:
    from pandas import DataFrame

FILES = (".csv", ".csv.gz", ".parquet")  #: ends of their names
TRUTH = {"true": 1.0, "false": 0.0}


class Rule(NamedTuple):
    """How the entries of a column become numbers; public, and the same for every row."""

    levels: dict[str | float, int]  # of a category, as texts and as numbers; {}: numbers
    fill: Any = None  # what stands for a missing value; None: NaN

    def number(self, value: object) -> float:
        """Return an entry as a number, that of a category as the place of its level; NaN for what is none."""
        try:
            if self.fill is not None and is_missing(value):
                value = self.fill
            x = number(value)
            if not self.levels:
                return x
            # A number and its text have one place, because one row may decide which of them a column holds.
            keys = [text_of(value)] if np.isnan(x) else [text_of(value), x, text_of(x)]
            return next((float(self.levels[key]) for key in keys if key in self.levels), np.nan)
        except Exception:  # of methods of the entry
            return np.nan


def rule_of(name: str, coding: Coding) -> Rule:
    """Return the rule of a column: levels have places by their texts and, if they are numbers, by these."""
    texts = coding.levels.get(name, ())
    places: dict[str | float, int] = {text: i for i, text in enumerate(texts)}
    places.update((x, i) for i, text in enumerate(texts) if not np.isnan(x := number(text)))
    return Rule(places, coding.fills.get(name))


def read_release_rows(
    source: Any, columns: Sequence[str] | None = None, coding: Coding | None = None
) -> np.ndarray:
    """Return the rows (n, k) of a table, with NaN for what is no number.

    Parameters
    ----------
    source : an array, a table of pandas or xarray, or the path of a .csv, .csv.gz or .parquet file. A CSV
        file must begin with a line of names.
    columns : names of the columns to read, in this order; None: all. A list of rows needs them: a row with
        another number of entries is NaN.
    coding : public levels of categories and fills of missing values; a value that is no level is NaN.

    Raises DpmcError for a file that is missing or of another kind, for missing columns, and for no rows.
    """

    coding = coding or Coding()
    if isinstance(source, str | Path):
        return _of_file(Path(source), columns, coding)
    where = f"data: {type(source).__name__}"
    kind = type(source).__module__.partition(".")[0]
    if kind == "xarray":
        source = table_of(source, where)
    elif kind != "pandas":
        source = _frame(source, columns, where)
    return _of_frame(source.to_frame() if source.ndim == 1 else source, columns, coding, where)


def of_length(rows: np.ndarray, n: int | None) -> np.ndarray:
    """Return the first n rows, with rows of NaN in place of those that lack; all if n is None."""
    if n is None:
        return rows
    lacking = np.full((max(0, n - len(rows)), rows.shape[1]), np.nan)
    return np.concatenate([rows[:n], lacking])


def _of_file(path: Path, columns: Sequence[str] | None, coding: Coding) -> np.ndarray:
    """Return the rows of a file, by its suffix."""
    if not path.name.endswith(FILES):
        raise DpmcError(f"{path}: must end in {', '.join(FILES)}, or be read by pandas and given as table")
    try:
        content = path.read_bytes()
        if path.suffix != ".parquet":
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            return _of_csv(content.decode("utf-8-sig", errors="replace"), columns, coding, path)
        import pandas

        return _of_frame(pandas.read_parquet(path), columns, coding, str(path))
    except ImportError:
        raise DpmcError(f"{path}: needs pyarrow: pip install pyarrow") from None
    except OSError as error:
        raise DpmcError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except (ValueError, EOFError, zlib.error):
        raise DpmcError(f"{path}: cannot be read") from None


def _of_csv(text: str, columns: Sequence[str] | None, coding: Coding, path: Path) -> np.ndarray:
    """Return the rows of a CSV file; its first line has the names of the columns."""
    lines = text.removesuffix("\n").split("\n")
    names = [name.strip() for name in _fields(lines[0].removesuffix("\r"))]
    if all(DECIMAL.fullmatch(name) for name in names) or not any(names):
        raise DpmcError(f"{path}: line 1: must be the names of the columns; a release reads no other file")
    chosen = chosen_columns(names, len(names), columns, str(path))
    if len(lines) < 2:
        raise DpmcError(f"{path}: holds no rows")
    how = [(i, rule_of(name, coding)) for i, name in chosen.items()]
    rows = np.full((len(lines) - 1, len(chosen)), np.nan)
    for row, line in zip(rows, lines[1:], strict=True):
        fields = _fields(line.removesuffix("\r"))
        if len(fields) == len(names):
            row[:] = [rule.number(fields[i]) for i, rule in how]
    return rows


def _fields(line: str) -> list[str]:
    """Return the fields of one line of CSV; [] if it is none."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], skipinitialspace=True))
    except (csv.Error, StopIteration):
        return []


def is_missing(value: object) -> bool:
    """Return whether an entry is empty, None, NaN or one of the usual words for a missing value."""
    if isinstance(value, str):
        return not value.strip() or bool(MISSING.fullmatch(value.strip()))
    return value is None or np.isnan(number(value))


def number(value: object) -> float:
    """Return a number or truth value of Python, NumPy or text as a float; NaN for anything else."""
    if isinstance(value, str):
        value = value.strip()
        return float(value) if DECIMAL.fullmatch(value) else TRUTH.get(value.lower(), np.nan)
    if isinstance(value, np.timedelta64) or not isinstance(value, numbers.Real | np.bool_):
        return np.nan
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return np.nan


def _frame(source: Any, columns: Sequence[str] | None, where: str) -> "DataFrame":
    """Return an array or a nested list as a data frame."""
    import pandas

    if np.ma.isMaskedArray(source):
        source = np.ma.filled(source.astype(object), np.nan)
    if isinstance(source, Sequence):
        if columns is None:
            raise DpmcError(f"{where}: a list needs a model with `column_names`; give an array or a table")
        source = _table(source, len(columns))
    source = np.asarray(source)
    if source.ndim not in (1, 2):
        raise DpmcError(f"{where}: must be rows by columns, as an array, a table or a path")
    return pandas.DataFrame(source)


def _table(source: Sequence[Any], width: int) -> np.ndarray:
    """Return a sequence of rows as objects (n, width), with NaN in rows of another shape.

    NumPy would choose one type for all entries, so that one row would decide how the others are read. So it
    would if the width were taken from the rows.
    """
    table = np.full((len(source), width), np.nan, object)
    for place, row in zip(table, source, strict=True):
        entries = _entries(row)
        for i, entry in enumerate(entries if len(entries) == width else ()):
            place[i] = entry
    return table


def _entries(row: Any) -> list[Any]:
    """Return a row as a list; of what is none a list of one."""
    many = isinstance(row, Sequence) or getattr(row, "ndim", 0) > 0
    return list(row) if many and not isinstance(row, str | bytes) else [row]


def _of_frame(table: "DataFrame", columns: Sequence[str] | None, coding: Coding, where: str) -> np.ndarray:
    """Return the rows of a data frame, whose columns may have no names."""
    named = any(isinstance(name, str) for name in table.columns)
    names = list(map(str, table.columns)) if named else []
    chosen = chosen_columns(names, table.shape[1], columns, where)
    if table.empty:
        raise DpmcError(f"{where}: holds no rows")
    with np.errstate(all="ignore"):
        columns_of = [_numbers(table.iloc[:, i], rule_of(name, coding)) for i, name in chosen.items()]
    return np.column_stack(columns_of)


def _numbers(column: Any, rule: Rule) -> np.ndarray:
    """Return a column of a data frame as floats."""
    if rule == Rule({}) and getattr(column.dtype, "kind", "O") in "fiub":
        return column.to_numpy(dtype=float, na_value=np.nan)
    return np.array([rule.number(value) for value in column])
