"""Mechanisms on batches: noise covers what any row can change, and no rows stop a chain."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpmc import evaluators
from dpmc.evaluators import kernels
from dpmc.privacy import mechanisms
from dpmc.privacy.noise import LabNoise
from kernels import ladder
from kernels.ladder import KERNELS, Spy
from kernels.problems import CORNERS, Setting

few = settings(max_examples=200, deadline=None, derandomize=True)
ROUNDING = 1e-9


class Slope:
    """ln p(x|θ) = θ x: from 0 to 1, a row is its own log ratio."""

    dimension = 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(theta[0] * rows[:, 0])


def asked(rows: Any, words: Any, temperature: float, z: float = 0.0, **mechanism: Any) -> tuple[float, float]:
    """The answer about a move of length 1, and the sd of its noise; `z` is the noise."""
    rows = np.asarray(rows, dtype=float)[:, None]
    noise = Spy(LabNoise(np.full((1, 1), z), np.empty((1, 1, 0, 1))))
    words = np.asarray(words, np.uint64)[None, None]
    evaluator = evaluators.evaluator_of(Slope(), rows)
    private = mechanisms.PrivateData(evaluator, temperature, noise, words)
    theta, proposal = np.zeros((1, 1)), np.ones((1, 1))
    private.begin(0)
    noise.calls.clear()
    with np.errstate(invalid="ignore", over="ignore"):
        if "clip_factor" in mechanism:
            answer = private.barker_log_ratio(theta, proposal, mechanism["clip_factor"])
        else:
            numbers = (mechanism[name] for name in ("clip", "multiplier", "factor"))
            answer = private.batch_penalty_log_ratio(theta, proposal, *numbers)
    ((_, _, sd, _),) = noise.of("corrected", "centred")
    return float(answer[0]), float(sd[0])


log_ratios = st.floats(-3.0, 3.0) | st.sampled_from([1.0, -1.0, 1e300, -1e300, np.inf, -np.inf, np.nan])
word = st.integers(0, 2**64 - 1)


@st.composite
def neighbours(draw: Any) -> tuple[list[float], int, float, list[int]]:
    """Rows, the place of a row and its replacement, and the words of a batch."""
    rows = draw(st.lists(log_ratios, min_size=1, max_size=8))
    words = draw(st.lists(word, min_size=1, max_size=len(rows)))
    return rows, draw(st.integers(0, len(rows) - 1)), draw(log_ratios), words


def batch_of(n: int, words: list[int]) -> list[int]:
    return kernels.draw_batches(np.array([words], np.uint64), n)[0].tolist()


def replaced(rows: list[float], place: int, by: float) -> list[float]:
    return [by if j == place else row for j, row in enumerate(rows)]


# Minibatch penalty


@few
@given(neighbours(), st.floats(0.05, 3.0), st.floats(0.05, 2.0), st.sampled_from([2.0, 3.0]))
@example(([1.0] * 5, 0, -1.0, [0] * 5), 1.0, 1.0, 2.0)
def test_no_row_changes_a_batch_answer_by_more_than_the_sensitivity(
    pair: Any, temperature: float, clip: float, factor: float
) -> None:
    rows, place, by, words = pair
    mechanism = {"clip": clip, "multiplier": 0.5, "factor": factor}
    before, sd = asked(rows, words, temperature, **mechanism)
    after, same_sd = asked(replaced(rows, place, by), words, temperature, **mechanism)
    assert np.isfinite(before)
    assert sd == same_sd  # noise tells nothing of the rows
    assert abs(after - before) <= sd / 0.5 * (1.0 + ROUNDING)
    if place not in batch_of(len(rows), words):
        assert after == before


# Barker's test


@few
@given(neighbours(), st.floats(0.05, 3.0), st.floats(0.05, 1.0))
@example(([1e300, -1e300] * 4, 0, -1e300, [0] * 8), 1.0, 1.0)
@example(([np.nan] * 4 + [np.inf] * 4, 0, 1.0, [0] * 8), 1.0, 1.0)
def test_batch_variance_is_at_most_one_and_changes_as_declared(
    pair: Any, temperature: float, clip_factor: float
) -> None:
    rows, place, by, words = pair
    b = len(words)
    before, sd = asked(rows, words, temperature, clip_factor=clip_factor)
    after, other_sd = asked(replaced(rows, place, by), words, temperature, clip_factor=clip_factor)
    assert np.isfinite([before, after]).all()
    for one in (sd, other_sd):
        assert 2.0 - clip_factor**2 - ROUNDING <= one**2 <= 2.0 + ROUNDING
    # what the accountant of a BarkerQuery goes by
    assert abs(after - before) <= 2.0 * clip_factor / np.sqrt(b) + ROUNDING
    assert abs(sd**2 - other_sd**2) <= 4.0 * clip_factor**2 / b + ROUNDING
    if place not in batch_of(len(rows), words):
        assert (after, other_sd) == (before, sd)


ADVERSARIES = {
    "halves far apart": [1e9, -1e9],
    "huge": [1e308, -1e308],
    "one outlier": [1e200] + 99 * [0.0],
    "infinite": [np.inf, -np.inf, 0.0],
    "not a number": [np.nan, 1.0],
    "equal": [3.0],
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in multiply:RuntimeWarning")  # inf * 0
@pytest.mark.parametrize("values", ADVERSARIES.values(), ids=ADVERSARIES)
@pytest.mark.parametrize("name", ladder.BATCHES)
def test_no_rows_stop_a_chain(name: str, values: list[float]) -> None:
    rows = np.resize(values, (100, 1)) * np.array([[1.0, 0.5]])
    setting = Setting(KERNELS[name].setting.model, rows, 0.5)
    kernel = replace(KERNELS[name].but(batch_size=20), setting=setting)
    drawn = ladder.numbers(kernel, np.random.default_rng(5), 100, 60)
    path = ladder.run(kernel, np.zeros((100, 2)), drawn)
    assert np.isfinite(path.theta).all()
    assert path.diverging.sum() == 0
    if name == "dp-barker":  # noise alone, of sd 1 at least, against a log ratio of √b at most
        assert path.accepted.any()
    if values in ([1e9, -1e9], [1e308, -1e308]):
        assert (path.ratio_clipped == 20).all()


@pytest.mark.parametrize("b", [119_138, 400_000])
def test_rounding_over_very_large_batches_stops_no_chain(b: int) -> None:
    rows = np.resize([1e9, -1e9], (b, 1)) * np.ones((1, 2))
    kernel = KERNELS["dp-barker"].but(batch_size=b, clip_factor=1.0)
    for temperature in (0.1, 0.3, 1.0, 1e-4):
        kernel = replace(kernel, setting=Setting(CORNERS.model, rows, temperature))
        drawn = ladder.numbers(kernel, np.random.default_rng(5), 1, 1)
        assert ladder.run(kernel, np.zeros((1, 2)), drawn).ratio_clipped[0, 0] == b
