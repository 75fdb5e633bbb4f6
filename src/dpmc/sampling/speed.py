"""Measurement of seconds per iteration of a study's methods; they depend on the machine."""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

from dpmc.data.problem import Problem
from dpmc.sampling.cell import Cell

SPEED_COLUMNS = ("study", "model", "method", "epsilon", "iterations", "seconds_per_iteration")
REPEATS = 3
REPEAT_SECONDS = 0.4  #: of one repeat, about
MOST_TIMED_ITERATIONS = 20_000


def seconds_per_iteration(
    cell: Cell[Problem], clock: Callable[[], float] = time.perf_counter
) -> tuple[int, float]:
    """Return (iterations of a repeat, median seconds per iteration), of chains run one after another.

    The first block of iterations is not counted, since it includes start-up costs.
    """
    cell = replace(cell, epsilon_kind="per-iteration")  # no total limits the iterations of a measurement
    rough = _one_chain(replace(cell, iterations=1500), clock)
    wanted = max(1500, min(MOST_TIMED_ITERATIONS, int(REPEAT_SECONDS / rough)))
    measured = [_one_chain(replace(cell, iterations=wanted), clock) for _ in range(REPEATS)]
    return wanted, statistics.median(measured)


def _one_chain(cell: Cell[Problem], clock: Callable[[], float]) -> float:
    """Make one chain; return the seconds per iteration after its first block."""
    from dpmc.sampling import loop

    moments: list[tuple[int, float]] = []
    loop.sample(cell, [0], progress=lambda done, _: moments.append((done, clock())))
    (first, began), (last, ended) = moments[0], moments[-1]
    return (ended - began) / (last - first)
