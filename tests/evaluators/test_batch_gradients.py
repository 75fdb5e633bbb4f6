"""Clipped sums of gradients over a batch: against rows one by one, in company, and with faults."""

from typing import Any

import numpy as np
import pytest

from dpmc import evaluators
from dpmc.compiler import compiled
from dpmc.evaluators.batch import BatchEvaluator, draw_batch, lay_out
from dpmc.evaluators.generic import GenericEvaluator
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from kernels.ladder import mutant

BATCH = "dpmc.evaluators.batch"
MODELS = {
    "banana": Banana(0.7, 0.4, -0.3, np.array([2.0, 0.5]), 3.0),
    "long banana": Banana(0.7, 0.4, -0.3, np.linspace(0.5, 2.0, 7), 3.0),
    "gaussian": Gaussian(np.array([[2.0, -0.6, 0.1], [-0.6, 0.9, 0.3], [0.1, 0.3, 1.4]]), 3.0, 3.0),
    "circle": Circle(0.03),
}
each_model = pytest.mark.parametrize("name", MODELS)


def _sums(evaluator, model, theta, bound, words, i, sums, counts):  # type: ignore[no-untyped-def]
    evaluator.batch_gradient_sums(model, theta, bound, words, i, sums, counts)


compiled_sums = compiled(_sums)


class Problem:
    """A model with rows, positions of three chains, and words for two iterations."""

    def __init__(self, name: str, b: int, n: int = 900) -> None:
        generator = np.random.default_rng(len(name) + b)
        self.model, self.b = MODELS[name], b
        d = self.model.dimension
        self.rows = self.model.simulate(generator, np.full(d, 0.4), n)
        self.theta = generator.normal(0.3, 0.5, (3, d))
        self.words = generator.integers(0, 2**64, (3, 2, b), dtype=np.uint64)
        self.norms = np.sqrt((self.gradients(0, 1) ** 2).sum(axis=1))

    def gradients(self, c: int, i: int) -> np.ndarray:
        """∇ ln p of each row of chain c's batch (b, d), by the model's affine form."""
        d = self.model.dimension
        chosen = np.empty(self.b, np.int64)
        draw_batch(self.words[c, i], np.zeros(len(self.rows), bool), chosen)
        statistics = self.model.statistics(self.rows[chosen])
        linear, constant = np.zeros((d, statistics.shape[1])), np.zeros(d)
        self.model.gradient(self.theta[c], linear, constant)
        return np.asarray(statistics @ linear.T + constant)

    def ask(self, bound: float, call: Any = _sums, evaluator: Any = None, i: int = 1) -> Any:
        evaluator = evaluator or BatchEvaluator.build(self.model.statistics(self.rows))
        sums, counts = np.full(self.theta.shape, 7.0), np.full(3, 7)
        call(evaluator, self.model, self.theta, bound, self.words, i, sums, counts)
        return sums, counts

    def wanted(self, bound: float) -> Any:
        sums, counts = np.empty(self.theta.shape), np.empty(3, np.int64)
        for c in range(3):
            gradients = self.gradients(c, 1)
            norms = np.sqrt((gradients**2).sum(axis=1))
            sums[c] = (gradients * np.minimum(1.0, bound / norms)[:, None]).sum(axis=0)
            counts[c] = (norms > bound).sum()
        return sums, counts


@each_model
@pytest.mark.parametrize("b", [1, 40, 256, 300, 900])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_sums_are_those_of_the_rows_chosen(name: str, b: int, share: float) -> None:
    problem = Problem(name, b)
    bound = float(np.quantile(problem.norms, 1.0 - share)) * (1.0001 if share == 0.0 else 0.9999)
    sums, counts = problem.wanted(bound)
    for call in (_sums, compiled_sums):
        found, clipped = problem.ask(bound, call)
        np.testing.assert_allclose(found, sums, rtol=1e-10, atol=1e-10 * problem.norms.max() * b)
        np.testing.assert_array_equal(clipped, counts)


@each_model
def test_company_changes_no_bit(name: str) -> None:
    problem = Problem(name, 300)
    bound = float(np.median(problem.norms))
    sums, counts = problem.ask(bound, compiled_sums)
    for c in range(3):
        alone = Problem(name, 300)
        alone.theta, alone.words = problem.theta[c : c + 1], problem.words[c : c + 1]
        found, clipped = np.empty((1, problem.model.dimension)), np.empty(1, np.int64)
        evaluator = BatchEvaluator.build(problem.model.statistics(problem.rows))
        compiled_sums(evaluator, problem.model, alone.theta, bound, alone.words, 1, found, clipped)
        np.testing.assert_array_equal(found[0], sums[c])
        assert clipped[0] == counts[c]


@each_model
def test_a_batch_of_all_rows_has_the_sums_of_all_rows(name: str) -> None:
    problem = Problem(name, 900)
    bound = float(np.median(problem.norms))
    whole, counts = np.empty(problem.theta.shape), np.empty(3, np.int64)
    evaluator = evaluators.build(problem.model, problem.rows)
    evaluator.gradient_sums(problem.model, problem.theta, bound, whole, counts)
    found, clipped = problem.ask(bound)
    np.testing.assert_allclose(found, whole, rtol=1e-9, atol=1e-9 * problem.norms.max())
    np.testing.assert_array_equal(clipped, counts)


class Plain:
    """A Gaussian by its rows' gradients alone."""

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (rows - theta) @ MODELS["gaussian"].precision


def test_the_generic_evaluator_agrees_and_counts_what_is_no_number_as_nothing() -> None:
    problem = Problem("gaussian", 300)
    bound = float(np.median(problem.norms))
    sums, counts = problem.ask(bound)
    problem.model = Plain()
    found, clipped = problem.ask(bound, evaluator=GenericEvaluator(problem.rows))
    np.testing.assert_allclose(found, sums, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(clipped, counts)
    lost = problem.rows.copy()
    lost[:, 0] = np.nan
    found, clipped = problem.ask(bound, evaluator=GenericEvaluator(lost))
    assert (found == 0.0).all()
    assert (clipped == 300).all()


def test_nothing_of_a_batch_before_stays_in_the_block() -> None:
    """A statistic that overflowed would make NaN of another chain's sum, though its weight there is 0."""
    block = np.zeros((2, 8))
    chosen = np.arange(5)
    lay_out(np.full((5, 2), np.inf), chosen, 0, 5, block)
    lay_out(np.ones((5, 2)), chosen, 0, 3, block)
    np.testing.assert_array_equal(block, [[1.0] * 3 + [0.0] * 5] * 2)


FAULTS = {
    "another iteration's batch": (
        "i], self.taken, chosen)\n            sums",
        "0], self.taken, chosen)\n            sums",
    ),
    "only whole blocks": ("range(0, b, BLOCK)", "range(0, b - b % BLOCK, BLOCK)"),
    "padding that counts": ("rows = min(BLOCK, b - first)", "rows = BLOCK"),
    "the bound squared": ("factors, rows, bound)", "factors, rows, bound * bound)"),
    "sums of what was there before": ("sums[c], counts[c] = 0.0, 0", "counts[c] = 0"),
    "constant part forgotten": ("active, constant, work", "active, 0.0 * constant, work"),
    "G of the chain before": (
        "            linear[:] = 0.0\n            model",
        "            linear[:] = 1.0\n            model",
    ),
}


@pytest.mark.parametrize("name", [None, *FAULTS])
def test_fault_is_caught(name: str | None) -> None:
    changes = [FAULTS[name]] if name else []
    problem = Problem("banana", 300)
    bound = 0.9 * float(np.median(problem.norms))
    evaluator = mutant(BATCH, *changes)["BatchEvaluator"].build(problem.model.statistics(problem.rows))
    sums, counts = problem.wanted(bound)
    try:
        found, clipped = problem.ask(bound, evaluator=evaluator)
        same = np.allclose(found, sums, rtol=1e-9) and (clipped == counts).all()
    except IndexError:
        same = False
    assert same == (name is None)
