"""Chains by each evaluator against the dense one: the same decisions, the same positions to rounding."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmc import evaluators
from dpmc.evaluators.affine import AffineEvaluator
from dpmc.evaluators.generic import GenericEvaluator
from dpmc.sampling import Cell, sample
from dpmc.storage import Chains
from evaluators.test_evaluators import without_sorting, without_tree
from kernels.cells import HYPERPARAMETERS, cell, problem

build = evaluators.build
CELLS = [
    (method, name)
    for method in ("rwmh", "hmc", "dp-penalty", "dp-penalty-guided", "dp-hmc")
    for name in ("banana", "circle")
]


def dense(model: Any, rows: np.ndarray, *_: Any) -> Any:
    """Every row is read; one statistic, which is always sorted, gets zeros beside it."""
    statistics = model.statistics(rows)
    if statistics.shape[1] == 1:
        statistics = np.column_stack([statistics, np.zeros(len(rows))])
    return without_tree(without_sorting(AffineEvaluator.build(statistics, False)))


def tree(model: Any, rows: np.ndarray, *_: Any) -> Any:
    """Every sum goes through the tree; one statistic alone is always sorted."""
    evaluator = build(model, rows, gradients=True)
    return evaluator if evaluator.blocks.shape[1] == 1 else without_sorting(evaluator)


class Plain:
    """The model as a user would write it, without its affine form."""

    def __init__(self, model: Any) -> None:
        self.model = model
        for name in ("dimension", "log_likelihood", "log_prior", "log_prior_gradient"):
            setattr(self, name, getattr(model, name))

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        statistics = self.model.statistics(rows)
        linear, constant = np.zeros((len(theta), statistics.shape[1])), np.zeros(len(theta))
        self.model.gradient(theta, linear, constant)
        return statistics @ linear.T + constant


def run(chosen: Cell, builder: Any, monkeypatch: Any) -> Chains:
    with monkeypatch.context() as patch:
        patch.setattr(evaluators, "build", builder)
        return sample(chosen, [0])[0]


def furthest(one: Chains, other: Chains, chosen: Cell) -> float:
    """Largest |Δθ| in posterior standard deviations; infinite if a decision differs."""
    if (one.accepted != other.accepted).any():
        return np.inf
    sd = np.sqrt(np.diag(chosen.problem.posterior_covariance))
    return float(np.max(np.abs(one.draws - other.draws) / sd))


def small(method: str, name: str) -> Cell:
    """Some blocks of rows, bounds that clip a part of them, and steps for so narrow a posterior."""
    lengths = {
        key: [0.2 * length for length in HYPERPARAMETERS[method][key]]
        for key in ("proposal_sd", "step_size")
        if key in HYPERPARAMETERS[method]
    }
    return cell(method, problem(name, n=1100), iterations=60, **lengths)


@pytest.mark.parametrize(("method", "name"), CELLS)
@pytest.mark.parametrize("evaluator", ["as built", "tree"])
def test_a_chain_is_the_dense_one(evaluator: str, method: str, name: str, monkeypatch: Any) -> None:
    chosen = small(method, name)
    reference = run(chosen, dense, monkeypatch)
    found = run(chosen, {"as built": build, "tree": tree}[evaluator], monkeypatch)
    assert 0 < reference.accepted.sum()
    assert furthest(found, reference, chosen) <= 1e-9


@pytest.mark.parametrize("method", ["dp-penalty", "dp-hmc"])
def test_a_plain_model_has_the_same_chain(method: str, monkeypatch: Any) -> None:
    chosen = small(method, "banana")
    plain = replace(chosen, problem=replace(chosen.problem, model=Plain(chosen.problem.model)))
    found = run(plain, lambda model, rows, *_: GenericEvaluator(rows), monkeypatch)
    assert furthest(found, run(chosen, dense, monkeypatch), chosen) <= 1e-9


def test_a_row_that_is_a_little_off_is_seen(monkeypatch: Any) -> None:
    chosen = small("dp-hmc", "banana")

    def moved(model: Any, rows: np.ndarray, *_: Any) -> Any:
        return build(model, np.vstack([rows[1:], rows[:1] + 1e-5]))

    found = run(chosen, moved, monkeypatch)
    assert furthest(found, run(chosen, dense, monkeypatch), chosen) > 1e-9
