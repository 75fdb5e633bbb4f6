"""Batches: all equally likely, and their clipped moments exact; mistakes in either are caught."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmc import evaluators
from dpmc.compiler import compiled
from dpmc.evaluators import batch
from dpmc.evaluators.batch import BatchEvaluator, below, clipped_moments, draw_batch
from dpmc.evaluators.generic import GenericEvaluator
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from kernels.ladder import compiled_batch_sums, mutant

few = settings(max_examples=60, deadline=None, derandomize=True)
MODULE = "dpmc.evaluators.batch"
LAST = 2**64 - 1
P_VALUE, FAULT_P = 1e-4, 1e-8

MODELS = {
    "banana": (Banana(0.4, 0.3, -0.2, np.array([2.0, 0.5, 1.3]), 4.0), 3),
    "circle": (Circle(0.02), 2),
    "gaussian": (Gaussian(np.array([[0.8, -0.9], [-0.9, 2.0]]), 4.0, 4.0), 2),
}


def words(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, shape, dtype=np.uint64)


# Drawing


def _draw_many(words, taken, chosen):
    for r in range(words.shape[0]):
        draw_batch(words[r], taken, chosen[r])


compiled_draw_many = compiled(_draw_many)


def batches(n: int, b: int, count: int, draw: Any = None) -> np.ndarray:
    """Many batches (count, b); by compiled code, or else by `draw` in Python."""
    chosen, taken = np.full((count, b), -1), np.zeros(n, np.bool_)
    if draw is None:
        compiled_draw_many(words(n + 1000 * b, count, b), taken, chosen)
    else:
        for word, row in zip(words(n + 1000 * b, count, b), chosen, strict=True):
            draw(word, taken, row)
    assert not taken.any(), "marks are left"
    assert ((chosen >= 0) & (chosen < n)).all(), "no such row"
    assert all(len(set(row)) == b for row in chosen[:2000].tolist()), "a row twice"
    return chosen


def subset_p(chosen: np.ndarray, n: int) -> float:
    """p-value that all C(n, b) subsets are equally likely (chi-square)."""
    count, b = chosen.shape
    found = np.bincount((1 << chosen).sum(axis=1), minlength=1 << n)
    subsets = np.array([mask for mask in range(1 << n) if mask.bit_count() == b])
    assert found[subsets].sum() == count
    return float(stats.chisquare(found[subsets]).pvalue)


def inclusion_p(chosen: np.ndarray, n: int) -> float:
    """p-value that each row and each pair is in a batch as often as it should be (binomial, Bonferroni)."""
    count, b = chosen.shape
    member = np.zeros((count, n))
    np.put_along_axis(member, chosen, 1.0, axis=1)
    together = member.T @ member
    pairs = together[np.triu_indices(n, 1)]
    smallest = 1.0
    for found, chance in ((np.diag(together), b / n), (pairs, b * (b - 1) / (n * (n - 1)))):
        tails = np.minimum(stats.binom.cdf(found, count, chance), stats.binom.sf(found - 1.0, count, chance))
        smallest = min(smallest, 4.0 * len(found) * float(tails.min()))
    return min(1.0, smallest)


@pytest.mark.parametrize(("n", "b"), [(1, 1), (4, 1), (5, 2), (6, 3), (7, 5), (7, 6), (8, 4), (6, 6)])
def test_all_batches_are_equally_likely(n: int, b: int) -> None:
    assert subset_p(batches(n, b, 200_000), n) > P_VALUE or math.comb(n, b) == 1


@pytest.mark.parametrize(("n", "b"), [(40, 10), (60, 59), (30, 2)])
def test_rows_and_pairs_are_in_a_batch_as_often_as_they_should_be(n: int, b: int) -> None:
    assert inclusion_p(batches(n, b, 40_000), n) > P_VALUE


def test_batches_one_after_the_other_are_independent() -> None:
    chosen = batches(4, 2, 200_000)
    code = (1 << chosen).sum(axis=1)
    kinds = np.unique(code)
    before, after = np.searchsorted(kinds, code[::2]), np.searchsorted(kinds, code[1::2])
    assert stats.chisquare(np.bincount(len(kinds) * before + after, minlength=36)).pvalue > P_VALUE


@pytest.mark.parametrize("n", [1, 2, 17, 1000])
def test_a_batch_of_all_rows_is_all_rows(n: int) -> None:
    np.testing.assert_array_equal(np.sort(batches(n, n, 20), axis=1), np.tile(np.arange(n), (20, 1)))


def test_a_small_batch_of_very_many_rows() -> None:
    assert len(np.unique(batches(1_000_000, 1300, 20))) > 25_500  # of 26,000, few in two batches


@pytest.mark.parametrize("word", [0, 1, 2**32 - 1, 2**32, 2**63, LAST - 1, LAST])
def test_equal_words_still_give_different_rows(word: int) -> None:
    chosen, taken = np.full(7, -1), np.zeros(9, np.bool_)
    draw_batch(np.full(7, word, np.uint64), taken, chosen)
    assert len(set(chosen.tolist())) == 7
    assert not taken.any()


def _below(words, m, out):
    for q in range(words.shape[0]):
        out[q] = below(words[q], m)


@few
@given(st.lists(st.integers(0, LAST), max_size=20), st.integers(1, 2**32 - 1))
@example([], 2**32 - 1)
@example([], 1)
@example([], 2**31)
def test_below_is_exact(some: list[int], m: int) -> None:
    edges = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, LAST - 1, LAST]
    edges += [k * 2**64 // m + shift for k in (1, m // 2, m - 1) for shift in (-1, 0, 1)]
    chosen = [word for word in some + edges if 0 <= word <= LAST]
    wanted = [word * m >> 64 for word in chosen]
    assert [int(below(np.uint64(word), m)) for word in chosen] == wanted
    out = np.empty(len(chosen), np.int64)
    compiled(_below)(np.array(chosen, np.uint64), m, out)
    assert out.tolist() == wanted


# Moments


def wrong_moments(moments: Any, ratios: list[float], bound: float) -> str:
    """How Σ, Σ (r − mean)² and the count differ from exact sums; "" if they do not."""
    clipped = [-bound if math.isnan(r) else min(max(r, -bound), bound) for r in ratios]
    given_, b = np.array(ratios), len(ratios)
    total, squares, count = moments(given_, bound)
    mean, reach = math.fsum(clipped) / b, max(abs(r) for r in clipped)
    wanted = math.fsum((r - mean) ** 2 for r in clipped)
    rounding = 2.0**-52 * b
    if abs(total - math.fsum(clipped)) > rounding * b * reach:
        return "sum"
    if abs(squares - wanted) > 4.0 * rounding * wanted + b * (rounding * reach) ** 2:
        return "squares"
    if count != sum(not abs(r) <= bound for r in ratios):
        return "count"
    return "" if given_.tolist() == clipped else "clipped in place"


numbers = st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 3.0, -3.0])


def _moments(ratios, bound, out):
    out[0], out[1], out[2] = clipped_moments(ratios, bound)


def compiled_moments(ratios: np.ndarray, bound: float) -> tuple[float, float, int]:
    out = np.empty(3)
    compiled(_moments)(ratios, bound, out)
    return out[0], out[1], int(out[2])


@few
@given(st.lists(numbers, min_size=1, max_size=40), st.sampled_from([0.0, 1e-3, 3.0, 1e5]))
@example([1e6 + 0.001 * k for k in range(50)], 2e6)  # squares much smaller than the square of the mean
@example([0.1] * 1000, 1.0)
def test_moments_are_exact(ratios: list[float], bound: float) -> None:
    assert wrong_moments(clipped_moments, ratios, bound) == ""
    assert wrong_moments(compiled_moments, ratios, bound) == ""


def test_without_a_bound_nothing_is_clipped() -> None:
    assert wrong_moments(clipped_moments, [1.0, -7.5, 2.25], math.inf) == ""


# Evaluators


def question(name: str, chains: int = 4, n: int = 50, b: int = 12, m: int = 3) -> tuple[Any, ...]:
    """A model with rows and moves, bounds that clip some of the rows, and words."""
    model, d = MODELS[name]
    generator = np.random.default_rng(11)
    rows = model.simulate(generator, 0.3 * np.ones(d), n)
    theta = generator.normal(0.3, 0.3, (chains, d))
    proposal = theta + generator.normal(0.0, 0.2, (chains, d))
    moves = zip(theta, proposal, strict=True)
    ratios = np.stack(
        [model.log_likelihood(new, rows) - model.log_likelihood(old, rows) for old, new in moves]
    )
    return model, rows, theta, proposal, np.quantile(np.abs(ratios), 0.7, axis=1), words(12, chains, m, b)


def answer(evaluator: Any, asked: tuple[Any, ...], i: int, ask: Any = None) -> np.ndarray:
    """Sums, squares and counts (3, chains)."""
    model, _, theta, proposal, bound, words_ = asked
    out = np.full((2, len(theta)), np.nan)
    counts = np.full(len(theta), -1)
    arguments = (model, theta, proposal, bound, words_, i, out[0], out[1], counts)
    if ask is None:
        evaluator.batch_sums(*arguments)
    else:
        ask(evaluator, *arguments)
    return np.concatenate([out, counts[None].astype(float)])


def by_numpy(asked: tuple[Any, ...], i: int) -> np.ndarray:
    model, rows, theta, proposal, bound, words_ = asked
    found = []
    for c in range(len(theta)):
        chosen = np.empty(words_.shape[2], np.int64)
        draw_batch(words_[c, i], np.zeros(len(rows), np.bool_), chosen)
        batch_rows = rows[chosen]
        ratio = model.log_likelihood(proposal[c], batch_rows) - model.log_likelihood(theta[c], batch_rows)
        clipped = np.clip(ratio, -bound[c], bound[c])
        found.append([clipped.sum(), len(clipped) * clipped.var(), (np.abs(ratio) > bound[c]).sum()])
    return np.array(found).T


def batch_evaluator(asked: tuple[Any, ...], kind: Any = BatchEvaluator) -> Any:
    return kind.build(asked[0].statistics(asked[1]))


each_model = pytest.mark.parametrize("name", MODELS)


@each_model
def test_sums_are_those_of_the_rows_chosen(name: str) -> None:
    asked = question(name)
    evaluator = batch_evaluator(asked)
    for i in range(3):
        wanted = by_numpy(asked, i)
        assert 0 < wanted[2].sum() < 48
        for found in (
            answer(evaluator, asked, i),
            answer(evaluator, asked, i, compiled_batch_sums),
            answer(GenericEvaluator(asked[1]), asked, i),
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-10)
    assert not evaluator.taken.any()


@each_model
def test_compiled_sums_are_the_same(name: str) -> None:
    asked = question(name)
    evaluator = batch_evaluator(asked)
    np.testing.assert_allclose(
        answer(evaluator, asked, 1, compiled_batch_sums), answer(evaluator, asked, 1), rtol=1e-13
    )


@each_model
@pytest.mark.parametrize("ask", [None, compiled_batch_sums], ids=["python", "compiled"])
def test_company_changes_no_bit(name: str, ask: Any) -> None:
    asked = question(name, chains=7)
    evaluator = batch_evaluator(asked)
    together = answer(evaluator, asked, 2, ask)
    for some in ([3], [6, 0], [5, 5, 1]):
        alone = asked[:2] + tuple(array[some].copy() for array in asked[2:])
        np.testing.assert_array_equal(answer(evaluator, alone, 2, ask), together[:, some])


def test_a_batch_of_all_rows_has_the_sums_of_all_rows() -> None:
    asked = question("banana", n=12)
    model, rows, theta, proposal, bound, _ = asked
    found = answer(batch_evaluator(asked), asked, 0)
    sums, counts = np.empty(4), np.empty(4, np.int64)
    evaluators.build(model, rows).ratio_sums(model, theta, proposal, bound, sums, counts)
    np.testing.assert_allclose(found[[0, 2]], [sums, counts], rtol=1e-10)


def test_algorithms_with_batches_get_this_evaluator() -> None:
    model, rows, *_ = question("banana")
    assert evaluators.describe(evaluators.build(model, rows, False, True)) == "batch"
    assert evaluators.describe(evaluators.build(model, rows, True, True)) == "batch"


# Faults


def complaint(names: dict[str, Any]) -> str:
    """What is wrong with a text of the module; "" if nothing is found."""
    try:
        if subset_p(batches(6, 3, 20_000, names["draw_batch"]), 6) < FAULT_P:
            return "subsets"
        if inclusion_p(batches(12, 6, 20_000, names["draw_batch"]), 12) < FAULT_P:
            return "inclusion"
    except AssertionError as error:
        return str(error).splitlines()[0]
    m = 3**20
    for word in (0, 2**64 // m, 1 + 2**64 // m, 12345 * 2**64 // m, 1 + 12345 * 2**64 // m, LAST):
        if int(names["below"](np.uint64(word), m)) != word * m >> 64:
            return "below"
    for ratios in ([1.0, -7.5, 2.25, 0.5], [3.0, math.nan, 1.0], [1.5]):
        wrong = wrong_moments(names["clipped_moments"], ratios, 2.0)
        if wrong:
            return wrong
    asked = question("banana")
    found = answer(batch_evaluator(asked, names["BatchEvaluator"]), asked, 1)
    return "" if np.allclose(found, by_numpy(asked, 1), rtol=1e-10) else "rows chosen"


FAULTS = {
    "with replacement": ("if taken[pick]:", "if False:", "a row twice"),
    "never the last row": ("last + 1)", "last)", "subsets"),
    "always from all rows": ("below(words[q], last + 1)", "below(words[q], n)", "a row twice"),
    "never from the new rows": ("below(words[q], last + 1)", "below(words[q], n - b + 1)", "subsets"),
    "one word for all": ("words[q], last", "words[0], last", "subsets"),
    "first rows a little too often": (
        "below(words[q], last + 1)",
        "below(words[q] - (words[q] >> np.uint64(4)), last + 1)",
        "subsets",
    ),
    "marks not cleared": ("taken[chosen[q]] = False", "pass", "marks are left"),
    "remainder in place of a product": ("np.int64((high + low) >> half)", "np.int64(word % factor)", "below"),
    "low half forgotten": ("(high + low) >> half", "high >> half", "below"),
    "divisor b - 1": ("mean, squares = total / ratios.shape[0]", "mean, squares = total / 3.0", "squares"),
    "not centred": ("(ratios[j] - mean) ** 2", "ratios[j] ** 2", "squares"),
    "squares before clipping": ("ratios[j] = kept", "pass", "squares"),
    "NaN speaks for the proposal": (
        "clip(ratio, bound)",
        "bound if ratio != ratio else clip(ratio, bound)",
        "sum",
    ),
    "same batch in all iterations": ("words[c, i]", "words[c, 0]", "rows chosen"),
    "same batch for all chains": ("words[c, i]", "words[0, i]", "rows chosen"),
    "first rows, whatever was drawn": ("* table[chosen[j], q]", "* table[j, q]", "rows chosen"),
}


def test_the_module_is_not_blamed() -> None:
    assert complaint(vars(batch)) == complaint(mutant(MODULE)) == ""


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_caught(fault: tuple[str, str, str]) -> None:
    old, new, wanted = fault
    assert complaint(mutant(MODULE, (old, new))) == wanted
