"""Numbers of rows that an evaluation reads: upper bounds by counting, for moves of real chains."""

from typing import Any

import numpy as np
import pytest

from dpmc import evaluators
from dpmc.evaluators import kernels
from dpmc.models.banana import Banana

MOVES = 10


def walk(n: int, d: int, a: float, sd: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """The evaluator of a banana, draws of its posterior, and the moves of a random walk from them."""
    generator = np.random.default_rng(n + d)
    model = Banana(a, 0.0, 0.0, np.array([20.0, 2.5] + [1.0] * (d - 2)), 1000.0)
    rows = model.simulate(generator, np.array([0.0, 3.0] + [0.0] * (d - 2)), n)
    theta = model.posterior(rows, 1.0).draws(generator, MOVES)
    proposal = theta + sd * generator.standard_normal(theta.shape)
    return evaluators.build(model, rows), theta, proposal


def rows_read(monkeypatch: Any, n: int) -> float:
    """Rows that a log ratio reads on average, in strips; the text of the kernel runs in Python."""
    read: list[int] = []

    def counting(strips: Any, s: int, first: int, end: int, *_: Any) -> tuple[float, int]:
        read.append(max(0, end - first))
        return 0.0, 0

    monkeypatch.setattr(kernels, "read_ratios", counting)
    evaluator, theta, proposal = walk(n, 2, 20.0, 0.008 * np.sqrt(1e5 / n))
    kernel = getattr(kernels.strip_ratio_sums, "py_func", kernels.strip_ratio_sums)
    monkeypatch.setattr(kernels, "strip_ratio_sums", kernel)
    evaluator.ratio_sums(theta, proposal, 2.0 * np.sqrt(((theta - proposal) ** 2).sum(axis=1)))
    return sum(read) / MOVES


def test_log_ratios_of_two_statistics_read_few_rows(monkeypatch: Any) -> None:
    assert 0 < rows_read(monkeypatch, 100_000) <= 0.05 * 100_000


def first_blocks(monkeypatch: Any, name: str) -> list[float]:
    """Shares of the rows that a block kernel is told to skip."""
    shares: list[float] = []
    kernel = getattr(kernels, name)

    def noting(blocks: Any, n: int, first: Any, *rest: Any) -> Any:
        shares.extend(first / len(blocks))
        return kernel(blocks, n, first, *rest)

    monkeypatch.setattr(kernels, name, noting)
    return shares


@pytest.mark.parametrize("kind", ["ratio", "gradient"])
def test_most_rows_of_thirty_statistics_are_not_read(kind: str, monkeypatch: Any) -> None:
    evaluator, theta, proposal = walk(20_000, 30, 0.0, 0.00084 * np.sqrt(10.0))
    settled = first_blocks(monkeypatch, f"block_{kind}_sums")
    if kind == "ratio":
        evaluator.ratio_sums(theta, proposal, 6.0 * np.sqrt(((theta - proposal) ** 2).sum(axis=1)))
    else:
        evaluator.gradient_sums(theta, 6.0)
    assert len(settled) == MOVES
    assert np.mean(settled) >= 0.6
