"""What one row can do: it moves every sum by its clip bound, twice, and by rounding; whatever the rows are.

Every evaluator that `evaluators.build` may choose is asked here, by its answers alone, in Python and, where
it can be, compiled. `sums` is the one place that knows how a sum is asked for.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpmc import evaluators
from dpmc.compiler import compiled
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from dpmc.models.logistic import Logistic
from dpmc.models.mixture import Mixture

BOUND = 0.3
N = 700
#: Rounding of one clipped term and of the sum over n of them, relative to the bound; see `rounding`.
UNIT = 2.0**-53


def rounding(n: int) -> float:
    """How much more than the bound one row may move a sum of n terms, as a multiple of the bound.

    A sum of n terms of at most the bound, each with a relative error of a few units, has an error of at most
    n (n + few) units of the bound; a term may be taken from a sum of statistics as long as these are at most
    `evaluators.WELL_CONDITIONED` times the bound.
    """
    return n * (n + 2.0 * evaluators.WELL_CONDITIONED) * UNIT


class Generic:
    """A normal model of d components by its formulas alone."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return ((theta * rows) - 0.5 * theta**2).sum(axis=1)

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return rows - theta


def normal(d: int) -> Banana:
    """Rows N(θ, I): the gradient of a row is its distance from θ."""
    return Banana(0.0, 0.0, 0.0, np.ones(d), 1e9)


COVARIANCE = np.array([[2.0, -0.6, 0.1], [-0.6, 0.9, 0.3], [0.1, 0.3, 1.4]])


class Case(NamedTuple):
    """A model, how it is asked, and how many columns its rows have."""

    model: Any
    columns: int
    asked: str  # ratio, gradient, or either of a batch
    one_component: bool = False


CASES = {
    **{f"{asked}, {d}": Case(normal(d), d, asked) for d in (2, 3, 11) for asked in ("ratio", "gradient")},
    **{f"sorted ratio, {d}": Case(normal(d), d, "ratio", True) for d in (2, 11)},
    **{
        f"batch {asked}, {d}": Case(normal(d), d, f"batch {asked}")
        for d in (2, 11)
        for asked in ("ratio", "gradient")
    },
    **{
        f"generic {asked}": Case(Generic(3), 3, asked)
        for asked in ("ratio", "gradient", "batch ratio", "batch gradient")
    },
    **{
        f"one {asked}": Case(Gaussian(np.eye(1), 1e9, 1e9), 1, asked)
        for asked in ("ratio", "gradient", "batch gradient")
    },
    **{
        f"correlated {asked}": Case(Gaussian(COVARIANCE, 1e9, 1e9), 3, asked)
        for asked in ("ratio", "gradient", "batch gradient")
    },
    "bent gradient": Case(Banana(20.0, 0.0, 0.0, np.array([20.0, 2.5]), 1000.0), 2, "gradient"),
    "bent gradient, 10": Case(
        Banana(20.0, 0.0, 0.0, np.array([20.0, 2.5] + [1.0] * 8), 1000.0), 10, "gradient"
    ),
    **{
        f"circle {asked}": Case(Circle(1e-3), 1, asked)
        for asked in ("ratio", "gradient", "batch ratio", "batch gradient")
    },
    **{
        f"logistic {asked}": Case(Logistic(3, 1.0), 4, asked)
        for asked in ("ratio", "gradient", "batch ratio")
    },
    **{f"mixture {asked}": Case(Mixture(2.0, 3.0), 1, asked) for asked in ("ratio", "batch ratio")},
}


def _ratio(evaluator, model, theta, proposal, bound, sums, counts):  # type: ignore[no-untyped-def]
    evaluator.ratio_sums(model, theta, proposal, bound, sums, counts)


def _gradient(evaluator, model, theta, bound, sums, counts):  # type: ignore[no-untyped-def]
    evaluator.gradient_sums(model, theta, bound, sums, counts)


def _batch_ratio(evaluator, model, theta, proposal, bound, words, sums, squares, counts):  # type: ignore[no-untyped-def]
    evaluator.batch_sums(model, theta, proposal, bound, words, 0, sums, squares, counts)


def _batch_gradient(evaluator, model, theta, bound, words, sums, counts):  # type: ignore[no-untyped-def]
    evaluator.batch_gradient_sums(model, theta, bound, words, 0, sums, counts)


CALLS: dict[str, dict[bool, Callable[..., None]]] = {
    name: {False: call, True: compiled(call)}
    for name, call in (
        ("ratio", _ratio),
        ("gradient", _gradient),
        ("batch ratio", _batch_ratio),
        ("batch gradient", _batch_gradient),
    )
}


def sums(case: Case, rows: np.ndarray, theta: np.ndarray, proposal: np.ndarray, fast: bool) -> np.ndarray:
    """The clipped sums that a case asks for at positions (chains, d), as (chains, 1 or d)."""
    batches = case.asked.startswith("batch")
    gradients = case.asked.endswith("gradient")
    evaluator = evaluators.build(case.model, rows, case.one_component, batches, gradients)
    call = CALLS[case.asked][fast and evaluators.compiles(evaluator)]
    chains, d = theta.shape
    counts = np.zeros(chains, np.int64)
    words = np.random.default_rng(0).integers(0, 2**64, (chains, 1, len(rows) // 2), dtype=np.uint64)
    with np.errstate(all="ignore"):
        if gradients:
            found = np.zeros((chains, d))
            arguments = (words, found, counts) if batches else (found, counts)
            call(evaluator, case.model, theta, BOUND, *arguments)
            return found
        found, bound = np.zeros(chains), np.full(chains, BOUND)
        arguments = (words, found, np.zeros(chains), counts) if batches else (found, counts)
        call(evaluator, case.model, theta, proposal, bound, *arguments)
        return found[:, None]


def neighbour(rows: np.ndarray, value: float, column: int | None) -> np.ndarray:
    """The rows with one of them replaced, or one number of it."""
    other = rows.copy()
    other[40, slice(None) if column is None else column] = value
    return other


def data(case: Case, offset: float, halves: bool) -> np.ndarray:
    """Rows with standard deviation 1 around an offset; every other one around 0 if `halves`."""
    generator = np.random.default_rng(1)
    rows = offset + generator.normal(0.0, 1.0, (N, case.columns))
    if halves:
        rows[::2] -= offset
    if isinstance(case.model, Circle):
        rows = np.sqrt(np.abs(rows))
    if isinstance(case.model, Logistic):
        rows[:, 0] = rows[:, 0] > np.median(rows[:, 0])
    return rows


def moves(case: Case, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions near the rows and proposals (5, d); the first two move one component."""
    generator = np.random.default_rng(2)
    d = case.model.dimension
    theta = offset + generator.normal(0.0, 1.0, (5, d))
    if isinstance(case.model, Circle):
        angles = np.arange(5.0)
        theta = np.sqrt(offset + 10.0) * np.column_stack([np.cos(angles), np.sin(angles)])
    proposal = theta.copy()
    proposal[:, 0] += 0.4 * generator.normal(0.0, 1.0, 5)
    proposal[2:, -1] += 0.4
    return theta, proposal


def replacements(offset: float, columns: int) -> Iterator[tuple[float, int | None]]:
    """What a row, or its last number, is replaced by."""
    for value in (-offset, offset + 1e3, 1e8, -1e17, 1e103, -1e150):
        yield value, None
        if columns > 1:
            yield value, columns - 1


def largest_change(case: Case, offset: float, halves: bool, fast: bool) -> float:
    """The largest change of a sum by one row, as a multiple of its sensitivity 2 · BOUND."""
    rows, (theta, proposal) = data(case, offset, halves), moves(case, offset)
    before, largest = sums(case, rows, theta, proposal, fast), 0.0
    for value, column in replacements(offset, case.columns):
        after = sums(case, neighbour(rows, value, column), theta, proposal, fast)
        assert np.isfinite(after).all(), (value, column)
        largest = max(largest, float(np.sqrt(((after - before) ** 2).sum(axis=1)).max()) / (2.0 * BOUND))
    return largest


@pytest.mark.parametrize("halves", [False, True], ids=["one cluster", "two clusters"])
@pytest.mark.parametrize("name", CASES)
def test_one_row_moves_a_sum_by_its_sensitivity_and_by_rounding(name: str, halves: bool) -> None:
    for offset in (0.0, 1e3, 1e6, 1e9, 1e12, 1e14):
        assert largest_change(CASES[name], offset, halves, fast=True) <= 1.0 + rounding(N), offset


@pytest.mark.parametrize("name", [name for name in CASES if "generic" not in name])
def test_so_it_is_in_python(name: str) -> None:
    for offset in (0.0, 1e14):
        assert largest_change(CASES[name], offset, True, fast=False) <= 1.0 + rounding(N), offset


class Cubic(NamedTuple):
    """A model with the statistics x, x² and x³: one row of 1e103 has a third that is infinite."""

    dimension: int = 3

    def ratio(self, theta, proposal, alpha):  # type: ignore[no-untyped-def]
        for i in range(3):
            alpha[i] = proposal[i] - theta[i]
        return 0.0

    def gradient(self, theta, linear, constant):  # type: ignore[no-untyped-def]
        for i in range(3):
            linear[i, i] = 1.0
            constant[i] = -theta[i]

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        return np.column_stack([rows, rows**2, rows**3])

    def line(self, theta, alpha):  # type: ignore[no-untyped-def]
        for i in range(3):
            alpha[i] = theta[i]
        return 0.0


class CubicSoftplus(NamedTuple):
    """The same statistics in the softplus form."""

    dimension: int = 3

    def line(self, theta, alpha):  # type: ignore[no-untyped-def]
        alpha[:] = 0.0
        return 0.0

    def link(self, theta, beta):  # type: ignore[no-untyped-def]
        for i in range(3):
            beta[i] = theta[i]
        return 0.0

    def sign(self):  # type: ignore[no-untyped-def]
        return -1.0

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        return np.column_stack([rows, rows**2, rows**3])


ASKED = ("ratio", "gradient", "batch ratio", "batch gradient")


@pytest.mark.parametrize("asked", [*ASKED, "softplus ratio", "softplus batch ratio"])
@pytest.mark.parametrize("value", [1e103, -1e120])
def test_a_row_whose_statistics_are_not_finite_counts_as_nothing(asked: str, value: float) -> None:
    """It moves no sum by more than half the sensitivity: the sum is that of the other rows."""
    model = CubicSoftplus() if asked.startswith("softplus") else Cubic()
    case = Case(model, 1, asked.removeprefix("softplus "))
    generator = np.random.default_rng(3)
    rows = generator.normal(0.0, 1.0, (N, 1))
    theta, proposal = generator.normal(0.0, 0.3, (2, 5, 3))
    before = sums(case, rows, theta, proposal, fast=False)
    with np.errstate(over="ignore"):
        after = sums(case, neighbour(rows, value, None), theta, proposal, fast=False)
    assert np.isfinite(after).all()
    assert np.sqrt(((after - before) ** 2).sum(axis=1)).max() <= BOUND * (1.0 + rounding(N))
    if not asked.endswith("gradient") and "batch" not in asked:
        others = sums(case, np.delete(rows, 40, axis=0), theta, proposal, fast=False)
        np.testing.assert_allclose(after, others, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("asked", ["gradient", "batch gradient"])
@pytest.mark.parametrize("theta", [1e20, 1e29])
def test_a_gradient_that_is_not_finite_counts_as_nothing_in_every_evaluator(asked: str, theta: float) -> None:
    """Rows so large that a bent model's gradient overflows, at positions that are still admitted."""
    bent = Banana(20.0, 0.0, 0.0, np.array([1e-140, 1e-140]), 1.0)
    rows = np.random.default_rng(4).normal(0.0, 1.0, (N, 2))
    rows[40] = 1e150
    place = np.array([[theta, 1.0], [-theta, -1.0]])
    found = sums(Case(bent, 2, asked), rows, place, place, fast=True)
    assert np.isfinite(found).all()
    assert np.sqrt((found**2).sum(axis=1)).max() <= N * BOUND


def test_a_log_ratio_of_minus_infinity_keeps_its_meaning() -> None:
    class Cut:
        """Rows beyond θ are impossible."""

        def log_likelihood(self, theta: Any, rows: Any) -> Any:
            return np.where(rows[:, 0] > theta[0], -np.inf, 0.0)

    rows = np.linspace(0.0, 1.0, 10)[:, None]
    case = Case(Cut(), 1, "ratio")
    found = sums(case, rows, np.array([[2.0]]), np.array([[0.5]]), fast=False)
    assert found[0, 0] == pytest.approx(-5 * BOUND)
