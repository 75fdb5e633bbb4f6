"""What the benchmarks share: CPU clocks, tables, evaluators to compare with, a sampler's moves."""

import csv
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.compiler import compiled
from dpmc.evaluators.affine import AffineEvaluator
from dpmc.evaluators.columns import SortedColumns
from dpmc.problem import Problem

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
POSITIONS = 16  # sets of positions that an evaluation is timed at, in turns


def cpu_seconds(run: Callable[[int], object], least: float = 0.03, rounds: int = 5) -> float:
    """CPU seconds of one call, the best of several rounds; `run(times)` makes that many calls."""
    times = 1
    while True:
        seconds = _cpu(run, times)
        if seconds > least:
            break
        times = max(times + 1, int(times * min(8.0, 1.3 * least / max(seconds, 1e-9))))
    return min([seconds, *(_cpu(run, times) for _ in range(rounds - 1))]) / times


def _cpu(run: Callable[[int], object], times: int) -> float:
    began = time.process_time()
    run(times)
    return time.process_time() - began


def table(name: str, header: Iterable[str], rows: list[list[Any]], title: str = "") -> None:
    """Print a Markdown table and write it to results/<name>.csv, floats with three significant digits."""
    header = list(header)
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in [header, *cells]) for i in range(len(header))]
    if title:
        print(f"\n{title}\n")
    for line in [header, ["-" * width for width in widths], *cells]:
        print("| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |")
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"{name}.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *cells])


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000.0 else f"{value:.0f}"
    return str(value)


def dense(model: Any, rows: np.ndarray) -> Any:
    """The evaluator of a model that reads every row: nothing sorted, a tree that settles nothing.

    A single statistic, which is always sorted, gets a second one of zeros beside it.
    """
    statistics = model.statistics(rows)
    if statistics.shape[1] == 1:
        statistics = np.column_stack([statistics, np.zeros(len(rows))])
    return without_tree(AffineEvaluator.build(statistics, False))


def without_tree(evaluator: Any) -> Any:
    """The same evaluator with a tree that settles nothing and without sorted columns."""
    tree = evaluator.tree
    unbounded = {"half": np.full(tree.half.shape, 1e200), "far": np.full(tree.far.shape, 1e200)}
    return without_sorting(evaluator)._replace(tree=tree._replace(**unbounded))


def without_sorting(evaluator: Any) -> Any:
    """The same evaluator without its sorted columns: every sum goes through the tree."""
    empty = SortedColumns.build(np.empty((0, int(evaluator.tree.size[0]))))
    return evaluator._replace(sorted_columns=empty)


class PlainModel:
    """A catalogue model as a user would write it: formulas on rows, no affine form."""

    def __init__(self, model: Any) -> None:
        self._model = model
        for name in ("dimension", "log_likelihood", "log_prior", "log_prior_gradient"):
            setattr(self, name, getattr(model, name))

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """∇ ln p(x_j|θ), (n, d)."""
        statistics = self._model.statistics(rows)
        linear, constant = np.zeros((len(theta), statistics.shape[1])), np.zeros(len(theta))
        self._model.gradient(theta, linear, constant)
        return statistics @ linear.T + constant


def _repeat_ratio(evaluator, model, theta, proposal, bound, sums, counts, times):  # type: ignore[no-untyped-def]
    """Evaluate log ratios at (sets, chains, d) positions, set after set, `times` times."""
    for i in range(times):
        s = i % theta.shape[0]
        evaluator.ratio_sums(model, theta[s], proposal[s], bound[s], sums, counts)


def _repeat_gradient(evaluator, model, theta, bound, sums, counts, times):  # type: ignore[no-untyped-def]
    """Evaluate gradients at (sets, chains, d) positions, set after set, `times` times."""
    for i in range(times):
        evaluator.gradient_sums(model, theta[i % theta.shape[0]], bound, sums, counts)


_compiled_ratio = compiled(_repeat_ratio)
_compiled_gradient = compiled(_repeat_gradient)


class Moves:
    """Moves (sets, chains, d) of one kind with the bounds of their log ratios."""

    def __init__(self, theta: np.ndarray, proposal: np.ndarray, clip: float) -> None:
        self.theta, self.proposal = theta, proposal
        self.bound = clip * np.sqrt(((theta - proposal) ** 2).sum(axis=2))

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """θ and θ' of all moves, (moves, d) each."""
        d = self.theta.shape[2]
        return self.theta.reshape(-1, d), self.proposal.reshape(-1, d)

    def few(self, chains: int) -> "Moves":
        """Moves of the first chains alone."""
        chosen = Moves.__new__(Moves)
        chosen.theta, chosen.proposal = self.theta[:, :chains].copy(), self.proposal[:, :chains].copy()
        chosen.bound = self.bound[:, :chains].copy()
        return chosen


def positions(problem: Problem, chains: int, sets: int = POSITIONS) -> np.ndarray:
    """Exact posterior draws (sets, chains, d)."""
    posterior = problem.model.posterior(problem.rows, problem.temperature)
    draws = posterior.draws(np.random.default_rng(1), sets * chains)
    return draws.reshape(sets, chains, problem.dimension)  # type: ignore[no-any-return]


def walk(theta: np.ndarray, sd: Any, clip: float, one_component: bool = False) -> Moves:
    """Random-walk moves from θ (sets, chains, d), of all components or of one that is drawn."""
    generator = np.random.default_rng(2)
    step = generator.standard_normal(theta.shape) * np.asarray(sd)
    if one_component:
        moved = generator.integers(0, theta.shape[2], theta.shape[:2])
        step *= moved[..., None] == np.arange(theta.shape[2])
    return Moves(theta, theta + step, clip)


def ratio_seconds(evaluator: Any, model: Any, moves: Moves, **options: Any) -> float:
    """CPU seconds of one log ratio of one chain."""
    chains = moves.theta.shape[1]
    sums, counts = np.zeros(chains), np.zeros(chains, np.int64)
    repeat = _compiled_ratio if isinstance(evaluator, tuple) else _repeat_ratio
    arguments = (evaluator, model, moves.theta, moves.proposal, moves.bound, sums, counts)
    repeat(*arguments, 1)
    return cpu_seconds(lambda times: repeat(*arguments, times), **options) / chains


def gradient_seconds(evaluator: Any, model: Any, theta: np.ndarray, bound: float, **options: Any) -> float:
    """CPU seconds of one gradient of one chain, θ (sets, chains, d)."""
    sums, counts = np.zeros(theta.shape[1:]), np.zeros(theta.shape[1], np.int64)
    repeat = _compiled_gradient if isinstance(evaluator, tuple) else _repeat_gradient
    arguments = (evaluator, model, theta, bound, sums, counts)
    repeat(*arguments, 1)
    return cpu_seconds(lambda times: repeat(*arguments, times), **options) / theta.shape[1]


def slope(x: Iterable[float], y: Iterable[float]) -> float:
    """Least-squares slope of ln y against ln x."""
    return float(np.polyfit(np.log(np.array(list(x))), np.log(np.array(list(y))), 1)[0])
