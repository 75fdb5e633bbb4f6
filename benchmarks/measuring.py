"""Functions that the benchmarks share: a CPU clock, tables, and the moves at which sums are timed."""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dpmc.evaluators.generic import Evaluator

ROOT = Path(__file__).resolve().parent.parent
CHAINS = 40


class Moves(NamedTuple):
    """Moves from θ to θ' (chains, d), with the bounds (chains,) of their log ratios."""

    theta: np.ndarray
    proposal: np.ndarray
    bound: np.ndarray


def walk(theta: np.ndarray, sd: Any, clip: float, one_component: bool = False) -> Moves:
    """Draw random-walk moves from θ, of all components or of one random component."""
    generator = np.random.default_rng(2)
    step = generator.standard_normal(theta.shape) * sd
    if one_component:
        step *= generator.integers(0, theta.shape[1], len(theta))[:, None] == np.arange(theta.shape[1])
    proposal = theta + step
    return Moves(theta, proposal, clip * np.sqrt(((proposal - theta) ** 2).sum(axis=1)))


def ratio_seconds(evaluator: Evaluator, moves: Moves) -> float:
    """Return CPU seconds per chain of the clipped log-ratio sum, all chains together."""
    return cpu_seconds(lambda: evaluator.ratio_sums(*moves)) / len(moves.theta)


def gradient_seconds(evaluator: Evaluator, theta: np.ndarray, bound: float) -> float:
    """Return CPU seconds per chain of the clipped gradient sum, all chains together."""
    return cpu_seconds(lambda: evaluator.gradient_sums(theta, bound)) / len(theta)


def cpu_seconds(run: Callable[[], object], rounds: int = 7, least: float = 0.02) -> float:
    """Return CPU seconds of one call: the best of several rounds, each of `least` seconds or more."""
    times, found = 1, []
    with threadpool_limits(1, user_api="blas"):  # the CPU time of waiting threads counts too
        run()  # compile, and make layouts of rows
        while len(found) < rounds:
            began = time.process_time()
            for _ in range(times):
                run()
            seconds = time.process_time() - began
            if seconds < least:
                times *= 2
            else:
                found.append(seconds / times)
    return min(found)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a Markdown table row by row, numbers with three significant digits."""
    for cells in chain([header, ["---"] * len(header)], rows):
        print("| " + " | ".join(_text(cell) for cell in cells) + " |", flush=True)


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000.0 else f"{value:.0f}"
