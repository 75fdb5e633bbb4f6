"""Integer sums: a row's integer is its own, and one row moves a sum by at most 2m, exactly."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmc
from dpmc.evaluators.generic import Evaluator
from dpmc.evaluators.lattice import (
    ROWS_OF_CALL,
    Lattice,
    LatticeEvaluator,
    block_size,
    draw_batch,
    in_block,
    scale_of,
    sum_of_squares,
    usable_rows,
    within_norm,
)
from dpmc.models import definition
from dpmc.models.own import given_model
from dpmc.privacy.questions import SumQuestion

M = Lattice(ratio=1000, gradient=700)
FINE = Lattice(ratio=2**31 - 1, gradient=2**31 - 1)
ODD = [np.nan, np.inf, -np.inf, 1e150, -1e150, 1e300, 5e-324, 0.0, -0.0]


class Fussy:
    """A model of one's own that raises an error for a block with a negative entry."""

    dimension, summary_count = 2, 3

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if (rows < -1.0).any():
            raise ValueError("a row is negative")
        return -0.5 * ((rows[:, :2] - theta) ** 2).sum(axis=1)

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        if (rows < -1.0).any():
            raise ValueError("a row is negative")
        return rows[:, [0, 1, 0]]

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if (rows < -1.0).any():
            raise ValueError("a row is negative")
        return rows[:, :2] - theta


MODELS: dict[str, tuple[Any, int]] = {
    "affine": (dpmc.LinearRegression("y", ["a", "b"]), 3),
    "softplus": (dpmc.LogisticRegression("y", ["a", "b"]), 3),
    "generic": (dpmc.PoissonRegression("y", list("abcdefghijkl")), 13),
    "own": (Fussy(), 2),
    "banana": (definition("paper-banana").model, 2),
    "normal": (dpmc.LinearRegression("y", [], sd=None), 1),
}
SUMMED = [name for name, (model, _) in MODELS.items() if hasattr(model, "summary_count")]


def accepted(name: str, rows: np.ndarray) -> np.ndarray:
    """Return rows with outcomes that the model accepts: 0 or 1, counts, or any numbers."""
    outcomes = {"softplus": lambda y: y > 0.5, "generic": lambda y: np.floor(np.abs(y))}
    if name in outcomes:
        rows[:, 0] = outcomes[name](rows[:, 0])
    return rows


def position(model: Any, seed: int) -> np.ndarray:
    return 0.3 * np.random.default_rng(seed).standard_normal(model.dimension)


def integers(name: str, rows: np.ndarray, lattice: Lattice = M) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers of log ratios (n,) and gradients (n, d) of rows, at a fixed move."""
    model = MODELS[name][0]
    evaluator = LatticeEvaluator(model, rows, lattice)
    theta, proposal = position(model, 1), position(model, 2)
    with np.errstate(all="ignore"):
        unit = float(evaluator.unit_of_ratios(np.array([0.8]))[0])
        return evaluator.ratio_integers(theta, proposal, unit), evaluator.gradient_integers(theta, 1.5)


def summary_integers(name: str, rows: np.ndarray) -> np.ndarray:
    """Return the integers of summaries (n, k) of rows, at a fixed centre; of a model without any, zeros."""
    model = MODELS[name][0]
    if name not in SUMMED:
        return np.zeros((len(rows), 1), int)
    with np.errstate(all="ignore"):
        centre = np.linspace(-0.2, 0.4, model.summary_count)
        return LatticeEvaluator(model, rows, M).question_integers(SumQuestion(model, centre, 1.5, 1.0))


@st.composite
def neighbours(draw: Any) -> tuple[str, np.ndarray, int, np.ndarray, np.ndarray]:
    """Draw a model, rows some of which are odd, the place of one, what replaces it, and an order."""
    name = draw(st.sampled_from(sorted(MODELS)))
    n = draw(st.sampled_from([1, 2, 7, 511, 513, 700]))
    rows = np.random.default_rng(draw(st.integers(0, 99))).standard_normal((n, MODELS[name][1]))
    rows = accepted(name, rows)
    value = st.floats(-3.0, 3.0) | st.sampled_from(ODD)
    for _ in range(draw(st.integers(0, 3))):
        rows[draw(st.integers(0, n - 1)), draw(st.integers(0, rows.shape[1] - 1))] = draw(value)
    new = np.array(draw(st.lists(value, min_size=rows.shape[1], max_size=rows.shape[1])))
    order = np.random.default_rng(draw(st.integers(0, 99))).permutation(n)
    return name, rows, draw(st.integers(0, n - 1)), new, order


@settings(max_examples=60, deadline=None)
@given(neighbours())
def test_a_row_changes_no_other_integer_and_its_own_within_its_bound(case: Any) -> None:
    name, rows, j, new, order = case
    replaced = rows.copy()
    replaced[j] = new
    found = [(*integers(name, its), summary_integers(name, its)) for its in (rows, replaced, replaced[order])]
    for before, after, turned, m in zip(*found, (*M, int(scale_of(1.0, len(rows))) // 2), strict=True):
        others = np.arange(len(rows)) != j
        np.testing.assert_array_equal(before[others], after[others])
        np.testing.assert_array_equal(after[order], turned)
        for k in (before, after):
            squares = [sum(int(part) ** 2 for part in row) for row in k.reshape(len(k), -1)]
            assert max(squares) <= m * m
        change = before.sum(axis=0) - after.sum(axis=0)
        assert sum(int(part) ** 2 for part in np.atleast_1d(change)) <= (2 * m) ** 2


@pytest.mark.parametrize("name", MODELS)
def test_a_row_has_the_same_integer_in_a_batch_and_alone(name: str) -> None:
    generator = np.random.default_rng(3)
    rows = accepted(name, np.abs(generator.standard_normal((1300, MODELS[name][1]))))
    evaluator = LatticeEvaluator(MODELS[name][0], rows, FINE)
    theta, proposal = position(MODELS[name][0], 1), position(MODELS[name][0], 2)
    unit = float(evaluator.unit_of_ratios(np.array([0.8]))[0])
    whole = evaluator.ratio_integers(theta, proposal, unit), evaluator.gradient_integers(theta, 1.5)
    assert all(part.any() for part in whole)
    for chosen in (draw_batch(1300, 100), draw_batch(1300, 900), np.array([5]), np.array([600, 599])):
        ratio = evaluator.ratio_integers(theta, proposal, unit, chosen)
        np.testing.assert_array_equal(ratio, whole[0][chosen])
        np.testing.assert_array_equal(evaluator.gradient_integers(theta, 1.5, chosen), whole[1][chosen])


@pytest.mark.parametrize("name", SUMMED)
def test_sums_of_summaries_are_those_of_the_lab_up_to_rounding(name: str) -> None:
    """Of more rows than one part has; those that cannot be used count as the centre."""
    model, columns = MODELS[name]
    rows = accepted(name, np.abs(np.random.default_rng(5).standard_normal((17_000, columns))))
    rows[[3, 16_900], 0] = np.nan
    centre = np.linspace(-0.2, 0.4, model.summary_count)
    evaluator = LatticeEvaluator(model, rows, FINE)
    question = SumQuestion(model, centre, 1.5, 1.0)
    ((found,), unit, _), integers = evaluator.answer_sums([question]), evaluator.question_integers(question)
    usable = integers.any(axis=1)
    np.testing.assert_array_equal(found, integers.sum(axis=0))
    assert not usable[3] and not usable[16_900] and usable.mean() > 0.9
    with np.errstate(all="ignore"):
        ((wanted,), _, _) = Evaluator(model, rows[usable]).answer_sums([question])
    np.testing.assert_allclose(unit * found, wanted, atol=2.0 * 17_000 * unit)


def test_a_move_back_has_the_opposite_integers() -> None:
    for name, (model, columns) in MODELS.items():
        rows = accepted(name, np.abs(np.random.default_rng(4).standard_normal((600, columns))))
        evaluator = LatticeEvaluator(model, rows, FINE)
        there = evaluator.ratio_integers(position(model, 1), position(model, 2), 1e-9)
        back = evaluator.ratio_integers(position(model, 2), position(model, 1), 1e-9)
        np.testing.assert_array_equal(there, -back)
        assert there.any(), name


class Placed:
    """A model whose rounding depends on a row's place, as some matrix products do."""

    dimension = 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(theta[0] * rows[:, 0] * (1.0 + 1e-9 * (np.arange(len(rows)) % 2)))


class PlacedSummaries:
    """A model whose summaries alone depend on a row's place."""

    dimension = summary_count = 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(theta[0] * rows[:, 0])

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows * (1.0 + 1e-9 * (np.arange(len(rows)) % 2))[:, None])


def test_a_model_that_rounds_by_place_is_called_row_by_row() -> None:
    assert block_size(Placed(), 1) == block_size(PlacedSummaries(), 1) == 1
    assert [block_size(model, columns) for model, columns in MODELS.values()] == [ROWS_OF_CALL] * len(MODELS)
    rows = np.random.default_rng(8).standard_normal((50, 1))
    order = np.random.default_rng(9).permutation(50)
    theta, proposal, unit = np.zeros(1), np.ones(1), 4e-9
    found = [
        LatticeEvaluator(Placed(), some, FINE).ratio_integers(theta, proposal, unit)
        for some in (rows, rows[order])
    ]
    np.testing.assert_array_equal(found[0][order], found[1])


class Distance:
    """A model of one's own without gradients."""

    dimension = 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(-abs(rows[:, 0] - theta[0]))


def test_a_model_of_ones_own_without_gradients_is_called_in_blocks() -> None:
    _, definition = given_model(Distance())
    assert block_size(definition.model, 1) == ROWS_OF_CALL


def test_what_cannot_be_computed_has_its_public_integer() -> None:
    rows = np.array([[0.5, 0.2], [-5.0, 0.0], [np.nan, 1.0], [1e200, 0.0], [3.0, 3.0]])
    ratio, gradient = integers("own", rows)
    assert ratio[1:4].tolist() == [-M.ratio, 0, 0]
    assert (gradient[1:4] == 0).all() and gradient[4].any() and abs(ratio[4]) == M.ratio
    alone = integers("own", rows[4:])  # its block failed above, and does not here
    assert ratio[4] == alone[0][0] and (gradient[4] == alone[1][0]).all()


@pytest.mark.parametrize(("bad", "most"), [([7], 19), ([0], 19), ([3, 300], 36), (range(512), 1023)])
def test_an_error_on_one_row_costs_a_few_calls(bad: Sequence[int], most: int) -> None:
    """A row that is slow shows in the run time: less, if its neighbours are not computed one by one."""
    rows, calls = np.arange(512.0)[:, None], [0]

    def method(block: np.ndarray) -> np.ndarray:
        calls[0] += 1
        assert block.shape == rows.shape
        if np.isin(block, bad).any():
            raise ValueError
        return 2.0 * block[:, 0]

    values = in_block(method, rows, np.empty((512, 1)), ())
    expected = np.where(np.isin(rows[:, 0], bad), np.nan, 2.0 * rows[:, 0])
    np.testing.assert_array_equal(values, expected)
    assert calls[0] <= most


class Centred(Fussy):
    """A model that is none of single rows: it subtracts their mean, and leaves the process at large ones."""

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if (rows > 100.0).any():
            raise SystemExit(3)
        return -0.5 * ((rows - 0.9 * rows.mean(axis=0) - theta) ** 2).sum(axis=1)

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return rows - 0.9 * rows.mean(axis=0) - theta


def test_a_model_whose_rows_depend_on_each_other_gets_them_one_by_one() -> None:
    rows = np.random.default_rng(6).standard_normal((700, 2))
    changed = rows.copy()
    changed[3] = 1000.0
    theta, proposal = position(Centred, 1), position(Centred, 2)
    of = [LatticeEvaluator(Centred(), its, FINE) for its in (rows, changed)]
    ratios = [evaluator.ratio_integers(theta, proposal, 1e-9) for evaluator in of]
    gradients = [evaluator.gradient_integers(theta, 1.5) for evaluator in of]
    for before, after in (ratios, gradients):
        np.testing.assert_array_equal(np.delete(before, 3, 0), np.delete(after, 3, 0))
    assert ratios[1][3] == -FINE.ratio


class Shifted:
    """−ln(e^{θx} + e^{−θx}), shifted by the largest |θx| of all rows of a call instead of the row's own."""

    dimension = 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        x = np.clip(rows[:, 0], -8.0, 8.0) * theta[0]
        most = np.abs(x).max()
        return np.asarray(-np.log(np.exp(x - most) + np.exp(-x - most)) - most)


class FarOnly:
    """A model that looks at the smallest of the rows if θ is large."""

    dimension = 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        least = rows.min() if abs(theta[0]) > 30.0 else 0.0
        return np.asarray(theta[0] * (rows[:, 0] - least))


@pytest.mark.parametrize("model", [Shifted(), FarOnly()])
def test_a_model_whose_numerics_use_all_rows_of_a_call_gets_them_one_by_one(model: Any) -> None:
    assert block_size(model, 1) == 1
    rows = np.random.default_rng(3).uniform(-2.0, 2.0, (600, 1))
    changed = rows.copy()
    changed[0] = 8.0
    found = [
        LatticeEvaluator(model, some, FINE).ratio_integers(np.array([150.0]), np.array([150.05]), 1e-9)
        for some in (rows, changed)
    ]
    np.testing.assert_array_equal(found[0][1:], found[1][1:])


def test_rows_that_a_model_refuses_count_as_0_and_are_checked_one_by_one() -> None:
    rows = np.random.default_rng(5).standard_normal((20, 3))
    rows[:, 0] = 1.0
    rows[7, 0] = 0.5  # LogisticRegression refuses an outcome that is neither 0 nor 1
    ratio, _ = integers("softplus", rows, FINE)
    assert ratio[7] == 0 and np.count_nonzero(ratio) == 19


def test_rows_of_a_regression_are_checked_together_as_if_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = given_model(dpmc.PoissonRegression("y", ["a"], levels={"b": list("xyz")}))[1].model
    monkeypatch.setattr("dpmc.evaluators.calls.MOST_ROWS", 700)
    entries = np.array([0.0, 1.0, 2.0, 3.0, -1.0, 0.5, *ODD])
    rows = np.random.default_rng(3).choice(entries, (3000, 3))
    rows[:300] = np.random.default_rng(4).choice(entries[:3], (300, 3))

    def accepts(row: np.ndarray) -> bool:
        if not (np.abs(row) <= 1e150).all():
            return False
        try:
            model.given.check_rows(row[None])
        except dpmc.DpmcError:
            return False
        return True

    alone = np.array([accepts(row) for row in rows])
    assert alone[:300].all() and 10 < alone[300:].sum() < 2000
    monkeypatch.setattr(dpmc.PoissonRegression, "check_rows", None)  # takes a second for each 1e5 rows
    np.testing.assert_array_equal(usable_rows(model, rows), alone)
    swapped = rows[::-1].copy()
    np.testing.assert_array_equal(usable_rows(model, swapped), alone[::-1])


def test_the_check_of_a_regression_that_is_changed_gets_rows_one_by_one() -> None:
    class Jealous(dpmc.PoissonRegression):
        def check_rows(self, rows: np.ndarray) -> None:
            if len(rows) > 1:
                raise ValueError("sees other rows")

    model = given_model(Jealous("y", ["a"]))[1].model
    assert usable_rows(model, np.full((4, 2), -1.0)).all()


def test_sums_of_the_largest_numbers_do_not_overflow() -> None:
    k = np.full(10**6, FINE.ratio)
    assert sum_of_squares(k) == 10**6 * FINE.ratio**2
    assert FINE.ratio * 10**9 < 2**62  # as many rows as there may be


@given(
    st.lists(st.integers(-(2**31), 2**31), min_size=1, max_size=40),
    st.integers(1, 2**31 - 1) | st.sampled_from([1, 2, 3]),
)
def test_gradients_are_shrunk_to_their_norm_in_exact_integers(k: list[int], m: int) -> None:
    size = max(1.0, float(np.sqrt(sum(float(part) ** 2 for part in k))) / m)
    for scale in (1.0, 1.0 + 1e-15, 1.0 - 1e-15):
        near = np.trunc(np.array([k], float) / size * scale)
        found = within_norm(near, m)[0]
        assert sum(int(part) ** 2 for part in found) <= m * m
        assert (np.abs(found) <= np.abs(near[0])).all() and (found * near[0] >= 0).all()
        if sum(int(part) ** 2 for part in near[0]) <= m * m:
            np.testing.assert_array_equal(found, near[0].astype(np.int64))


class Slope:
    """ln p(x|θ) = θ x: from 0 to 1, a row is its own log ratio."""

    dimension = 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(theta[0] * rows[:, 0])


def estimate(k: list[int], lattice: Lattice, scale: float, bound: float) -> int:
    """Return the minibatch penalty's statistic of a batch that is all rows, with these integers."""
    rows = (np.array(k) + 0.5 * np.sign(k))[:, None] * (bound / lattice.ratio)
    evaluator = LatticeEvaluator(Slope(), rows, lattice)
    words, bounds = np.zeros((1, len(k)), np.uint64), np.array([bound])
    total, squares, counts = evaluator.batch_ratio_sums(np.zeros((1, 1)), np.ones((1, 1)), bounds, words)
    assert total[0] == sum(k) and squares[0] == len(k) * sum(i * i for i in k) - sum(k) ** 2
    assert not counts.any()
    return int(evaluator.exact_estimate(total, squares, scale, len(k), bounds)[0][0])


def test_the_estimate_of_a_batch_moves_by_no_more_than_its_sensitivity() -> None:
    lattice = Lattice(ratio=7, gradient=1)
    generator = np.random.default_rng(6)
    for scale, bound, b in [(3.0, 0.1, 2), (40.0, 0.05, 3), (1e3, 0.3, 4), (0.1, 0.1, 1)]:
        rho = Fraction(scale * bound)
        most = 0
        for _ in range(60):
            others = generator.integers(-7, 8, b - 1).tolist() if b > 1 else []
            values = [estimate([k, *others], lattice, scale, bound) for k in range(-7, 8)]
            most = max(most, max(values) - min(values))
            k = [3, *others]
            exact = sum(k) - rho / (2 * b * 7) * (b * sum(i * i for i in k) - sum(k) ** 2)
            assert abs(estimate(k, lattice, scale, bound) - exact) <= Fraction(1, 2)
        wanted = 2 * 7 + 2 * (1 - Fraction(1, b)) * rho * 7
        assert 0.4 * wanted < most <= wanted + 1  # reached up to a factor, so that the bound means something


@pytest.mark.parametrize("factor", [1.0, 0.99, 0.3])
@pytest.mark.parametrize("m", [7, 2**26, 2**31 - 1])
def test_the_sd_of_a_barker_test_is_that_of_its_integers(factor: float, m: int) -> None:
    """Two roundings from the root of a fraction, and at least √b m, also if all rows are at the bound."""
    generator, b = np.random.default_rng(8), 24
    evaluator = LatticeEvaluator(dpmc.LinearRegression("y", ["a"]), np.ones((b, 2)), Lattice(m, 1))
    extreme = [m] * b, [m, -m] * (b // 2), [0] * b, [m] + [0] * (b - 1)
    for k in (*extreme, *generator.integers(-m, m, (20, b), endpoint=True).tolist()):
        square = b * sum(i * i for i in k) - sum(k) ** 2
        (sd,) = evaluator.barker_sd(np.array([square], object), b, factor)
        exact = 2 * b * Fraction(m) ** 2 / Fraction(factor) ** 2 - Fraction(square, b)
        assert abs(Fraction(sd) ** 2 / exact - 1) < Fraction(2, 2**52)  # twice the relative error
        assert sd >= np.sqrt(b) * m * (1.0 - 1e-15)
    assert np.isnan(evaluator.barker_sd(np.array([0], object), b, factor * 1e-9)).all() or m < 2**26


def test_an_estimate_that_might_overflow_is_a_rejection_without_rows() -> None:
    evaluator = LatticeEvaluator(Slope(), np.ones((3, 1)), FINE)
    huge = np.array([1e30, np.inf, 0.0])
    _, unit, _ = evaluator.exact_estimate(np.zeros(3, np.int64), np.array([0] * 3, object), 1.0, 3, huge)
    assert np.isnan(unit[:2]).all() and unit[2] == 0.0


def test_batches_are_uniform_and_without_replacement() -> None:
    counts = np.zeros((12, 12))
    for _ in range(4000):
        for size in (3, 8):
            batch = draw_batch(12, size)
            assert len(set(batch.tolist())) == size
            counts[np.ix_(batch, batch)] += 1
    pairs = counts[~np.eye(12, dtype=bool)]
    expected = 4000 * (3 * 2 + 8 * 7) / (12 * 11)
    assert np.abs(pairs - expected).max() < 6.0 * np.sqrt(expected)
    assert np.abs(np.diag(counts) - 4000 * 11 / 12).max() < 6.0 * np.sqrt(4000)
