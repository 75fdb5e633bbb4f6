"""How much of the rows an evaluation looks at: upper bounds by counting, no clocks.

Settings are the published ones; with n rows, moves are scaled by 1/√n as a chain's are.
"""

import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from dpmc import compiler
from dpmc.evaluators import affine, plane
from dpmc.evaluators.affine import BLOCK, AffineEvaluator
from dpmc.evaluators.columns import SortedColumns, sorted_sum
from dpmc.evaluators.plane import line_sum, plane_sums, triangular
from dpmc.evaluators.proxies import POINTS
from dpmc.evaluators.tree import BOXED, certain_gradients, new_stack
from dpmc.models.banana import Banana
from evaluators.looks import Counted, NodesCounted
from kernels.ladder import mutant

MOVES = 20


class Setting:
    """A banana with its exact posterior draws and the moves of a random walk from them."""

    def __init__(self, n: int, d: int, a: float, sd: float) -> None:
        generator = np.random.default_rng(n + d)
        self.n = n
        self.model = Banana(a, 0.0, 0.0, np.array([20.0, 2.5] + [1.0] * (d - 2)), 1000.0)
        rows = self.model.simulate(generator, np.array([0.0, 3.0] + [0.0] * (d - 2)), n)
        self.statistics = self.model.statistics(rows)
        self.theta = self.model.posterior(rows, 1.0).draws(generator, MOVES)
        self.proposal = self.theta + sd / np.sqrt(n) * generator.standard_normal(self.theta.shape)
        self.evaluator = AffineEvaluator.build(self.statistics, False)

    def ratio_share(self, clip: float) -> float:
        """Share of rows that log ratios read, on average over moves."""
        rows, looks, scratch = self.rows_counted()
        for theta, proposal in zip(self.theta, self.proposal, strict=True):
            alpha = np.zeros(2)
            gamma = self.model.ratio(theta, proposal, alpha)
            bound = clip * np.sqrt(((theta - proposal) ** 2).sum())
            line_sum(rows, self.evaluator.tree, *alpha, gamma, bound, scratch)
        return len(looks) / (MOVES * len(self.evaluator.blocks))

    def gradient_share(self, clip: float) -> float:
        """Share of rows that gradients read, proxies among them, on average over positions."""
        rows, looks, scratch = self.rows_counted()
        tree, nodes = self.evaluator.tree, []  # type: Any, list[int]
        weights = NodesCounted(self.evaluator.proxies.weights, nodes)
        proxies = self.evaluator.proxies._replace(weights=weights)
        d, k = self.theta.shape[1], self.statistics.shape[1]
        for theta in self.theta:
            linear, constant = np.zeros((d, k)), np.zeros(d)
            self.model.gradient(theta, linear, constant)
            if k == BOXED:
                six = triangular(linear, constant, np.zeros((3, d)))
                plane_sums(rows, tree, proxies, six, clip, scratch)
            else:
                todo = np.zeros(len(self.evaluator.blocks), bool)
                certain_gradients(tree, linear, constant, clip, todo, np.zeros(k), scratch)
                looks.extend(np.flatnonzero(todo))
        read = len(looks) / len(self.evaluator.blocks) + len(nodes) * POINTS**2 / self.n
        return read / MOVES

    def rows_counted(self) -> tuple[Any, list[int], np.ndarray]:
        """The rows, a list of the blocks that somebody looks at, and scratch for a walk."""
        looks: list[int] = []
        return (NodesCounted(self.evaluator.blocks, looks), self.n), looks, new_stack()


def flat_banana(n: int) -> Setting:
    return Setting(n, 2, 20.0, 0.008 * np.sqrt(1e5))


def gauss_30d() -> Setting:
    return Setting(20_000, 30, 0.0, 0.00084 * np.sqrt(2e5))


def any_order(columns: np.ndarray, _: np.ndarray, __: int) -> np.ndarray:
    """A seeded fault: rows go into blocks as they come."""
    return np.random.default_rng(1).permutation(columns.shape[1])


#: What is counted, and its upper bound; what there is now is about two thirds of the bound.
WORK: dict[str, tuple[Callable[[], float], float]] = {
    "log ratio, full move, flat banana": (lambda: flat_banana(100_000).ratio_share(2.0), 0.015),
    "gradient, flat banana": (lambda: flat_banana(100_000).gradient_share(1.0), 0.3),
    "gradient, 30-d Gaussian": (lambda: gauss_30d().gradient_share(6.0), 0.3),
}


@pytest.mark.parametrize(("share", "most"), WORK.values(), ids=WORK)
def test_few_rows_are_read(share: Callable[[], float], most: float) -> None:
    assert share() <= most


@pytest.mark.parametrize(("share", "most"), WORK.values(), ids=WORK)
def test_rows_in_any_order_are_seen(share: Callable[[], float], most: float, monkeypatch: Any) -> None:
    monkeypatch.setattr(affine, "order_rows", any_order)
    assert share() > most


def growth(share: Callable[[Setting], float]) -> float:
    """Exponent with which the rows read grow, from 10⁴ to 10⁶ rows."""
    read = [setting.n * share(setting) for setting in (flat_banana(10**4), flat_banana(10**6))]
    return float(np.log(read[1] / read[0]) / np.log(100.0))


def test_log_ratios_read_a_number_of_rows_that_grows_like_a_root() -> None:
    assert growth(lambda setting: setting.ratio_share(2.0)) <= 0.55


def test_gradients_read_a_number_of_rows_that_grows_like_a_root() -> None:
    assert growth(lambda setting: setting.gradient_share(1.0)) <= 0.58


def test_without_proxies_the_growth_is_seen(monkeypatch: Any) -> None:
    monkeypatch.setattr(plane, "REACH", np.inf)
    assert growth(lambda setting: setting.gradient_share(1.0)) > 0.65


def test_without_order_the_growth_is_seen(monkeypatch: Any) -> None:
    monkeypatch.setattr(affine, "order_rows", any_order)
    assert growth(lambda setting: setting.ratio_share(2.0)) > 0.75


def most_looks(n: int, function: Callable[..., Any] = sorted_sum) -> int:
    """Looks at the rows and prefix sums of one sorted evaluation, the worst of many moves."""
    generator = np.random.default_rng(n)
    columns, worst = SortedColumns.build(generator.standard_normal((1, n))), 0
    for alpha, gamma, bound in generator.normal(0.0, 1.0, (50, 3)):
        looks: list[int] = []
        tables = {name: Counted(getattr(columns, name), looks) for name in ("ordered", "sparse", "prefix")}
        function(columns._replace(**tables), 0, alpha, gamma, abs(bound))
        worst = max(worst, len(looks))
    return worst


@pytest.mark.parametrize("n", [10, 1000, 100_000])
def test_a_sorted_evaluation_looks_at_a_logarithm_of_the_rows(n: int) -> None:
    assert most_looks(n) <= 2 * int(np.ceil(np.log2(n + 1))) + 4


def test_a_search_that_does_not_halve_is_seen() -> None:
    fault = ("half = (left + 1) // 2", "half = (left + 49) // 50")
    slow = mutant("dpmc.evaluators.columns", fault)["sorted_sum"]
    assert most_looks(1000, slow) > 2 * 10 + 4


def test_a_tree_has_a_node_for_few_rows() -> None:
    """Walking the tree is no more work than a small share of reading the rows."""
    setting = flat_banana(100_000)
    assert len(setting.evaluator.tree.size) <= 4 * setting.n / (BLOCK // 2)


class Blocks:
    """Blocks whose number and content nobody may ask for."""

    class Shape(tuple):
        def __getitem__(self, index: Any) -> Any:
            assert index != 0, "a sorted evaluation counts the blocks"
            return super().__getitem__(index)

    def __init__(self, blocks: np.ndarray) -> None:
        self.shape = self.Shape(blocks.shape)


def test_a_sorted_evaluation_does_nothing_for_each_block() -> None:
    setting = flat_banana(10_000)
    evaluator = AffineEvaluator.build(setting.statistics, True)
    evaluator = evaluator._replace(blocks=Blocks(evaluator.blocks))
    theta, proposal = setting.theta, setting.theta.copy()
    proposal[:, 1] += 1e-3
    sums, counts = np.zeros(MOVES), np.zeros(MOVES, np.int64)
    evaluator.ratio_sums(setting.model, theta, proposal, np.full(MOVES, 1e-3), sums, counts)
    with pytest.raises(AssertionError, match="counts the blocks"):
        evaluator.ratio_sums(setting.model, theta, setting.proposal, np.full(MOVES, 1e-3), sums, counts)


def gradients(blocks, n, todo, lines, bound, work, factors, sums, counts):  # type: ignore[no-untyped-def]
    affine.read_gradients(blocks, n, todo, lines, bound, work, factors, sums, counts)


def ratios(blocks, n, todo, lines, bound, work, sums, counts):  # type: ignore[no-untyped-def]
    affine.read_ratios(blocks, n, todo, lines, bound, work, sums, counts)


def planes(rows, tree, proxies, six, bound, stack):  # type: ignore[no-untyped-def]
    return plane.plane_sums(rows, tree, proxies, six, bound, stack)


def lines(rows, tree, a, b, gamma, bound, stack):  # type: ignore[no-untyped-def]
    return plane.line_sum(rows, tree, a, b, gamma, bound, stack)


def times_counted(function: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """How often its machine code, with that of all it calls, counts that an array is used, as written."""
    compiler.prepare()
    machine_code = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    types = tuple(numba.typeof(argument) for argument in arguments)
    machine_code.compile(types)
    return len(re.findall(r"call [^\n]*NRT_incref", machine_code.inspect_llvm(types)))


def number_of_arrays(argument: Any) -> int:
    """How many arrays there are in a tuple of tuples."""
    if isinstance(argument, tuple):
        return sum(map(number_of_arrays, argument))
    return int(isinstance(argument, np.ndarray))


#: Who reads blocks, and the same text to be compiled as it comes.
READERS: dict[Callable[..., Any], Callable[..., Any]] = {
    gradients: affine.read_gradients,
    ratios: affine.read_ratios,
    planes: plane.plane_sums,
    lines: plane.line_sum,
}


@pytest.mark.parametrize("read", READERS)
def test_only_arguments_are_counted_not_the_blocks_that_are_read(read: Callable[..., Any]) -> None:
    chains, k, blocks = 3, 2, np.zeros((4, 2, 256))
    common = blocks, 1000, np.zeros((chains, len(blocks)), np.bool_)
    scratch, counts, each = np.zeros((4, 256)), np.zeros(chains, np.int64), np.zeros(chains)
    pairs = np.zeros((chains, k))
    squares, line = np.zeros((chains, k, k)), (1.0, 1.0, 1.0, 1.0)
    built = AffineEvaluator.build(np.random.default_rng(1).normal(size=(500, 2)), False)
    rows, stack = (built.blocks, 500), new_stack()
    arguments: tuple[Any, ...] = {
        ratios: (*common, (pairs.astype(int), pairs, counts, each), each, scratch, each, counts),
        gradients: (
            *common,
            (squares.astype(int), squares, pairs.astype(int), pairs),
            *(1.0, scratch[:2], scratch[2], pairs, counts),
        ),
        planes: (rows, built.tree, built.proxies, (*line, 1.0, 1.0), 1.0, stack),
        lines: (rows, built.tree, *line, stack),
    }[read]
    arrays = number_of_arrays(arguments)
    assert times_counted(read, arguments) <= arrays
    assert times_counted(READERS[read], arguments) > arrays  # the control
