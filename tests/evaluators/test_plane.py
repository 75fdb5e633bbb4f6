"""Gradients of two statistics: three numbers for a norm, proxies for rows, and what is read of them."""

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Chebyshev

from dpmc.compiler import compilable, compiled
from dpmc.evaluators import affine
from dpmc.evaluators import proxies as proxies_module
from dpmc.evaluators.affine import AffineEvaluator
from dpmc.evaluators.plane import triangular
from dpmc.evaluators.proxies import LEAST_BLOCKS, POINTS, REACH
from dpmc.evaluators.tree import halving
from evaluators.looks import NodesCounted
from kernels.ladder import mutant

AFFINE, PLANE, PROXIES = (f"dpmc.evaluators.{name}" for name in ("affine", "plane", "proxies"))
EPS = np.finfo(float).eps


@compilable
class Bent(NamedTuple):
    """A gradient G t + h with any G (d, 2) and h (d,): θ holds them, row after row."""

    unused: float = 0.0

    def gradient(self, theta, linear, constant):
        d = theta.shape[0] // 3
        for i in range(d):
            linear[i, 0], linear[i, 1], constant[i] = theta[3 * i], theta[3 * i + 1], theta[3 * i + 2]


@compiled
def ask_compiled(evaluator, model, theta, bound, sums, counts):  # type: ignore[no-untyped-def]
    evaluator.gradient_sums(model, theta, bound, sums, counts)


def ask(evaluator: Any, position: np.ndarray, bound: float, ways: str = "python") -> tuple[np.ndarray, int]:
    """Clipped gradient sum (d,) and clip count at one position (d, 3) = (G, h)."""
    theta = np.zeros((1, position.size))
    theta[0] = position.ravel()
    sums, counts = np.zeros((1, position.size)), np.zeros(1, np.int64)
    if ways == "compiled":
        ask_compiled(evaluator, Bent(), theta, bound, sums, counts)
    else:
        with np.errstate(over="ignore", invalid="ignore"):  # squares beyond all numbers are computed again
            evaluator.gradient_sums(Bent(), theta, bound, sums, counts)
    return sums[0, : len(position)], int(counts[0])


def exact(rows: np.ndarray, position: np.ndarray, bound: float) -> tuple[np.ndarray, int]:
    """The same from gradients in long double and `math.fsum`."""
    gradients = rows.astype(np.longdouble) @ position[:, :2].T + position[:, 2].astype(np.longdouble)
    norms = np.sqrt((gradients**2).sum(axis=1))
    clipped = gradients * np.where(norms > bound, bound / np.where(norms > bound, norms, 1.0), 1.0)[:, None]
    return np.array([math.fsum(map(float, column)) for column in clipped.T]), int((norms > bound).sum())


def tolerance(rows: np.ndarray, position: np.ndarray, bound: float) -> float:
    """What rounding may leave of a sum: of the terms a f t and f h in it, f ≤ 1."""
    size = np.abs(rows) @ np.abs(position[:, :2]).T + np.abs(position[:, 2])
    norms = np.sqrt(((rows @ position[:, :2].T + position[:, 2]) ** 2).sum(axis=1))
    factors = np.minimum(1.0, bound / np.maximum(norms, 1e-300))
    return float(20.0 * EPS * (size * factors[:, None]).sum() * max(1.0, (size.max() / bound) ** 0.5))


def turned(angle: float, slope: float, d: int) -> np.ndarray:
    """G (d, 2): a shear, turned, and lifted into d dimensions."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    lift = np.linalg.qr(np.random.default_rng(d).normal(size=(d, 2)))[0] if d > 2 else np.eye(2)
    return lift @ turn @ np.array([[1.0, slope], [0.0, 1.0]])  # type: ignore[no-any-return]


numbers = st.one_of(
    st.just(0.0),
    st.floats(-8.0, 8.0),
    st.builds(lambda x, e: x * 2.0**e, st.floats(-1, 1), st.integers(-40, 40)),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data())
def test_three_numbers_have_the_norm_of_any_gradient(data: Any) -> None:
    d = data.draw(st.integers(1, 5))
    position = np.array(data.draw(st.lists(numbers, min_size=3 * d, max_size=3 * d))).reshape(d, 3)
    if data.draw(st.booleans()):
        position[:, 1] = position[:, 0] * data.draw(st.integers(-3, 3))  # columns that depend on one another
    t = np.array(data.draw(st.lists(numbers, min_size=2, max_size=2)))
    basis = np.zeros((3, d))
    a, b, c, p, q, rest = triangular(position[:, :2], position[:, 2], basis)
    first, second = a * t[0] + b * t[1] + p, c * t[1] + q
    gradient = [
        Fraction(g) * Fraction(t[0]) + Fraction(s) * Fraction(t[1]) + Fraction(h) for g, s, h in position
    ]
    size = np.abs(position) @ np.array([abs(t[0]), abs(t[1]), 1.0])
    near = 30.0 * EPS * size.sum() + 1e-150
    assert abs(math.hypot(first, second, rest) - math.hypot(*map(float, gradient))) <= near
    assert np.abs(first * basis[0] + second * basis[1] + basis[2] - np.array(gradient, float)).max() <= near


def test_a_banana_s_gradient_is_its_own_three_numbers() -> None:
    """So that its norms are rounded as they are in the formula."""
    basis = np.zeros((3, 2))
    found = triangular(np.array([[1.0, 0.7], [0.0, 1.0]]), np.array([0.3, -0.9]), basis)
    assert found == (1.0, 0.7, 1.0, 0.3, -0.9, 0.0)
    assert basis.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


@pytest.fixture
def small_blocks(monkeypatch: Any) -> None:
    """Blocks of 4 rows."""
    monkeypatch.setattr(affine, "BLOCK", 8)


def clusters(seed: int, n: int = 90) -> np.ndarray:
    """Rows of uneven density, some of them equal."""
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((n, 2)) * np.array([0.3, 1.0])
    rows[: n // 6] = rows[0]
    rows[n // 6 : n // 3, 0] = 0.25
    return rows


def built(rows: np.ndarray) -> AffineEvaluator:
    return AffineEvaluator.build(rows, False)


@pytest.mark.parametrize("n", [2000, 90])
@pytest.mark.usefixtures("small_blocks")
def test_proxies_have_the_moments_of_their_rows(n: int) -> None:
    """Up to degree 15 in either statistic, in every node."""
    evaluator = built(clusters(1, n))
    tree, proxies, rows = evaluator.tree, evaluator.proxies, 4
    ranges, _ = halving(len(evaluator.blocks))
    assert len(proxies.weights) >= 7
    for v in range(len(proxies.weights)):
        begin, end = ranges[v]
        assert end - begin >= LEAST_BLOCKS
        own = evaluator.blocks[begin:end].transpose(1, 0, 2).reshape(2, -1)[:, : tree.size[v]]
        assert own.shape[1] == tree.size[v] <= rows * (end - begin)
        half = tree.half[v][:, None]
        inside = (own - tree.middle[v][:, None]) / np.where(half > 0.0, half, 1.0)
        steps = 1.0 + (np.abs(tree.middle[v]) / np.where(tree.half[v] > 0.0, tree.half[v], np.inf)).max()
        for i, j in ((0, 0), (1, 0), (0, 1), (15, 0), (0, 15), (15, 15), (4, 9), (13, 2)):
            one, other = Chebyshev.basis(i), Chebyshev.basis(j)
            wanted = math.fsum(one(inside[0]) * other(inside[1]))
            values = one(proxies.points[0]) * other(proxies.points[1])
            found = math.fsum(proxies.weights[v] * values)
            # A place is rounded in units of the statistic; the slope of T_i is up to i².
            assert abs(found - wanted) <= 10.0 * EPS * steps * (1 + i * i + j * j) * tree.size[v]


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_proxies_are_made_for_gradients_of_two_statistics_alone(k: int, gradients: bool) -> None:
    evaluator = AffineEvaluator.build(np.random.default_rng(k).normal(size=(2000, k)), False, gradients)
    assert evaluator.proxies.points.shape == (2, POINTS**2)
    assert evaluator.proxies.weights.shape == (7 if k == 2 and gradients else 0, POINTS**2)


@pytest.mark.parametrize(
    ("n", "nodes"), [(1, 0), (256, 0), (257, 1), (5 * 128, 1), (6 * 128, 3), (12 * 128, 7)]
)
def test_a_node_with_proxies_has_more_rows_than_points(n: int, nodes: int) -> None:
    proxies = built(clusters(12, n)).proxies
    assert len(proxies.weights) == nodes


def check(evaluator: Any, rows: np.ndarray, position: np.ndarray, norms: float, way: str = "python") -> None:
    """`norms`: the bound in units of the median norm."""
    bound = norms * float(np.median(np.sqrt(((rows @ position[:, :2].T + position[:, 2]) ** 2).sum(axis=1))))
    found, count = ask(evaluator, position, bound, way)
    wanted, clipped = exact(rows, position, bound)
    assert count == clipped
    assert np.abs(found - wanted).max() <= tolerance(rows, position, bound)


#: Directions from the rows to where gradients vanish, distances in sd, bounds in units of the median norm,
#: itself unclipped.
PLACES = [
    (angle, distance, bound)
    for angle in (0.0, 0.8, 2.1, 4.4)
    for distance in (0.0, 0.6, 1.5, 4.0, 40.0, 1e4)
    for bound in (1e-9, 0.1, 1.0 + 1e-7, 1.3)
]


def position_of(
    angle: float, distance: float, slope: float = 0.9, d: int = 2, scale: float = 1.0
) -> np.ndarray:
    linear = scale * turned(angle, slope, d)
    zero = distance * np.array([0.3 * np.cos(angle), np.sin(angle)])
    height = np.zeros(d)
    height[-1] = 0.2 * scale * (d > 2)
    return np.column_stack([linear, height - linear @ zero])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("d", [2, 3, 5])
def test_sums_are_exact_to_rounding_wherever_the_gradient_vanishes(d: int) -> None:
    rows = clusters(2)
    evaluator = built(rows)
    looks: list[int] = []
    weights = NodesCounted(evaluator.proxies.weights, looks)
    counted = evaluator._replace(proxies=evaluator.proxies._replace(weights=weights))
    for angle, distance, bound in PLACES:
        for slope in (0.0, 0.9, -4.0):
            check(counted, rows, position_of(angle, distance, slope, d), bound)
    assert len(looks) > 50


@pytest.mark.parametrize("n", [1, 127, 128, 129, 7 * 128 + 17, 20_000])
def test_compiled_sums_are_exact_to_rounding(n: int) -> None:
    rows = clusters(3, n)
    evaluator = built(rows)
    for angle, distance, bound in PLACES:
        check(evaluator, rows, position_of(angle, distance), bound, "compiled")


@pytest.mark.parametrize("scale", [1e-25, 1e-12, 1e12, 1e25])
def test_what_single_precision_cannot_hold_is_computed_without_it(scale: float) -> None:
    rows = clusters(4, 3000)
    evaluator = built(rows)
    for angle, distance, bound in PLACES:
        check(evaluator, rows, position_of(angle, distance, scale=scale), bound, "compiled")


@pytest.mark.parametrize("scale", [1e-150, 1e155, 1e290])
def test_a_gradient_whose_square_is_no_number_is_clipped_all_the_same(scale: float) -> None:
    """One row may change a sum by twice the bound, also where a model's θ has run away."""
    rows = clusters(4, 300)
    with np.errstate(over="ignore"):
        found, count = ask(built(rows), position_of(0.8, 4.0, scale=scale), 0.5)
    assert count == (len(rows) if scale > 1.0 else 0)
    assert np.sqrt((found**2).sum()) <= 0.5 * len(rows)


def test_a_bound_beyond_single_precision() -> None:
    rows = 2e19 * np.array([[1.0, -1.0]]) * np.random.default_rng(11).normal(size=(500, 1))
    position = np.array([[1.0, 1.0, 0.0], [0.0, 0.02, 0.0]])
    for bound in (1.8e17, 1.8e19, 2e19):
        wanted, clipped = exact(rows, position, bound)
        found, count = ask(built(rows), position, bound)
        assert count == clipped
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * 2e19)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("fill", [1e17, 1e25, 1e100, 1e140, 1e200, 1e308])
@pytest.mark.parametrize("d", [1, 2])
def test_one_row_changes_a_sum_by_its_bound_at_most_whatever_it_is(d: int, fill: float) -> None:
    """Also where G has no inverse and the gradient of a huge row is small."""
    position = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, -0.5]])[:d]
    for row in ((fill, 0.0), (fill, -fill), (0.0, -fill)):
        rows = clusters(5)
        others, _ = exact(np.delete(rows, 40, axis=0), position, 0.05)
        rows[40] = row
        with np.errstate(over="ignore"):
            sums, _ = ask(built(rows), position, 0.05)
        assert np.sqrt(((sums - others) ** 2).sum()) <= 0.05 * (1.0 + 1e-9)


def test_at_its_least_distance_a_node_s_proxies_are_as_good_as_its_rows() -> None:
    """Half of the rows at corners of a box; gradients vanish just out of reach, in every direction."""
    generator = np.random.default_rng(6)
    rows = generator.uniform(-1.0, 1.0, (128 * LEAST_BLOCKS, 2))
    rows[::2] = np.sign(rows[::2])
    evaluator = built(rows)
    looks: list[int] = []
    weights = NodesCounted(evaluator.proxies.weights, looks)
    counted = evaluator._replace(proxies=evaluator.proxies._replace(weights=weights))
    asked = 0
    for angle in np.linspace(0.0, 2.0 * np.pi, 41):
        for wide, high, slope, rest in (
            (1, 1, 0, 0),
            (1, 0.2, 0, 0),
            (0.05, 1, 0, 0),
            (1, 1, 3, 0),
            (1, 0.5, 1, 4),
        ):
            linear = np.array([[wide, slope * high], [0.0, high], [0.0, 0.0]])
            tall = float(np.hypot(slope * high, high))
            away = (REACH + 1e-6) * max(wide, tall) + min(wide, tall)
            across = np.sqrt(away**2 - rest**2)
            position = np.column_stack([linear, [across * np.cos(angle), across * np.sin(angle), rest]])
            wanted, _ = exact(rows, position, 1e-2)
            found, count = ask(counted, position, 1e-2)
            asked += 1
            assert len(looks) == asked and count == len(rows)
            assert np.abs(found - wanted).max() <= 5e-15 * 1e-2 * len(rows)


FAULTS = {
    "proxies too near": (PROXIES, "REACH = 4.5", "REACH = 1.5"),
    "too few points": (PROXIES, "POINTS = 16", "POINTS = 9"),
    "the first moment counted twice": (PROXIES, "coefficients[:, 0] /= 2.0", "pass"),
    "second children forgotten": (PROXIES, "(2 * parents + 1, 2 * parents + 2)", "(2 * parents + 1,)"),
    "children in their own places": (
        PROXIES,
        "_inside(corners, tree.middle[parents], tree.half[parents])",
        "places + 0.0 * corners",
    ),
    "statistics exchanged in a node's moments": (PROXIES, "ra,rb->ab", "ra,rb->ba"),
    "padding in the moments": (PROXIES, "[:, : tree.size[v]]", ""),
    "points exchanged": (
        PROXIES,
        "np.repeat(places, POINTS), np.tile(places, POINTS)",
        "np.tile(places, POINTS), np.repeat(places, POINTS)",
    ),
    "weights forgotten": (PROXIES, "root = weights[j] * ", "root = "),
    "a node's statistics in place of its gradients": (PROXIES, "one += root * first", "one += root * x[j]"),
    "rest of a norm forgotten": (PROXIES, "+ rest * rest", "+ 0.0 * rest"),
    "factors of unclipped rows": (PLANE, "inverse_root(max(square, limit))", "inverse_root(square)"),
    "remainder forgotten": (AFFINE, " + weight * basis[2, i]", ""),
    "padding counted": (PLANE, "min(n - i * size, size)", "size"),
    "first column not taken from the second": (PLANE, "linear[i, 1] - b * basis[0, i]", "linear[i, 1]"),
    "no look at the range of single precision": (PLANE, "outside += not square < LARGEST_SQUARE", "pass"),
    "proxies of nodes a border crosses": (
        PLANE,
        "surely_clipped = least >",
        "surely_clipped = most >",
    ),
    "reach of one direction forgotten": (
        PLANE,
        "max(REACH * wide + tall, REACH * tall + wide)",
        "REACH * wide + tall",
    ),
    "half a box forgotten": (
        PLANE,
        "wide + abs(skew), high)",
        "wide, high)",
    ),
    "offset of unclipped nodes forgotten": (PLANE, "one += p * tree.size[v] + ", "one += "),
    "rows of proxies not counted": (PLANE, "                clipped += tree.size[v]\n", ""),
    "second halves forgotten": (PLANE, "push_children(stack, depth, v, begin, end)", "depth"),
    "blocks between proxies and rows forgotten": (PLANE, "range(begin, end)", "range(begin, begin + 1)"),
}


def objections(module: str = "", old: str = "", new: str = "") -> bool:
    """Whether the checks above object to the evaluator with a piece of a module's text exchanged."""
    names = mutant(AFFINE, *([(old, new)] if module == AFFINE else []))
    for name in (PROXIES, PLANE):
        text = mutant(name, *([(old, new)] if name == module else []))
        names.update({key: value for key, value in text.items() if not key.startswith("__")})
        if name == PROXIES:
            chosen = {key: text[key] for key in ("REACH", "gradient_at", "proxy_sums")}
        else:
            text.update(chosen)
    names["BLOCK"] = 8
    build = names["AffineEvaluator"].build
    with np.errstate(all="ignore"):
        for seed, scale in ((7, 1.0), (8, 1.0), (9, 1e25)):
            rows = clusters(seed, 89)
            evaluator = build(rows, False)
            for angle, distance, bound in PLACES[seed % 3 :: 3]:
                for d in (2, 3):
                    try:
                        check(evaluator, rows, position_of(angle, distance, d=d, scale=scale), bound)
                    except (AssertionError, ValueError, IndexError):
                        return True
    return False


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_caught(fault: tuple[str, str, str]) -> None:
    assert objections(*fault)


def test_no_fault_is_found_where_none_is() -> None:
    assert not objections()


def test_proxies_use_no_sums_whose_order_depends_on_the_number_of_threads() -> None:
    """Of NumPy's sums those of matrix products do, by BLAS; `einsum` unless it is told to optimise."""
    text = Path(proxies_module.__file__).read_text()
    assert "einsum(" in text
    assert not re.search(r" @ |\.dot\(|matmul|tensordot|optimize", text)
