"""The design of a regression: from the columns of a table to predictors z.

Predictors are standardised by a given centre and scale, never by the rows' own mean, which would invalidate
the sensitivity bound. Centres and scales are public guesses, for example {"age": (45, 15)}; they also define
the rows to simulate. So are levels of categories and fills of missing values: none of them is taken from the
rows. In rows as arrays a category is the place of its level. The offset's column is last, but for weights.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import array, positive_number, shown
from dpmc.models.codebook import Codebook, Field
from dpmc.models.columns import Coding, same_name, text_of
from dpmc.models.in_memory import table_of

Columns = Sequence[str] | Mapping[str, tuple[float, float]] | Mapping[str, tuple[float, float] | None]
Levels = Mapping[str, Sequence[Any] | Mapping[Any, float]]
Column = str | Mapping[str, tuple[float, float]]


class Offset(NamedTuple):
    """A column whose coefficient is 1: value − centre, or ln(value/centre) of an exposure."""

    name: str
    centre: float
    scale: float  # of simulated rows alone
    is_exposure: bool
    field: Field | None = None  # of a codebook

    @classmethod
    def of(
        cls, offset: Column | None, exposure: Column | None, book: Codebook | None, who: str
    ) -> "Offset | None":
        """Return the offset of two arguments, None if both are; raise DpmcError for wrong ones."""
        if offset is not None and exposure is not None:
            raise DpmcError(f"{who}: exposure: must be None beside an offset, which can hold its logarithm")
        given, is_exposure = (exposure, True) if offset is None else (offset, False)
        if given is None:
            return None
        where = f"{who}: {'exposure' if is_exposure else 'offset'}"
        names, centres, scales = standardised([given] if isinstance(given, str) else given, where)
        if len(names) != 1:
            raise DpmcError(f"{where}: {shown(given)} must be one column")
        pair = float(centres[0]), float(scales[0])
        found = cls(names[0], *pair, is_exposure, None if book is None else number_of(book, names[0]))
        if not isinstance(given, Mapping):
            found = found._replace(centre=found.usual[0], scale=found.usual[1])
        if is_exposure:
            positive_number(found.centre, f"{where}: {names[0]}: centre")
        return found

    @property
    def usual(self) -> tuple[float, float]:
        """Return centre and scale if none are given: the codebook's, else 0, of exposures 1, and 1."""
        return (self.field and self.field.standard) or (float(self.is_exposure), 1.0)

    @property
    def given(self) -> dict[str, Column]:
        """Return the argument by its name."""
        pair = self.centre, self.scale
        column: Column = self.name if pair == self.usual else {self.name: pair}
        return {"exposure" if self.is_exposure else "offset": column}

    def at(self, x: np.ndarray) -> np.ndarray:
        """Return the offset of entries (n,); it is not finite for an exposure that is not above 0."""
        with np.errstate(all="ignore"):
            return np.log(x / self.centre) if self.is_exposure else x - self.centre

    def drawn(self, normal: np.ndarray) -> np.ndarray:
        """Return entries (n,) made of normal numbers, as the codebook; else exposures are log-normal."""
        if self.field is not None:
            x = self.field.drawn(normal, (self.centre, self.scale))
            return np.where(x > 0.0, x, self.centre) if self.is_exposure else x
        if self.is_exposure:
            return self.centre * np.exp(self.scale / self.centre * normal)
        return self.centre + self.scale * normal


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

    formula: str | None = None  #: text that says outcome and predictors, of a `FormulaDesign`

    def __init__(
        self,
        predictors: Columns,
        *,
        intercept: bool = True,
        norm: float | None = None,
        binary: Mapping[str, float] | None = None,
        levels: Levels | None = None,
        fills: Mapping[str, Any] | None = None,
        codebook: Any = None,
        offset: Column | None = None,
        exposure: Column | None = None,
        weights: str | Mapping[str, float] | None = None,
        who: str = "Design",
    ) -> None:
        self.codebook = None if codebook is None else Codebook.given(codebook)
        if self.codebook is not None:
            for argument, given in (("binary", binary), ("levels", levels), ("fills", fills)):
                if given:
                    raise DpmcError(f"{who}: {argument}: beside a codebook: it says so of its fields")
            said = self.codebook.design(names_of(predictors, f"{who}: predictors"))
            predictors = _scaled_by(predictors, said["predictors"], who)
            binary, levels, fills = (said[key] for key in ("binary", "levels", "fills"))
        names, self.centre, self.scale = standardised(predictors, f"{who}: predictors")
        self.shift = Offset.of(offset, exposure, self.codebook, who)
        shifts = () if self.shift is None else (self.shift.name,)
        self.weights = _weights(weights, self.codebook, who)
        self.shares, self.coding = _coded(names, levels or {}, fills or {}, who, shifts)
        categories = self.coding.levels
        self._predicting = (*names, *categories)
        self.columns = (*self._predicting, *shifts, *self.weights)
        if self.codebook is not None:
            self.coding = self.codebook.coding(self.columns)
        dummies = [f"{name}={level}" for name, known in categories.items() for level in known[1:]]
        self.coefficients = (*(("intercept",) if intercept else ()), *names, *dummies)
        self.intercept = intercept
        zeros = np.zeros(len(dummies))
        #: Centre and scale (2, k) of what each coefficient but the intercept is of.
        self.standard = np.array([[*self.centre, *zeros], [*self.scale, *(zeros + 1.0)]])
        self.norm = None if norm is None else positive_number(norm, f"{who}: norm")
        self.binary: dict[int, float] = {}  # number of a predictor -> share of ones
        for name, share in (binary or {}).items():
            if name not in names:
                raise DpmcError(f"{who}: binary: {shown(name)} must be one of the predictors {names}")
            if positive_number(share, f"{who}: binary: {name}") >= 1.0:
                raise DpmcError(f"{who}: binary: {name}: {shown(share)} must be a share of ones below 1")
            self.binary[names.index(name)] = float(share)

    @property
    def predictors(self) -> list[str] | dict[str, tuple[float, float]] | dict[str, Any]:
        """Return the predictors, with centre and scale unless all are by default 0 and 1, or the codebook's.

        Without a codebook those that are numbers.
        """
        pairs = zip(self.columns, self.centre.tolist(), self.scale.tolist(), strict=False)
        given = {name: (centre, scale) for name, centre, scale in pairs}
        if self.codebook is None:
            return list(given) if set(given.values()) <= {(0.0, 1.0)} else given
        said = self.codebook.design(self._predicting)["predictors"]
        own = {name: None if given.get(name) == said.get(name) else given[name] for name in self._predicting}
        return own if any(own.values()) else list(own)

    @property
    def options(self) -> dict[str, tuple[Any, Any]]:
        """Return the other arguments by name, each with its default."""
        shift = {} if self.shift is None else self.shift.given
        always: dict[str, tuple[Any, Any]] = {
            **{"intercept": (self.intercept, True), "norm": (self.norm, None)},
            **{name: (column, None) for name, column in shift.items()},
            "weights": (self.weights, {}),
        }
        if self.codebook is not None:
            return always
        levels: dict[str, Any] = {}
        for name, known in self.coding.levels.items():
            shares = self.shares[name]
            equal = len(set(shares)) == 1
            levels[name] = list(known) if equal else dict(zip(known, shares, strict=True))
        return {
            **always,
            "binary": ({self.columns[i]: share for i, share in self.binary.items()}, {}),
            "levels": (levels, {}),
            "fills": (dict(self.coding.fills), {}),
        }

    @property
    def indicators(self) -> np.ndarray:
        """Return which coefficients (p,) are of columns that have but two values."""
        return np.array([*[False] * self.intercept, *self._indicators()])

    def _indicators(self) -> list[bool]:
        numbers = [i in self.binary for i in range(len(self.centre))]
        return numbers + [True] * (self.standard.shape[1] - len(numbers))  # levels

    @property
    def largest_weight(self) -> float:
        """Return the public maximum of weights; 1 without weights."""
        return next(iter(self.weights.values()), 1.0)

    @property
    def usual_weight(self) -> float:
        """Return a guess of the mean weight, between 1 and the maximum on a scale of logarithms."""
        return self.largest_weight / np.sqrt(max(1.0, self.largest_weight))

    def offset(self, rows: Any) -> np.ndarray | float:
        """Return the offsets (n,) of rows, as for `design(rows)`; 0 without an offset."""
        return 0.0 if self.shift is None else self.shift.at(self._numbers(rows)[:, self._offset_place])

    @property
    def offset_removed(self) -> float:
        """Return what centring takes from offsets, in the table's units."""
        if self.shift is None:
            return 0.0
        return float(np.log(self.shift.centre)) if self.shift.is_exposure else self.shift.centre

    @property
    def _offset_place(self) -> int:
        return len(self.columns) - len(self.weights) - 1

    def weight(self, rows: np.ndarray) -> np.ndarray | float:
        """Return the weights (n,) of rows of an array, within 0 and the maximum whatever they are; or 1."""
        if not self.weights:
            return 1.0
        weight = self._numbers(rows)[:, -1]
        return np.where(weight > 0.0, np.minimum(weight, self.largest_weight), 0.0)

    def __call__(self, rows: Any) -> np.ndarray:
        """Return z (n, coefficients) of rows.

        Rows are an array (n, 1 + columns), or without the outcome (n, columns); or a table with names, or a
        mapping of columns, with the predictors and the offset by name.
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
        """Return predictors (n, columns) as numbers, of a table without the weight.

        Raises DpmcError for a table that lacks some.
        """
        names = self.columns
        if isinstance(rows, np.ndarray):
            if rows.ndim != 2 or rows.shape[1] not in (len(names), 1 + len(names)):
                raise DpmcError(f"rows: shape {rows.shape} must be (n, {len(names)}), predictors {names}")
            return rows[:, rows.shape[1] - len(names) :]
        names = names[: len(names) - len(self.weights)]
        where = f"rows: {type(rows).__name__}"
        if isinstance(rows, str | Path) or not hasattr(rows, "__getitem__"):
            raise DpmcError(
                f"{where}: must be an array, or a table in memory with columns {', '.join(names)}"
            )
        table = table_of(rows, where)
        return table.rows(table.chosen(names), self.coding, np.ones(table.shape[0], bool))

    def new_rows(self, rows: Any, who: str) -> np.ndarray:
        """Return predictors (m, columns) of new rows; raise DpmcError for what a table may not have.

        A table needs no weights.
        """
        x = self._numbers(rows)
        where = f"rows: {type(rows).__name__}"
        if x.dtype.kind not in "fiub":
            raise DpmcError(f"{where}: {x.dtype} must be numbers")
        x = x.astype(float)
        for row, i in np.argwhere(~np.isfinite(x))[:1]:
            raise DpmcError(f"{where}: row {row + 1}, column {self.columns[i]}: is NaN or infinite")
        x = np.pad(x, ((0, 0), (0, len(self.columns) - x.shape[1])))
        refuse_first(self.faults(x, who))
        return x

    def faults(self, x: np.ndarray, who: str) -> Iterator[Fault]:
        """Yield the entries of x (n, columns) that no category, exposure or weight can be."""
        for i, (name, known) in enumerate(self.coding.levels.items(), len(self.centre)):
            wrong = ~np.isin(x[:, i], range(len(known)))
            rule = f"the place of a level of {name}, 0 to {len(known) - 1}"
            yield Fault(x[:, i], wrong, f"{who}: predictor {name}", rule)
        if self.shift is not None:
            entries, (key,) = x[:, self._offset_place], self.shift.given
            rule = "a number greater than 0" if self.shift.is_exposure else "a number"
            yield Fault(
                entries, ~np.isfinite(self.shift.at(entries)), f"{who}: {key} {self.shift.name}", rule
            )
        for name, most in self.weights.items():
            rule = f"from 0 to {most:g}, the maximum"
            yield Fault(x[:, -1], ~((x[:, -1] >= 0.0) & (x[:, -1] <= most)), f"{who}: weights {name}", rule)

    def simulate(self, generator: np.random.Generator, n: int) -> np.ndarray:
        """Draw predictors (n, columns) that are normal with the given scales, as the codebook, or 0 and 1.

        Categories have their levels with the given shares, independently of the other predictors. Offsets
        and exposures have their centre and scale, weights are 1 or their maximum if that is less.
        """
        k = len(self.centre)
        normal = generator.standard_normal((n, len(self.columns)))
        x = normal.copy()
        x[:, :k] = self.centre + self.scale * normal[:, :k]
        for i, field in enumerate(map(self.codebook.field, self.columns[:k]) if self.codebook else ()):
            x[:, i] = field.drawn(normal[:, i], (self.centre[i], self.scale[i]))
        for i, share in self.binary.items():
            # From the same normal numbers, so that a binary predictor leaves the others as they were.
            x[:, i] = normal[:, i] < NormalDist().inv_cdf(share)
        for i, shares in enumerate(self.shares.values(), k):
            edges = [NormalDist().inv_cdf(share) for share in np.cumsum(shares)[:-1]]
            x[:, i] = np.searchsorted(edges, normal[:, i])
        if self.shift is not None:
            x[:, self._offset_place] = self.shift.drawn(normal[:, self._offset_place])
        if self.weights:
            x[:, -1] = min(1.0, self.largest_weight)
        return x


def refuse_first(faults: Iterable[Fault]) -> None:
    """Raise DpmcError for the first wrong entry of the first column that has one."""
    for column, wrong, where, rule in faults:
        for row in np.flatnonzero(wrong)[:1]:
            raise DpmcError(f"{where}: {column[row]:g} in row {row + 1} must be {rule}")


def names_of(columns: Columns, where: str) -> tuple[str, ...]:
    """Return the names of columns; raise DpmcError for what are no different names."""
    names: tuple[Any, ...] = tuple(columns) if hasattr(columns, "__iter__") else (columns,)
    if isinstance(columns, str) or not all(isinstance(name, str) for name in names):
        raise DpmcError(f"{where}: {shown(columns)} must be a list of names, or {{name: (centre, scale)}}")
    if len(set(names)) != len(names):
        raise DpmcError(f"{where}: {shown(columns)} must be different names")
    return names


def standardised(columns: Columns, where: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return names, centres (k,) and scales (k,) of columns; default 0 and 1."""
    names = names_of(columns, where)
    table = np.tile([0.0, 1.0], (len(names), 1))
    for i, (name, pair) in enumerate(columns.items() if isinstance(columns, Mapping) else ()):
        if pair is None or not hasattr(pair, "__len__") or isinstance(pair, str) or len(pair) != 2:
            raise DpmcError(f"{where}: {name}: {shown(pair)} must be (centre, scale)")
        table[i] = array(pair, (2,), f"{where}: {name}")
        positive_number(table[i, 1], f"{where}: {name}: scale")
    return names, table[:, 0], table[:, 1]


def _weights(given: Any, book: Codebook | None, who: str) -> dict[str, float]:
    """Return the column of weights with its maximum, {} for none; raise DpmcError for another argument."""
    if not given:
        return {}
    if isinstance(given, str) and book and (most := number_of(book, given).constraints.maximum) is not None:
        given = {given: most}
    if not isinstance(given, Mapping) or len(given) > 1 or not isinstance(name := next(iter(given)), str):
        raise DpmcError(f"{who}: weights: {shown(given)} must be {{name: largest weight}}, which is public")
    return {name: positive_number(given[name], f"{who}: weights: {name}")}


def number_of(book: Codebook, name: str) -> Field:
    """Return the field of a number; raise DpmcError for another one."""
    if (field := book.field(name)).type not in ("number", "integer"):
        raise DpmcError(f"codebook: {name}: type {field.type} must be number or integer")
    return field


def _scaled_by(predictors: Columns, said: dict[str, Any], who: str) -> dict[str, Any]:
    """Return the pairs of a codebook, with those that are given in their place; None is its own."""
    given = {same_name(k): v for k, v in predictors.items()} if isinstance(predictors, Mapping) else {}
    for name in [name for name, pair in given.items() if pair is not None and name not in said]:
        raise DpmcError(f"{who}: predictors: {name}: is a category in the codebook: {{{name!r}: None}}")
    pairs = {name: pair if given.get(name) is None else given[name] for name, pair in said.items()}
    for name in [name for name, pair in pairs.items() if pair is None]:
        raise DpmcError(f"codebook: {name}: needs centre and scale, or minimum and maximum")
    return pairs


def _coded(
    names: tuple[str, ...], levels: Levels, fills: Mapping[str, Any], who: str, others: tuple[str, ...] = ()
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
        if name not in (*names, *known, *others):
            raise DpmcError(f"{where}: must be one of the predictors {(*names, *known, *others)}")
        if name in known and text_of(value) not in known[name]:
            raise DpmcError(f"{where}: {shown(value)} must be one of the levels {known[name]}")
        filled[name] = text_of(value) if name in known else float(array([value], (1,), where)[0])
    return shares, Coding.of(known, filled)
