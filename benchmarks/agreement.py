"""Whole chains by each evaluator against the dense one: the same accept decisions, the same positions.

Where a chain doubles a difference every few iterations, rounding alone moves it in the end. How much shows
the dense evaluator itself with rows in other blocks; and single iterations from many positions of the dense
chain compare evaluators without that.
"""

import dataclasses
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from measuring import PlainModel, dense, table, without_sorting

from dpmc import datasets, evaluators, sampling
from dpmc.evaluators import affine
from dpmc.evaluators.generic import GenericEvaluator
from dpmc.problem import Problem
from dpmc.storage import Chains
from dpmc.studies import Study

METHODS = ("dp-penalty", "dp-penalty-guided", "dp-hmc")
POSITIONS = 50  # from which single iterations start
OTHER_BLOCK = 192
CONTROL = f"dense, blocks of {OTHER_BLOCK}"
GENERIC_SECONDS = 3e-8  # per row and parameter, for choosing how many iterations it gets
HEADER = (
    "model",
    "method",
    "evaluator",
    "iterations",
    "other decisions",
    "max Δθ",
    "single iterations",
    "other decisions",
    "max Δθ",
)

build = evaluators.build
Builder = Callable[..., Any]


def by_dense(model: Any, rows: np.ndarray, *_: Any) -> Any:
    """The evaluator that all others are compared with."""
    return dense(model, rows)


def by_other_blocks(model: Any, rows: np.ndarray, *_: Any) -> Any:
    """The same with rows in other blocks, so that sums are rounded otherwise."""
    with mock.patch.object(affine, "BLOCK", OTHER_BLOCK):
        return dense(model, rows)


def by_tree(model: Any, rows: np.ndarray, *_: Any) -> Any:
    """The tree where sorted columns would have served."""
    return without_sorting(build(model, rows, gradients=True))


def by_generic(model: Any, rows: np.ndarray, *_: Any) -> Any:
    """What serves a model of one's own."""
    return GenericEvaluator(rows)


def chain(cell: sampling.Cell, iterations: int, builder: Builder) -> Chains:
    """One chain by the evaluator of a builder, beginning of the published one."""
    shorter = dataclasses.replace(cell, iterations=iterations)
    with mock.patch.object(evaluators, "build", builder):
        return sampling.sample(shorter, [0])[0]


def single_iterations(cell: sampling.Cell, starts: np.ndarray, builder: Builder) -> list[Chains]:
    """One iteration from each position (positions, d), each with its own random numbers."""
    problem = dataclasses.replace(cell.problem, starts=starts)
    moved = dataclasses.replace(cell, problem=problem, iterations=1)
    with mock.patch.object(evaluators, "build", builder):
        return sampling.sample(moved, list(range(len(starts))))


def cell_of(study: Study, problem: Problem, method: str) -> sampling.Cell:
    """A cell at the ε of tuning, 4 or for the circle 1."""
    values, source = study.pinned_hyperparameters(problem.label, method)
    return sampling.Cell(
        problem=problem,
        method=method,
        algorithm=study.algorithm(method, values, problem.dimension, source),
        epsilon=study.model(problem.label).tuning_epsilon,
        delta=study.delta_for(problem.n),
        accountant=study.method(method).accountant,
    )


def difference(some: list[Chains], others: list[Chains], sd: np.ndarray) -> list[Any]:
    """Decisions that differ, and the largest |Δθ| in posterior standard deviations."""
    pairs = list(zip(some, others, strict=True))
    decisions = sum(int(np.count_nonzero(one.accepted != other.accepted)) for one, other in pairs)
    return [decisions, max(float(np.max(np.abs(one.draws - other.draws) / sd)) for one, other in pairs)]


def compare(cell: sampling.Cell, most: int) -> list[list[Any]]:
    """The rows of one cell, its chain cut at `most` iterations."""
    problem = cell.problem
    sd = np.sqrt(np.diag(problem.posterior_covariance))
    whole = min(most, cell.allowed_iterations())
    reference = chain(cell, whole, by_dense)
    along = reference.draws[0, np.linspace(0, whole - 1, POSITIONS).astype(int)]
    cost = GENERIC_SECONDS * problem.n * problem.dimension * sum(cell.algorithm.evaluations)
    plain = dataclasses.replace(cell, problem=dataclasses.replace(problem, model=PlainModel(problem.model)))
    described = evaluators.describe(build(problem.model, problem.rows[:1000], cell.algorithm.one_component))
    chosen: list[tuple[str, sampling.Cell, Builder, int]] = [(described, cell, build, whole)]
    if described == "sorted" and problem.rows.shape[1] > 1:
        chosen.append(("tree", cell, by_tree, whole))
    chosen.append(("generic", plain, by_generic, max(3, min(whole, 100, int(1.5 / cost)))))
    if cell.algorithm.evaluations[1]:
        chosen.append((CONTROL, cell, by_other_blocks, whole))
    rows = []
    for name, by, builder, iterations in chosen:
        cut = dataclasses.replace(
            reference, draws=reference.draws[:, :iterations], accepted=reference.accepted[:, :iterations]
        )
        starts = along[:: max(1, POSITIONS // iterations)]
        rows.append(
            [
                *(problem.label, cell.method, name, iterations),
                *difference([chain(by, iterations, builder)], [cut], sd),
                len(starts),
                *difference(
                    single_iterations(by, starts, builder), single_iterations(cell, starts, by_dense), sd
                ),
            ]
        )
    return rows


def main(study: Study, quick: bool = False) -> None:
    """Print the table of all models with published hyperparameters."""
    rows = []
    for label in (label for label in study.models if label in study.method("dp-hmc").models):
        spec = study.model(label)
        problem = datasets.build(label, spec.model, "published", spec.n)
        for method in (name for name in METHODS if label in study.method(name).models):
            rows += compare(cell_of(study, problem, method), 200 if quick else 100_000)
    title = "## Chains of each evaluator beside the dense one's, seed 0; Δθ in posterior standard deviations"
    lines = [[*row[:5], f"{row[5]:.0e}", *row[6:8], f"{row[8]:.0e}"] for row in rows]
    table("agreement", HEADER, lines, title)
    ours = [row for row in rows if row[2] != CONTROL]
    whole = sum(row[4] == 0 and row[5] <= 1e-9 for row in ours)
    single = sum(row[7] == 0 and row[8] <= 1e-9 for row in ours)
    print(f"\nsame decisions and |Δθ| ≤ 1e-9: whole chains {whole} of {len(ours)}, ", end="")
    print(f"single iterations {single} of {len(ours)}")
