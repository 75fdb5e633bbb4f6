"""Integer sums for releases: a row's clipped value in units of bound/m, rounded towards zero and clamped.

A row's integer is a function of that row and of public numbers alone, so that replacing one row changes a sum
by at most 2m, exactly. Models with statistics are computed elementwise, column after column. All others are
called with blocks of one shape at one address, because the rounding of `rows @ theta` may depend on both.

What cannot be computed has a public rule. A row counts as 0 in every sum if an entry is missing, not finite
or beyond 1e150, if the model's `check_rows` refuses it, or if its statistics are not finite. A log ratio that
is not a number, or whose computation fails, counts as −m. Such a gradient counts as 0, and so do the
numbers of a question. If a block fails, its halves are computed, beside copies of one of their rows,
down to blocks of copies of one row; each has the same rounding.
"""

import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from dpmc.base import AffineModel, GradientModel, Model, Question, SoftplusModel
from dpmc.evaluators import calls
from dpmc.evaluators.generic import Evaluator, Sums

ROWS_OF_CALL = 512  #: rows of one call of a model; 1 if a row's values depend on the others (`block_size`)
SMALLEST_UNIT = 1e-280  #: below it a unit counts as 0, and a tempered one has no noise (`secure_noise`)
LARGEST_SCALE = 2.0**52  #: of noise, in units: integers up to it are exact as floats
LEAST_SCALE = 2.0**30  #: of the noise in units, and at least `PER_ROW` times n
#: Rounding towards zero biases a sum by at most half a unit per row: less than a thousandth of the noise.
PER_ROW = 1000.0
MOST_UNITS = 2**31 - 1  #: m; so that squares of integers, and sums over up to 10^9 rows, fit 64 bits
LARGEST_ESTIMATE = 2.0**58  #: of a batch, in units; beyond it a proposal is rejected without reading rows
SCALES = (1.0, 10.0, 100.0, 1000.0)  #: multiples of positions at which a model is tried
COMPANION_FACTORS = (0.0, 2.0, -1e3, 1e100)  #: multiples of a row beside which a model is tried
#: Gradients are clipped to this part less than their bound, so that rounding cannot exceed it.
MARGIN = 2.0**-30

RowFunction = Callable[[np.ndarray], np.ndarray]  # rows (m, columns) -> (m, …)
Usable = tuple[np.ndarray, np.ndarray]  #: values of rows, and which rows count


class Lattice(NamedTuple):
    """The number m of units in a clip bound, at most 2^31 − 1: of log ratios; of gradients."""

    ratio: int
    gradient: int


def scale_of(multiplier: float, n: int) -> float:
    """Return the least scale of the noise of a query in units; a row has `MOST_UNITS` at most."""
    return min(max(LEAST_SCALE, PER_ROW * n), 2.0 * MOST_UNITS * multiplier)


class LatticeEvaluator(Evaluator):
    """Integer sums over the rows (n, columns); batches are drawn with secret numbers, `words` are not read.

    Counts of clipped rows are 0: no release may show them.
    """

    name = "lattice"

    def __init__(self, model: Model, rows: np.ndarray, lattice: Lattice) -> None:
        rows = np.array(rows, dtype=float, order="C")
        self._usable = usable_rows(model, rows)
        rows[~self._usable] = 0.0
        super().__init__(model, rows)
        self._lattice = lattice
        statistics = hasattr(model, "statistics")
        self._affine = statistics and hasattr(model, "ratio_form") and hasattr(model, "gradient_form")
        self._softplus = statistics and hasattr(model, "line") and hasattr(model, "link")
        self._size = block_size(model, rows.shape[1])

    def unit_of_ratios(self, bound: np.ndarray) -> np.ndarray:
        """Return bound/m (chains,): 0 if it underflows, NaN if the bound is not finite."""
        unit = np.where(np.isfinite(bound), bound, np.nan) / self._lattice.ratio
        return np.where(unit < SMALLEST_UNIT, 0.0, unit)

    def unit_of_gradients(self, bound: float) -> float:
        """Return bound/m; 0 if it underflows."""
        unit = bound / self._lattice.gradient
        return unit if unit > SMALLEST_UNIT else 0.0

    def ratio_sums(self, theta: np.ndarray, proposal: np.ndarray, bound: np.ndarray) -> Sums:
        sums, none = np.zeros(len(theta), np.int64), np.zeros(len(theta), np.int64)
        for c, unit in enumerate(self.unit_of_ratios(bound)):
            if unit > 0.0:
                sums[c] = self.ratio_integers(theta[c], proposal[c], unit).sum()
        return sums, none

    def gradient_sums(self, theta: np.ndarray, bound: float) -> Sums:
        sums = np.zeros(theta.shape, np.int64)
        for c in range(len(theta)):
            sums[c] = self.gradient_integers(theta[c], bound).sum(axis=0)
        return sums, np.zeros(len(theta), np.int64)

    def answer_sums(self, questions: Sequence[Question]) -> tuple[np.ndarray, float, float]:
        """Return Σ_j of integers (runs, N), in parts, which bound the memory, the unit and the rounding.

        A row's numbers are rounded towards zero, each by less than a unit. Of two rows the roundings differ
        by less than two units, and √N times that in norm.
        """
        scale = scale_of(1.0 / questions[0].sensitivity, self.n)
        totals = np.zeros((len(questions), questions[0].size), np.int64)
        for total, question in zip(totals, questions, strict=True):
            for i in range(0, self.n, calls.MOST_ROWS):
                part = np.arange(i, min(i + calls.MOST_ROWS, self.n))
                total += self.question_integers(question, part).sum(axis=0)
        # Numbers are floats, off by far less than a hundredth of a unit.
        return totals, 1.0 / scale, 2.01 * math.sqrt(questions[0].size) / scale

    def question_integers(self, question: Question, chosen: np.ndarray | None = None) -> np.ndarray:
        """Return the integers (n, N) of all rows' numbers, or (b, N) of rows `chosen`; 0 of unusable rows."""
        scale = scale_of(1.0 / question.sensitivity, self.n)
        numbers, usable = self._by_blocks(question.of_rows, chosen, (question.size,))
        usable = usable & np.isfinite(numbers).all(axis=1)
        return np.trunc(np.where(usable[:, None], numbers, 0.0) * scale).astype(np.int64)

    def batch_ratio_sums(
        self, theta: np.ndarray, proposal: np.ndarray, bound: np.ndarray, words: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Σk (chains,), bΣk² − (Σk)² (chains,) as Python's integers, and zeros."""
        (chains, b), none = words.shape, np.zeros(len(theta), np.int64)
        sums, squares = none.copy(), np.array([0] * chains, object)
        for c, unit in enumerate(self.unit_of_ratios(bound)):
            if unit > 0.0:
                k = self.ratio_integers(theta[c], proposal[c], unit, draw_batch(self.n, b))
                sums[c] = k.sum()
                squares[c] = b * sum_of_squares(k) - int(sums[c]) ** 2
        return sums, squares, none

    def batch_gradient_sums(self, theta: np.ndarray, bound: float, words: np.ndarray) -> Sums:
        sums = np.zeros(theta.shape, np.int64)
        for c in range(len(theta)):
            chosen = draw_batch(self.n, words.shape[1])
            sums[c] = self.gradient_integers(theta[c], bound, chosen).sum(axis=0)
        return sums, np.zeros(len(theta), np.int64)

    def exact_estimate(
        self, total: np.ndarray, squares: np.ndarray, scale: float, size: int, bound: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Σk − (ρ/(2bm))(bΣk² − (Σk)²), rounded, in units of scale · bound/m; ρ = scale · bound.

        All are (chains,). It is computed in integers, so that it is off by at most ½; two units more than the
        sensitivity of the unrounded number cover that of the rounded one. The unit is NaN if the estimate
        might overflow.
        """
        m, unit = self._lattice.ratio, scale * self.unit_of_ratios(bound)
        estimate, reach = np.zeros(len(total), np.int64), scale * bound
        unit = np.where(reach * size * m < LARGEST_ESTIMATE, unit, np.nan)
        for c in np.flatnonzero(unit > 0.0):
            numerator, denominator = float(reach[c]).as_integer_ratio()
            numerator, denominator = numerator * squares[c], denominator * 2 * size * m
            estimate[c] = int(total[c]) - (2 * numerator + denominator) // (2 * denominator)
        return estimate, unit, 2.0 * unit

    def barker_sd(self, squares: np.ndarray, size: int, clip_factor: float) -> np.ndarray:
        """Return S (chains,), S² = 2bm²/f² − (bΣk² − (Σk)²)/b: √(2 − s²) in units of f/(√b m).

        f is `clip_factor`, b is `size`. S² is a fraction of integers, so that S is off by two roundings only.
        Σk² ≤ bm² and f ≤ 1, so that S² ≥ bm² for any rows. NaN if S might be beyond 2^52.
        """
        p, q = float(clip_factor).as_integer_ratio()
        constant, p2 = 2 * (size * self._lattice.ratio * q) ** 2, p * p  # S² = (constant − p² …)/(bp²)
        if constant > LARGEST_SCALE**2 * size * p2:
            return np.full(len(squares), np.nan)
        return np.array([math.sqrt((constant - p2 * int(square)) / (size * p2)) for square in squares])

    def ratio_integers(
        self, theta: np.ndarray, proposal: np.ndarray, unit: float, chosen: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the integers (n,) of all rows at a move θ, θ' (d,), or (b,) of rows `chosen` (b,)."""
        ratio, usable = self._row_ratios(theta, proposal, chosen)
        m = self._lattice.ratio
        k = np.trunc(np.clip(ratio / unit, -m, m))
        return np.where(usable, np.where(np.isnan(ratio), -m, k), 0.0).astype(np.int64)

    def gradient_integers(
        self, theta: np.ndarray, bound: float, chosen: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the integers (n, d) of all rows at θ (d,), or (b, d) of rows `chosen`; Σ_i k_i² ≤ m²."""
        if not self.unit_of_gradients(bound) > SMALLEST_UNIT:  # the noise source answers with NaN
            return np.zeros((self.n if chosen is None else len(chosen), len(theta)), np.int64)
        gradient, usable = self._row_gradients(theta, chosen)
        return clipped_integers(gradient, usable, bound, self._lattice.gradient)

    def _row_ratios(self, theta: np.ndarray, proposal: np.ndarray, chosen: np.ndarray | None) -> Usable:
        """Return log ratios and which rows count, (n,) or (b,)."""
        if self._affine:
            slopes, offsets = cast(AffineModel, self._model).ratio_form(theta[None], proposal[None])
            table, usable = self._chosen_table(np.shape(slopes)[1], chosen)
            return column_sum(table, slopes[0], offsets[0]), usable
        if not self._softplus:
            called = functools.partial(functools.partial, calls.log_likelihood, self._model)
            (before, usable), (after, _) = (self._by_blocks(called(at), chosen) for at in (theta, proposal))
            return after - before, usable
        model = cast(SoftplusModel, self._model)
        (old, old_at), (new, new_at) = model.line(theta[None]), model.line(proposal[None])
        (before, before_at), (after, after_at) = model.link(theta[None]), model.link(proposal[None])
        table, usable = self._chosen_table(np.shape(old)[1], chosen)
        line = column_sum(table, new[0] - old[0], new_at[0] - old_at[0])
        bend = np.logaddexp(0.0, column_sum(table, after[0], after_at[0]))
        bend = bend - np.logaddexp(0.0, column_sum(table, before[0], before_at[0]))
        return line + float(model.sign) * bend, usable

    def _row_gradients(self, theta: np.ndarray, chosen: np.ndarray | None) -> Usable:
        """Return gradients (n, d) or (b, d), and which rows count."""
        if not self._affine:
            method = functools.partial(calls.log_likelihood_gradient, cast(GradientModel, self._model), theta)
            return self._by_blocks(method, chosen, (len(theta),))
        linear, constant = cast(AffineModel, self._model).gradient_form(theta[None])
        table, usable = self._chosen_table(np.shape(linear)[2], chosen)
        parts = [column_sum(table, linear[0, i], constant[0, i]) for i in range(len(theta))]
        return np.stack(parts, axis=1), usable

    def _chosen_table(self, k: int, chosen: np.ndarray | None) -> Usable:
        table, usable = self._table_of(k)
        return (table, usable) if chosen is None else (table[:, chosen], usable[chosen])

    @functools.cache  # noqa: B019 - one k a model, and the evaluator lives as long as the run
    def _table_of(self, k: int) -> Usable:
        """Return statistics (k, n) and which rows count (n,)."""
        model = cast(AffineModel, self._model)
        values, usable = self._by_blocks(functools.partial(calls.statistics, model), None, (k,))
        usable = usable & np.isfinite(values).all(axis=1)
        return np.ascontiguousarray(np.where(usable[:, None], values, 0.0).T), usable

    def _by_blocks(
        self, method: Callable[..., np.ndarray], chosen: np.ndarray | None, shape: tuple[int, ...] = ()
    ) -> Usable:
        """Return values (n, *shape) of all rows or those chosen, NaN where the method fails; and usable."""
        rows = self._rows if chosen is None else self._rows[chosen]
        values = np.full((len(rows), *shape), np.nan)
        block = np.empty((self._size, rows.shape[1]))
        for i in range(0, len(rows), self._size):
            part = rows[i : i + self._size]
            values[i : i + self._size] = in_block(method, part, block, shape)
        return values, self._usable if chosen is None else self._usable[chosen]


def in_block(method: RowFunction, rows: np.ndarray, block: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a method's values of rows (m, columns), computed in `block` (at least m, columns).

    Each row is at its place in the block, and the other places have copies of the last row. If the method
    fails, halves of the rows are computed in the same way; a row with which it fails alone has the value NaN.
    """
    values, parts = np.full((len(rows), *shape), np.nan), [slice(0, len(rows))]
    while parts:
        part = parts.pop()
        block[:] = rows[part.stop - 1]
        block[part] = rows[part]
        found = attempted(method, block, shape)
        if found is not None:
            values[part] = found[part]
        elif (half := (part.start + part.stop) // 2) > part.start:
            parts += [slice(part.start, half), slice(half, part.stop)]
    return values


def attempted(
    method: RowFunction, block: np.ndarray, shape: tuple[int, ...] | None = None
) -> np.ndarray | None:
    """Return a method's values of a block, None if it raises or a row's value has another shape."""
    rows = block.view()
    rows.flags.writeable = False
    try:
        with calls.without_warnings():  # undone afterwards, whatever the method made of warnings and errors
            values = method(rows)
    except (Exception, SystemExit):  # a user's code may raise anything, and if so may depend on the rows
        return None
    return np.array(values) if shape is None or np.shape(values) == (len(block), *shape) else None


def column_sum(table: np.ndarray, weights: np.ndarray, start: float | np.ndarray = 0.0) -> np.ndarray:
    """Return start + Σ_q weights_q table_q (n,) of a table (k, n), column after column.

    Products and sums of elements are rounded one by one, so that a row's result does not depend on its place.
    """
    total = np.full(table.shape[1], start)
    for column, weight in zip(table, weights, strict=True):
        total = total + column * weight
    return total


def draw_batch(n: int, size: int) -> np.ndarray:
    """Return `size` different numbers below n (size,), from the operating system's entropy.

    Words are cut to the bits of n − 1 and those of n or more are drawn again, so that all batches are equally
    likely. Of more than half of all rows, those that are left out are drawn.
    """
    if 2 * size > n:
        kept = np.ones(n, np.bool_)
        kept[draw_batch(n, n - size)] = False
        return np.flatnonzero(kept)
    mask, chosen = np.uint64((1 << (n - 1).bit_length()) - 1), np.empty(0, np.int64)
    while len(chosen) < size:
        words = np.frombuffer(os.urandom(8 * (2 * size + 8)), np.uint64) & mask
        drawn = np.concatenate([chosen, words[words < n].astype(np.int64)])
        _, first = np.unique(drawn, return_index=True)
        chosen = drawn[np.sort(first)][:size]
    return chosen


def sum_of_squares(k: np.ndarray) -> int:
    """Return Σk² exactly, for integers (b,), |k| < 2^31.5, fewer than 2^31 of them."""
    squares = k * k
    return (int((squares >> 31).sum()) << 31) + int((squares & (2**31 - 1)).sum())


def clipped_integers(vectors: np.ndarray, usable: np.ndarray, bound: float, m: int) -> np.ndarray:
    """Return integers (n, d) of rows' vectors, clipped to norm `bound`, in units of bound/m; Σ_i k_i² ≤ m².

    A row that is not usable (n,), and one whose norm is not finite, has zeros.
    """
    square = column_sum(vectors.T, vectors.T)
    usable = usable & np.isfinite(square)
    norm, most = np.sqrt(square), (1.0 - MARGIN) * bound
    factor = np.where(norm > most, most / np.where(norm > most, norm, 1.0), 1.0)
    scaled = vectors * (factor / (bound / m))[:, None]
    return within_norm(np.trunc(np.where(usable[:, None], scaled, 0.0)), m)


def within_norm(k: np.ndarray, m: int) -> np.ndarray:
    """Return k (n, d), whole numbers, as integers, shrunk towards 0 where Σ_i k_i² > m².

    The squares of a row are first added as floats. They are off by less than one part in 10^12 for 1000
    components, so only rows within 10^-10 of m² or beyond are checked in Python's integers.
    """
    integers = k.astype(np.int64)
    square = column_sum(k.T, k.T)
    for j in np.flatnonzero(~(square <= m * m * (1.0 - 1e-10))):
        while sum(int(value) ** 2 for value in integers[j]) > m * m:
            integers[j] -= np.sign(integers[j])
    return integers


def usable_rows(model: Model, rows: np.ndarray) -> np.ndarray:
    """Return which rows (n,) have finite entries up to `LARGEST_VALUE` and pass the model's `check_rows`.

    Each row is checked alone, because a check of all rows might depend on the others; not so the check of a
    regression of this package.
    """
    given: Any = getattr(model, "given", model)
    with calls.without_warnings():
        usable: np.ndarray = (np.abs(rows) <= calls.LARGEST_VALUE).all(axis=1)  # NaN is not
        if type(given).__module__ == "dpmc.models.regression":
            for i in range(0, len(rows), calls.MOST_ROWS):  # terms of a formula are many
                usable[i : i + calls.MOST_ROWS] &= given.allowed_rows(rows[i : i + calls.MOST_ROWS])
            return usable
        check = getattr(model, "check_rows", None)
        for j in np.flatnonzero(usable) if check is not None else ():
            row = rows[j : j + 1].copy()
            try:
                with calls.without_warnings():
                    cast(Callable[[np.ndarray], Any], check)(row)
            except (Exception, SystemExit):
                usable[j] = False
    return usable


def block_size(model: Model, columns: int) -> int:
    """Return how many rows a model is called with: `ROWS_OF_CALL`, or 1 if its block changes a row's values.

    Found on public rows at two public positions and at larger multiples of them (`keeps_to_itself`). A model
    that fails at the two positions is called with single rows, too. A dependence that shows elsewhere alone
    is not found.
    """
    generator = np.random.default_rng(0)
    theta = 0.5 * generator.standard_normal((2, int(model.dimension)))
    methods: list[tuple[RowFunction, bool]] = []  # and whether it may fail
    offers = functools.partial(calls.offers, model)
    for name in ("log_likelihood", "log_likelihood_gradient"):
        if offers(name):
            called = functools.partial(functools.partial, getattr(model, name))
            methods += [(called(scale * at), scale > 1.0) for scale in SCALES for at in theta]
    methods += [(getattr(model, name), False) for name in ("statistics", "summaries") if offers(name)]
    with calls.without_warnings():
        try:
            rows = np.abs(generator.standard_normal((ROWS_OF_CALL, columns)))
            if hasattr(model, "simulate"):
                rows = np.array(model.simulate(generator, theta[0], ROWS_OF_CALL), dtype=float)
            order = generator.permutation(ROWS_OF_CALL)
            alike = all(keeps_to_itself(method, rows, order, may_fail) for method, may_fail in methods)
        except Exception:  # of a user's code, on rows unlike any that it expects
            return 1
    return ROWS_OF_CALL if alike else 1


def keeps_to_itself(method: RowFunction, rows: np.ndarray, order: np.ndarray, may_fail: bool) -> bool:
    """Return whether a method's value of a row (m, columns) has equal bits whatever the other rows are.

    The others are in another order; or the first is 0 or an outlier; or all are copies of one row. A method
    may fail at an outlier, where `in_block` calls it with copies.
    """
    straight, everywhere = attempted(method, rows), np.arange(len(rows))
    if straight is None:
        return may_fail
    cases = [(rows[order], everywhere, order, False)]  # rows, places to compare, where they were before
    for factor in COMPANION_FACTORS:
        changed = rows.copy()
        changed[0] = factor * rows[1]
        cases.append((changed, everywhere[1:], everywhere[1:], True))
    for j in everywhere[:: len(rows) // 4]:
        cases.append((np.tile(rows[j], (len(rows), 1)), everywhere[j : j + 1], everywhere[j : j + 1], False))
    for other, places, before, fails in cases:
        found = attempted(method, other)
        if found is None and fails:
            continue
        if found is None or not np.array_equal(straight[before], found[places], equal_nan=True):
            return False
    return True
