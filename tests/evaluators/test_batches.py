"""Batches: all equally likely, their clipped moments those of the rows drawn; single rows on demand."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmc import evaluators
from dpmc.evaluators import kernels
from evaluators import cases
from evaluators.cases import MODELS

LAST = 2**64 - 1
P_VALUE = 1e-4


def words(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, shape, dtype=np.uint64)


# Drawing


def batches(n: int, b: int, count: int) -> np.ndarray:
    """Many batches (count, b)."""
    chosen = kernels.draw_batches(words(n + 1000 * b, count, b), n)
    assert ((chosen >= 0) & (chosen < n)).all(), "no such row"
    ordered = np.sort(chosen, axis=1)
    assert (ordered[:, 1:] > ordered[:, :-1]).all(), "a row twice"
    return np.asarray(chosen)


@pytest.mark.parametrize(("n", "b"), [(4, 1), (5, 2), (6, 3), (7, 5), (7, 6), (8, 4)])
def test_all_batches_are_equally_likely(n: int, b: int) -> None:
    found = np.bincount((1 << batches(n, b, 200_000)).sum(axis=1), minlength=1 << n)
    subsets = np.array([mask for mask in range(1 << n) if mask.bit_count() == b])
    assert stats.chisquare(found[subsets]).pvalue > P_VALUE


@pytest.mark.parametrize(("n", "b"), [(40, 10), (60, 59), (30, 2)])
def test_rows_and_pairs_are_in_a_batch_as_often_as_they_should_be(n: int, b: int) -> None:
    count = 40_000
    member = np.zeros((count, n))
    np.put_along_axis(member, batches(n, b, count), 1.0, axis=1)
    together = member.T @ member
    pairs = together[np.triu_indices(n, 1)]
    for found, chance in ((np.diag(together), b / n), (pairs, b * (b - 1) / (n * (n - 1)))):
        tails = np.minimum(stats.binom.cdf(found, count, chance), stats.binom.sf(found - 1.0, count, chance))
        assert 2.0 * len(found) * float(tails.min()) > P_VALUE  # Bonferroni's


def test_batches_one_after_the_other_are_independent() -> None:
    kinds, code = np.unique((1 << batches(4, 2, 200_000)).sum(axis=1), return_inverse=True)
    joint = np.bincount(len(kinds) * code[::2] + code[1::2], minlength=36)
    assert stats.chisquare(joint).pvalue > P_VALUE


@pytest.mark.parametrize("word", [0, 1, 2**32, 2**63, LAST])
def test_equal_words_still_give_different_rows(word: int) -> None:
    assert len(set(kernels.draw_batches(np.full((1, 7), word, np.uint64), 9)[0].tolist())) == 7


@pytest.mark.parametrize("m", [1, 3, 3**20, 2**31, 2**32 - 1])
def test_a_word_times_a_number_of_rows_is_exact(m: int) -> None:
    chosen = [0, 1, 2**32 - 1, 2**32, 2**63, LAST, *map(int, words(m, 200))]
    chosen += [k * 2**64 // m + shift for k in (1, m // 2, m - 1) for shift in (-1, 0, 1)]
    for word in chosen:
        if 0 <= word <= LAST:
            assert kernels.below(np.uint64(word), m) == word * m >> 64


# Moments


@pytest.mark.parametrize("bound", [0.0, 1e-3, 3.0, 2e6, math.inf])
@pytest.mark.parametrize(
    "ratios",
    [
        [1.0, -7.5, 2.25, 3.0, -3.0],
        [1.5],
        [1e6 + 0.001 * k for k in range(50)],  # squares much smaller than the square of the mean
        [0.1] * 1000,
        [math.inf, 2.0, -math.inf, math.nan],
    ],
    ids=["ties", "one", "far", "equal", "no numbers"],
)
def test_moments_are_exact(ratios: list[float], bound: float) -> None:
    if math.isinf(bound):
        ratios = [ratio for ratio in ratios if math.isfinite(ratio)] or [0.0]
    clipped = [-bound if math.isnan(r) else min(max(r, -bound), bound) for r in ratios]
    total, squares, count = (x[0] for x in kernels.clipped_moments(np.array([ratios]), np.array([bound])))
    b, mean, reach = len(ratios), math.fsum(clipped) / len(ratios), max(map(abs, clipped))
    wanted = math.fsum((r - mean) ** 2 for r in clipped)
    rounding = 2.0**-52 * b
    assert abs(total - math.fsum(clipped)) <= rounding * b * reach
    assert abs(squares - wanted) <= 4.0 * rounding * wanted + b * (rounding * reach) ** 2
    assert count == sum(not abs(r) <= bound for r in ratios)


# Evaluators


@pytest.mark.parametrize("b", [1, 12, 300])
@pytest.mark.parametrize("name", MODELS)
def test_sums_are_those_of_the_rows_drawn(name: str, b: int) -> None:
    asked = cases.problem(name, 700)
    evaluator, word = evaluators.evaluator_of(asked.model, asked.rows), words(12, 9, b)
    chosen = kernels.draw_batches(word, 700)
    size = np.sqrt((cases.gradients(asked, 0)[0] ** 2).sum(axis=1))
    for bound, limit in zip(
        cases.some_bounds(cases.ratios(asked, 0)[0]), cases.some_bounds(size), strict=True
    ):
        bounds = np.full(9, bound)
        sums, squares, counts = evaluator.batch_ratio_sums(asked.theta, asked.proposal, bounds, word)
        gradients, clipped = evaluator.batch_gradient_sums(asked.theta, limit, word)
        for c in range(9):
            rows = asked.rows[chosen[c]]
            wanted = cases.clipped_ratios(asked, c, bound, rows)
            cases.check(wanted, sums[c], counts[c])
            cases.check(cases.clipped_gradients(asked, c, limit, rows), gradients[c], clipped[c])
            variance = np.clip(cases.ratios(asked, c, rows)[0], -bound, bound).var()
            assert squares[c] == pytest.approx(float(b * variance), rel=1e-9, abs=1e-6 * wanted.rounding)


@pytest.mark.parametrize("name", ["banana", "straight, 1", "straight, 4", "soft, 4"])
def test_a_row_that_is_not_finite_counts_as_zero_in_a_batch(name: str) -> None:
    asked = cases.problem(name, 40)
    lost = np.insert(asked.rows, 17, np.nan, axis=0)
    bound, limit = np.full(9, 0.3), 0.9
    answers: list[Any] = []
    for rows in (lost, asked.rows):
        evaluator, word = evaluators.evaluator_of(asked.model, rows), words(1, 9, len(rows))
        answers.append(evaluator.batch_ratio_sums(asked.theta, asked.proposal, bound, word)[0])
        answers.append(evaluator.batch_gradient_sums(asked.theta, limit, word)[0])
    np.testing.assert_allclose(answers[0], answers[2], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(answers[1], answers[3], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_ratios_of_chosen_rows_are_differences_of_log_likelihoods(name: str) -> None:
    asked = cases.problem(name, 60)
    evaluator, generator = evaluators.evaluator_of(asked.model, asked.rows), np.random.default_rng(7)
    for b in (0, 1, 7, 300):  # with repeats
        chosen = generator.integers(0, 60, b)
        for c in range(9):
            found = evaluator.row_ratios(asked.theta[c], asked.proposal[c], chosen)
            wanted, size = cases.ratios(asked, c)
            assert found.shape == (b,)
            assert (np.abs(found - wanted[chosen]) <= 1e-14 * size[chosen]).all()
