"""Accountants: against 60-digit numbers, published iterations, each other and another library."""

import contextlib
import csv
import itertools
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmc.common.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.accountants import ACCOUNTANTS, Accountant
from dpmc.privacy.accountants.gaussian import log_delta
from dpmc.privacy.events import GaussianQuery, NonPrivateQuery, Query, repeat, total_mu
from privacy.builders import TIGHT, ZCDP, gaussian, to_dp_accounting

both = pytest.mark.parametrize("accountant", [TIGHT, ZCDP], ids=lambda a: a.name)
multipliers = st.floats(0.3, 1e4)
epsilons = st.floats(1e-3, 50.0)
deltas = st.floats(1e-12, 0.4)
chosen = st.sampled_from([TIGHT, ZCDP])
positive = st.floats(min_value=0.0, exclude_min=True, allow_infinity=False)


def published() -> list[dict[str, str]]:
    with (Path(__file__).parent / "full_data_iterations.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def iteration_of(row: dict[str, str]) -> tuple[Query, ...]:
    """The queries of one iteration: one ratio, and for DP-HMC L + 1 gradients (Theorem 4.3)."""
    root = math.sqrt(int(row["n"]))
    if row["method"] != "dp-hmc":
        return gaussian(float(row["tau"]) * root)
    gradient = GaussianQuery("gradient", float(row["tau_g"]) * root, int(row["steps"]) + 1)
    return (*gaussian(float(row["tau_l"]) * root), gradient)


# --- against published and exact numbers ---------------------------------------------------------


def test_all_published_iterations() -> None:
    """And those by zCDP: k = floor(rho / rho per iteration), rho as in Theorem 4.2."""
    assert len(published()) == 135
    for row in published():
        each, epsilon, delta = iteration_of(row), float(row["epsilon"]), 0.1 / int(row["n"])
        assert TIGHT.iterations((), each, epsilon, delta) == int(row["iterations"]), row
        rho = (math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))) ** 2
        found = ZCDP.iterations((), each, epsilon, delta)
        assert found == math.floor(rho / total_mu(each))
        assert 1.3 < int(row["iterations"]) / found < 1.75


@pytest.mark.parametrize(
    "events",
    [
        gaussian(31.6, 702),
        gaussian(0.8),
        (GaussianQuery("ratio", 20.0, 50), GaussianQuery("gradient", 60.0, 550)),
    ],
)
def test_tight_against_another_library(events: tuple[Query, ...]) -> None:
    """dp-accounting's PLD, which rounds losses up to a grid: slightly above the exact curve."""
    from dp_accounting.pld import PLDAccountant

    library = PLDAccountant(value_discretization_interval=1e-4)
    library.compose(to_dp_accounting(events))
    for delta in (1e-3, 1e-6):
        exact, bound = TIGHT.epsilon(events, delta), library.get_epsilon(delta)
        assert exact <= bound * (1.0 + 1e-9)
        assert bound == pytest.approx(exact, rel=1e-3)
    assert library.get_delta(2.0) == pytest.approx(TIGHT.delta(events, 2.0), rel=1e-3)


# --- rounding ------------------------------------------------------------------------------------

MULTIPLIERS = np.geomspace(0.05, 1e4, 23)
COUNTS = (1, 7, 4702, 10**8)
EPSILONS = (1e-3, 0.05, 0.5, 1.0, 4.0, 20.0, 300.0)


def exact(name: str, multiplier: float, count: int, epsilon: float) -> mpmath.mpf:
    """Delta of `count` Gaussian queries by the formulas of Theorem 2.11(3) and of zCDP, in exact numbers."""
    mu = mpmath.mpf(count) / (2 * mpmath.mpf(multiplier) ** 2)
    eps = mpmath.mpf(epsilon)
    if name == "zcdp":
        return mpmath.mpf(1) if mu >= eps else mpmath.exp(-((eps - mu) ** 2) / (4 * mu))
    root = 2 * mpmath.sqrt(mu)
    return (mpmath.erfc((eps - mu) / root) - mpmath.exp(eps) * mpmath.erfc((eps + mu) / root)) / 2


@pytest.mark.parametrize("name", ["tight", "zcdp"])
def test_delta_is_rounded_up_and_by_little(name: str) -> None:
    accountant, compared = accountants.get(name), 0
    with mpmath.workdps(80):
        for case in itertools.product(map(float, MULTIPLIERS), COUNTS, EPSILONS):
            multiplier, count, epsilon = case
            wanted = exact(name, *case)
            if wanted < mpmath.mpf("1e-290"):
                continue
            found = accountant.delta(gaussian(multiplier, count), epsilon)
            little = mpmath.mpf("1e-12") * (1 - mpmath.log(wanted))
            assert min(wanted, 1) <= found <= wanted * (1 + little), case
            compared += 1
    assert compared > 300


# --- properties ----------------------------------------------------------------------------------


@settings(deadline=None)
@given(chosen, multipliers, multipliers, st.integers(0, 3), epsilons, deltas)
def test_iterations_are_the_largest(accountant, first, each, start, epsilon, delta) -> None:
    """k passes and k + 1 does not, by the accountant's own delta and by its own epsilon."""
    once = repeat(gaussian(first), start)
    k = accountant.iterations(once, gaussian(each), epsilon, delta)
    beyond = once + repeat(gaussian(each), k + 1)
    assert accountant.delta(beyond, epsilon) > delta
    assert accountant.epsilon(beyond, delta) > epsilon * (1.0 - 1e-12)
    if k > 0:
        within = once + repeat(gaussian(each), k)
        assert accountant.delta(within, epsilon) <= delta
        assert accountant.epsilon(within, delta) <= epsilon


@settings(deadline=None)
@given(chosen, multipliers, st.integers(1, 10**4), deltas, st.none() | st.floats(0.9, 1.1))
def test_epsilon_inverts_delta(accountant, multiplier, count, delta, near) -> None:
    events = gaussian(multiplier, count)
    epsilon = accountant.epsilon(events, delta)
    if near is not None:
        epsilon = accountant.epsilon(events, delta, near * epsilon or near)
    if epsilon == 0.0:
        assert accountant.delta(events, 1e-300) <= delta * (1.0 + 1e-9)
    else:
        assert accountant.delta(events, epsilon) <= delta
        assert accountant.delta(events, epsilon * (1.0 - 1e-9)) > delta


@settings(deadline=None, max_examples=500)
@given(
    chosen,
    positive,
    st.integers(1, 10**18),
    positive,
    st.floats(0.0, 1.0, exclude_min=True, exclude_max=True),
)
def test_never_nan_never_negative(accountant, multiplier, count, epsilon, delta) -> None:
    events = gaussian(multiplier, count)
    assert 0.0 <= accountant.delta(events, epsilon) <= 1.0
    assert accountant.epsilon(events, delta) >= 0.0
    assert not log_delta(total_mu(events), epsilon) > 0.0
    with contextlib.suppress(DpmcError):  # more than 10^18 of them
        assert accountant.iterations((), events, epsilon, delta) >= 0


# --- edges ---------------------------------------------------------------------------------------


@both
def test_an_exact_answer_has_no_bound(accountant: Accountant) -> None:
    exact = (NonPrivateQuery("ratio"),)
    assert accountant.delta(exact + gaussian(5.0), 100.0) == 1.0
    assert accountant.epsilon(exact, 1e-6) == math.inf
    assert accountant.iterations((), exact, 100.0, 1e-6) == 0
    assert accountant.iterations(exact, gaussian(5.0), 100.0, 1e-6) == 0


@both
def test_no_largest_number_of_iterations(accountant: Accountant) -> None:
    with pytest.raises(DpmcError, match="noise multiplier"):
        accountant.iterations((), gaussian(1e200), 1.0, 1e-6)


@pytest.mark.parametrize("accountant", ACCOUNTANTS.values(), ids=ACCOUNTANTS)
def test_nothing_asked_costs_nothing(accountant: Accountant) -> None:
    assert accountant.delta((), 1.0) == 0.0
    assert accountant.epsilon((), 1e-6) == 0.0
    with pytest.raises(DpmcError, match="asks nothing"):
        accountant.iterations((), (), 1.0, 1e-6)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf, "4", None, True])
def test_a_wrong_epsilon_or_delta_is_named(wrong) -> None:
    with pytest.raises(DpmcError, match="epsilon = "):
        TIGHT.delta(gaussian(1.0), wrong)
    with pytest.raises(DpmcError, match="delta = "):
        TIGHT.epsilon(gaussian(1.0), wrong)
    for epsilon, delta in ((wrong, 1e-6), (1.0, wrong)):
        with pytest.raises(DpmcError, match="(epsilon|delta) = "):
            TIGHT.iterations((), gaussian(1.0), epsilon, delta)
