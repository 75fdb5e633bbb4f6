"""One evaluation of all rows, by evaluator, beside the limit of the core."""

from typing import Any

import core
import numpy as np
from measuring import (
    POSITIONS,
    Moves,
    PlainModel,
    cpu_seconds,
    dense,
    gradient_seconds,
    positions,
    ratio_seconds,
    table,
    walk,
)

from dpmc import datasets
from dpmc.evaluators import build
from dpmc.evaluators.generic import GenericEvaluator
from dpmc.studies import Study

CHAINS = (20, 1)
CHUNK = 8192  # rows that NumPy works on at a time, so that what lies between stays in the cache

HEADER = (
    "model",
    "n",
    "d",
    "evaluation",
    "chains",
    "as built, µs",
    "dense, µs",
    "NumPy, µs",
    "generic, µs",
    "limit, µs",
    "set by",
    "dense/limit",
)

SOFTPLUS = {"mixture": 0.08, "logistic-simulated": 0.01, "logistic-fashion": 0.0003}  # sd of a move
SOFTPLUS_HEADER = ("model", "n", "d", "chains", "as built, µs", "ns a row", "generic, µs")


def numpy_ratio(rows: np.ndarray, alpha: np.ndarray, gamma: float, bound: float) -> tuple[float, int]:
    """Clipped sum and clip count by careful NumPy: only columns with a coefficient, rows in chunks."""
    total, clipped, used = 0.0, 0, np.flatnonzero(alpha)
    for i in range(0, len(rows), CHUNK):
        chunk = rows[i : i + CHUNK]
        ratio = chunk[:, used[0]] * alpha[used[0]] + gamma if len(used) == 1 else chunk @ alpha + gamma
        clipped += np.count_nonzero(np.abs(ratio) > bound)
        total += np.clip(ratio, -bound, bound, out=ratio).sum()
    return total, clipped


def numpy_gradient(
    rows: np.ndarray, linear: np.ndarray, constant: np.ndarray, bound: float
) -> tuple[np.ndarray, int]:
    """Clipped gradient sum and clip count by careful NumPy."""
    total, clipped = np.zeros(len(constant)), 0
    for i in range(0, len(rows), CHUNK):
        gradient = rows[i : i + CHUNK] @ linear.T + constant
        norm = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
        clipped += np.count_nonzero(norm > bound)
        total += (bound / np.maximum(norm, bound)) @ gradient
    return total, clipped


def mean_active(model: Any, moves: Moves, k: int) -> float:
    """How many statistics have a coefficient, on average over moves."""
    alpha, active = np.zeros(k), []
    for theta, proposal in zip(*moves.flat(), strict=True):
        model.ratio(theta, proposal, alpha)
        active.append(np.count_nonzero(alpha))
    return float(np.mean(active))


def times(repeated: Any) -> Any:
    """A function of nothing as a function of how often."""
    return lambda count: [repeated() for _ in range(count)]


def measure(study: Study, label: str) -> list[list[Any]]:
    """The rows of one model."""
    spec = study.model(label)
    problem = datasets.build(label, spec.model, "published", spec.n)
    model, statistics = problem.model, problem.model.statistics(problem.rows)
    n, k, d = problem.n, statistics.shape[1], problem.dimension
    settings = {
        method: study.pinned_hyperparameters(label, method)[0]
        for method in ("dp-penalty", "dp-penalty-guided", "dp-hmc")
    }
    theta = positions(problem, CHAINS[0])
    by_tree = build(model, problem.rows, gradients=True)
    by_sorting = build(model, problem.rows, one_component=True)
    every_row, generic = dense(model, problem.rows), GenericEvaluator(problem.rows)
    plain, limits, rows = PlainModel(model), core.measure(), []
    for name, method, built in (
        ("log ratio, full move", "dp-penalty", by_tree),
        ("log ratio, one component", "dp-penalty-guided", by_sorting),
    ):
        chosen = settings[method]
        moves = walk(theta, chosen["proposal_sd"], chosen["clip"], built is by_sorting)
        alpha, bound = np.zeros(k), float(moves.bound[0, 0])
        gamma = model.ratio(moves.theta[0, 0], moves.proposal[0, 0], alpha)
        active = mean_active(model, moves, k)
        by_numpy = cpu_seconds(times(lambda a=alpha, g=gamma, b=bound: numpy_ratio(statistics, a, g, b)))
        one = moves.few(1)
        by_generic = ratio_seconds(generic, plain, one, rounds=3)
        for chains in CHAINS:
            some = moves.few(chains)
            limit, set_by = limits.ratio_limit(n, k, active, chains)
            ours, theirs = ratio_seconds(built, model, some), ratio_seconds(every_row, model, some)
            rows.append([label, n, d, name, chains, ours, theirs, by_numpy, by_generic, limit, set_by])
    clip = settings["dp-hmc"]["clip_g"]
    linear, constant = np.zeros((d, k)), np.zeros(d)
    model.gradient(theta[0, 0], linear, constant)
    by_numpy = cpu_seconds(times(lambda: numpy_gradient(statistics, linear, constant, clip)))
    by_generic = gradient_seconds(generic, plain, theta[:, :1].copy(), clip, rounds=3)
    for chains in CHAINS:
        some = theta[:, :chains].copy()
        limit, set_by = limits.gradient_limit(n, k, int(np.count_nonzero(linear)), d, chains)
        ours, theirs = (gradient_seconds(e, model, some, clip) for e in (by_tree, every_row))
        rows.append([label, n, d, "gradient", chains, ours, theirs, by_numpy, by_generic, limit, set_by])
    return [[*row[:5], *(1e6 * value for value in row[5:10]), row[10], row[6] / row[9]] for row in rows]


def measure_softplus(model_id: str, sd: float) -> list[list[Any]]:
    """The rows of one softplus model: moves of sd `sd` around the true θ, unclipped."""
    problem = datasets.build(model_id, model_id, "tuning", starts=1)
    model, n, d = problem.model, problem.n, problem.dimension
    start = np.tile(problem.true_theta, (POSITIONS, CHAINS[0], 1))
    moves = walk(start, sd, np.inf)
    built, generic = build(model, problem.rows), GenericEvaluator(problem.rows)
    by_generic = ratio_seconds(generic, model, moves.few(1), rounds=3)
    seconds = [ratio_seconds(built, model, moves.few(chains)) for chains in CHAINS]
    return [
        [model_id, n, d, chains, 1e6 * ours, 1e9 * ours / n, 1e6 * by_generic]
        for chains, ours in zip(CHAINS, seconds, strict=True)
    ]


def main(study: Study) -> None:
    """Print the table of all models with published hyperparameters, and that of the softplus models."""
    labels = [label for label in study.models if label in study.method("dp-hmc").models]
    rows = [row for label in labels for row in measure(study, label)]
    title = "## One evaluation of one chain, n and hyperparameters as published, microseconds of CPU"
    table("evaluators", HEADER, rows, title)
    rows = [row for label, sd in SOFTPLUS.items() for row in measure_softplus(label, sd)]
    title = "## One log ratio of one chain, softplus models: microseconds of CPU, and nanoseconds a row"
    table("softplus", SOFTPLUS_HEADER, rows, title)
