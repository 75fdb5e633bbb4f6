"""Tables in memory: data frames, data sets, mappings, arrays and lists; by name if they have names."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from inspect import getattr_static
from typing import Any, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.models.columns import Coding, Declared, Unreadable, entries_of, same_name, unmasked

#: What libraries call the names of a table's columns, or a table with names.
WITH_NAMES = ("columns", "column_names", "data_vars", "__dataframe__", "__arrow_c_stream__")


class Table(NamedTuple):
    """A table whose columns are read when they are asked for."""

    where: str  # for messages
    names: list[str]  # of its columns, each `same_name`; [] if they have none
    shape: tuple[int, int]
    column: Callable[[int], Any]  # by its index, as for `Declared.numbers`
    line: str = "row"  # what a row is called in messages
    first: int = 1  # number of the first row in messages

    def chosen(self, columns: Sequence[str] | None) -> dict[int, str]:
        """Return the indices of the requested columns, each with its name, or its number as text."""
        width, where = self.shape[1], self.where
        if not self.names:
            if columns is not None and len(columns) != width:
                raise DpmcError(f"{where}: has {width} columns without names, must be {', '.join(columns)}")
            return dict(enumerate(columns or [str(i + 1) for i in range(width)]))
        counts, places = Counter(self.names), {}
        for name in columns or self.names:
            if counts[same_name(name)] > 1:
                raise DpmcError(f"{where}: two columns have the same name, {name}: rename one")
            if same_name(name) not in counts:
                raise DpmcError(f"{where}: has no column {shown(name)}; it has {', '.join(self.names)}")
            if (place := self.names.index(same_name(name))) in places:
                raise DpmcError(f"{where}: column {name} is asked for twice")
            places[place] = name
        return places

    def rows(self, places: Mapping[int, str], coding: Coding, kept: np.ndarray | None = None) -> np.ndarray:
        """Return the rows (n, k) of some columns, with NaN or infinity for odd entries.

        With `kept` (n,) only these rows, and DpmcError for the first odd entry of them.
        """
        if self.shape[0] == 0 or not places:
            raise DpmcError(f"{self.where}: holds no rows")
        # Without names a category is the place of its level.
        declared = {i: (self.names and coding.declared.get(name)) or Declared() for i, name in places.items()}
        columns = {i: self.column(i) for i in places}
        rows = np.column_stack(
            [declared[i].numbers(columns[i], f"{self.where}: column {name}") for i, name in places.items()]
        )
        if kept is None:
            return rows
        for row, k in np.argwhere(kept[:, None] & ~np.isfinite(rows))[:1]:
            i = list(places)[k]
            raise DpmcError(self.wrong(row, places[i], entries_of(columns[i])[row], declared[i]))
        return rows[kept]

    def wrong(self, row: int, name: str, entry: Any, declared: Declared) -> str:
        """Return where an odd entry is, and what is wrong with it or with its whole line."""
        if isinstance(entry, Unreadable) and entry.reason:
            return f"{self.where}: {self.line} {row + self.first}: {entry.reason}"
        return f"{self.place(row, name)}{declared.wrong(entry)}"

    def place(self, row: int, name: str) -> str:
        """Return where an entry is, for messages; the row is counted from 0."""
        return (
            f"{self.where}: {self.line} {row + self.first}{':' if self.line == 'line' else ','} column {name}"
        )


def table_of(source: Any, where: str, width: int | None = None) -> Table:
    """Return what holds rows as a table; a list of rows of `width` entries may have rows of other lengths.

    Raises DpmcError naming `where` for a table with names that cannot be read by them, as its array would be
    read by position; for columns of different lengths, and for other than one or two dimensions.
    """
    import narwhals  # slow to import

    try:
        frame = narwhals.from_native(source, eager_only=True, allow_series=True, pass_through=True)
    except narwhals.exceptions.DuplicateError:
        names = list(getattr(source, "column_names", source.columns))
        twice = next(name for name in names if names.count(name) > 1)
        raise DpmcError(f"{where}: two columns have the same name, {twice}: rename one") from None
    if isinstance(frame, narwhals.Series):
        frame = frame.to_frame()
    if isinstance(frame, narwhals.DataFrame):
        names, columns = _names(frame.columns, where), frame.columns
        return Table(where, names, frame.shape, lambda i: frame.get_column(columns[i]).to_native())
    if hasattr(source, "dims"):
        import xarray

        if isinstance(source, xarray.Dataset):
            if len({variable.dims for variable in source.data_vars.values()}) != 1:
                rule = "must have variables along one and the same dimension, one a column"
                raise DpmcError(f"{where}: {rule}")
            return _of_mapping(source.data_vars, where)
        if isinstance(source, xarray.DataArray):
            index = source.indexes.get(source.dims[1]) if source.ndim == 2 else None
            names = [] if index is None else _names(index, where)
            if source.ndim == 1 and isinstance(source.name, str):
                names = [same_name(source.name)]
            return _of_array(source.values, names, where)
    elif isinstance(source, Mapping):
        return _of_mapping(source, where)
    records = getattr(getattr(source, "dtype", None), "names", None)
    if records or any(getattr_static(source, name, ...) is not ... for name in WITH_NAMES):
        rule = "convert it, for example with .to_pandas() or pandas.DataFrame(…)"
        raise DpmcError(f"{where}: has columns with names, and they cannot be read by name: {rule}")
    if isinstance(source, Sequence):
        source = _of_list(source, width, where)
    return _of_array(unmasked(source), [], where)


def _names(labels: Any, where: str) -> list[str]:
    """Return the names of a table's columns; [] if they are 0, 1, …: it has none."""
    for levels in [len(label) for label in labels if isinstance(label, tuple)][:1]:
        raise DpmcError(
            f"{where}: has names of {levels} levels; make them one: "
            'table.columns = ["_".join(map(str, name)) for name in table.columns]'
        )
    return [] if list(labels) == list(range(len(labels))) else list(map(same_name, labels))


def _of_mapping(source: Mapping[Any, Any], where: str) -> Table:
    """Return a mapping of names to columns as a table."""
    import narwhals

    columns = list(source.values())
    for column in columns:
        many = isinstance(column, Sequence) and not isinstance(column, str | bytes)
        series = narwhals.from_native(column, series_only=True, pass_through=True)
        if not many and not hasattr(series, "to_native") and getattr(column, "ndim", 0) != 1:
            raise DpmcError(f"{where}: must be columns by their names")
    if len({len(column) for column in columns}) != 1:
        raise DpmcError(f"{where}: must have columns of the same length")
    return Table(where, list(map(same_name, source)), (len(columns[0]), len(columns)), columns.__getitem__)


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
    """Return a sequence of rows as objects (n, width); without a width that of a first one is taken.

    NumPy would choose one type for all entries, so that one row would decide how the others are read. The
    entries of a row that has another length or cannot be read are `Unreadable`.
    """
    rows = [_entries(row) for row in entries_of(source)]
    k = width if width is not None else next((len(entries) for entries in rows if entries is not None), 1)
    table = np.empty((len(rows), k), object)
    for row, entries in enumerate(rows):
        lacks = "cannot be read" if entries is None else f"has {len(entries)} entries, must have {k}"
        for i in range(k):
            table[row, i] = entries[i] if entries is not None and len(entries) == k else Unreadable(lacks)
    return table


def _entries(row: Any) -> list[Any] | None:
    """Return a row as a list; of what is none a list of one; None for what cannot be read."""
    try:
        many = isinstance(row, Sequence) or getattr(row, "ndim", 0) > 0
        return list(row) if many and not isinstance(row, str | bytes) else [row]
    except Exception:  # of the row's methods
        return None
