"""One row moves every sum by at most twice its clip bound, plus rounding, whatever the rows are.

Every evaluator that `evaluators.evaluator_of` may choose is asked here, by its answers alone, so that every
kernel is reached. `sums` is the one place that knows how a sum is asked for.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpmc import evaluators
from dpmc.evaluators import kernels
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from dpmc.models.logistic import Logistic
from dpmc.models.mixture import Mixture
from evaluators.cases import COVARIANCE, MODELS

BOUND = 0.3
N = 700
MANY = 5000  #: rows of several blocks
#: Rounding of one clipped term and of the sum over n of them, relative to the bound; see `rounding`.
UNIT = 2.0**-53


def rounding(n: int) -> float:
    """Return by how much one row may move a sum of n terms beyond the bound, as a multiple of the bound.

    A sum of n terms of at most the bound, each with a relative error of a few units, has an error of at most
    n (n + few) units of the bound; a term may be taken from a sum of statistics as long as these are at most
    `WELL_CONDITIONED` times the bound.
    """
    return n * (n + 2.0 * kernels.WELL_CONDITIONED) * UNIT


class Mixed:
    """An affine form in which every component has all statistics: large terms cancel with rounding."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.matrix = np.linalg.qr(np.random.default_rng(5).normal(0.0, 1.0, (dimension, dimension)))[0]

    def ratio_form(self, theta: np.ndarray, proposal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        alpha = (proposal - theta) @ self.matrix
        return alpha, -0.5 * (alpha * (theta + proposal)).sum(axis=1)

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.tile(self.matrix, (len(theta), 1, 1)), -theta @ self.matrix.T

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        return rows


def normal(d: int) -> Banana:
    """Rows N(θ, I): the gradient of a row is its distance from θ."""
    return Banana(0.0, 0.0, 0.0, np.ones(d), 1e9)


class Case(NamedTuple):
    """A model, the sum to compute, the number of columns, and the components that all chains move."""

    model: Any
    columns: int
    asked: str  # ratio, gradient, or either of a batch
    moved: str = "some"  # two chains the first component, three the first and the last; or one, or all


ASKED = ("ratio", "gradient", "batch ratio", "batch gradient")
BENT = Banana(20.0, 0.0, 0.0, np.array([20.0, 2.5] + [1.0] * 8), 1000.0)
CASES = {
    **{f"{asked}, {d}": Case(normal(d), d, asked) for d in (2, 3, 11) for asked in ASKED},
    **{f"ratio of one component, {d}": Case(normal(d), d, "ratio", "one") for d in (2, 11)},
    **{f"ratio of all components, {d}": Case(normal(d), d, "ratio", "all") for d in (2, 3, 11)},
    **{f"generic {asked}": Case(MODELS["plain"], 3, asked) for asked in ASKED},
    **{f"one {asked}": Case(Gaussian(np.eye(1), 1e9, 1e9), 1, asked) for asked in ASKED},
    **{f"correlated {asked}": Case(Gaussian(COVARIANCE, 1e9, 1e9), 3, asked) for asked in ASKED},
    **{f"mixed {asked}, {d}": Case(Mixed(d), d, asked) for d in (2, 3) for asked in ("ratio", "gradient")},
    **{
        f"correlated {asked}, 2": Case(Gaussian(COVARIANCE[:2, :2], 1e9, 1e9), 2, asked, "all")
        for asked in ("ratio", "gradient")
    },
    "bent gradient": Case(Banana(20.0, 0.0, 0.0, np.array([20.0, 2.5]), 1000.0), 2, "gradient"),
    "bent gradient, 10": Case(BENT, 10, "gradient"),
    **{f"circle {asked}": Case(Circle(1e-3), 1, asked) for asked in ASKED},
    **{f"logistic {asked}": Case(Logistic(3, 1.0), 4, asked) for asked in ASKED},
    **{f"mixture {asked}": Case(Mixture(2.0, 3.0), 1, asked) for asked in ASKED},
}


def sums(
    case: Case, rows: np.ndarray, theta: np.ndarray, proposal: np.ndarray, bound: float = BOUND
) -> np.ndarray:
    """The clipped sums that a case asks for at positions (chains, d), as (chains, 1 or d)."""
    evaluator = evaluators.evaluator_of(case.model, rows)
    bounds = np.full(len(theta), bound)
    words = np.random.default_rng(0).integers(0, 2**64, (len(theta), len(rows) // 2), dtype=np.uint64)
    with np.errstate(all="ignore"):
        if case.asked == "ratio":
            return evaluator.ratio_sums(theta, proposal, bounds)[0][:, None]
        if case.asked == "gradient":
            return evaluator.gradient_sums(theta, bound)[0]
        if case.asked == "batch ratio":
            return evaluator.batch_ratio_sums(theta, proposal, bounds, words)[0][:, None]
        return evaluator.batch_gradient_sums(theta, bound, words)[0]


def neighbour(rows: np.ndarray, value: float, column: int | None) -> np.ndarray:
    """The rows with one of them replaced, or one number of it."""
    other = rows.copy()
    other[40, slice(None) if column is None else column] = value
    return other


def data(case: Case, n: int, offset: float, halves: bool) -> np.ndarray:
    """Rows with standard deviation 1 around an offset; every other one around 0 if `halves`."""
    generator = np.random.default_rng(1)
    rows = offset + generator.normal(0.0, 1.0, (n, case.columns))
    if halves:
        rows[::2] -= offset
    if isinstance(case.model, Circle):
        rows = np.sqrt(np.abs(rows))
    if isinstance(case.model, Logistic):
        rows[:, 0] = rows[:, 0] > np.median(rows[:, 0])
    return rows


def moves(case: Case, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions near the rows and proposals (5, d), which differ in the components that the case moves."""
    generator = np.random.default_rng(2)
    d = case.model.dimension
    theta = offset + generator.normal(0.0, 1.0, (5, d))
    if isinstance(case.model, Circle):
        angles = np.arange(5.0)
        theta = np.sqrt(offset + 10.0) * np.column_stack([np.cos(angles), np.sin(angles)])
    proposal = theta.copy()
    proposal[:, 0] += 0.4 * generator.normal(0.0, 1.0, 5)
    if case.moved == "some":
        proposal[2:, -1] += 0.4
    if case.moved == "all":
        proposal[:, 1:] += 0.4 * generator.normal(0.0, 1.0, (5, d - 1))
    return theta, proposal


def replacements(offset: float, columns: int) -> Iterator[tuple[float, int | None]]:
    """Return replacements of a row, or of its last number."""
    for value in (-offset, offset + 1e3, 1e8, -1e17, 1e103, -1e150):
        yield value, None
        if columns > 1:
            yield value, columns - 1


def largest_change(case: Case, n: int, bound: float, offset: float, halves: bool) -> float:
    """The largest change of a sum by one row, as a multiple of its sensitivity, twice the bound."""
    rows, (theta, proposal) = data(case, n, offset, halves), moves(case, offset)
    before, largest = sums(case, rows, theta, proposal, bound), 0.0
    for value, column in replacements(offset, case.columns):
        after = sums(case, neighbour(rows, value, column), theta, proposal, bound)
        assert np.isfinite(after).all(), (value, column)
        largest = max(largest, float(np.sqrt(((after - before) ** 2).sum(axis=1)).max()) / (2.0 * bound))
    return largest


@pytest.mark.parametrize("halves", [False, True], ids=["one cluster", "two clusters"])
@pytest.mark.parametrize("name", CASES)
def test_one_row_moves_a_sum_by_its_sensitivity_and_by_rounding(name: str, halves: bool) -> None:
    for offset in (0.0, 1e3, 1e6, 1e9, 1e12, 1e14):
        assert largest_change(CASES[name], N, BOUND, offset, halves) <= 1.0 + rounding(N), offset


@pytest.mark.parametrize("bound", [0.3, 2.0, 20.0])
@pytest.mark.parametrize("name", [name for name in CASES if "batch" not in name and "generic" not in name])
def test_one_row_moves_sums_of_statistics_by_its_sensitivity_and_by_rounding(name: str, bound: float) -> None:
    """Several blocks, of which few rows, many or all are within the bound."""
    for offset, halves in ((0.0, False), (1e3, True), (1e6, False), (1e9, True), (1e14, False)):
        assert largest_change(CASES[name], MANY, bound, offset, halves) <= 1.0 + rounding(MANY), offset


@pytest.mark.parametrize("asked", ["gradient", "batch gradient"])
@pytest.mark.parametrize("theta", [1e20, 1e29])
def test_a_gradient_that_is_not_finite_counts_as_zero_in_every_evaluator(asked: str, theta: float) -> None:
    """Rows so large that a bent model's gradient overflows, at positions that are still admitted."""
    bent = Banana(20.0, 0.0, 0.0, np.array([1e-140, 1e-140]), 1.0)
    rows = np.random.default_rng(4).normal(0.0, 1.0, (N, 2))
    rows[40] = 1e150
    place = np.array([[theta, 1.0], [-theta, -1.0]])
    found = sums(Case(bent, 2, asked), rows, place, place)
    assert np.isfinite(found).all()
    assert np.sqrt((found**2).sum(axis=1)).max() <= N * BOUND
