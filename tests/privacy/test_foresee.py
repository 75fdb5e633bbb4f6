"""A whole run's releases are tested against the budget once; reserving them bit by bit needs none."""

from typing import Any

import pytest

from dpmc.privacy import accountants
from dpmc.privacy.accountants.tight import TightGaussian
from dpmc.privacy.events import GaussianRelease, repeat
from dpmc.privacy.ledger import Budget, BudgetExceeded, Ledger

ONE = (GaussianRelease("answer", 10.0),)
OTHER = (GaussianRelease("another", 10.0),)
BUDGET = Budget(1.0, 1e-6)
MOST = accountants.get("tight").iterations((), ONE, BUDGET.epsilon, BUDGET.delta)


@pytest.fixture
def tests(monkeypatch: Any) -> list[float]:
    """Every test of a total against the budget, as it is made."""
    made: list[float] = []
    whole = TightGaussian.delta

    def counted(self: Any, events: Any, epsilon: float) -> float:
        made.append(epsilon)
        return whole(self, events, epsilon)

    monkeypatch.setattr(TightGaussian, "delta", counted)
    return made


def ledger() -> Ledger:
    return Ledger(BUDGET, accountants.get("tight"))


def test_foreseen_releases_are_reserved_without_a_test(tests: list[float]) -> None:
    own = ledger()
    own.foresee(repeat(ONE, MOST))
    assert (len(tests), own.reserved_events) == (1, ())
    for _ in range(MOST):
        own.reserve(ONE)
        own.perform(ONE)
    assert len(tests) == 1
    assert own.performed_events == repeat(ONE, MOST)


@pytest.mark.parametrize("foreseen", [0, 1, MOST])
def test_no_more_than_the_budget_is_ever_reserved(foreseen: int) -> None:
    own = ledger()
    own.foresee(repeat(ONE, foreseen))
    for _ in range(MOST):
        own.reserve(ONE)
    for events in (ONE, OTHER):
        with pytest.raises(BudgetExceeded):
            own.reserve(events)
    assert own.reserved_events == repeat(ONE, MOST)


def test_releases_that_were_not_foreseen_are_tested(tests: list[float]) -> None:
    own = ledger()
    own.foresee(repeat(ONE, MOST))
    own.reserve(OTHER)
    assert len(tests) == 2
    with pytest.raises(BudgetExceeded):
        own.reserve(repeat(ONE, MOST))


def test_foreseeing_too_much_is_refused_and_not_recorded(tests: list[float]) -> None:
    own = ledger()
    with pytest.raises(BudgetExceeded):
        own.foresee(repeat(ONE, MOST + 1))
    made = len(tests)
    own.reserve(ONE)
    assert len(tests) == made + 1


def test_without_a_budget_nothing_is_tested(tests: list[float]) -> None:
    free = Ledger(None, accountants.get("tight"))
    free.foresee(repeat(ONE, 10**9))
    free.reserve(repeat(ONE, 10**9))
    assert tests == []


def test_the_runs_of_a_cell_share_one_test_of_the_budget(monkeypatch: Any) -> None:
    """Twenty seeds release the same: delta is computed for the first, and found again for the others."""
    computed: list[float] = []
    whole = TightGaussian._delta

    def counted(self: Any, events: Any, epsilon: float) -> float:
        computed.append(epsilon)
        return whole(self, events, epsilon)

    monkeypatch.setattr(TightGaussian, "_delta", counted)
    run = (GaussianRelease("of this test alone", 12.5, 7),)
    for _ in range(20):
        own = ledger()
        own.foresee(run)
        own.reserve(run)
    assert computed == [BUDGET.epsilon]
