"""Measure the time of one MMD^2, compiled and by SciPy: `python benchmarks/mmd.py`.

Prints milliseconds of CPU time, their ratio and nanoseconds per pair of draws. Draws of the line "rejections"
repeat as in a chain that accepts a third of its proposals; repeated pairs are counted.
"""

import time
from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from dpmc.metrics import mmd

REFERENCE = 1000  # exact draws with which a chain is compared
ROWS = 500  # rows of SciPy's matrix held at once


def scipy_sum(x: np.ndarray, y: np.ndarray, scale: float) -> float:
    """Return the sum of the kernel over all pairs, by matrices of `ROWS` rows."""
    total = 0.0
    for begin in range(0, len(x), ROWS):
        kernel = cdist(x[begin : begin + ROWS], y, "sqeuclidean")
        kernel *= scale
        total += float(np.exp(kernel, out=kernel).sum())
    return total


def scipy_within(x: np.ndarray, scale: float) -> float:
    """Return the sum over pairs of different draws; blocks off the diagonal are computed once."""
    total = 0.0
    for begin in range(0, len(x), ROWS):
        block = x[begin : begin + ROWS]
        total += scipy_sum(block, block, scale) - len(block)
        total += 2.0 * scipy_sum(block, x[begin + ROWS :], scale)
    return total


def scipy_mmd(x: np.ndarray, y: np.ndarray, width: float) -> float:
    """Return the same estimate as `dpmc.metrics.mmd.squared_mmd`."""
    n, m, scale = len(x), len(y), -0.5 / width**2
    within = scipy_within(x, scale) / (n * (n - 1.0)) + scipy_within(y, scale) / (m * (m - 1.0))
    return within - 2.0 * scipy_sum(x, y, scale) / (n * float(m))


def seconds(run: Callable[[], float]) -> float:
    """Return the CPU time of one run."""
    began = time.process_time()
    run()
    return time.process_time() - began


def measure(name: str, x: np.ndarray, y: np.ndarray) -> None:
    """Print one line: the best of seven alternating runs of each."""
    width = float(np.sqrt(2.0 * x.shape[1]))
    ours, scipys = (lambda: mmd.squared_mmd(x, y, width)), (lambda: scipy_mmd(x, y, width))
    difference = abs(ours() - scipys())
    timings = [(seconds(ours), seconds(scipys)) for _ in range(7)]
    compiled, plain = (min(column) for column in zip(*timings, strict=True))
    n, m = len(x), len(y)
    pairs = n * (n - 1) / 2 + m * (m - 1) / 2 + n * m
    print(
        f"{name:12s} {n:6d} {x.shape[1]:4d} {compiled * 1e3:12.2f} {plain * 1e3:10.2f} "
        f"{plain / compiled:7.1f} {compiled / pairs * 1e9:8.2f} {plain / pairs * 1e9:8.2f} {difference:10.1e}"
    )


if __name__ == "__main__":
    began = time.process_time()
    mmd.squared_mmd(np.zeros((2, 1)), np.ones((2, 1)), 1.0)
    print(f"compiled or loaded in {time.process_time() - began:.2f} s of CPU time\n")
    print("chain         draws    d  compiled, ms  scipy, ms   ratio  ns/pair    scipy difference")
    generator = np.random.default_rng(1)
    for count, d in ((250, 2), (1500, 2), (1500, 10), (5000, 2), (5000, 10), (5000, 30)):
        measure("independent", generator.normal(size=(count, d)), generator.normal(size=(REFERENCE, d)))
    chain = generator.normal(size=(5000, 10))[np.cumsum(generator.random(5000) < 1 / 3)]
    measure("rejections", chain, generator.normal(size=(REFERENCE, 10)))
