"""Accountants of batches: published iterations, data sets in full, other libraries, each other."""

import csv
import itertools
import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from dpmc.common.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.accountants import ACCOUNTANTS, pld, rdp, resolve
from dpmc.privacy.accountants.gaussian import log_delta
from dpmc.privacy.accountants.profiles import Amplified, BarkerTest, ReplacePair, Shift
from dpmc.privacy.events import (
    NonPrivateQuery,
    Query,
    SubsampledGaussianQuery,
    repeat,
)
from dpmc.privacy.ledger import Budget, BudgetExceeded, Ledger
from privacy.builders import (
    BARKER,
    RDP,
    REPLACE,
    TIGHT,
    WOR,
    barker,
    claimed,
    composed_elsewhere,
    gaussian,
    minibatch,
    queries_in,
    to_dp_accounting,
)


def table() -> list[dict[str, str]]:
    with (Path(__file__).parent / "batch_iterations.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def cells(rows: list[dict[str, str]]) -> list[tuple[str, tuple[Query, ...], int, int, int]]:
    """(accountant, events of an iteration, n, epsilon, iterations known)."""
    found = []
    for row in rows:
        b, n = int(row["batch_size"]), int(row["n"])
        each = minibatch(float(row["tau"]), b, n) if row["tau"] else barker(b, n)
        found += [(row["accountant"], each, n, e, int(row[f"eps{e}"])) for e in range(1, 7)]
    return found


FAST = [cell for cell in cells(table()) if cell[0] != "wor-pld" or cell[3] in (1, 4)]
FAST = [cell for cell in FAST if cell[0] != "replace-pld" or cell[3] in (3, 6)]


# --- against known iterations --------------------------------------------------------------------


@pytest.mark.parametrize("selected", [FAST, pytest.param(cells(table()), marks=pytest.mark.slow)])
def test_known_iterations(selected: list) -> None:
    assert len(selected) in (len(FAST), 150)
    for name, each, n, epsilon, known in selected:
        found = accountants.get(name).iterations((), each, float(epsilon), 0.1 / n)
        # closed forms to the iteration, loss distributions to one, Barker's (another grid) to 0.2 %
        slack = {"rdp": 0.0, "barker-pld": 0.002 * known}.get(name, 1.0)
        assert abs(found - known) <= slack, (name, each, epsilon)


def test_the_number_of_iterations_is_the_largest_and_can_be_reserved() -> None:
    for accountant, each in ((WOR, minibatch(1.5, 1000, 100_000)), (BARKER, barker(1300, 100_000))):
        k = accountant.iterations((), each, 2.0, 1e-6)
        assert accountant.delta(repeat(each, k), 2.0) <= 1e-6 < accountant.delta(repeat(each, k + 1), 2.0)
        assert accountant.epsilon(repeat(each, k), 1e-6) <= 2.0
        assert accountant.epsilon(repeat(each, k + 1), 1e-6) > 2.0 * (1.0 - 2e-9)
        ledger = Ledger(Budget(2.0, 1e-6), accountant)
        with pytest.raises(BudgetExceeded):
            ledger.foresee(repeat(each, k + 1))
        ledger.reserve(repeat(each, k))
        assert queries_in(Ledger.from_json(ledger.to_json()), "reserved") == repeat(each, k)


# --- the statements, on data sets in full --------------------------------------------------------

POINTS = np.linspace(-16.0, 17.0, 6001)
WIDTH = POINTS[1] - POINTS[0]


def normal(mean: np.ndarray, variance: np.ndarray | float) -> np.ndarray:
    """Densities at POINTS of the equal mixture of normals."""
    mean, variance = np.broadcast_arrays(np.asarray(mean, float), variance)
    z = (POINTS[:, None] - mean) / np.sqrt(variance)
    return np.mean(np.exp(-0.5 * z * z) / np.sqrt(2.0 * math.pi * variance), axis=1)


def curve(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """sup over tests of P(S) - e^epsilon Q(S), by the trapezium rule; epsilon may be negative."""
    return float(np.sum(np.maximum(0.0, p - math.exp(epsilon) * q)) * WIDTH)


EPSILONS = (-3.0, -1.0, -0.3, -0.05, 0.0, 0.02, 0.1, 0.4, 1.0, 2.5)


@pytest.mark.parametrize("tau", [0.3, 0.7, 2.0])
def test_no_small_data_set_exceeds_the_without_replacement_profile(tau: float) -> None:
    """All batches of small data sets; values per row differ by at most 1, so sums of a batch too."""
    rng = np.random.default_rng(5)
    largest = -1.0
    for _ in range(40):
        n = int(rng.integers(2, 7))
        b = int(rng.integers(1, n + 1))
        values = rng.choice([0.0, 1.0, rng.random()], n)
        other = values.copy()
        other[0] = rng.choice([0.0, 1.0, rng.random()])
        batches = list(itertools.combinations(range(n), b))
        p, q = (normal(np.array([v[list(batch)].sum() for batch in batches]), tau) for v in (values, other))
        profile = Amplified(Shift(1.0 / math.sqrt(tau)), b / n)
        for epsilon in EPSILONS:
            found = max(curve(p, q, epsilon), curve(q, p, epsilon))
            largest = max(largest, found - claimed(profile, epsilon))
    assert largest <= 5e-6  # the trapezium rule's error at the kink


@pytest.mark.parametrize(("tau", "q"), [(0.3, 0.25), (0.7, 0.5), (2.0, 0.1)])
def test_the_without_replacement_profile_is_attained(tau: float, q: float) -> None:
    """Row 1 against row 0 among zeros: the first order attains epsilon >= 0, the other one < 0."""
    with_row = (1.0 - q) * normal(np.array([0.0]), tau) + q * normal(np.array([1.0]), tau)
    without = normal(np.array([0.0]), tau)
    profile = Amplified(Shift(1.0 / math.sqrt(tau)), q)
    for epsilon in EPSILONS:
        p, r = (with_row, without) if epsilon >= 0.0 else (without, with_row)
        assert curve(p, r, epsilon) == pytest.approx(claimed(profile, epsilon), abs=2e-6)


def test_the_replace_pair_dominates() -> None:
    epsilons = np.linspace(0.0, 6.0, 301)
    for tau, q in itertools.product((0.05, 0.3, 0.7, 2.0, 30.0), (1e-4, 0.01, 0.3, 1.0)):
        pairs = ReplacePair(tau, q), Amplified(Shift(1.0 / math.sqrt(tau)), q)
        high, low = (u - np.exp(epsilons) * v for u, v in (pair.tails(epsilons) for pair in pairs))
        assert np.all(low <= high + 1e-15)
        assert np.max(high - low) > 1e-9


@pytest.mark.parametrize(("tau", "q"), [(0.7, 0.01), (0.05, 0.2), (5.0, 1e-4), (1.0, 1.0)])
def test_tails_of_the_replace_pair_against_mpmath(tau: float, q: float) -> None:
    with mpmath.workdps(50):
        t, w = mpmath.mpf(tau), mpmath.mpf(q)
        sd = mpmath.sqrt(t)
        for loss in (1e-6, 1e-3, 0.1, 1.0, 4.0):
            # Where the ratio of densities is e^loss: a quadratic equation in e^(x/tau).
            a, half = mpmath.exp(-1 / (2 * t)), (1 - w) * mpmath.expm1(loss)
            y = (half + mpmath.sqrt(half**2 + 4 * (w * a) ** 2 * mpmath.exp(loss))) / (2 * w * a)
            x = t * mpmath.log(y)
            over = 1 - w + w * mpmath.exp((2 * x - 1) / (2 * t))
            under = 1 - w + w * mpmath.exp((-2 * x - 1) / (2 * t))
            assert mpmath.almosteq(over, under * mpmath.exp(loss), 1e-30)
            beside = (1 - w) * mpmath.ncdf(-x / sd)
            exact = beside + w * mpmath.ncdf((1 - x) / sd), beside + w * mpmath.ncdf((-1 - x) / sd)
            found = ReplacePair(tau, q).tails(np.array([loss]))
            for value, known in zip(found, exact, strict=True):
                assert float(value[0]) == pytest.approx(float(known), rel=1e-11)


# --- DP Barker -----------------------------------------------------------------------------------


def two_normals(d: float, v: float, w: float, epsilon: float) -> float:
    """sup over tests between N(d, v) and N(0, w): the roots of a quadratic, with its signs."""
    a, b = 1.0 / w - 1.0 / v, 2.0 * d / v
    c = -d * d / v + math.log(w / v) - 2.0 * epsilon
    if abs(a) < 1e-12:
        edges, inside = [-c / b], False
    else:
        square = b * b - 4.0 * a * c
        if square <= 0.0:
            return max(0.0, 1.0 - math.exp(epsilon)) if a > 0.0 else 0.0
        edges = sorted((-b + sign * math.sqrt(square)) / (2.0 * a) for sign in (-1.0, 1.0))
        inside = a < 0.0

    def mass(mean: float, variance: float) -> float:
        below = [float(ndtr((edge - mean) / math.sqrt(variance))) for edge in edges]
        if len(edges) == 1:
            return 1.0 - below[0]
        return below[1] - below[0] if inside else 1.0 - below[1] + below[0]

    return mass(d, v) - math.exp(epsilon) * mass(0.0, w)


@pytest.mark.parametrize("b", [100, 1300])
def test_no_pair_of_normals_exceeds_the_barker_curve(b: int) -> None:
    rng = np.random.default_rng(11)
    largest = -1.0
    for _ in range(4000):
        d = 2.0 / math.sqrt(b) * rng.choice([1.0, rng.random()])
        v = 1.0 + rng.choice([0.0, rng.random(), 4.0 / b * rng.random()])
        w = min(2.0, max(1.0, v + 4.0 / b * rng.choice([-1.0, 1.0, rng.uniform(-1.0, 1.0)])))
        epsilon = rng.choice([0.0, 2.0 / b * rng.random(), 0.3 * rng.random(), 8.0 / math.sqrt(b)])
        upper, lower = (float(t[0]) for t in BarkerTest(b).tails(np.array([epsilon])))
        largest = max(largest, two_normals(d, v, w, epsilon) - (upper - math.exp(epsilon) * lower))
    assert largest <= 1e-13


def test_barker_moments_against_mpmath() -> None:
    """ln E[e^(sL)] of a test, by quadrature in 30 digits, is approached from above."""
    b, q = 1300, 0.013
    with mpmath.workdps(30):
        d, h, w = 2 / mpmath.sqrt(b), mpmath.mpf(4) / b, mpmath.mpf(q)

        def tails(loss):
            epsilon = mpmath.log(1 + mpmath.expm1(loss) / w)
            c = d * d + (1 + h) * (mpmath.log(1 + h) + 2 * epsilon)
            root = mpmath.sqrt(d * d + h * c)
            right, left, sd = c / (d + root), -(d + root) / h, mpmath.sqrt(1 + h)
            wide = mpmath.ncdf((d - right) / sd) + mpmath.ncdf((left - d) / sd)
            narrow = mpmath.ncdf(-right) + mpmath.ncdf(left)
            edge = epsilon / d + d / 2
            pairs = [(wide, narrow), (mpmath.ncdf(d - edge), mpmath.ncdf(-edge))]
            p, r = max(pairs, key=lambda pair: pair[0] - mpmath.exp(epsilon) * pair[1])
            return w * p + (1 - w) * r, r

        pieces = [x * w * d for x in (0, 0.02, 0.25, 1, 2, 4, 8, 16)]
        for s in (5, 12):

            def integrand(loss, s=s):
                p, r = tails(loss)
                return s * (mpmath.exp(s * loss) * p - mpmath.exp(-s * loss) * r)

            exact = float(mpmath.log1p(mpmath.quad(integrand, pieces)))
            step = pld.grid_step(q * 2.0 / math.sqrt(b), 6.0)
            found = pld.discretised(Amplified(BarkerTest(b), q), step).moments(float(s))[0]
            assert exact <= found <= exact * (1.0 + 1e-4)


# --- the loss distribution engine ----------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.floats(0.4, 300.0), st.integers(1, 2000), st.floats(0.01, 12.0))
def test_the_whole_data_set_as_batch_is_the_exact_gaussian_curve(s, count, epsilon) -> None:
    event = (SubsampledGaussianQuery("ratio", s, 50, 50, count),)
    exact = TIGHT.delta(gaussian(s, count), epsilon)
    for accountant in (WOR, RDP):
        assert accountant.delta(event, epsilon) >= exact * (1.0 - 1e-9)
    if exact > 1e-15 * count:
        # Grid 1e-4 against a standard deviation of at least 1/s.
        slack = 1.0 + 1e-4 + 1e-2 * (count + 30.0) * (1e-4 * (1.0 + epsilon)) * max(1.0, s)
        assert WOR.delta(event, epsilon) <= exact * slack


@pytest.mark.parametrize("target", [1e-3, 1e-6, 1e-12, 1e-30])
def test_small_deltas_keep_their_digits(target: float) -> None:
    """Tilting: a delta of 1e-30 is as sharp as one of 1e-3, where a plain FFT has only noise."""
    once = gaussian(20.0, 60)
    epsilon = TIGHT.epsilon(once, target)
    batch = (SubsampledGaussianQuery("ratio", 20.0, 7, 7, 60),)
    assert target * (1.0 - 1e-9) <= WOR.delta(batch, epsilon) <= target * 1.002


@pytest.mark.parametrize("d", [3.0, 0.5, 0.05, 1e-3, 1e-4, 1e-6])
def test_rounding_never_takes_delta_below_the_exact_curve(d: float) -> None:
    """At points of the grid, where one query's curve is the exact one, down to 1e-40."""
    step = pld.grid_step(min(1.0, d), 1.0)
    part = pld.discretised(Amplified(Shift(d), 1.0), step)
    for count in (1, 100):
        width = mpmath.sqrt(count) * mpmath.mpf(d)
        for place in np.linspace(1, min(10.0 * float(width), 60.0) / step, 12).astype(int):
            epsilon = float(place * step)
            with mpmath.workdps(60):
                upper, lower = (mpmath.ncdf(sign * width / 2 - epsilon / width) for sign in (1, -1))
                exact = upper - mpmath.exp(epsilon) * lower
                if exact > 1e-40:
                    assert pld.delta([(part, count)], epsilon) >= exact


@pytest.mark.parametrize(("tau", "q", "count", "epsilon"), [(0.7, 0.01, 828, 4.0), (2.0, 0.02, 300, 3.0)])
def test_the_replace_pair_against_another_library(tau, q, count, epsilon) -> None:
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution as library

    other = library.from_gaussian_mechanism(
        math.sqrt(tau),
        value_discretization_interval=1e-4,
        sampling_prob=q,
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE,
    ).self_compose(count)
    batch = minibatch(tau, round(q * 10_000), 10_000, count)
    assert REPLACE.delta(batch, epsilon) == pytest.approx(other.get_delta_for_epsilon(epsilon), rel=1e-6)


def test_the_profile_against_another_library() -> None:
    """The same curve, discretised and composed by dp-accounting."""
    profile = Amplified(Shift(1.0 / math.sqrt(1.5)), 0.01)
    known = composed_elsewhere(profile, 2796, 3.0, 100_000)
    assert WOR.delta(minibatch(1.5, 1000, 100_000, 2796), 3.0) == pytest.approx(known, rel=1e-4)


# --- mixtures ------------------------------------------------------------------------------------


def test_gaussian_queries_beside_batches() -> None:
    batch, full = minibatch(0.8, 1200, 200_000), gaussian(60.0)
    for accountant in (RDP, REPLACE, WOR):
        alone = accountant.iterations((), batch, 4.0, 5e-7)
        both = accountant.iterations((), batch + full, 4.0, 5e-7)
        after = accountant.iterations(gaussian(1.5), batch, 4.0, 5e-7)
        assert 0 < both < alone
        assert 0 < after < alone
        assert accountant.iterations(gaussian(0.1), batch, 4.0, 5e-7) == 0
    only = WOR.epsilon(gaussian(3.0, 40), 1e-6)
    assert TIGHT.epsilon(gaussian(3.0, 40), 1e-6) == pytest.approx(only, rel=1e-4)


def test_all_kinds_of_queries_are_bounded_together() -> None:
    events = minibatch(1.0, 100, 10_000, 50) + barker(200, 10_000, 50) + gaussian(20.0, 5)
    found = {a.name: a.delta(events, 2.0) for a in (WOR, BARKER, RDP)}
    assert found["wor-pld"] == found["barker-pld"] < found["rdp"]
    with pytest.raises(DpmcError, match=r"'test'.*'replace-pld'.*can: rdp, wor-pld, barker-pld"):
        REPLACE.delta(events, 2.0)
    with_an_exact_answer = (*minibatch(1.0, 10, 100), NonPrivateQuery("data"))
    assert WOR.delta(with_an_exact_answer, 5.0) == 1.0
    assert WOR.epsilon(with_an_exact_answer, 0.1) == math.inf


# --- properties over wide grids ------------------------------------------------------------------


def test_over_a_wide_grid() -> None:
    """0 <= tight <= pessimistic <= 1, rising with k and q, falling with epsilon and tau."""
    n, axes = 10_000, ((0.1, 1.0, 20.0), (0.001, 0.05, 1.0), (1, 3000), (0.02, 0.5, 6.0))
    found = {}
    for tau, q, count, epsilon in itertools.product(*axes):
        events = minibatch(tau, round(q * n), n, count)
        wor, *others = found[tau, q, count, epsilon] = [a.delta(events, epsilon) for a in (WOR, REPLACE, RDP)]
        assert 0.0 <= wor <= min(others) * (1.0 + 1e-6) + 1e-13 * count and max(others) <= 1.0
    for key, values in found.items():
        for place, axis in enumerate(axes):
            for after in axis[axis.index(key[place]) + 1 :][:1]:
                other = found[(*key[:place], after, *key[place + 1 :])]
                low, high = (other, values) if place in (0, 3) else (values, other)
                assert all(a <= b * (1.0 + 1e-4) + 3e-10 for a, b in zip(low, high, strict=True)), (
                    key,
                    place,
                )


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([RDP, REPLACE, WOR]),
    st.floats(1e-12, 1e12),
    st.integers(1, 10**9),
    st.integers(1, 10**9),
    st.integers(1, 10**12),
    st.floats(1e-6, 1e4),
)
def test_never_nan_never_negative(accountant, tau, b, n, count, epsilon) -> None:
    """Whatever the numbers: a probability, and never an optimistic one (here: against rare batches)."""
    found = accountant.delta(minibatch(tau, min(b, n), max(b, n), count), epsilon)
    assert 0.0 <= found <= 1.0


# --- Rényi divergence ----------------------------------------------------------------------------


@pytest.mark.parametrize("theorem", ["3.3", "3.5"])
def test_order_3_of_the_theorems_by_hand(theorem: str) -> None:
    q, b, tau = 0.013, 1300, 2.0

    def on_batch(a: int) -> float:
        if theorem == "3.5":
            return a / (2 * tau)
        return 5 / (2 * b) + math.log(2 * b / (b - 5 * a)) / (2 * (a - 1)) + 2 * a / (b - 5 * a)

    two, three = math.exp(on_batch(2)), math.exp(2 * on_batch(3))
    expected = math.log(1 + q**2 * 3 * min(4 * (two - 1), 2 * two) + 2 * q**3 * three) / 2
    if theorem == "3.5":
        orders, values = rdp.curve(*minibatch(tau, b, 100_000))
    else:
        orders, values = rdp.curve(*barker(b, 100_000))
    assert values[orders.tolist().index(3.0)] == pytest.approx(expected, rel=1e-13)
    assert orders[-1] == (256.0 if theorem == "3.5" else 259.0) and np.all(np.isfinite(values))


def test_the_published_curve_cuts_the_sum_short() -> None:
    """Seeded fault: the sum up to alpha - 1 gives the published numbers, which are too large."""
    known = {0.7: (70, 329, 601, 991), 0.5: (17, 261, 962, 1663)}
    for tau, expected in known.items():
        (event,) = minibatch(tau, 1000, 100_000 if tau == 0.7 else 200_000)
        delta = 0.1 / event.n
        found = [rdp.published_iterations(event, float(e), delta) for e in (3, 4, 5, 6)]
        assert tuple(found) == expected
        theorem = [RDP.iterations((), (event,), float(e), delta) for e in (3, 4, 5, 6)]
        assert all(a > b for a, b in zip(found, theorem, strict=True))


def test_the_theorem_is_at_least_the_other_librarys_bound() -> None:
    """dp-accounting's sharper amplification theorem, replace-one; and both above the loss distribution."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    events = minibatch(0.7, 1000, 100_000, 400)
    library = RdpAccountant(range(6, 13), NeighboringRelation.REPLACE_ONE)
    library.compose(to_dp_accounting(events))
    found = library.get_epsilon(1e-6)
    assert WOR.epsilon(events, 1e-6) < found < RDP.epsilon(events, 1e-6)


# --- seeded faults: what the tables above would catch --------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        lambda tau, q: Amplified(Shift(1.0 / math.sqrt(tau)), 1.0),  # q forgotten
        lambda tau, q: Amplified(Shift(1.0 / tau), q),  # tau read as a standard deviation
        lambda tau, q: Amplified(Shift(0.5 / math.sqrt(tau)), q),  # row norm for sensitivity
        lambda tau, q: Amplified(Shift(1.0 / math.sqrt(tau)), q * q),  # amplified twice
    ],
)
def test_known_iterations_detect_a_wrong_profile(monkeypatch: pytest.MonkeyPatch, fault) -> None:
    def wrong(self, event):
        return fault(event.noise_multiplier**2, event.sampling_fraction)

    monkeypatch.setattr(type(WOR), "_profile", wrong)
    found = WOR.iterations((), minibatch(0.7, 1000, 100_000), 4.0, 1e-6)
    assert abs(found - 1130) > 50


# --- presets and mistakes ------------------------------------------------------------------------

NAMED = {"tight", "zcdp", "rdp", "replace-pld", "wor-pld", "barker-pld"}
BATCH, TEST, FULL = minibatch(0.7, 1000, 100_000), barker(1300, 100_000), gaussian(30.0)


@pytest.mark.parametrize(
    ("events", "thesis", "tight", "meant"),
    [
        (FULL, "tight", "tight", {"tight", "zcdp"}),
        (BATCH, "replace-pld", "wor-pld", {"rdp", "replace-pld", "wor-pld"}),
        (TEST, "rdp", "barker-pld", {"rdp", "barker-pld"}),
        (BATCH + FULL, "replace-pld", "wor-pld", {"rdp", "replace-pld", "wor-pld"}),
        (BATCH + TEST, "rdp", "barker-pld", {"rdp", "wor-pld", "barker-pld"}),
        ((NonPrivateQuery("data"),), "tight", "tight", NAMED),
    ],
)
def test_presets_and_what_accountants_are_meant_for(
    events: tuple[Query, ...], thesis: str, tight: str, meant: set[str]
) -> None:
    assert (resolve("thesis", events).name, resolve("tight", events).name) == (thesis, tight)
    assert {name for name in NAMED if ACCOUNTANTS[name].is_meant_for(events)} == meant


@pytest.mark.parametrize(
    ("name", "events", "message"),
    [
        ("tight", minibatch(1.0, 10, 100), "'batch ratio'.*can: rdp, replace-pld, wor-pld, barker-pld"),
        ("wor-pld", barker(50, 1000), "batch_size = 50.*at least 100.*can: rdp"),
        ("rdp", barker(15, 1000), "batch_size = 15.*at least 16.*can: none"),
        ("wor-pld", minibatch(1e-14, 10, 100), "noise_multiplier = 1e-07.*at least 1e-06.*can: rdp$"),
        ("replace-pld", barker(500, 1000), "BarkerQuery.*can: rdp, wor-pld, barker-pld"),
    ],
)
def test_queries_that_cannot_be_bounded_are_refused(name: str, events: Any, message: str) -> None:
    with pytest.raises(DpmcError, match=message):
        accountants.get(name).delta(events, 1.0)


@pytest.mark.parametrize(
    ("multiplier", "count", "epsilon"),
    [(1e13, 10**18, 1e-4), (1e16, 10**18, 1e-7), (1e17, 10**18, 1e-8), (1e16, 1, 1e-17)],
)
def test_rounding_never_lowers_delta(multiplier: float, count: int, epsilon: float) -> None:
    """All rows in each batch: the exact curve is known; at these numbers losses drown in rounding."""
    profile = Amplified(Shift(1.0 / multiplier), 1.0)
    distribution = pld.discretised(profile, pld.grid_step(profile.scale, epsilon))
    exact = math.exp(log_delta(count / (2.0 * multiplier**2), epsilon))
    assert pld.delta([(distribution, count)], epsilon) >= exact


@pytest.mark.parametrize("accountant", [REPLACE, WOR])
@pytest.mark.parametrize(("noise_multiplier", "batch_size"), [(0.02, 10), (0.002, 100)])
def test_queries_with_almost_no_noise_have_infinite_epsilon(accountant, noise_multiplier, batch_size) -> None:
    """With so little noise a batch that holds the changed row shows it; and no budget is enough."""
    events = (SubsampledGaussianQuery("x", noise_multiplier, batch_size, 100),)
    assert accountant.epsilon(events, 1e-6) == math.inf
    assert accountant.epsilon(events, 1e-6, near=4.0) == math.inf
    assert accountant.iterations((), events, 4.0, 1e-6) == 0
    with pytest.raises(BudgetExceeded, match="epsilon would be inf"):
        Ledger(Budget(4.0, 1e-6), accountant).reserve(events)
