"""Private rows for a release: every entry that is no number becomes NaN, and no message depends on an entry.

Rows are counted as they are: the lines of a CSV file below its line of names, whatever is in them. An entry
that is missing or no number is NaN; so is every entry of a row with too few or too many. Where they are used
such rows count as 0 (`evaluators/lattice.py`). What is refused is a matter of files, names, types and shapes,
which are public. `tables` reads rows for experiments, in the same way, and says what is wrong with them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmc.data.tables import opened
from dpmc.models.columns import Coding


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

    Raises DpmcError for a file that is missing or of another kind, for missing columns, for a column of a
    type that holds no numbers, and for no rows.
    """
    table = opened(source, columns, private=True)
    return table.rows(table.chosen(columns), coding or Coding())


def of_length(rows: np.ndarray, n: int | None) -> np.ndarray:
    """Return the first n rows, with rows of NaN in place of those that lack; all if n is None."""
    if n is None:
        return rows
    lacking = np.full((max(0, n - len(rows)), rows.shape[1]), np.nan)
    return np.concatenate([rows[:n], lacking])
