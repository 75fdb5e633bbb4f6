"""Chains by each evaluator against the generic one: the same decisions, the same positions to rounding."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmc.data.chain_files import Chains
from dpmc.data.problem import Problem
from dpmc.models.gaussian import Gaussian
from dpmc.sampling.loop import Cell, sample
from kernels.cells import HYPERPARAMETERS, LANGEVIN, MIXTURE, cell, problem
from kernels.problems import SLANT

FULL = ("rwmh", "hmc", "dp-penalty", "dp-penalty-guided", "dp-hmc")


class Plain:
    """The model as a user would write it, without its affine form."""

    def __init__(self, model: Any) -> None:
        self.model, self.dimension = model, model.dimension
        for name in ("log_likelihood", "log_prior", "log_prior_gradient", "row_bounds"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        if hasattr(model, "gradient_form"):
            self.log_likelihood_gradient = self._gradient

    def _gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        linear, constant = self.model.gradient_form(theta[None])
        return np.asarray(self.model.statistics(rows) @ linear[0].T + constant[0])


def slanted() -> Problem:
    """A Gaussian, on which batches have two statistics."""
    on = problem()
    on.model = replace(SLANT, precision=np.array([[0.8, -0.3], [-0.3, 1.0]]))
    assert isinstance(on.model, Gaussian)
    return on


def small(method: str, name: str) -> Cell:
    """Some blocks of rows, bounds that clip a part of them, and steps for so narrow a posterior."""
    lengths = {
        key: [0.2 * length for length in HYPERPARAMETERS[method][key]]
        for key in ("proposal_sd", "step_size")
        if key in HYPERPARAMETERS[method]
    }
    return cell(method, problem(name, n=1100), iterations=60, **lengths)


CELLS: dict[str, Cell] = {
    **{f"{method} on the {name}": small(method, name) for method in FULL for name in ("banana", "circle")},
    **{method: cell(method) for method in ("minibatch-penalty", "minibatch-penalty-guided", "dp-barker")},
    **{method: cell(method) for method in (*MIXTURE, "dp-fast-mh", "dp-fast-mh-full")},
    **{method: cell(method, slanted()) for method in LANGEVIN},
}


def furthest(one: Chains, other: Chains, chosen: Cell) -> float:
    """Largest |Δθ| in posterior standard deviations; infinite if a decision or a count differs."""
    if (one.accepted != other.accepted).any() or (one.totals != other.totals).any():
        return np.inf
    sd = np.sqrt(np.diag(chosen.problem.posterior_covariance))
    return float(np.max(np.abs(one.draws - other.draws) / sd))


def plain(chosen: Cell) -> Chains:
    on = replace(chosen.problem, model=Plain(chosen.problem.model))
    found = sample(replace(chosen, problem=on), [0])[0]
    assert found.attributes["evaluator"].endswith("generic")
    return found


@pytest.mark.parametrize("name", CELLS)
def test_a_chain_equals_that_of_the_plain_model(name: str) -> None:
    chosen = CELLS[name]
    found = sample(chosen, [0])[0]
    assert not found.attributes["evaluator"].endswith("generic")
    assert 0 < found.totals[0]
    assert furthest(found, plain(chosen), chosen) <= 1e-9


def test_a_small_error_in_a_row_is_detected() -> None:
    chosen = small("dp-hmc", "banana")
    rows = np.vstack([chosen.problem.rows[1:], chosen.problem.rows[:1] + 1e-5])
    moved = replace(chosen, problem=replace(chosen.problem, rows=rows))
    assert furthest(sample(moved, [0])[0], plain(chosen), chosen) > 1e-9
