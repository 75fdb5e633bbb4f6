"""Tables in memory: arrays, lists, mappings, and tables of pandas and xarray; by name if they have names."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.models.columns import (
    LINE,
    ROW,
    UNREADABLE,
    Coding,
    entries_of,
    labels_of,
    numbers_of,
    same_name,
)

#: What other libraries call the names of a table's columns, or a table with names.
WITH_NAMES = ("columns", "column_names", "data_vars", "__dataframe__", "__arrow_c_stream__")


class Table(NamedTuple):
    """A table whose columns are read when they are asked for."""

    where: str  # for messages
    names: list[str]  # of its columns; [] if they have none
    shape: tuple[int, int]
    column: Callable[[int], Any]  # by its index, as for `numbers_of`
    form: str = ROW  # of a place in messages
    first: int = 0  # number of the first row in messages

    def chosen(self, columns: Sequence[str] | None) -> dict[int, str]:
        """Return the indices of the requested columns, each with its name, or its number as text.

        Names that look the same are the same: both are compared in composed Unicode.
        """
        width, where = self.shape[1], self.where
        if not self.names:
            if columns is not None and len(columns) != width:
                raise DpmcError(f"{where}: has {width} columns without names, must be {', '.join(columns)}")
            return dict(enumerate(columns or [str(i + (self.form == LINE)) for i in range(width)]))
        counts, indices = Counter(self.names), {name: i for i, name in enumerate(self.names)}
        places: dict[int, str] = {}
        for name in columns or self.names:
            if counts[same_name(name)] > 1:
                raise DpmcError(f"{where}: two columns have the same name, {name}: rename one")
            if same_name(name) not in counts:
                raise DpmcError(f"{where}: has no column {shown(name)}; it has {', '.join(self.names)}")
            if (place := indices[same_name(name)]) in places:
                raise DpmcError(f"{where}: column {name} is asked for twice")
            places[place] = name
        return places

    def rows(self, places: Mapping[int, str], coding: Coding, kept: np.ndarray | None = None) -> np.ndarray:
        """Return the rows (n, k) of some columns, with NaN for what is no number.

        With `kept` (n,) only these rows, and DpmcError for the first entry that is NaN or infinite.
        """
        if self.shape[0] == 0 or not places:
            raise DpmcError(f"{self.where}: holds no rows")
        if not self.names:  # then a category is the place of its level
            coding = Coding()
        columns, rules = [self.column(i) for i in places], [coding.rule(name) for name in places.values()]
        labels = list(places.values())
        rows = np.column_stack(
            [
                numbers_of(column, rule, f"{self.where}: column {name}")
                for column, rule, name in zip(columns, rules, labels, strict=True)
            ]
        )
        if kept is None:
            return rows
        for row, i in np.argwhere(kept[:, None] & ~np.isfinite(rows))[:1]:
            wrong = rules[i].wrong(entries_of(columns[i])[row])
            raise DpmcError(f"{self.place(row, labels[i])}{wrong}")
        return rows[kept]

    def place(self, row: int, name: str) -> str:
        """Return where an entry is, for messages; the row is counted from 0."""
        return f"{self.where}: {self.form.format(row + self.first, name)}"


def table_of(source: Any, where: str, width: int | None = None) -> Table:
    """Return what holds rows as a table; a list of rows of `width` entries may have rows of other lengths.

    Raises DpmcError naming `where` for a table with names that is none of pandas or xarray: its array would
    be read by position.
    """
    import pandas  # slow to import

    if isinstance(source, pandas.Series):
        source = source.to_frame()
    if isinstance(source, pandas.DataFrame):
        columns = labels_of(source.columns, where)
        return Table(where, columns, source.shape, lambda i: source.iloc[:, i])
    if hasattr(source, "dims"):
        import xarray

        if isinstance(source, xarray.Dataset):
            return _of_dataset(source, where)
        if isinstance(source, xarray.DataArray):
            index = source.indexes.get(source.dims[1]) if source.ndim == 2 else None
            names = [] if index is None else labels_of(index, where)
            if source.ndim == 1 and isinstance(source.name, str):
                names = [same_name(source.name)]
            return _of_array(source.values, names, where)
    elif isinstance(source, Mapping):
        return _of_mapping(source, where)
    records = getattr(getattr(source, "dtype", None), "names", None)
    if records or any(hasattr(source, name) for name in WITH_NAMES):
        raise DpmcError(
            f"{where}: has columns with names and is no table of pandas or xarray: "
            "convert it, for example with .to_pandas() or pandas.DataFrame(…)"
        )
    if isinstance(source, Sequence):
        source = _of_list(source, width, where)
    return _of_array(_unmasked(source), [], where)


def _unmasked(source: Any) -> Any:
    """Return an array with NaN for what is masked; anything else as it is."""
    return np.ma.filled(source.astype(object), np.nan) if np.ma.isMaskedArray(source) else source


def _of_dataset(data: Any, where: str) -> Table:
    """Return a Dataset with one variable per column as a table."""
    sizes = {variable.dims for variable in data.data_vars.values()}
    if len(sizes) != 1 or len(next(iter(sizes))) != 1:
        raise DpmcError(f"{where}: must have variables along one and the same dimension, one a column")
    keys = list(data.data_vars)
    shape = data[keys[0]].size, len(keys)
    return Table(where, list(map(same_name, keys)), shape, lambda i: data[keys[i]].values)


def _of_mapping(source: Mapping[Any, Any], where: str) -> Table:
    """Return a mapping of names to columns as a table."""
    import pandas

    columns: list[Any] = []
    for column in source.values():
        many = isinstance(column, Sequence) and not isinstance(column, str | bytes)
        if not many and getattr(column, "ndim", 0) != 1:
            raise DpmcError(f"{where}: must be columns by their names")
        columns.append(column if many or isinstance(column, pandas.Series) else np.asarray(_unmasked(column)))
    if len({len(column) for column in columns}) != 1:
        raise DpmcError(f"{where}: must have columns of the same length")
    shape = len(columns[0]), len(columns)
    return Table(where, list(map(same_name, source)), shape, lambda i: columns[i])


def _of_array(source: Any, names: list[str], where: str) -> Table:
    """Return an array, rows by columns or one column, as a table."""
    try:
        array = np.asarray(source)
    except Exception:  # of methods of an object that is no array
        array = np.asarray(None)
    if array.ndim not in (1, 2):
        rule = "must have rows and columns, as an array, a table or a path"
        raise DpmcError(f"{where}: has {array.ndim} dimensions, {rule}")
    array = array[:, None] if array.ndim == 1 else array
    return Table(where, names, (array.shape[0], array.shape[1]), lambda i: array[:, i])


def _of_list(source: Sequence[Any], width: int | None, where: str) -> np.ndarray:
    """Return a sequence of rows as objects (n, width).

    NumPy would choose one type for all entries, so that one row would decide how the others are read. So it
    would if the width were taken from the rows. The entries of a row that has another length or cannot be
    read are no numbers. Without a width that of the first row is taken, and such rows raise DpmcError.
    """
    rows = [_entries(row) for row in entries_of(source)]
    k = width if width is not None else len(rows[0] or ()) if rows else 0
    table = np.full((len(rows), k), UNREADABLE, object)
    for row, entries in enumerate(rows):
        if entries is None:
            if width is None:
                raise DpmcError(f"{where}: row {row}: cannot be read")
        elif len(entries) == k:
            for i, entry in enumerate(entries):
                table[row, i] = entry
        elif width is None:
            raise DpmcError(f"{where}: row {row}: has {len(entries)} entries, must have {k}")
    return table


def _entries(row: Any) -> list[Any] | None:
    """Return a row as a list; of what is none a list of one; None for what cannot be read."""
    try:
        many = isinstance(row, Sequence) or getattr(row, "ndim", 0) > 0
        return list(row) if many and not isinstance(row, str | bytes) else [row]
    except Exception:  # of the row's methods
        return None
