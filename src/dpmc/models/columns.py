"""Columns of a table as numbers: levels of categories and fills of missing values, both public."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown

if TYPE_CHECKING:
    from pandas import Series

#: Places in messages: rows of a table from 0, lines of a file from 1.
ROW, LINE = "row {}, column {}", "line {}: column {}"
#: Usual words for a missing value. As names of columns they are refused: the first row may lack a value.
MISSING = re.compile(
    r"n[./]?a\.?|nan(\(.*\))?|nat|null|none|nil|missing|unknown|undefined|not available|no data|_+", re.I
)


class Coding(NamedTuple):
    """How columns become numbers, by their names; public, and the same for every row."""

    levels: Mapping[str, tuple[str, ...]] = {}  # of categories: a level becomes its place, 0, 1, …
    fills: Mapping[str, Any] = {}  # what stands for a missing value: a number, or a level


def text_of(value: object) -> str:
    """Return a level as text; 1, 1.0 and "1" are the same level."""
    return f"{value:g}" if isinstance(value, int | float) else str(value).strip()


def translated(column: Series, name: str, coding: Coding, where: str, form: str = ROW) -> Series:
    """Return a column with missing values filled and levels as numbers.

    Raises DpmcError, naming `where` and by `form` index and column, for a value that is none of the levels.
    """
    if name in coding.fills:
        lacking = column.isna() | column.map(
            lambda value: isinstance(value, str) and (not value.strip() or bool(MISSING.fullmatch(value)))
        )
        filled = column.astype(object).where(~lacking, coding.fills[name])
        column = filled.astype(str) if isinstance(column.dropna().iloc[:1].squeeze(), str) else filled
        column = column.infer_objects()
    if name in coding.levels:
        levels = coding.levels[name]
        numbers = column.map(text_of).map({level: i for i, level in enumerate(levels)})
        for row, value in column[numbers.isna()].head(1).items():
            known = ", ".join(levels)
            raise DpmcError(f"{where}: {form.format(row, name)}: {shown(value)} is not a level ({known})")
        column = numbers
    return column
