"""The compiled kernel sum: its exponential on the whole range, its sums against `math.fsum`, its bits.

The same checks are run on sums with a mistake put in, to show that they see it.
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from dpmc.evaluators import kernels
from dpmc.evaluators.kernels import BLOCK, exponential, pair_sum
from dpmc.metrics.mmd import squared_mmd

Sum = Callable[..., Any]
SMALLEST_NORMAL = float(np.finfo(float).tiny)


def exponentials(arguments: np.ndarray) -> np.ndarray:
    return np.array([exponential(argument) for argument in arguments.tolist()])


def exact(argument: float) -> float:
    """exp to 40 digits, rounded to the nearest double."""
    return float(Context(prec=40).exp(Decimal(argument)))


def exponential_error(values: np.ndarray, arguments: np.ndarray) -> float:
    """The largest relative error; of results below the normal numbers, the error in smallest steps there."""
    worst = 0.0
    for value, argument in zip(values.tolist(), arguments.tolist(), strict=True):
        wanted = exact(argument)
        worst = max(worst, abs(value - wanted) / max(wanted, SMALLEST_NORMAL))
    return worst


def arguments() -> np.ndarray:
    """Over the whole range, near 0, and at the edges of the steps of log(2)."""
    generator = np.random.default_rng(1)
    edges = -(np.arange(1077) + 0.5) * math.log(2.0)
    return np.concatenate(
        [
            -generator.uniform(0.0, 746.0, 1000),
            -(10.0 ** generator.uniform(-320.0, 0.0, 500)),
            np.nextafter(edges, -np.inf),
            np.nextafter(edges, 0.0),
        ]
    )


def test_exponential_to_a_unit_in_the_last_place() -> None:
    points = arguments()
    assert exponential_error(exponentials(points), points) < 3e-16


@pytest.mark.parametrize(
    ("constant", "fault"),
    [("C12", 0.0), ("LOG_2_LOW", 0.0), ("TO_BINARY", 1.4), ("LOWEST", -708.0), ("C3", 0.16666667)],
)
def test_mistakes_in_the_exponential_are_detected(
    constant: str, fault: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = arguments()[::5]
    values = np.array([exponential.py_func(point) for point in points])
    assert exponential_error(values, points) < 3e-16
    monkeypatch.setattr(kernels, constant, fault)
    values = np.array([exponential.py_func(point) for point in points])
    assert exponential_error(values, points) > 1e-15


def cases() -> dict[str, tuple[np.ndarray, np.ndarray, float]]:
    """Samples and widths; more rows than a block of columns, and not a multiple of it."""
    generator = np.random.default_rng(2)

    def normal(*shape: int) -> np.ndarray:
        return generator.normal(size=shape)

    far = normal(80, 2)
    far[::7] *= 1e160  # squared distances of inf beside ordinary ones
    coinciding = generator.integers(0, 3, (90, 2)).astype(float)
    return {
        "ordinary": (normal(BLOCK + 40, 2), normal(70, 2), 1.2),
        "one dimension": (normal(60, 1), normal(2 * BLOCK, 1), 0.3),
        "thirty dimensions": (normal(70, 30), normal(90, 30), 7.0),
        "tight, far from the origin": (1e3 + 1e-6 * normal(90, 2), 1e3 + 1e-6 * normal(80, 2), 1e-6),
        "coinciding draws": (coinciding, coinciding[:50].copy(), 0.7),
        "huge distances": (far, normal(60, 2), 1.0),
        "tiny terms": (normal(50, 2), 30.0 + normal(60, 2), 1.0),
        "rejections": (np.repeat(normal(40, 3), generator.integers(1, 9, 40), axis=0), normal(50, 3), 2.0),
    }


def exact_sum(x: np.ndarray, v: np.ndarray, y: np.ndarray, w: np.ndarray, scale: float, later: bool) -> float:
    """The sum by the formula as scipy has it, added without error."""
    with np.errstate(over="ignore"):
        terms = np.exp(scale * cdist(x, y, "sqeuclidean")) * np.outer(v, w)
    return math.fsum((np.triu(terms, 1) if later else terms).ravel().tolist())


def sum_error(one: Sum, case: tuple[np.ndarray, np.ndarray, float]) -> float:
    """The largest relative error of the two kinds of sum, with and without weights."""
    x, y, width = case
    scale, worst = -0.5 / width**2, 0.0
    generator = np.random.default_rng(3)
    for v in (np.ones(len(x)), generator.integers(1, 5, len(x)).astype(float)):
        w = np.ones(len(y))
        for others, weights, later in ((y, w, False), (x, v, True)):
            wanted = exact_sum(x, v, others, weights, scale, later)
            found = one(x, v, np.ascontiguousarray(others.T), weights, scale, later)
            worst = max(worst, abs(found - wanted) / wanted)
    return worst


@pytest.mark.parametrize("name", cases())
def test_sums_equal_those_added_without_error(name: str) -> None:
    assert sum_error(pair_sum, cases()[name]) < 1e-13


def test_mistakes_in_the_sum_are_detected() -> None:
    def expanded_squares(x, v, columns, w, scale, later):  # type: ignore[no-untyped-def]
        y = columns.T
        squares = (x**2).sum(1)[:, None] + (y**2).sum(1)[None] - 2.0 * np.einsum("ik,jk->ij", x, y)
        terms = np.exp(scale * np.maximum(squares, 0.0)) * np.outer(v, w)
        return (np.triu(terms, 1) if later else terms).sum()

    def with_itself(x, v, columns, w, scale, later):  # type: ignore[no-untyped-def]
        return pair_sum(x, v, columns, w, scale, later) + (v.sum() if later else 0.0)

    def no_weights(x, v, columns, w, scale, later):  # type: ignore[no-untyped-def]
        return pair_sum(x, np.ones_like(v), columns, np.ones_like(w), scale, later)

    def full_blocks_only(x, v, columns, w, scale, later):  # type: ignore[no-untyped-def]
        whole = max(BLOCK, columns.shape[1] // BLOCK * BLOCK)
        return pair_sum(x, v, np.ascontiguousarray(columns[:, :whole]), w, scale, later)

    def single_precision(x, v, columns, w, scale, later):  # type: ignore[no-untyped-def]
        return exact_sum(np.float32(x), v, np.float32(columns.T), w, scale, later)

    assert sum_error(expanded_squares, cases()["tight, far from the origin"]) > 1e-3
    for fault in (with_itself, no_weights, full_blocks_only, single_precision):
        assert sum_error(fault, cases()["ordinary"]) > 1e-9, fault


def test_repeated_draws_count_as_often_as_they_are_drawn() -> None:
    x, y, width = cases()["rejections"]
    n, m = len(x), len(y)
    ones, scale = np.ones(n), -0.5 / width**2
    within = 2.0 * exact_sum(x, ones, x, ones, scale, True) / (n * (n - 1.0))
    within += 2.0 * exact_sum(y, np.ones(m), y, np.ones(m), scale, True) / (m * (m - 1.0))
    across = exact_sum(x, ones, y, np.ones(m), scale, False) / (n * m)
    assert squared_mmd(x, y, width) == pytest.approx(within - 2.0 * across, abs=1e-14)
    stuck = np.full((30, 3), 0.5)  # every proposal rejected: all pairs coincide
    mean = exact_sum(stuck[:1], np.ones(1), y, np.ones(m), scale, False) / m
    y_within = 2.0 * exact_sum(y, np.ones(m), y, np.ones(m), scale, True) / (m * (m - 1.0))
    assert squared_mmd(stuck, y, width) == pytest.approx(1.0 + y_within - 2.0 * mean, abs=1e-14)


def test_results_are_bit_identical_for_any_memory_layout() -> None:
    x, y, width = cases()["thirty dimensions"]
    wanted = squared_mmd(x, y, width)
    read_only = x.copy()
    read_only.setflags(write=False)
    strided = np.zeros((2 * len(x), 60))[::2, ::2]
    strided[:] = x
    for layout in (x.copy(), np.asfortranarray(x), read_only, strided):
        assert squared_mmd(layout, y, width) == wanted
