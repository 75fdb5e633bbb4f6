"""The design of a regression: from the columns of a table to predictors z.

Predictors are standardised by a given centre and scale, never by the rows' own mean, which would invalidate
the sensitivity bound. Centres and scales are public guesses, for example {"age": (45, 15)}; they also define
the rows to simulate. So are levels of categories and fills of missing values: none of them is taken from the
rows. In rows as arrays a category is the place of its level.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import array, positive_number, shown
from dpmc.models.columns import Coding, text_of
from dpmc.models.in_memory import table_of

Columns = Sequence[str] | Mapping[str, tuple[float, float]]
Levels = Mapping[str, Sequence[Any] | Mapping[Any, float]]


class Fault(NamedTuple):
    """The entries of a column of rows that a model cannot have."""

    column: np.ndarray  # (n,)
    wrong: np.ndarray  # (n,) which rows
    where: str  # for messages
    rule: str  # what an entry must be


class Design:
    """Predictors, their public numbers, and z (n, coefficients) of rows: `design(rows)`.

    The arguments are those of `dpmc.Regression` with the same names. `who` begins messages.
    """

    def __init__(
        self,
        predictors: Columns,
        *,
        intercept: bool = True,
        norm: float | None = None,
        binary: Mapping[str, float] | None = None,
        levels: Levels | None = None,
        fills: Mapping[str, Any] | None = None,
        who: str = "Design",
    ) -> None:
        names, self.centre, self.scale = standardised(predictors, f"{who}: predictors")
        self.shares, self.coding = _coded(names, levels or {}, fills or {}, who)
        categories = self.coding.levels
        self.columns = (*names, *categories)
        dummies = [f"{name}={level}" for name, known in categories.items() for level in known[1:]]
        self.coefficients = (*(("intercept",) if intercept else ()), *names, *dummies)
        self.intercept = intercept
        self.norm = None if norm is None else positive_number(norm, f"{who}: norm")
        self.binary: dict[int, float] = {}  # number of a predictor -> share of ones
        for name, share in (binary or {}).items():
            if name not in names:
                raise DpmcError(f"{who}: binary: {shown(name)} must be one of the predictors {names}")
            if positive_number(share, f"{who}: binary: {name}") >= 1.0:
                raise DpmcError(f"{who}: binary: {name}: {shown(share)} must be a share of ones below 1")
            self.binary[names.index(name)] = float(share)

    @property
    def predictors(self) -> list[str] | dict[str, tuple[float, float]]:
        """Return the predictors that are numbers, with centre and scale unless all are 0 and 1."""
        pairs = zip(self.columns, self.centre.tolist(), self.scale.tolist(), strict=False)
        given = {name: (centre, scale) for name, centre, scale in pairs}
        return list(given) if set(given.values()) <= {(0.0, 1.0)} else given

    @property
    def options(self) -> dict[str, tuple[Any, Any]]:
        """Return the other arguments by name, each with its default."""
        levels: dict[str, Any] = {}
        for name, known in self.coding.levels.items():
            shares = self.shares[name]
            equal = len(set(shares)) == 1
            levels[name] = list(known) if equal else dict(zip(known, shares, strict=True))
        return {
            "intercept": (self.intercept, True),
            "norm": (self.norm, None),
            "binary": ({self.columns[i]: share for i, share in self.binary.items()}, {}),
            "levels": (levels, {}),
            "fills": (dict(self.coding.fills), {}),
        }

    def __call__(self, rows: Any) -> np.ndarray:
        """Return z (n, coefficients) of rows.

        Rows are an array (n, 1 + predictors), or without the outcome (n, predictors); or a table with
        names, or a mapping of columns, with the predictors by name.
        """
        z = self._scaled(rows)
        if self.norm is not None:
            # Row by row, by a public bound: a scale from all rows would let one row change the others.
            length = np.sqrt((z**2).sum(axis=1, keepdims=True))
            z *= np.minimum(1.0, self.norm / np.where(length > 0.0, length, 1.0))
        return np.column_stack([np.ones(len(z)), z]) if self.intercept else z

    def beyond_norm(self, rows: Any) -> np.ndarray | None:
        """Return which rows (n,) are longer than `norm` and are shortened; None without `norm`."""
        if self.norm is None:
            return None
        return np.asarray((self._scaled(rows) ** 2).sum(axis=1) > self.norm**2)

    def _scaled(self, rows: Any) -> np.ndarray:
        """Return z (n, coefficients) without intercept and bound of the norm."""
        x = self._numbers(rows)
        k = len(self.centre)
        z = (x[:, :k] - self.centre) / self.scale
        categories = self.coding.levels.values()
        dummies = [x[:, [k + j]] == np.arange(1, len(known)) for j, known in enumerate(categories)]
        return np.column_stack([z, *dummies]) if dummies else z

    def _numbers(self, rows: Any) -> np.ndarray:
        """Return predictors (n, columns) as numbers; raise DpmcError for a table that lacks some."""
        names = self.columns
        if isinstance(rows, np.ndarray):
            if rows.ndim != 2 or rows.shape[1] not in (len(names), 1 + len(names)):
                raise DpmcError(f"rows: shape {rows.shape} must be (n, {len(names)}), predictors {names}")
            return rows[:, rows.shape[1] - len(names) :]
        where = f"rows: {type(rows).__name__}"
        if isinstance(rows, str | Path) or not hasattr(rows, "__getitem__"):
            raise DpmcError(
                f"{where}: must be an array, or a table in memory with columns {', '.join(names)}"
            )
        table = table_of(rows, where)
        return table.rows(table.chosen(names), self.coding, np.ones(table.shape[0], bool))

    def new_rows(self, rows: Any, who: str) -> np.ndarray:
        """Return predictors (m, columns) of new rows; raise DpmcError for what a table may not have."""
        x = self._numbers(rows)
        where = f"rows: {type(rows).__name__}"
        if x.dtype.kind not in "fiub":
            raise DpmcError(f"{where}: {x.dtype} must be numbers")
        x = x.astype(float)
        for row, i in np.argwhere(~np.isfinite(x))[:1]:
            raise DpmcError(f"{where}: row {row}, column {self.columns[i]}: is NaN or infinite")
        refuse_first(self.faults(x, who))
        return x

    def faults(self, x: np.ndarray, who: str) -> Iterator[Fault]:
        """Yield for each category of x (n, columns) the rows where it is not the place of a level."""
        for i, (name, known) in enumerate(self.coding.levels.items(), len(self.centre)):
            wrong = ~np.isin(x[:, i], range(len(known)))
            rule = f"the place of a level of {name}, 0 to {len(known) - 1}"
            yield Fault(x[:, i], wrong, f"{who}: predictor {name}", rule)

    def simulate(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """Draw predictors (n, columns) that are normal with the given scales, or 0 and 1.

        Categories have their levels with the given shares, independently of the other predictors.
        """
        k = len(self.centre)
        normal = generator.standard_normal((n, len(self.columns)))
        x = normal.copy()
        x[:, :k] = self.centre + self.scale * normal[:, :k]
        for i, share in self.binary.items():
            # From the same normal numbers, so that a binary predictor leaves the others as they were.
            x[:, i] = normal[:, i] < NormalDist().inv_cdf(share)
        for i, shares in enumerate(self.shares.values(), k):
            edges = [NormalDist().inv_cdf(share) for share in np.cumsum(shares)[:-1]]
            x[:, i] = np.searchsorted(edges, normal[:, i])
        return x


def refuse_first(faults: Iterable[Fault]) -> None:
    """Raise DpmcError for the first wrong entry of the first column that has one."""
    for column, wrong, where, rule in faults:
        for row in np.flatnonzero(wrong)[:1]:
            raise DpmcError(f"{where}: {column[row]:g} in row {row} must be {rule}")


def standardised(columns: Columns, where: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return names, centres and scales of columns; default 0 and 1."""
    names: tuple[Any, ...] = tuple(columns) if hasattr(columns, "__iter__") else (columns,)
    if isinstance(columns, str) or not all(isinstance(name, str) for name in names):
        raise DpmcError(f"{where}: {shown(columns)} must be a list of names, or {{name: (centre, scale)}}")
    if len(set(names)) != len(names):
        raise DpmcError(f"{where}: {shown(columns)} must be different names")
    table = np.tile([0.0, 1.0], (len(names), 1))
    for i, (name, pair) in enumerate(columns.items() if isinstance(columns, Mapping) else ()):
        if not hasattr(pair, "__len__") or isinstance(pair, str) or len(pair) != 2:
            raise DpmcError(f"{where}: {name}: {shown(pair)} must be (centre, scale)")
        table[i] = array(pair, (2,), f"{where}: {name}")
        positive_number(table[i, 1], f"{where}: {name}: scale")
    return names, table[:, 0], table[:, 1]


def _coded(
    names: tuple[str, ...], levels: Levels, fills: Mapping[str, Any], who: str
) -> tuple[dict[str, tuple[float, ...]], Coding]:
    """Return the shares of the levels of each category, and the coding; raise DpmcError for wrong ones."""
    shares: dict[str, tuple[float, ...]] = {}
    known: dict[str, tuple[str, ...]] = {}
    for name, given in levels.items():
        where = f"{who}: levels: {name}"
        try:
            texts = () if isinstance(given, str) else tuple(map(text_of, given))
        except Exception:  # of methods of a level, or a number of too many digits
            texts = ()
        if name in names:
            raise DpmcError(f"{where}: is also among the predictors; name a category in levels alone")
        if len(texts) < 2 or len(set(texts)) < len(texts):
            raise DpmcError(f"{where}: {shown(given)} must be two or more different levels")
        known[name], parts = texts, list(given.values()) if isinstance(given, Mapping) else [1.0] * len(texts)
        total = sum(positive_number(part, where) for part in parts)
        shares[name] = tuple(float(part) / total for part in parts)
    filled: dict[str, Any] = {}
    for name, value in fills.items():
        where = f"{who}: fills: {name}"
        if name not in (*names, *known):
            raise DpmcError(f"{where}: must be one of the predictors {(*names, *known)}")
        if name in known and text_of(value) not in known[name]:
            raise DpmcError(f"{where}: {shown(value)} must be one of the levels {known[name]}")
        filled[name] = text_of(value) if name in known else float(array([value], (1,), where)[0])
    return shares, Coding.of(known, filled)
