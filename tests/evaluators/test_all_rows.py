"""Clipped sums over all rows: every evaluator against the model's formulas, with ties and NaN."""

from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc import evaluators
from dpmc.common.errors import DpmcError
from dpmc.evaluators import kernels
from dpmc.evaluators.generic import Evaluator
from dpmc.models.score_tables import score_table
from dpmc.privacy.questions import LengthQuestion
from evaluators import cases
from evaluators.cases import MODELS, Straight

EDGES = (1, 511, 512, 513, 5000)  # of blocks
AFFINE = [name for name in MODELS if hasattr(MODELS[name], "ratio_form")]


@pytest.mark.parametrize("n", EDGES)
@pytest.mark.parametrize("name", MODELS)
def test_sums_are_those_of_the_models_formulas(name: str, n: int) -> None:
    asked = cases.problem(name, n)
    evaluator = evaluators.evaluator_of(asked.model, asked.rows)
    for some in (4, 9):  # four moves of all components alone, or beside the others
        part = asked._replace(theta=asked.theta[:some], proposal=asked.proposal[:some])
        for bound in cases.some_bounds(cases.ratios(asked, 0)[0]):
            sums, counts = evaluator.ratio_sums(part.theta, part.proposal, np.full(some, bound))
            for c in range(some):
                cases.check(cases.clipped_ratios(part, c, bound), sums[c], counts[c])

    for bound in cases.some_bounds(np.sqrt((cases.gradients(asked, 0)[0] ** 2).sum(axis=1))):
        sums, counts = evaluator.gradient_sums(asked.theta[:3], bound)
        for c in range(3):
            cases.check(cases.clipped_gradients(asked, c, bound), sums[c], counts[c])


@pytest.mark.parametrize("bound", [1e-6, 1.0, 1e4, np.inf])
@pytest.mark.parametrize("name", ["straight, 1", "straight, 2", "straight, 4", "soft, 1", "soft, 4"])
def test_rows_of_all_sizes_and_equal_ones(name: str, bound: float) -> None:
    asked = cases.uneven(cases.problem(name, 3000))
    evaluator = evaluators.evaluator_of(asked.model, asked.rows)
    with np.errstate(over="ignore"):
        sums, counts = evaluator.ratio_sums(asked.theta, asked.proposal, np.full(9, bound))
        gradients, clipped = evaluator.gradient_sums(asked.theta, bound)
        for c in range(9):
            cases.check(cases.clipped_ratios(asked, c, bound), sums[c], counts[c])
            cases.check(cases.clipped_gradients(asked, c, bound), gradients[c], clipped[c])


@pytest.mark.parametrize("k", [1, 2, 3, 11])
def test_with_true_ties_sums_and_counts_are_exact(k: int) -> None:
    """Products and sums of eighths have no rounding; many ratios equal a bound, and are not clipped."""
    generator = np.random.default_rng(k)
    rows = generator.integers(-16, 17, (3000, k)) / 8.0
    moves = generator.integers(-8, 9, (12, k + 1)) / 8.0
    moves[6:, : k - 1] = 0.0
    bound = generator.integers(1, 20, 12) / 8.0
    sums, counts = evaluators.evaluator_of(Straight(k), rows).ratio_sums(np.zeros_like(moves), moves, bound)
    ratio = rows @ moves[:, :-1].T + moves[:, -1]
    np.testing.assert_array_equal(sums, np.clip(ratio, -bound, bound).sum(axis=0))
    np.testing.assert_array_equal(counts, (np.abs(ratio) > bound).sum(axis=0))
    assert (np.abs(ratio) == bound).any()


def ratio_and_gradient(model: Any, rows: np.ndarray, move: list[float], bound: float) -> Any:
    """Return sum and count of log ratios for one chain that moves from 0, and of gradients at its end."""
    evaluator, proposal = evaluators.evaluator_of(model, rows), np.array([move])
    with np.errstate(all="ignore"):
        ratio, count = evaluator.ratio_sums(0.0 * proposal, proposal, np.array([bound]))
        gradient, clipped = evaluator.gradient_sums(proposal, bound)
    return ratio[0], count[0], gradient[0], clipped[0]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("k", [1, 2, 3, 11])
def test_a_nan_log_ratio_counts_against_the_proposal_and_a_gradient_as_zero(k: int, value: float) -> None:
    rows = np.random.default_rng(k).normal(0.0, 1.0, (3000, k))
    for part, sign in ((0, 1.0), (k, 1.0), (0, -1.0)):
        move = [sign] * k + [0.5]
        move[part] = value
        ratio, count, gradient, clipped = ratio_and_gradient(Straight(k), rows, move, 0.2)
        np.testing.assert_array_equal(gradient, np.zeros(k + 1))
        assert clipped == count == 3000
        if np.isnan(value):
            assert ratio == pytest.approx(-3000 * 0.2)


@pytest.mark.parametrize("bound", [2.0, np.inf])
def test_a_nan_softplus_counts_against_the_proposal(bound: float) -> None:
    rows = np.array([[0.5], [1e308], [np.nan], [1.0]])
    theta, proposal = np.array([[0.0, 0.0, 2.0, 0.0]]), np.array([[0.25, 0.0, 2.5, 0.0]])
    asked = cases.Problem(MODELS["soft, 1"], rows[[0, 3]], theta, proposal)
    with np.errstate(all="ignore"):
        evaluator = evaluators.evaluator_of(asked.model, rows)
        sums, counts = evaluator.ratio_sums(theta, proposal, np.array([bound]))
    assert counts[0] == 1
    assert sums[0] == pytest.approx(float(cases.clipped_ratios(asked, 0, bound).total) - bound, rel=1e-14)


@pytest.mark.parametrize("name", [*AFFINE, "soft, 1", "soft, 4"])
def test_a_row_whose_statistics_are_not_finite_is_left_out(name: str) -> None:
    asked = cases.problem(name, 600)
    lost = np.insert(asked.rows, [0, 300, 600], [[np.nan], [np.inf], [-np.inf]], axis=0)
    bound = np.full(9, 0.2)
    with np.errstate(invalid="ignore"):
        whole, without = (
            evaluators.evaluator_of(asked.model, lost),
            evaluators.evaluator_of(asked.model, asked.rows),
        )
    found, wanted = (e.ratio_sums(asked.theta, asked.proposal, bound) for e in (whole, without))
    np.testing.assert_array_equal(found, wanted)
    found, wanted = (e.gradient_sums(asked.theta, 0.7) for e in (whole, without))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["logistic", "mixture", "soft, 4"])
def test_gradients_of_a_softplus_model_are_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its sigmoid form; the model's own gradient has the same sums."""
    asked, words = cases.problem(name, 1000), np.arange(9 * 30, dtype=np.uint64).reshape(9, 30) << 55
    bound = float(np.median(np.sqrt((cases.gradients(asked, 0)[0] ** 2).sum(axis=1))))
    own = "log_likelihood_gradient"
    found = []
    for evaluator in (Evaluator(asked.model, asked.rows), evaluators.evaluator_of(asked.model, asked.rows)):
        batch = evaluator.batch_gradient_sums(asked.theta, bound, words)
        found.append([evaluator.gradient_sums(asked.theta, bound), batch])
        for base in [base for base in type(asked.model).__mro__ if own in vars(base)]:
            monkeypatch.delattr(base, own)  # which compiled sums do not call
    for (sums, counts), (others, their_counts) in zip(*found, strict=True):
        np.testing.assert_allclose(sums, others, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(counts, their_counts)
        assert 0 < counts.sum() < 9 * 1000


def test_rows_that_are_all_not_finite_are_a_mistake() -> None:
    with pytest.raises(DpmcError, match="statistics: not finite for any row"):
        ratio_and_gradient(MODELS["banana"], np.full((3, 2), np.nan), [1.0, 1.0], 1.0)


# The change of a softplus


def tail(z: np.ndarray) -> np.ndarray:
    """ln(1 + e^−|z|) in extended precision."""
    return np.log1p(np.exp(-np.abs(z.astype(np.longdouble))))


def test_the_change_of_softplus_is_accurate_for_short_moves() -> None:
    generator = np.random.default_rng(2)
    old = generator.normal(0.0, 12.0, 15_000)
    move = generator.normal(0.0, 1.0, 15_000) * 10.0 ** generator.uniform(-12.0, 0.0, 15_000)
    new, change = old + move, np.zeros(15_000)
    kernels.add_softplus_change(old, new, 1.0, change)
    step, middle = new.astype(np.longdouble) - old, 0.5 * (new.astype(np.longdouble) + old)
    weight = 1.0 / (1.0 + np.exp(-middle))
    short = np.abs(move) < 1e-5
    slope = step * weight  # by the midpoint rule, relative error step² / 24
    assert (np.abs(change - slope)[short] <= 1e-11 * np.abs(slope[short]) + 1e-15)[
        np.abs(old[short]) < 5.0
    ].all()
    linear = np.maximum(new, 0.0).astype(np.longdouble) - np.maximum(old, 0.0)
    wanted = linear + (tail(new) - tail(old))
    scale = np.abs(linear) + tail(old) + tail(new)
    assert (np.abs(change - wanted) <= 6e-16 * scale).all()


@pytest.mark.parametrize(
    "model", [dpmc.LinearRegression("y", ["x"], sd=1), dpmc.LogisticRegression("y", ["x"])]
)
def test_answers_need_no_statistics(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many rows those take several times the memory of the rows."""
    monkeypatch.setattr(type(model), "statistics", None)
    rows = model.simulate(np.random.default_rng(1), np.zeros(2), 500)
    asked = LengthQuestion(model, score_table(model.family, 3.0), np.zeros(2), np.eye(2), 1.0)
    sums, unit, _ = evaluators.evaluator_of(model, rows).answer_sums([asked])
    assert np.isfinite(sums).all() and unit == 1.0
