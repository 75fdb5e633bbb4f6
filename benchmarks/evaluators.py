# ruff: noqa: B023 - every closure is called before its loop goes on
"""Time of one evaluation of all rows, by evaluator: `python benchmarks/evaluators.py [--rows N]`.

Prints microseconds per evaluation and ratios to NumPy, all in one run. NumPy's line is
what a careful vectorised implementation does; "generic" is the evaluator for a user's own model.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from dpmc import datasets
from dpmc.compiler import compiled
from dpmc.evaluators import build
from dpmc.evaluators.generic import GenericEvaluator


def repeat_ratio(evaluator, model, theta, proposal, bound, sums, counts, times):  # type: ignore[no-untyped-def]
    """Evaluate clipped log ratios `times` times."""
    for _ in range(times):
        evaluator.ratio_sums(model, theta, proposal, bound, sums, counts)


def repeat_gradient(evaluator, model, theta, bound, sums, counts, times):  # type: ignore[no-untyped-def]
    """Evaluate clipped gradients `times` times."""
    for _ in range(times):
        evaluator.gradient_sums(model, theta, bound, sums, counts)


compiled_ratio = compiled(repeat_ratio)
compiled_gradient = compiled(repeat_gradient)


def microseconds(run: Callable[[int], None]) -> float:
    """Best of five timings of one evaluation."""
    times = 1
    while True:
        began = time.perf_counter()
        run(times)
        seconds = time.perf_counter() - began
        if seconds > 0.05:
            break
        times *= 4
    best = seconds
    for _ in range(4):
        began = time.perf_counter()
        run(times)
        best = min(best, time.perf_counter() - began)
    return best / times * 1e6


def numpy_ratio(rows, alpha, gamma, bound):  # type: ignore[no-untyped-def]
    """Clipped sum and clip count by vectorised NumPy."""
    ratio = rows @ alpha + gamma
    return np.clip(ratio, -bound, bound).sum(), np.count_nonzero(np.abs(ratio) > bound)


def numpy_gradient(rows, linear, constant, bound):  # type: ignore[no-untyped-def]
    """Clipped gradient sum and clip count by vectorised NumPy."""
    gradient = rows @ linear.T + constant
    norm = np.sqrt((gradient**2).sum(axis=1))
    scale = np.minimum(1.0, bound / np.maximum(norm, 1e-300))
    return (gradient * scale[:, None]).sum(axis=0), np.count_nonzero(norm > bound)


def measure(model_id: str, n: int | None, step: float, clip: float, clip_g: float) -> None:
    """Print the timings of one model."""
    problem = datasets.build(model_id, model_id, "published", n)
    model, d = problem.model, problem.dimension
    statistics = model.statistics(problem.rows)
    theta = problem.starts[:1].copy()
    moves = {"full": theta + step, "last component": theta + step * (np.arange(d) == d - 1)}
    sums, counts, gradient_sums = np.zeros(1), np.zeros(1, np.int64), np.zeros((1, d))
    generic = GenericEvaluator(problem.rows)
    print(f"\n{model_id}: n = {problem.n}, d = {d}")
    for name, proposal in moves.items():
        bound = clip * np.sqrt(((theta - proposal) ** 2).sum(axis=1))
        alpha = np.zeros(statistics.shape[1])
        gamma = model.ratio(theta[0], proposal[0], alpha)

        def by(evaluator):  # type: ignore[no-untyped-def]
            return lambda k: compiled_ratio(
                evaluator,
                model,
                theta,
                proposal,
                bound,
                sums,
                counts,
                k,
            )

        dense = _without_sorting(build(model, problem.rows))
        timings = {} if dense is None else {"compiled dense": microseconds(by(dense))}
        timings |= {
            "NumPy": microseconds(
                lambda k: [numpy_ratio(statistics, alpha, gamma, bound[0]) for _ in range(k)]
            ),
            "generic": microseconds(
                lambda k: repeat_ratio(generic, model, theta, proposal, bound, sums, counts, k)
            ),
        }
        if np.count_nonzero(alpha) == 1:
            timings["sorted"] = microseconds(by(build(model, problem.rows, one_component=True)))
        report(f"log ratio, {name} move", timings)
    linear, constant = np.zeros((d, statistics.shape[1])), np.zeros(d)
    model.gradient(theta[0], linear, constant)
    evaluator = build(model, problem.rows)

    def gradients_by(chosen):  # type: ignore[no-untyped-def]
        return lambda k: compiled_gradient(chosen, model, theta, clip_g, gradient_sums, counts, k)

    dense = _without_sorting(evaluator)
    timings = {} if dense is None else {"compiled dense": microseconds(gradients_by(dense))}
    timings["NumPy"] = microseconds(
        lambda k: [numpy_gradient(statistics, linear, constant, clip_g) for _ in range(k)]
    )
    if evaluator.ordered.shape[0]:
        timings["sorted"] = microseconds(gradients_by(evaluator))
    report("gradient", timings)


def _without_sorting(evaluator):  # type: ignore[no-untyped-def]
    """The same evaluator without its sorted columns; None for one statistic, which is always sorted."""
    if evaluator.columns.shape[0] == 1:
        return None
    empty = evaluator.ordered[:0]
    return evaluator._replace(ordered=empty, prefix=evaluator.prefix[:0], centre=evaluator.centre[:0])


def report(what: str, timings: dict[str, float]) -> None:
    """Print one block of lines, with ratios to NumPy."""
    for name, value in timings.items():
        print(f"  {what:32s} {name:15s} {value:10.2f} us   {value / timings['NumPy']:9.4f} of NumPy")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="default: as published")
    options = parser.parse_args()
    measure("flat-banana-2d", options.rows, 0.008, 2.0, 1.0)
    measure("circle", options.rows, 0.2, 0.002, 0.0015)
