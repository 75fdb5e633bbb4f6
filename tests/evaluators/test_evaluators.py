"""Clipped sums: each evaluator against exact arithmetic, its compiled self, and in company."""

import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmc import evaluators
from dpmc.compiler import compilable, compiled
from dpmc.evaluators import affine
from dpmc.evaluators.affine import AffineEvaluator
from dpmc.evaluators.columns import SortedColumns
from dpmc.evaluators.generic import GenericEvaluator
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from kernels.ladder import mutant

few = settings(max_examples=80, deadline=None, derandomize=True)


class Straight(NamedTuple):
    """ln p(x|θ) = θ_1…k · x + θ_{k+1}: from 0 to θ', r_j has any coefficients one likes."""

    columns_used: int  # k

    @property
    def dimension(self) -> int:
        return self.columns_used + 1

    def ratio(self, theta, proposal, alpha):
        for i in range(alpha.shape[0]):
            alpha[i] = proposal[i] - theta[i]
        return proposal[alpha.shape[0]] - theta[alpha.shape[0]]

    def gradient(self, theta, linear, constant):
        """G has θ on its diagonal and above it a copy, h is θ backwards: nothing special."""
        k = linear.shape[1]
        for i in range(k):
            linear[i, i] = theta[i]
            linear[i, k - 1] += 0.5 * theta[k]
        for i in range(constant.shape[0]):
            constant[i] = theta[constant.shape[0] - 1 - i]

    def statistics(self, rows):
        return rows

    def log_likelihood(self, theta, rows):
        return rows @ theta[:-1] + theta[-1]

    def log_likelihood_gradient(self, theta, rows):
        linear = np.zeros((len(theta), rows.shape[1]))
        constant = np.zeros(len(theta))
        self.gradient(theta, linear, constant)
        return rows @ linear.T + constant


def ask_ratio(evaluator: Any, model: Any, theta: Any, proposal: Any, bound: Any) -> Any:
    sums, counts = np.full(len(theta), np.nan), np.full(len(theta), -1)
    evaluator.ratio_sums(model, theta, proposal, bound, sums, counts)
    return sums, counts


def ask_gradient(evaluator: Any, model: Any, theta: Any, bound: float) -> Any:
    sums, counts = np.full(theta.shape, np.nan), np.full(len(theta), -1)
    evaluator.gradient_sums(model, theta, bound, sums, counts)
    return sums, counts


def _ratio(evaluator, model, theta, proposal, bound, sums, counts):
    evaluator.ratio_sums(model, theta, proposal, bound, sums, counts)


def _gradient(evaluator, model, theta, bound, sums, counts):
    evaluator.gradient_sums(model, theta, bound, sums, counts)


class Compiled(NamedTuple):
    """An evaluator's compiled self behind the same interface."""

    inner: Any

    compiled_ratio = staticmethod(compiled(_ratio))
    compiled_gradient = staticmethod(compiled(_gradient))

    def ratio_sums(self, *arguments):
        self.compiled_ratio(self.inner, *arguments)

    def gradient_sums(self, *arguments):
        self.compiled_gradient(self.inner, *arguments)


def exact_ratio_sum(rows: np.ndarray, theta: np.ndarray, bound: float) -> tuple[float, int, float, int]:
    """Exact clipped sum and count, Σ|terms| as the scale of rounding, rows too near the bound."""
    limit = math.inf if bound == math.inf else Fraction(bound)
    total, count, scale, unsure = [], 0, 0.0, 0
    for row in rows:
        parts = [Fraction(t) * Fraction(a) for t, a in zip(row, theta[:-1], strict=True)]
        parts.append(Fraction(theta[-1]))
        ratio, size = sum(parts), float(sum(abs(p) for p in parts))
        total.append(float(min(max(ratio, -limit), limit)))
        count += abs(ratio) > limit
        scale += size
        unsure += limit != math.inf and 0 < abs(abs(ratio) - limit) <= 1e-15 * (len(row) + 1) * size
    return math.fsum(total), count, scale, unsure


def check_ratio(evaluator: Any, rows: np.ndarray, theta: np.ndarray, bound: float) -> None:
    model = Straight(rows.shape[1])
    moves = np.array([theta, -theta, 0.5 * theta, -0.5 * theta, 0.25 * theta, 2.0 * theta, -2.0 * theta])
    exact = [exact_ratio_sum(rows, move, bound) for move in moves]
    for some in (5, 7):  # rows are read for four chains at once, for three, or for one
        sums, counts = ask_ratio(
            evaluator, model, np.zeros_like(moves[:some]), moves[:some], np.full(some, bound)
        )
        for c in range(some):
            wanted, count, scale, unsure = exact[c]
            assert abs(sums[c] - wanted) <= 1e-14 * scale + 1e-300
            assert abs(counts[c] - count) <= unsure


def check_gradient(evaluator: Any, rows: np.ndarray, theta: np.ndarray, bound: float) -> None:
    model = Straight(rows.shape[1])
    positions = np.array([theta, -theta, 0.5 * theta])
    sums, counts = ask_gradient(evaluator, model, positions, bound)
    for c, position in enumerate(positions):
        check_gradient_of_one(model, rows, position, bound, sums[c], int(counts[c]))


def check_gradient_of_one(
    model: Any, rows: np.ndarray, theta: np.ndarray, bound: float, found: np.ndarray, count: int
) -> None:
    gradients = model.log_likelihood_gradient(theta, rows)
    norms = [math.hypot(*gradient) for gradient in gradients]
    factors = [1.0 if norm <= bound else bound / norm for norm in norms]
    scale = float(np.abs(gradients).sum() + len(rows) * np.abs(theta).sum())
    for i in range(len(theta)):
        wanted = math.fsum(f * g for f, g in zip(factors, gradients[:, i], strict=True))
        assert abs(found[i] - wanted) <= 1e-13 * scale + 1e-300
    unsure = sum(0.0 < abs(norm - bound) <= 1e-12 * (scale + bound) for norm in norms)
    assert abs(count - sum(norm > bound for norm in norms)) <= unsure


def without_sorting(evaluator: Any) -> Any:
    """The same evaluator without its sorted columns: every sum goes through the tree."""
    empty = SortedColumns.build(np.empty((0, int(evaluator.tree.size[0]))))
    return evaluator._replace(sorted_columns=empty)


def without_tree(evaluator: Any) -> Any:
    """The same evaluator with a tree that settles nothing: every row is read."""
    tree = evaluator.tree
    unbounded = {"half": np.full(tree.half.shape, 1e200), "far": np.full(tree.far.shape, 1e200)}
    return evaluator._replace(tree=tree._replace(**unbounded))


def built(rows: np.ndarray) -> dict[str, Any]:
    return {
        "dense": without_tree(without_sorting(AffineEvaluator.build(rows, False))),
        "tree": without_sorting(AffineEvaluator.build(rows, False)),
        "sorted": AffineEvaluator.build(rows, True),
        "generic": GenericEvaluator(rows),
    }


NAMES = ("dense", "tree", "sorted", "generic")
eighths = st.integers(-64, 64).map(lambda k: k / 8.0)  # products and sums of these are exact: true ties
ordinary = st.floats(-1e3, 1e3).map(lambda x: round(x, 6))
sized = st.builds(lambda x, e: x * 2.0**e, st.floats(-1.0, 1.0), st.integers(-60, 60))


@st.composite
def problems(draw: Any, values: Any, active: int | None = None) -> Any:
    """Rows (n, k), coefficients and offset (k + 1,), at most `active` non-zero, and a bound."""
    k = draw(st.one_of(st.integers(1, 3), st.integers(9, 15)))
    n = draw(st.one_of(st.integers(1, 5), st.integers(1, 30)))
    rows = np.array(draw(st.lists(values, min_size=n * k, max_size=n * k))).reshape(n, k)
    theta = np.array(draw(st.lists(values, min_size=k + 1, max_size=k + 1)))
    if active == 1:
        keep = draw(st.integers(0, k - 1))
        theta[:k][np.arange(k) != keep] = 0.0
    bounds = [values.map(abs), st.just(np.inf), st.just(0.0), st.just(1e-3), st.just(1e9)]
    return rows, theta, draw(st.one_of(*bounds))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: Any) -> None:
    """Blocks of 8 rows in plain Python, so that few rows make several blocks and a part of one."""
    monkeypatch.setattr(affine, "BLOCK", 8)
    monkeypatch.setattr("dpmc.evaluators.generic.CHUNK", 8)


@pytest.mark.parametrize("name", NAMES)
class TestRatioSums:
    @few
    @given(problem=problems(eighths))
    def test_with_true_ties_sums_and_counts_are_exact(self, name: str, problem: Any) -> None:
        rows, theta, bound = problem
        bound = round(bound * 8.0) / 8.0 if bound < np.inf else bound
        model = Straight(rows.shape[1])
        evaluator = built(rows)[name]
        sums, counts = ask_ratio(evaluator, model, np.zeros((1, len(theta))), theta[None], np.array([bound]))
        wanted, count, scale, _ = exact_ratio_sum(rows, theta, bound)
        assert counts[0] == count
        assert abs(sums[0] - wanted) <= 1e-14 * scale

    @few
    @given(problem=problems(ordinary))
    def test_ordinary_numbers(self, name: str, problem: Any) -> None:
        check_ratio(built(problem[0])[name], *problem)

    @few
    @given(problem=problems(ordinary, active=1))
    def test_one_active_statistic(self, name: str, problem: Any) -> None:
        check_ratio(built(problem[0])[name], *problem)

    @few
    @given(problem=problems(sized))
    def test_huge_and_tiny_numbers(self, name: str, problem: Any) -> None:
        check_ratio(built(problem[0])[name], *problem)


@few
@given(problem=problems(sized, active=1))
def test_sorted_huge_and_tiny_numbers(problem: Any) -> None:
    check_ratio(built(problem[0])["sorted"], *problem)


@few
@given(problem=problems(eighths, active=1))
def test_sorted_dense_and_generic_agree_on_ties(problem: Any) -> None:
    rows, theta, bound = problem
    model, zero = Straight(rows.shape[1]), np.zeros((1, len(theta)))
    answers = [ask_ratio(e, model, zero, theta[None], np.array([bound])) for e in built(rows).values()]
    assert len({int(counts[0]) for _, counts in answers}) == 1
    for sums, _ in answers[1:]:
        np.testing.assert_allclose(sums, answers[0][0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
class TestGradientSums:
    @few
    @given(problem=problems(ordinary))
    def test_ordinary_numbers(self, name: str, problem: Any) -> None:
        rows, theta, bound = problem
        if bound > 0.0 and (name in ("dense", "tree")) <= (rows.shape[1] > 1):  # one column is always sorted
            check_gradient(built(rows)[name], rows, theta, bound)

    @few
    @given(problem=problems(sized))
    def test_huge_and_tiny_numbers(self, name: str, problem: Any) -> None:
        rows, theta, bound = problem
        if bound > 1e-30 and (name in ("dense", "tree")) <= (rows.shape[1] > 1):
            check_gradient(built(rows)[name], rows, theta, bound)

    def test_a_norm_that_equals_the_bound_is_not_clipped(self, name: str) -> None:
        rows = np.array([[1.0], [2.0], [-1.0]])
        if name in ("dense", "tree"):
            rows = np.column_stack([rows, rows])
        evaluator, model = built(rows)[name], Toward()
        sums, counts = ask_gradient(evaluator, model, np.array([[3.0, 4.0]]), 5.0)
        assert counts[0] == 1  # norms 5, 10, 5
        np.testing.assert_allclose(sums[0], [3.0, 4.0], rtol=1e-15)


class Toward(NamedTuple):
    """A gradient t_1 θ, parallel to θ as the circle's is; further statistics have no part in it."""

    unused: float = 0.0

    def gradient(self, theta, linear, constant):
        for i in range(theta.shape[0]):
            linear[i, 0] = theta[i]

    def log_likelihood_gradient(self, theta, rows):
        return rows[:, :1] * theta


def circle_gradients(model: Circle, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return 4.0 * model.a * (rows[:, :1] ** 2 - (theta**2).sum()) * theta


@pytest.mark.parametrize("bound", [1e-6, 0.3, 5.0, 1e6, np.inf])
@pytest.mark.parametrize("theta", [(0.4, -1.9), (0.0, 3.0), (0.0, 0.0), (1e-8, 2e-8), (40.0, 9.0)])
def test_circle_gradient_by_sorted_rows(bound: float, theta: tuple[float, float]) -> None:
    model, place = Circle(0.02), np.array(theta)
    rows = model.simulate(np.random.default_rng(1), place, 101)
    evaluator = evaluators.build(model, rows)
    sums, counts = ask_gradient(evaluator, model, place[None], bound)
    gradients = circle_gradients(model, place, rows)
    norms = np.sqrt((gradients**2).sum(axis=1))
    factors = np.minimum(1.0, bound / np.maximum(norms, 1e-300))
    wanted = [math.fsum(column) for column in (gradients * factors[:, None]).T]
    np.testing.assert_allclose(sums[0], wanted, rtol=1e-10, atol=1e-12 * np.abs(gradients).sum())
    assert counts[0] == (norms > bound).sum()


@pytest.mark.parametrize("n", [1, 255, 256, 257, 7 * 256 + 17])
@pytest.mark.parametrize("name", ["dense", "tree", "sorted"])
def test_compiled_sums_are_exact_to_rounding(name: str, n: int) -> None:
    generator = np.random.default_rng(n)
    rows = generator.normal(0.0, 2.0, (n, 2))
    evaluator = Compiled(built(rows)[name])
    for theta in ([0.7, -0.4, 0.3], [0.0, 1.3, -0.2], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]):
        for bound in (1e-4, 1.0, 1e6, np.inf):
            check_ratio(evaluator, rows, np.array(theta), bound)
            check_gradient(evaluator, rows, np.array(theta), bound)


@pytest.mark.parametrize("name", ["dense", "tree", "sorted"])
@few
@given(problem=problems(eighths))
def test_compiled_equals_python(name: str, problem: Any) -> None:
    rows, theta, bound = problem
    evaluator, model = built(rows)[name], Straight(rows.shape[1])
    zero = np.zeros((1, len(theta)))
    ours = ask_ratio(evaluator, model, zero, theta[None], np.array([bound]))
    theirs = ask_ratio(Compiled(evaluator), model, zero, theta[None], np.array([bound]))
    np.testing.assert_array_equal(ours[1], theirs[1])
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-13, atol=1e-13)
    if bound > 0.0 and (name == "sorted" or rows.shape[1] > 1):  # one statistic is sorted always
        ours = ask_gradient(evaluator, model, theta[None], bound)
        theirs = ask_gradient(Compiled(evaluator), model, theta[None], bound)
        np.testing.assert_array_equal(ours[1], theirs[1])
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12, atol=1e-12)


class Allocating(NamedTuple):
    """`Straight`, whose ratio makes an array, as a user's may."""

    columns_used: int

    def ratio(self, theta, proposal, alpha):
        moved = proposal - theta
        alpha[:] = moved[: alpha.shape[0]]
        return moved[alpha.shape[0]]


def test_a_ratio_that_makes_arrays_is_compiled_too() -> None:
    compilable(Allocating)
    rows = np.random.default_rng(3).normal(0.0, 1.0, (500, 3))
    evaluator = AffineEvaluator.build(rows, False)
    moves, bound = np.random.default_rng(4).normal(0.0, 1.0, (5, 4)), np.full(5, 1.0)
    wanted, count = ask_ratio(evaluator, Straight(3), np.zeros((5, 4)), moves, bound)
    sums, counts = ask_ratio(Compiled(evaluator), Allocating(3), np.zeros((5, 4)), moves, bound)
    np.testing.assert_array_equal(counts, count)
    np.testing.assert_allclose(sums, wanted, rtol=1e-12)


@pytest.mark.parametrize("path", ["python", "compiled"])
@pytest.mark.parametrize("k", [2, 10, 14, 19])
@pytest.mark.parametrize("name", NAMES)
def test_a_chain_has_the_same_bits_whichever_chains_are_beside_it(name: str, k: int, path: str) -> None:
    generator = np.random.default_rng(5)
    n = 1300 if path == "compiled" else 45
    rows = generator.normal(0.0, 2.0, (n, k))
    model, evaluator = Straight(k), built(rows)[name]
    if path == "compiled":
        if name == "generic":
            pytest.skip("plain Python always")
        evaluator = Compiled(evaluator)
    theta, proposal = generator.normal(0.0, 1.0, (2, 12, k + 1))
    proposal[2:4, 1] = theta[2:4, 1]  # a statistic that is not active in some chains
    bound = generator.uniform(0.1, 3.0, 12)
    sums, counts = ask_ratio(evaluator, model, theta, proposal, bound)
    gradients, clipped = ask_gradient(evaluator, model, theta, 1.5)
    for chosen in ([0], [3], [7], [2, 5], [11, 8], [6, 1, 4], [5, 3, 0, 2]):
        some, some_counts = ask_ratio(evaluator, model, theta[chosen], proposal[chosen], bound[chosen])
        np.testing.assert_array_equal(some, sums[chosen])
        np.testing.assert_array_equal(some_counts, counts[chosen])
        some, some_counts = ask_gradient(evaluator, model, theta[chosen], 1.5)
        np.testing.assert_array_equal(some, gradients[chosen])
        np.testing.assert_array_equal(some_counts, clipped[chosen])


def change_by_one_row(name: str, rows: np.ndarray, row: float, theta: float, bound: float) -> float:
    """|R(rows) − R(rows with one replaced)| as a multiple of the sensitivity 2 · bound."""
    model, zero = Straight(1), np.zeros((1, 2))
    answers = []
    for value in (rows[0, 0], row):
        neighbour = rows.copy()
        neighbour[0, 0] = value
        proposal, limit = np.array([[theta, 0.1]]), np.array([bound])
        answers.append(ask_ratio(built(neighbour)[name], model, zero, proposal, limit)[0][0])
    return abs(answers[1] - answers[0]) / (2.0 * bound)


OUTLIERS = (1e3, 1e9, -1e12, 1e17, 1e25, -1e100, 1e150)


each_outlier = pytest.mark.parametrize(("name", "row"), [*itertools.product(NAMES, OUTLIERS)])


@each_outlier
def test_one_row_changes_a_ratio_sum_by_the_sensitivity_at_most(name: str, row: float) -> None:
    rows = np.random.default_rng(6).normal(0.0, 1.0, (40, 1))
    assert change_by_one_row(name, rows, row, 0.3, 0.2) <= 1.0 + 1e-9


@each_outlier
def test_one_row_changes_a_gradient_sum_by_the_sensitivity_at_most(name: str, row: float) -> None:
    rows = np.random.default_rng(6).normal(0.0, 1.0, (40, 1 if name == "sorted" else 2))
    neighbour = rows.copy()
    neighbour[0, 0] = row
    theta = np.array([[0.6, 0.8]])
    before, after = (ask_gradient(built(r)[name], Toward(), theta, 0.2)[0] for r in (rows, neighbour))
    assert np.sqrt(((before - after) ** 2).sum()) <= 0.4 * (1.0 + 1e-9)


DENSE, COLUMNS, TREE, PLANE, AFFINE = (
    f"dpmc.evaluators.{name}" for name in ("dense", "columns", "tree", "plane", "affine")
)

FAULTS = {
    "gradients clipped by their 1-norm": (DENSE, "squares[j] += only[j] ** 2", "squares[j] += abs(only[j])"),
    "a factor forgotten beside the inverse root": (DENSE, "root *= 1.5 - 0.5", "root *= 1.4 - 0.5"),
    "unclipped gradients scaled to the bound": (
        DENSE,
        "inverse_root(max(squares[j], limit))",
        "inverse_root(squares[j])",
    ),
    "gradient clip count forgotten": (DENSE, "clipped += not squares[j] <= limit", "pass"),
    "padding counted in a gradient": (DENSE, "for j in range(rows, size)", "for j in range(size, size)"),
    "padding counted in a ratio": (
        AFFINE,
        "clip_ratios(ratios, rows,",
        "clip_ratios(ratios, ratios.shape[0],",
    ),
    "second statistic of two forgotten": (DENSE, "(a * t[j] + b * u[j])\n    else", "(a * t[j])\n    else"),
    "eighth statistic forgotten": (DENSE, "(g * vv[j] + h * ww[j]))\n        q", "(g * vv[j]))\n        q"),
    "eighth statistic forgotten of the last of four chains": (DENSE, " + product_of_four(r, second)", ""),
    "fourth statistic forgotten of four chains": (DENSE, " + one[3] * other[3])", ")"),
    "slopes of the first of four chains for the second": (
        AFFINE,
        "(slopes[c], slopes[d], slopes[e], slopes[last])",
        "(slopes[c], slopes[c], slopes[e], slopes[last])",
    ),
    "constant of the third of four chains for the last": (
        AFFINE,
        "gamma[e], gamma[last])",
        "gamma[e], gamma[e])",
    ),
    "the fourth of four chains forgotten": (AFFINE, "if f < chains:", "if False:"),
    "last of four squares forgotten": (DENSE, " + four[j] ** 2)", ")"),
    "ties counted as clipped, two statistics": (
        PLANE,
        "clipped += kept != ratio",
        "clipped += abs(ratio) >= bound",
    ),
    "second of two statistics forgotten": (PLANE, "gamma + (a * x[j] + b * y[j])", "gamma + a * x[j]"),
    "padding of two statistics counted": (
        PLANE,
        "min(n - first * size, size)",
        "size",
    ),
    "clipped above only": (DENSE, "kept = ratio if ratio > -bound else -bound", "kept = ratio"),
    "ties counted as clipped": (DENSE, "clipped += kept != ratio", "clipped += abs(ratio) >= bound"),
    "ties counted as clipped by the search": (COLUMNS, "+ gamma <= bound:", "+ gamma < bound:"),
    "rows below the bound forgotten": (COLUMNS, "((n - high) - low)", "(n - high)"),
    "a search goes past the last rows": (COLUMNS, "min(low * STRIDE, n - rows)", "low * STRIDE"),
    "a row too many in the list of every so-many-th": (COLUMNS, "STRIDE - 1 :: STRIDE", "::STRIDE"),
    "sign of a falling ratio lost": (COLUMNS, "sign, alpha, gamma = -1.0,", "sign, alpha, gamma = 1.0,"),
    "median of the prefix sums forgotten": (COLUMNS, "(alpha * columns.median[i] + gamma)", "gamma"),
    "last block dropped": (
        AFFINE,
        "for b in range(blocks.shape[0])",
        "for b in range(n // work.shape[1])",
    ),
    "half a box forgotten": (PLANE, "abs(a) * tree.half[v, 0]", "0.5 * abs(a) * tree.half[v, 0]"),
    "reach of a box forgotten": (PLANE, "(one + wide) ** 2 + (two + high) ** 2", "one**2 + two**2"),
    "offset of unclipped rows forgotten": (TREE, "total += gamma * tree.size[v]", "pass"),
    "offset of a box's unclipped rows forgotten": (PLANE, "gamma * tree.size[v] + (", "("),
    "clipped rows of a box not counted": (
        PLANE,
        "            clipped += tree.size[v]\n            total",
        "            total",
    ),
    "clipped rows of a box always above": (PLANE, "if middle > 0.0 else -bound * tree.size[v]", ""),
    "second child lost": (TREE, "return depth + 2", "return depth + 1"),
    "distance from the wrong centre": (TREE, "tree.centre[i]", "0.0"),
    "distance from the wrong centre in a gradient": (TREE, "tree.centre[j]", "0.0"),
    "spread of the gradient forgotten": (TREE, "return np.sqrt(largest)", "return 0.5 * np.sqrt(largest)"),
    "far taken for near": (TREE, "length * tree.far[v]", "length * tree.near[v]"),
}


def first_fault(module: str, old: str = "", new: str = "") -> bool:
    """Whether the checks above object to the evaluator with a piece of a module's text exchanged."""
    names = mutant(AFFINE)
    for name in dict.fromkeys((COLUMNS, module) if old else (COLUMNS,)):
        text = mutant(name, (old, new)) if name == module else mutant(name)
        text["STRIDE"] = 4
        names.update({key: value for key, value in text.items() if not key.startswith("__")})
    names["BLOCK"] = 8
    generator = np.random.default_rng(11)
    for active in (1, 2, 3) * 25 + (13,) * 25:
        k = max(2, active)
        n = 37 if active == 1 else 39  # one row too many for whole blocks, or two too few
        rows, theta = generator.integers(-16, 17, (n, k)) / 8.0, generator.integers(-8, 9, k + 1) / 8.0
        rows[:, 0] += 4.0 * (active > 1)
        theta[active:k] = 0.0
        if active > 3:
            theta[k] *= generator.integers(2)  # without it, components of a gradient have one statistic each
        bound = float(generator.integers(1, 20)) / 8.0
        evaluator = names["AffineEvaluator"].build(rows, active == 1)
        try:
            check_ratio(evaluator, rows, theta, bound)
            check_gradient(evaluator, rows, theta, bound)
        except (AssertionError, ZeroDivisionError, IndexError):
            return True
    return False


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_caught(fault: tuple[str, str, str]) -> None:
    assert first_fault(*fault)


def test_no_fault_is_found_where_none_is() -> None:
    assert not first_fault(AFFINE)


def test_rows_that_cannot_be_compared_count_as_clipped() -> None:
    class Undefined:
        def log_likelihood(self, theta: Any, rows: Any) -> Any:
            return np.where(rows[:, 0] > 0.0, np.nan, rows[:, 0] * theta[0])

        def log_likelihood_gradient(self, theta: Any, rows: Any) -> Any:
            return np.where(rows > 0.0, np.nan, rows)

    evaluator = GenericEvaluator(np.array([[1.0], [-2.0], [-8.0]]))
    sums, counts = ask_ratio(evaluator, Undefined(), np.zeros((1, 1)), np.ones((1, 1)), np.array([3.0]))
    assert counts[0] == 2
    assert abs(sums[0]) <= 2.0 + 3.0 + 3.0
    sums, counts = ask_gradient(evaluator, Undefined(), np.zeros((1, 1)), 3.0)
    assert counts[0] == 2
    assert sums[0, 0] == -5.0


def test_evaluators_are_chosen_by_what_the_model_offers() -> None:
    banana = Banana(1.0, 0.0, 0.0, np.ones(2), 1.0)
    rows = np.ones((4, 2))
    assert evaluators.describe(evaluators.build(banana, rows)) == "tree"
    assert evaluators.describe(evaluators.build(banana, rows, one_component=True)) == "sorted"
    assert evaluators.describe(evaluators.build(Circle(1.0), rows[:, :1])) == "sorted"

    class Own:
        def log_likelihood(self, theta: Any, rows: Any) -> Any:
            return rows[:, 0]

    assert evaluators.describe(evaluators.build(Own(), rows)) == "generic"


@pytest.mark.parametrize("k", [1, 2, 3])
def test_parts_of_other_evaluators_serve_again(k: int) -> None:
    """What a run's starter lays out for one algorithm after another is what each would lay out by itself."""
    model = Banana(0.0, 0.0, 0.0, np.ones(k), 1.0)
    rows = np.random.default_rng(k).standard_normal((3000, k))
    made: list[Any] = []
    for kind in itertools.product([False, True], [False], [False, True]):
        alone, shared = evaluators.build(model, rows, *kind), evaluators.build(model, rows, *kind, made)
        needed = [alone.blocks, *alone.tree, alone.proxies.points, *alone.sorted_columns]
        others = [shared.blocks, *shared.tree, shared.proxies.points, *shared.sorted_columns]
        assert all(map(np.array_equal, needed, others))
        if kind[2]:  # else nothing reads the weights
            assert np.array_equal(alone.proxies.weights, shared.proxies.weights)
        made.append(shared)
    assert all(one.blocks is made[0].blocks for one in made)
    assert made[-1].sorted_columns.ordered is made[-2].sorted_columns.ordered
    batches = evaluators.build(model, rows, batches=True)
    assert evaluators.build(model, rows, True, True, True, [*made, batches]) is batches
