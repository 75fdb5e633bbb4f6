"""Events: values that cannot be wrong, go to JSON and back, and add up exactly."""

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmc.common.errors import DpmcError
from dpmc.privacy.events import (
    GaussianQuery,
    NonPrivateQuery,
    Query,
    from_json,
    merge,
    repeat,
    to_json,
    total_mu,
)

names = st.sampled_from(["ratio", "gradient"])
gaussians = st.builds(
    GaussianQuery,
    name=names,
    noise_multiplier=st.sampled_from([0.5, 3.0, 31.6]) | st.floats(1e-3, 1e6),
    count=st.integers(1, 10**6),
    sensitivity=st.none() | st.floats(1e-6, 1e6),
)
event_tuples = st.lists(
    gaussians | st.builds(NonPrivateQuery, name=names, count=st.integers(1, 9)), max_size=6
).map(tuple)


@settings(deadline=None)
@given(event_tuples)
def test_json_round_trip(events: tuple[Query, ...]) -> None:
    text = json.dumps(to_json(events), allow_nan=False)
    assert from_json(json.loads(text)) == events


@settings(deadline=None)
@given(event_tuples, st.integers(0, 50))
def test_repeat_is_that_many_copies(events: tuple[Query, ...], times: int) -> None:
    assert merge(repeat(events, times)) == merge(events * times)


@settings(deadline=None)
@given(st.lists(gaussians, max_size=6).map(tuple), st.randoms(use_true_random=False))
def test_cost_does_not_depend_on_order_or_blocks(events, random) -> None:
    """A run written down in blocks costs the same, to the last bit, as the run in one piece."""
    blocks = [
        dataclasses.replace(event, count=part)
        for event in events
        for part in (event.count // 3, event.count - event.count // 3)
        if part
    ]
    random.shuffle(blocks)
    assert total_mu(blocks) == total_mu(events)


def test_merge_adds_equal_events_and_keeps_others_apart() -> None:
    assert total_mu((GaussianQuery("ratio", 2.0, 8), GaussianQuery("gradient", 1.0))) == 1.5
    assert total_mu((NonPrivateQuery("ratio"),)) == GaussianQuery("ratio", 1e-300).mu == math.inf
    ratio, gradient = GaussianQuery("ratio", 2.0, 3), GaussianQuery("gradient", 2.0)
    merged = merge((ratio, gradient, ratio))
    assert merged == (GaussianQuery("ratio", 2.0, 6), gradient)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("noise_multiplier", [0.0, -1.0, math.nan, math.inf, "2"]),
        ("count", [0, 1.5, True]),
        ("sensitivity", [0.0, math.nan]),
        ("neighbours", ["add-remove"]),
        ("name", [""]),
    ],
)
def test_bad_values_are_named(key: str, values: list) -> None:
    for value in values:
        with pytest.raises(DpmcError, match=key) as caught:
            GaussianQuery(**({"name": "ratio", "noise_multiplier": 1.0} | {key: value}))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ({"name": "ratio", "noise_multiplier": 1.0}, "type"),
        ({"type": "laplace", "name": "ratio"}, "laplace"),
        ({"type": "gaussian", "name": "ratio"}, "noise_multiplier"),
        ({"type": "gaussian", "name": "ratio", "noise_multiplier": 1.0, "sd": 1.0}, "'sd'"),
        ({"type": "gaussian", "name": "ratio", "noise_multiplier": None}, "noise_multiplier"),
        ("gaussian", "gaussian"),
    ],
)
def test_bad_json_is_named(entry, rule: str) -> None:
    with pytest.raises(DpmcError, match=rule):
        from_json([entry])
