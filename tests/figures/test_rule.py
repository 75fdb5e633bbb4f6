"""The rule of verdicts: chances of wrong ones, by simulation; words that allow exceptions; conjunctions."""

import numpy as np
import pytest

from dpmc.reports.claims import rule
from dpmc.reports.claims.rule import DEPENDS, FAILS, HOLDS, NO_NUMBER, UNTOLD, Limit, verdict

YES, NO, UNKNOWN = True, False, None
WAYS = {"all": {}, "some": {"some": True}, "exceptions": {"exceptions": True}}


@pytest.mark.parametrize(
    ("cases", "of_all", "of_some", "with_exceptions"),
    [
        ([YES, YES], HOLDS, HOLDS, HOLDS),
        ([NO, NO], FAILS, FAILS, FAILS),
        ([YES, NO], FAILS, HOLDS, DEPENDS),  # a counterexample; a conjunction needs both parts
        ([YES, UNKNOWN], UNTOLD, HOLDS, UNTOLD),
        ([NO, UNKNOWN], FAILS, UNTOLD, UNTOLD),
        ([UNKNOWN], UNTOLD, UNTOLD, UNTOLD),
        ([], NO_NUMBER, NO_NUMBER, NO_NUMBER),
    ],
)
def test_verdict(cases: list[bool | None], of_all: str, of_some: str, with_exceptions: str) -> None:
    found = [verdict(cases, **ways) for ways in WAYS.values()]
    assert found == [of_all, of_some, with_exceptions]


@pytest.mark.parametrize("text", ["below 1", "above 1", "not beyond chance apart from 0"])
@pytest.mark.parametrize("number_of_cases", [1, 5, 30])
def test_a_claim_whose_numbers_are_at_their_limits_fails_by_luck_in_one_of_twenty(
    text: str, number_of_cases: int
) -> None:
    """So it does for any number of cases, and the chance is the one that is stated."""
    rng, asked = np.random.default_rng(1), Limit(text, to_fail=number_of_cases)
    limit = 0.0 if text.endswith("0") else 1.0
    drawn = limit + 0.1 * rng.standard_normal((4000, number_of_cases))
    failed = np.mean([verdict([asked.decide(number, 0.1) for number in claim]) == FAILS for claim in drawn])
    assert failed == pytest.approx(0.05, abs=0.011)  # three errors
    assert rule.luck(number_of_cases * [asked.luck(limit, 0.1)], some=False) == pytest.approx(0.05)


def test_a_false_claim_holds_by_luck_in_at_most_one_of_twenty() -> None:
    """One part at its limit is the worst; with both there it happens less."""
    rng, asked = np.random.default_rng(2), Limit("at least 2", to_fail=2)
    for truth, most in ((np.array([2.0, 9.0]), 0.05), (np.array([2.0, 2.0]), 0.0025)):
        drawn = truth + 0.1 * rng.standard_normal((4000, 2))
        held = np.mean([verdict([asked.decide(number, 0.1) for number in claim]) == HOLDS for claim in drawn])
        assert held == pytest.approx(most, abs=0.011)


def test_within_its_error_a_number_cannot_be_told_and_an_exact_one_is_compared() -> None:
    asked = Limit("at most 1.25")
    assert [asked.decide(number, 0.06) for number in (1.252, 1.1, 1.4)] == [UNKNOWN, YES, NO]
    assert [asked.decide(number, 0.0) for number in (1.25, 1.252)] == [YES, NO]
    assert [Limit("below 1.25").decide(number, 0.0) for number in (1.25, 1.2)] == [NO, YES]
    assert [Limit("between 0.8 and 1.25").decide(x, 0.05) for x in (0.7, 0.82, 1.0, 1.3)] == [
        NO,
        UNKNOWN,
        YES,
        UNKNOWN,
    ]
    assert [Limit("none").decide(x, 0.1) for x in (0.0, 0.01)] == [YES, NO]
    assert [Limit("some").decide(x, 0.1) for x in (0.0, 0.01)] == [NO, YES]
    assert [Limit("not beyond chance above 0").decide(x, 0.1) for x in (-9.0, 0.1, 0.2)] == [YES, YES, NO]


def test_a_ratio_is_judged_by_its_logarithm() -> None:
    """A ratio of twenty with an error of 45 % is as far from 1 as one of a twentieth."""
    asked = Limit("at most 1", to_fail=3, ratio=True)
    assert [asked.decide(number, 0.45 * number) for number in (20.0, 0.05, 0.9)] == [NO, YES, UNKNOWN]
    assert Limit("at most 1", to_fail=3).decide(20.0, 9.0) is UNKNOWN


def test_a_number_far_from_its_limit_fails_by_luck_less_often() -> None:
    asked = Limit("below 1", to_fail=3)
    assert asked.luck(0.5, 0.1) < 1e-10 < asked.luck(0.95, 0.1) < asked.luck(1.0, 0.1) == asked.luck(2.0, 0.1)
    assert asked.luck(0.5, 0.0) == 0.0
