"""Softplus models: the function against exact arithmetic, clipped sums, batches; faults are caught."""

import decimal
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmc import evaluators
from dpmc.compiler import compiled
from dpmc.evaluators import softplus as module
from dpmc.evaluators.batch import BatchEvaluator, draw_batch
from dpmc.evaluators.generic import GenericEvaluator
from dpmc.evaluators.softplus import SoftplusBatchEvaluator, SoftplusEvaluator, add_softplus_change
from dpmc.models.gaussian import Gaussian
from dpmc.models.logistic import Logistic
from dpmc.models.mixture import Mixture
from kernels.ladder import compiled_batch_sums, mutant

few = settings(max_examples=60, deadline=None, derandomize=True)
decimal.getcontext().prec = 50


class Soft(NamedTuple):
    """θ = (α, γ, β, η): any coefficients one likes, and either sign."""

    s: float

    def line(self, theta, alpha):
        for i in range(alpha.shape[0]):
            alpha[i] = theta[i]
        return theta[alpha.shape[0]]

    def link(self, theta, beta):
        k = beta.shape[0]
        for i in range(k):
            beta[i] = theta[k + 1 + i]
        return theta[2 * k + 1]

    def sign(self):
        return self.s

    def statistics(self, rows):
        return rows

    def log_likelihood(self, theta, rows):
        k = rows.shape[1]
        line, link = rows @ theta[:k] + theta[k], rows @ theta[k + 1 : -1] + theta[-1]
        return line + self.s * np.logaddexp(0.0, link)


def _change(old, new, sign, power, out):
    add_softplus_change(old, new, sign, power, power.view(np.int64), out)


def _ratio(evaluator, model, theta, proposal, bound, sums, counts):
    evaluator.ratio_sums(model, theta, proposal, bound, sums, counts)


def _rows(evaluator, model, theta, proposal, chosen, ratios):
    evaluator.rows_ratio(model, theta, proposal, chosen, ratios)


PATHS = {
    "python": (_change, _ratio, _rows),
    "compiled": (compiled(_change), compiled(_ratio), compiled(_rows)),
}
each_path = pytest.mark.parametrize("path", PATHS)


# The function


def exact_tail(z: Fraction) -> Fraction:
    """ln(1 + e^−|z|), relative error 1e-40."""
    if abs(z) > 2000:
        return Fraction(0)
    e = (-abs(decimal.Decimal(z.numerator) / decimal.Decimal(z.denominator))).exp()
    return Fraction(e * (1 - e / 2 + e * e / 3) if e < decimal.Decimal("1e-20") else (1 + e).ln())


def exact_softplus(z: Fraction) -> Fraction:
    return max(z, Fraction(0)) + exact_tail(z)


def change(path: str, old: Any, new: Any, sign: float = 1.0, function: Any = None) -> np.ndarray:
    old, new = np.array(old, dtype=float), np.array(new, dtype=float)
    out = np.zeros(new.shape)
    with np.errstate(all="ignore"):
        (function or PATHS[path][0])(old, new, sign, np.empty(new.shape), out)
    return out


def places() -> np.ndarray:
    """Numbers from −745 to 745, dense where softplus bends and around the changes of an exponent."""
    generator = np.random.default_rng(1)
    steps = math.log(2.0) * (np.arange(-1074, 1075) + 0.5)
    return np.concatenate(
        [
            generator.uniform(-745.0, 745.0, 500),
            generator.normal(0.0, 3.0, 1500),
            steps[::7],
            np.nextafter(steps[::7], 0.0),
            [-745.1, -745.0, 745.0, 0.0, -0.0, 5e-324, -5e-324, 1e-17, -1e-300, 36.7, -36.7, -708.4, -708.3],
        ]
    )


@each_path
def test_softplus_is_right_to_a_few_units_in_the_last_place(path: str) -> None:
    z = places()
    found = change(path, np.full(z.shape, -np.inf), z)  # softplus(−∞) = 0
    for place, value in zip(z, found, strict=True):
        wanted = exact_softplus(Fraction(place))
        error = abs(Fraction(value) - wanted)
        assert error <= wanted * Fraction(8e-16) + Fraction(5e-324), place


@each_path
def test_the_change_of_a_short_move_loses_nothing(path: str) -> None:
    generator = np.random.default_rng(2)
    old = generator.normal(0.0, 12.0, 1500)
    new = old + generator.normal(0.0, 1.0, 1500) * 10.0 ** generator.uniform(-12.0, 0.0, 1500)
    for a, b, value in zip(old, new, change(path, old, new), strict=True):
        first, second = Fraction(a), Fraction(b)
        linear = float(abs(max(second, 0) - max(first, 0)))
        scale = linear + float(exact_tail(first) + exact_tail(second))
        wanted = exact_softplus(second) - exact_softplus(first)
        assert abs(float(Fraction(value) - wanted)) <= 6e-16 * scale


@each_path
def test_infinities_and_what_is_no_number(path: str) -> None:
    inf, nan = np.inf, np.nan
    old = [-inf, inf, -inf, inf, 0.0, nan, 0.0, -nan, nan, -inf, 1e300, -1e300, 0.0]
    new = [-inf, inf, inf, -inf, inf, 0.0, nan, nan, inf, -inf, -1e300, 1e300, 0.0]
    wanted = [0.0, nan, inf, -inf, inf, nan, nan, nan, nan, 0.0, -1e300, 1e300, 0.0]
    np.testing.assert_array_equal(change(path, old, new), wanted)
    np.testing.assert_array_equal(change(path, old, new, -1.0), -np.array(wanted))


def test_python_and_machine_code_differ_by_rounding_alone() -> None:
    old, new = places(), places()[::-1]
    by_python, by_machine = change("python", old, new), change("compiled", old, new)
    scale = np.abs(np.maximum(new, 0.0) - np.maximum(old, 0.0)) + 1.0
    assert (np.abs(by_python - by_machine) <= 4e-16 * scale).all()


# Sums over all rows


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: Any) -> None:
    """Blocks of 8 rows, so that few rows make several blocks and a part of one."""
    monkeypatch.setattr(module, "BLOCK", 8)
    monkeypatch.setattr("dpmc.evaluators.generic.CHUNK", 8)


def ask(path: str, evaluator: Any, model: Any, theta: Any, proposal: Any, bound: Any) -> Any:
    sums, counts = np.full(len(theta), np.nan), np.full(len(theta), -1)
    with np.errstate(all="ignore"):
        PATHS[path][1](evaluator, model, theta, proposal, np.asarray(bound), sums, counts)
    return sums, counts


class Exact(NamedTuple):
    """Exact clipped sum and count of one move, the scale of rounding, and rows too near the bound."""

    total: float
    count: int
    scale: float
    unsure: int


def exact_sum(s: float, rows: np.ndarray, theta: np.ndarray, proposal: np.ndarray, bound: float) -> Exact:
    limit = math.inf if bound == math.inf else Fraction(bound)
    total, count, scale, unsure = [], 0, 0.0, 0
    k = rows.shape[1]
    for row in rows:
        ratio, size = Fraction(0), 1.0  # of the exponentials
        for place, factor in ((proposal, 1), (theta, -1)):
            terms = [*(Fraction(t) for t in row), Fraction(1)]
            parts = [Fraction(a) * t for a, t in zip(place, terms * 2, strict=True)]
            line, link = sum(parts[: k + 1]), sum(parts[k + 1 :])
            ratio += factor * (line + int(s) * exact_softplus(Fraction(link)))
            size += float(sum(abs(part) for part in parts))
        total.append(float(min(max(ratio, -limit), limit)))
        count += abs(ratio) > limit
        unsure += limit != math.inf and 0 < abs(abs(ratio) - limit) <= 1e-14 * size
        scale += size
    return Exact(math.fsum(total), count, scale, unsure)


def check(path: str, evaluator: Any, s: float, rows: Any, theta: Any, proposal: Any, bound: float) -> None:
    sums, counts = ask(path, evaluator, Soft(s), theta[None], proposal[None], [bound])
    wanted = exact_sum(s, rows, theta, proposal, bound)
    assert abs(sums[0] - wanted.total) <= 4e-15 * wanted.scale
    assert abs(counts[0] - wanted.count) <= wanted.unsure


eighths = st.integers(-64, 64).map(lambda i: i / 8.0)
ordinary = st.floats(-8.0, 8.0).map(lambda x: round(x, 6))
sized = st.builds(lambda x, e: x * 2.0**e, st.floats(-1.0, 1.0), st.integers(-60, 60))
VALUES = {"with ties": eighths, "ordinary": ordinary, "huge and tiny": sized}


@st.composite
def problems(draw: Any, values: Any, still: bool = False) -> Any:
    """A sign, rows (n, k), two positions and a bound; `still`: both positions have one link."""
    k, n = draw(st.integers(1, 6)), draw(st.integers(1, 20))
    rows = np.array(draw(st.lists(values, min_size=n * k, max_size=n * k))).reshape(n, k)
    places = st.lists(values, min_size=2 * k + 2, max_size=2 * k + 2)
    theta, proposal = np.array(draw(places)), np.array(draw(places))
    for part in draw(st.lists(st.integers(0, 2 * k + 1), max_size=3)):
        theta[part] = proposal[part] = 0.0
    if still:
        proposal[k + 1 :] = theta[k + 1 :]
    bounds = [values.map(abs), st.just(np.inf), st.just(0.0), st.just(1e-3), st.just(1e9)]
    return draw(st.sampled_from([1.0, -1.0])), rows, theta, proposal, draw(st.one_of(*bounds))


@each_path
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_sums_and_counts_are_exact_to_rounding(path: str, values: Any) -> None:
    @few
    @given(problem=problems(values))
    def examples(problem: Any) -> None:
        check(path, SoftplusEvaluator.build(problem[1]), *problem)

    examples()


@each_path
@few
@given(problem=problems(eighths, still=True))
def test_true_ties_are_not_clipped(path: str, problem: Any) -> None:
    s, rows, theta, proposal, bound = problem
    bound = round(bound * 8.0) / 8.0 if bound < np.inf else bound
    sums, counts = ask(path, SoftplusEvaluator.build(rows), Soft(s), theta[None], proposal[None], [bound])
    wanted = exact_sum(s, rows, theta, proposal, bound)
    assert counts[0] == wanted.count
    assert sums[0] == wanted.total  # 64ths, all of them exact


@pytest.mark.parametrize("n", [1, 255, 256, 257, 3 * 256 + 17])
@pytest.mark.parametrize("k", [1, 4, 7])
def test_whole_blocks_in_machine_code(n: int, k: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "BLOCK", 256)
    generator = np.random.default_rng(n + k)
    rows = generator.normal(0.0, 2.0, (n, k))
    theta, proposal = generator.normal(0.0, 1.0, (2, 2 * k + 2))
    for bound in (1e-4, 1.0, np.inf):
        check("compiled", SoftplusEvaluator.build(rows), -1.0, rows, theta, proposal, bound)


def test_generic_sums_agree() -> None:
    generator = np.random.default_rng(3)
    for model in (Mixture(2.0, 3.0), Logistic(5, 4.0)):
        rows = model.simulate(generator, np.full(model.dimension, 0.5), 700)
        theta, proposal = generator.uniform(-2.0, 2.0, (2, 4, model.dimension))
        bound = np.array([0.05, 0.5, 3.0, np.inf])
        sums, counts = ask("compiled", evaluators.build(model, rows), model, theta, proposal, bound)
        wanted = ask("python", GenericEvaluator(rows), model, theta, proposal, bound)
        np.testing.assert_allclose(sums, wanted[0], rtol=1e-11)
        np.testing.assert_array_equal(counts, wanted[1])
        assert 0 < counts[1] < 700


@each_path
def test_a_chain_has_the_same_bits_whichever_chains_are_beside_it(path: str) -> None:
    generator = np.random.default_rng(5)
    rows = generator.normal(0.0, 2.0, (83, 3))
    evaluator, model = SoftplusEvaluator.build(rows), Soft(-1.0)
    theta, proposal = generator.normal(0.0, 1.0, (2, 7, 8))
    proposal[2:4, :3] = theta[2:4, :3]  # some chains without a linear part
    bound = generator.uniform(0.1, 3.0, 7)
    sums, counts = ask(path, evaluator, model, theta, proposal, bound)
    for chosen in ([0], [3], [2, 5], [6, 1, 4], [5, 3, 0, 2]):
        some = ask(path, evaluator, model, theta[chosen], proposal[chosen], bound[chosen])
        np.testing.assert_array_equal(some[0], sums[chosen])
        np.testing.assert_array_equal(some[1], counts[chosen])


@each_path
@pytest.mark.parametrize("bound", [2.0, np.inf])
def test_rows_that_cannot_be_compared_speak_against_the_proposal(path: str, bound: float) -> None:
    """A row whose log odds overflow has no ratio; one that is not finite itself is left out."""
    rows = np.array([[0.5], [1e308], [np.nan], [1.0]])
    theta, proposal = np.array([[0.0, 0.0, 2.0, 0.0]]), np.array([[0.25, 0.0, 2.5, 0.0]])
    sums, counts = ask(path, SoftplusEvaluator.build(rows), Soft(1.0), theta, proposal, [bound])
    kept = exact_sum(1.0, rows[[0, 3]], theta[0], proposal[0], bound).total
    assert counts[0] == 1
    assert sums[0] == pytest.approx(kept - bound, rel=1e-14)


@each_path
@pytest.mark.parametrize("row", [1e3, 1e9, -1e12, 1e17, -1e100, 1e150])
def test_one_row_changes_a_sum_by_the_sensitivity_at_most(path: str, row: float) -> None:
    rows = np.random.default_rng(6).normal(0.0, 1.0, (40, 1))
    neighbour = rows.copy()
    neighbour[0, 0] = row
    theta, proposal = np.array([[0.1, 0.0, 0.2, 0.0]]), np.array([[-0.4, 0.2, 0.9, 0.1]])
    sums = [
        ask(path, SoftplusEvaluator.build(r), Soft(1.0), theta, proposal, [0.2])[0] for r in (rows, neighbour)
    ]
    assert abs(sums[0] - sums[1]) <= 0.4 * (1.0 + 1e-12)


# Chosen rows and batches

CHOICES = {
    "mixture": (Mixture(2.0, 3.0), SoftplusBatchEvaluator),
    "logistic": (Logistic(5, 4.0), SoftplusBatchEvaluator),
    "affine": (Gaussian(np.array([[0.8, -0.3], [-0.3, 2.0]]), 4.0, 4.0), BatchEvaluator),
    "generic": (Mixture(2.0, 3.0), GenericEvaluator),
}


@each_path
@pytest.mark.parametrize("name", CHOICES)
def test_ratios_of_chosen_rows_are_differences_of_log_likelihoods(path: str, name: str) -> None:
    model, kind = CHOICES[name]
    if kind is GenericEvaluator and path == "compiled":
        pytest.skip("plain Python always")
    generator = np.random.default_rng(7)
    rows = model.simulate(generator, np.full(model.dimension, 0.5), 60)
    evaluator = (
        GenericEvaluator(rows) if kind is GenericEvaluator else evaluators.build(model, rows, False, True)
    )
    assert isinstance(evaluator, kind)
    theta, proposal = generator.uniform(-2.0, 2.0, (2, model.dimension))
    wanted = model.log_likelihood(proposal, rows) - model.log_likelihood(theta, rows)
    for b in (1, 7, 8, 9, 300):  # with repeats; more than a block of 8, and than all rows
        chosen, ratios = generator.integers(0, 60, b), np.full(b + 1, np.nan)
        PATHS[path][2](evaluator, model, theta, proposal, chosen, ratios[:b])
        np.testing.assert_allclose(ratios[:b], wanted[chosen], rtol=1e-12, atol=1e-13)
        assert np.isnan(ratios[b])


@pytest.mark.parametrize("name", ["mixture", "logistic"])
def test_batch_moments_are_those_of_the_rows_drawn(name: str) -> None:
    model = CHOICES[name][0]
    generator = np.random.default_rng(8)
    rows = model.simulate(generator, np.full(model.dimension, 0.5), 60)
    evaluator = evaluators.build(model, rows, batches=True)
    theta, proposal = generator.uniform(-1.0, 1.0, (2, 3, model.dimension))
    words = generator.integers(0, 2**64, (3, 2, 20), dtype=np.uint64)
    bound = np.full(3, 0.3)
    for sums_of in (None, compiled_batch_sums):
        sums, squares, counts = np.empty(3), np.empty(3), np.empty(3, np.int64)
        arguments = (model, theta, proposal, bound, words, 1, sums, squares, counts)
        sums_of(evaluator, *arguments) if sums_of else evaluator.batch_sums(*arguments)
        for c in range(3):
            chosen = np.empty(20, np.int64)
            draw_batch(words[c, 1], np.zeros(60, np.bool_), chosen)
            few_rows = rows[chosen]
            ratio = model.log_likelihood(proposal[c], few_rows) - model.log_likelihood(theta[c], few_rows)
            clipped = np.clip(ratio, -0.3, 0.3)
            assert sums[c] == pytest.approx(clipped.sum(), rel=1e-11)
            assert squares[c] == pytest.approx(20 * clipped.var(), rel=1e-11)
            assert counts[c] == (np.abs(ratio) > 0.3).sum()
    assert not evaluator.taken.any()


def test_softplus_models_get_these_evaluators_unless_gradients_are_asked_for() -> None:
    model = Mixture(2.0, 3.0)
    rows = np.ones((4, 1))
    assert evaluators.describe(evaluators.build(model, rows)) == "softplus"
    assert evaluators.describe(evaluators.build(model, rows, one_component=True)) == "softplus"
    assert evaluators.describe(evaluators.build(model, rows, batches=True)) == "batch"
    assert evaluators.describe(evaluators.build(model, rows, gradients=True)) == "generic"


# Faults

FAULTS = {
    "softplus without its linear part": ("out[j] += sign * (above - below)", "out[j] += 0.0"),
    "sign forgotten in the linear part": ("sign * (above - below)", "(above - below)"),
    "sign forgotten in the tail": ("sign * (twice", "(twice"),
    "old and new exchanged in the tail": ("(new[j] - old[j]) /", "(old[j] - new[j]) /"),
    "1 + e taken for the mean": ("(2.0 + (new[j] + old[j]))", "(2.0 + 2.0 * new[j])"),
    "series of the logarithm cut short": ("twice * v * tail", "0.0"),
    "series of the exponential cut short": ("(r + s * tail)", "r"),
    "one term of the exponential wrong": ("0.041666666666", "0.042666666666"),
    "low part of ln 2 forgotten": ("- k * LN_2_LOW", ""),
    "exponent off by one": ("1023 + 64", "1023 + 63"),
    "no absolute value": ("x = -abs(z[j])", "x = z[j]"),
    "old position for both links": ("model.link(proposal, lines[2])", "model.link(theta, lines[2])"),
    "linear part not subtracted": ("lines[0, i] -= lines[1, i]", "pass"),
    "constant not subtracted": ("model.line(proposal, lines[0]) - old", "model.line(proposal, lines[0])"),
    "padding counted": ("clip_ratios(ratios, rows,", "clip_ratios(ratios, size,"),
    "last block dropped": ("range(self.blocks.shape[0])", "range(self.n // size)"),
    "columns beyond fours forgotten": ("while q < k:", "while q < 0:"),
    "fourth column forgotten": ("+ b3 * w[j]", ""),
    "clip count forgotten": ("counts[c] += clipped", "pass"),
    "one row's link at the old position": ("b += lines[2, q]", "b += lines[1, q]"),
    "the first rows again and again": ("chosen[first : first + rows], lines", "chosen[:rows], lines"),
}


def first_fault(old: str = "", new: str = "") -> bool:
    """Whether the checks above object to the module with a piece of its text exchanged."""
    names = mutant(module.__name__, *([(old, new)] if old else []))
    names["BLOCK"] = 8
    generator = np.random.default_rng(11)
    for round_ in range(60):
        k = 1 + round_ % 5
        rows = generator.normal(0.0, 2.0, (21, k))
        theta, proposal = generator.normal(0.0, 1.0, (2, 2 * k + 2))
        bound, s = float(generator.uniform(0.1, 3.0)), (-1.0) ** round_
        try:
            check("python", names["SoftplusEvaluator"].build(rows), s, rows, theta, proposal, bound)
            table, ratios = names["SoftplusBatchEvaluator"].build(rows), np.empty(len(rows))
            table.rows_ratio(Soft(s), theta, proposal, np.arange(len(rows)), ratios)
            wanted = Soft(s).log_likelihood(proposal, rows) - Soft(s).log_likelihood(theta, rows)
            np.testing.assert_allclose(ratios, wanted, rtol=1e-10, atol=1e-12)
        except (AssertionError, OverflowError, ValueError):
            return True
    return False


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_caught(fault: tuple[str, str]) -> None:
    assert first_fault(*fault)


def test_no_fault_is_found_where_none_is() -> None:
    assert not first_fault()
