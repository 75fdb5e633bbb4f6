"""The ledger: whatever happens in whatever order, the budget holds."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dpmc.common.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.events import (
    GaussianQuery,
    NonPrivateQuery,
    Query,
    SubsampledGaussianQuery,
    counts,
    merge,
    repeat,
)
from dpmc.privacy.ledger import Budget, BudgetExceeded, Ledger
from privacy.builders import queries_in

TIGHT = accountants.get("tight")
RATIO = GaussianQuery("ratio", 10.0)
GRADIENT = GaussianQuery("gradient", 20.0, 3, sensitivity=2.0)
ITERATION: tuple[Query, ...] = (RATIO, GRADIENT)
BUDGET = Budget(2.0, 1e-6)
FILTERS = [
    name
    for name, one in accountants.ACCOUNTANTS.items()
    if one.is_filter and GaussianQuery in one.handles  # `basic` takes others
]


def through_json(ledger: Ledger) -> Ledger:
    return Ledger.from_json(json.loads(json.dumps(ledger.to_json(), allow_nan=False)))


class AnyInterleaving(RuleBasedStateMachine):
    """Several chains on one ledger: reserve, perform, crash and resume in any order."""

    @initialize(name=st.sampled_from(FILTERS), epsilon=st.floats(0.05, 3.0))
    def start(self, name: str, epsilon: float) -> None:
        self.budget = Budget(epsilon, 1e-6)
        self.ledger = Ledger(self.budget, accountants.get(name))
        self.performed: tuple[Query, ...] = ()

    @rule(event=st.sampled_from(ITERATION), times=st.integers(0, 60))
    def reserve(self, event: Query, times: int) -> None:
        before = self.ledger.to_json()
        try:
            self.ledger.reserve(repeat((event,), times))
        except BudgetExceeded:
            assert self.ledger.to_json() == before

    @rule(event=st.sampled_from(ITERATION), times=st.integers(0, 60))
    def perform(self, event: Query, times: int) -> None:
        events = repeat((event,), times)
        outstanding = counts(self.ledger.outstanding_events)
        before = self.ledger.to_json()
        try:
            self.ledger.perform(events)
        except DpmcError:
            assert self.ledger.to_json() == before
            assert any(count > outstanding.get(e, 0) for e, count in counts(events).items())
        else:
            self.performed += events

    @rule()
    def forfeit(self) -> None:
        self.ledger.forfeit()
        assert self.ledger.outstanding_events == ()
        assert counts(self.ledger.spent_events) == counts(queries_in(self.ledger, "reserved"))

    @rule()
    def save_and_load(self) -> None:
        loaded = through_json(self.ledger)
        assert loaded.to_json() == self.ledger.to_json()
        self.ledger = loaded

    @invariant()
    def nothing_overruns(self) -> None:
        accountant = self.ledger.accountant
        for events in (self.performed, self.ledger.spent_events, queries_in(self.ledger, "reserved")):
            assert accountant.delta(events, self.budget.epsilon) <= self.budget.delta
        assert counts(queries_in(self.ledger, "performed")) == counts(self.performed)
        assert self.ledger.epsilon() <= self.budget.epsilon


TestAnyInterleaving = AnyInterleaving.TestCase
TestAnyInterleaving.settings = settings(deadline=None)


@settings(deadline=None)
@given(
    st.sampled_from(FILTERS),
    st.floats(0.1, 8.0),
    st.floats(5.0, 100.0),
    st.integers(1, 17),
)
def test_exactly_the_allowed_iterations_can_be_reserved(name, epsilon, multiplier, block) -> None:
    """k iterations, reserved in blocks of any size, fill the budget exactly: k + 1 is refused."""
    accountant = accountants.get(name)
    each = (GaussianQuery("ratio", multiplier), GaussianQuery("gradient", 3 * multiplier, 4))
    k = accountant.iterations((), each, epsilon, 1e-6)
    ledger = Ledger(Budget(epsilon, 1e-6), accountant)
    size = max(block, k // 20)
    for start in range(0, k, size):
        ledger.reserve(repeat(each, min(size, k - start)))
        ledger.perform(repeat(each, min(size, k - start)))
    assert merge(queries_in(ledger, "performed")) == merge(repeat(each, k))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(each)


def test_reserved_queries_of_a_crash_are_spent() -> None:
    ledger = Ledger(BUDGET, TIGHT)
    k = MOST
    ledger.reserve(repeat(ITERATION, k))
    ledger.perform(repeat(ITERATION, 1))
    before = ledger.epsilon()
    ledger.forfeit()
    assert ledger.epsilon() > before
    assert queries_in(ledger, "performed") == merge(ITERATION)
    assert ledger.spent_events == repeat(ITERATION, k)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(ITERATION)
    with pytest.raises(DpmcError, match="only 0 of this kind reserved"):
        ledger.perform(ITERATION)


def test_without_a_budget_nothing_is_refused() -> None:
    ledger = Ledger(None, TIGHT)
    events = repeat(ITERATION, 10**6)
    ledger.reserve(events)
    ledger.perform(events)
    assert ledger.epsilon(1e-6) == TIGHT.epsilon(events, 1e-6)
    with pytest.raises(DpmcError, match="without a budget"):
        ledger.epsilon()
    assert ledger.to_json()["epsilon_spent"] is None
    assert through_json(ledger).to_json() == ledger.to_json()


def test_exact_answers_are_counted_as_infinite() -> None:
    ledger = Ledger(None, TIGHT)
    ledger.reserve((NonPrivateQuery("ratio", 500),))
    ledger.perform((NonPrivateQuery("ratio", 500),))
    assert ledger.epsilon(1e-6) == math.inf
    assert ledger.to_json()["mu"] == "inf"
    assert queries_in(through_json(ledger), "performed") == (NonPrivateQuery("ratio", 500),)
    with pytest.raises(BudgetExceeded, match="epsilon would be inf"):
        Ledger(BUDGET, TIGHT).reserve((NonPrivateQuery("ratio"),))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"budget": {"epsilon": 2.0}}, "delta"),
        ({"budget": {"epsilon": -2.0, "delta": 1e-6}}, "epsilon = -2.0"),
        ({"budget": {"epsilon": 0.001, "delta": 1e-6}}, "budget exceeded"),
        ({"accountant": {"name": "guess"}}, "'guess'"),
        ({"reserved": []}, "only 0 of this kind"),
        ({"reserved": None}, "malformed"),
        ({"mode": "release"}, "mode"),
        ({"budget": {"epsilon": 2.0, "delta": 1.0}}, "delta = 1.0"),
    ],
)
def test_a_wrong_ledger_is_not_read(change: dict, rule: str) -> None:
    ledger = Ledger(BUDGET, TIGHT)
    ledger.reserve(ITERATION)
    ledger.perform(ITERATION)
    with pytest.raises(DpmcError, match=rule):
        Ledger.from_json(ledger.to_json() | change)


MOST = TIGHT.iterations((), ITERATION, BUDGET.epsilon, BUDGET.delta)
OTHER = (GaussianQuery("another", 10.0),)


@pytest.mark.parametrize("foreseen", [0, 1, MOST])
def test_no_more_than_the_budget_is_ever_reserved(foreseen: int) -> None:
    ledger = Ledger(BUDGET, TIGHT)
    with pytest.raises(BudgetExceeded):
        ledger.foresee(repeat(ITERATION, MOST + 1))
    ledger.foresee(repeat(ITERATION, foreseen))
    ledger.reserve(repeat(ITERATION, MOST))
    for events in (ITERATION, OTHER):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(events)
    assert queries_in(ledger, "reserved") == repeat(ITERATION, MOST)


# What may be chosen by the answers.

BATCH = SubsampledGaussianQuery("batch", 0.434, 100, 100_000)
FIRST, SECOND = GaussianQuery("ratio", 5.0), GaussianQuery("ratio", 5.61)


def test_a_query_chosen_by_an_answer_is_refused_without_a_filter() -> None:
    """The batch or the Gaussian would fit; choosing by the loss of the first has delta 1.86e-5."""
    accountant = accountants.get("wor-pld")
    for option in (BATCH, SECOND):
        assert accountant.delta((FIRST, option), 1.0) <= 1e-5  # each fits by itself
        ledger = Ledger(Budget(1.0, 1e-5), accountant)
        ledger.reserve((FIRST,))
        ledger.perform((FIRST,))
        with pytest.raises(BudgetExceeded, match="0 were fixed by the first reservation"):
            ledger.reserve((option,))
        assert queries_in(ledger, "reserved") == (FIRST,)


@pytest.mark.parametrize("name", [name for name, one in accountants.ACCOUNTANTS.items() if not one.is_filter])
@pytest.mark.parametrize("resumed", [False, True], ids=["at once", "after a crash"])
def test_the_first_reservation_fixes_what_may_be_asked(name: str, resumed: bool) -> None:
    """The query may have been computed since, and a crash have lost its record."""
    few = GaussianQuery("ratio", 1000.0)
    for budget in (Budget(1.0, 1e-5), None):
        ledger = Ledger(budget, accountants.get(name))
        ledger.reserve(())  # nothing can have been asked: fixes nothing
        ledger = through_json(ledger)
        ledger.reserve((few,))
        ledger = through_json(ledger) if resumed else ledger
        before = ledger.to_json()
        for another in (few, GaussianQuery("ratio", 1001.0)):
            with pytest.raises(BudgetExceeded, match="were fixed by the first reservation"):
                ledger.reserve((another,))
            with pytest.raises(BudgetExceeded, match="were fixed by the first reservation"):
                ledger.foresee((few, another))
        assert ledger.to_json() == before
        ledger.foresee((few,))
        ledger.perform((few,))


@pytest.mark.parametrize("resumed", [False, True], ids=["at once", "after a crash"])
def test_a_reservation_fixes_what_was_foreseen_before_it(resumed: bool) -> None:
    ledger = Ledger(Budget(1.0, 1e-5), accountants.get("wor-pld"))
    ledger.foresee((SECOND,))
    ledger.foresee((FIRST, BATCH))  # nothing is reserved yet
    ledger.reserve((BATCH,))
    ledger = through_json(ledger) if resumed else ledger
    with pytest.raises(BudgetExceeded, match="0 were fixed by the first reservation"):
        ledger.foresee((FIRST, SECOND))
    with pytest.raises(BudgetExceeded, match="0 were fixed by the first reservation"):
        ledger.reserve((SECOND,))
    ledger.reserve((FIRST,))


@pytest.mark.parametrize("name", FILTERS)
def test_filters_admit_choices_by_the_answers(name: str) -> None:
    ledger = Ledger(Budget(1.0, 1e-5), accountants.get(name))
    for multiplier in (8.0, 11.0, 9.0):
        ledger.reserve((GaussianQuery("ratio", multiplier),))
        ledger.perform((GaussianQuery("ratio", multiplier),))
    with pytest.raises(BudgetExceeded, match="budget exceeded"):
        ledger.reserve((GaussianQuery("ratio", 3.0),))
