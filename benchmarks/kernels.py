"""Measure microseconds of one clipped sum over all rows of the thesis's models, compared with NumPy.

    python benchmarks/kernels.py [--models flat-banana-2d ...] [--against FOLDER] [--alone]

CPU time per chain, 40 chains together, at exact posterior draws, with the thesis's hyperparameters: log
ratios of DP penalty's moves and of the guided variant's one-component moves, gradients of DP-HMC. `--against`
also measures another checkout with the same evaluator interface, in a separate process. `--alone` compares
one chain with each of 40, and with a limit: one read of the statistics, or the calls of a model of one's own.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from measuring import CHAINS, Moves, cpu_seconds, gradient_seconds, ratio_seconds, table, walk

import dpmc
from dpmc.data import datasets
from dpmc.evaluators import calls, evaluator_of
from dpmc.models.banana import Banana
from dpmc.studies import load_study, pinned_hyperparameters

MODELS = ("flat-banana-2d", "flat-banana-10d", "tempered-banana-2d", "tempered-banana-10d")
MODELS += ("gauss-30d", "narrow-banana", "correlated-gauss", "circle")
CHUNK = 8192  # rows that NumPy processes at a time, so that intermediate results stay in the cache
ALONE = ("model", "n", "d", "sum", "one chain, µs", "each of 40, µs", "limit, µs", "one chain over limit")
HEADER = ("model", "n", "d", "sum", "rows clipped", "µs", "NumPy, µs", "times")


def numpy_ratio(statistics: np.ndarray, alpha: np.ndarray, gamma: float, bound: float) -> float:
    """Return the sum of clipped log ratios: only columns with a coefficient, rows in chunks."""
    used, total = np.flatnonzero(alpha), 0.0
    for i in range(0, len(statistics), CHUNK):
        chunk = statistics[i : i + CHUNK]
        ratio = chunk[:, used[0]] * alpha[used[0]] if len(used) == 1 else chunk @ alpha
        ratio += gamma
        total += np.clip(ratio, -bound, bound, out=ratio).sum()
    return total


def numpy_gradient(
    statistics: np.ndarray, linear: np.ndarray, constant: np.ndarray, bound: float
) -> np.ndarray:
    """Return the sum of clipped gradients (d,), rows in chunks."""
    total = np.zeros(len(constant))
    for i in range(0, len(statistics), CHUNK):
        gradient = statistics[i : i + CHUNK] @ linear.T + constant
        norm = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
        total += (bound / np.maximum(norm, bound)) @ gradient
    return total


def measure(label: str) -> list[list[Any]]:
    """Return the table's rows of one model."""
    study = load_study("thesis")
    spec = study.model(label)
    problem = datasets.build(label, spec.model, spec.data, spec.n)
    model, evaluator = problem.model, problem.evaluator
    theta, statistics = np.ascontiguousarray(problem.exact.reference[:CHAINS]), model.statistics(problem.rows)
    rows = []
    for what, method in (("log ratio", "dp-penalty"), ("log ratio, one component", "dp-penalty-guided")):
        values, _ = pinned_hyperparameters(study, label, method)
        moves = walk(theta, values["proposal_sd"], values["clip"], "guided" in method)
        (alpha, *_), (gamma, *_) = model.ratio_form(moves.theta, moves.proposal)
        arguments = statistics, alpha, float(gamma), float(moves.bound[0])
        plain = cpu_seconds(lambda arguments=arguments: numpy_ratio(*arguments), rounds=3)
        clipped = evaluator.ratio_sums(*moves)[1].mean() / problem.n
        rows.append([what, clipped, ratio_seconds(evaluator, moves), plain])
    bound = pinned_hyperparameters(study, label, "dp-hmc").values["clip_g"]
    (linear, *_), (constant, *_) = model.gradient_form(theta)
    plain = cpu_seconds(lambda: numpy_gradient(statistics, linear, constant, bound), rounds=3)
    clipped = evaluator.gradient_sums(theta, bound)[1].mean() / problem.n
    rows.append(["gradient", clipped, gradient_seconds(evaluator, theta, bound), plain])
    about = [label, problem.n, problem.dimension]
    return [[*about, what, float(part), 1e6 * s, 1e6 * p, p / s] for what, part, s, p in rows]


def alone() -> list[list[Any]]:
    """Return rows of a banana, a logistic regression, and a model with its own functions alone."""
    columns = [f"x{i}" for i in range(7)]
    banana = Banana(20.0, 0.0, 0.0, np.array([20.0, 2.5] + [1.0] * 8), 1000.0)
    return [
        *of_one_chain("banana", banana, 100_000),
        *of_one_chain("logistic", dpmc.LogisticRegression("y", columns), 20_000),
        *of_one_chain("own", dpmc.PoissonRegression("y", columns), 20_000),
    ]


def of_one_chain(name: str, model: Any, n: int) -> list[list[Any]]:
    """Return a row for each sum of a model: one chain alone, each of 40, and the limit."""
    generator, centre = np.random.default_rng(1), np.full(model.dimension, 0.1)
    rows = model.simulate(generator, centre, n)
    evaluator = evaluator_of(model, rows)
    theta = centre + 0.02 * generator.standard_normal((CHAINS, model.dimension))
    moves = walk(theta, 0.002, 0.5)
    one = Moves(*(part[:1].copy() for part in moves))
    bound = float(np.quantile(np.sqrt((calls.gradient(model, centre, rows) ** 2).sum(axis=1)), 0.8))
    if hasattr(model, "statistics"):
        read = cpu_seconds(np.ascontiguousarray(model.statistics(rows)).sum)
        limits = read, read
    else:
        both = cpu_seconds(lambda: [model.log_likelihood(at, rows) for at in theta[:2]])
        limits = both, cpu_seconds(lambda: calls.gradient(model, centre, rows))
    found = {
        "log ratio": (ratio_seconds(evaluator, one), ratio_seconds(evaluator, moves), limits[0]),
        "gradient": (
            gradient_seconds(evaluator, one.theta, bound),
            gradient_seconds(evaluator, theta, bound),
            limits[1],
        ),
    }
    about = name, n, model.dimension
    return [[*about, what, *(1e6 * s for s in times), times[0] / times[2]] for what, times in found.items()]


def measure_elsewhere(checkout: Path, label: str) -> list[list[Any]]:
    """Return the table's rows of one model, measured with another checkout."""
    command = [sys.executable, __file__, "--json", "--models", label]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--json", action="store_true", help="rows as JSON")
    parser.add_argument("--alone", action="store_true", help="one chain, and the limit")
    options = parser.parse_args()
    if options.alone:
        table(ALONE, alone())
        return
    rows = [row for label in options.models for row in measure(label)]
    if options.json:
        print(json.dumps(rows))
        return
    header = HEADER
    if options.against:
        others = [row for label in options.models for row in measure_elsewhere(options.against, label)]
        rows = [[*row, other[5], row[5] / other[5]] for row, other in zip(rows, others, strict=True)]
        header = (*HEADER, "against, µs", "of its time")
    table(header, rows)


if __name__ == "__main__":
    main()
