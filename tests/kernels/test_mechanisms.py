"""Mechanisms alone see rows: algorithms mention none; the loop draws numbers of the right laws."""

import ast
import io
import tokenize
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmc import base
from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.common.shipped import PACKAGE
from dpmc.privacy.events import NonPrivateQuery
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.runs import RunQueries
from dpmc.sampling.loop import sample
from kernels import cells, ladder

FILES = sorted((PACKAGE / "algorithms").glob("*.py"))
#: Names that no algorithm mentions: of rows and models' likelihoods, and all of the mechanisms' class that is
#: not in the interface for algorithms.
PRIVATE = {name for name in vars(PrivateData) if not name.startswith("__")} - set(dir(base.PrivateData))
PRIVATE |= set(
    """
    evaluator evaluators kernels rows statistics summaries summary_sum ratio_sums gradient_sums
    batch_ratio_sums batch_gradient_sums row_ratios row_bounds ratio_form gradient_form bounded_rows
    draw_batches log_likelihood log_likelihood_gradient problem Problem __dict__ asdict _evaluator _rows
    _statistics
    _bounded_rows _noise _words ratio_clipped gradient_clipped tests
    """.split()
)
EXACT = {"exact_log_ratio", "exact_gradient"}


def mentioned(text: str) -> set[str]:
    """All names of a Python text, and its strings, as in getattr(private, "rows")."""
    return {token.string.strip("\"'") for token in tokenize.generate_tokens(io.StringIO(text).readline)}


#: Files that simulate rows, which are public: of private data they use the interface for algorithms alone.
SIMULATING = {
    "answers.py",
    "noisy_scores.py",
    "noisy_statistics.py",
    "simulated_scores.py",
    "simulated_likelihood.py",
}


def used_of_private(text: str) -> set[str]:
    """Return the attributes of `private` that a Python text uses; "private" if it is used as a whole."""
    tree = ast.parse(text)
    inner = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "private"]
    passed = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "ask"
        for part in node.args
    }
    return {inner.get(id(node), "private") for node in names if id(node) not in passed}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_algorithm_mentions_rows(path: Path) -> None:
    text = path.read_text()
    if path.name in SIMULATING:
        assert used_of_private(text) <= {"answers", "n", "runs", "temperature"}
    else:
        assert not mentioned(text) & PRIVATE


def test_private_data_in_other_hands_are_detected() -> None:
    for line in ("private._evaluator", "f(private)", "getattr(private, name)", "x = private"):
        assert not used_of_private(line) <= {"answers", "n", "runs", "temperature"}


def test_a_mention_of_rows_is_detected() -> None:
    imported, asked = "from dpmc import evaluators", "private.diagnostics()"
    for line in ("private.evaluator.f(a)", "getattr(private, 'evaluator')", imported, asked):
        assert mentioned(line) & PRIVATE


@pytest.mark.parametrize("name", ALGORITHMS)
def test_exact_answers_are_declared_as_exact(name: str) -> None:
    algorithm = cells.some(name)
    once, each = RunQueries.of(algorithm, 60)
    exact = any(isinstance(event, NonPrivateQuery) for event in (*once, *each))
    if name in ("tuna-mh", "dp-fast-mh", "dp-fast-mh-full"):  # exact or not by its variant
        assert exact == (getattr(algorithm, "variant", "") != "corrected")
        return
    path = Path(__import__(algorithm_class(name).__module__, fromlist=["x"]).__file__)
    assert bool(mentioned(path.read_text()) & EXACT) == exact


@pytest.mark.parametrize("method", ["dp-penalty", "minibatch-penalty", "dp-barker", "dp-hmc"])
def test_the_loop_draws_numbers_of_the_right_laws(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[Any]] = {}

    def spy(self: Any, state: Any, model: Any, private: Any, draws: Any) -> Any:
        ones = np.ones(len(state.theta))
        found = {
            "proposal": draws.normal,
            "accept": stats.norm.ppf(np.exp(draws.log_uniform)),
            "ratio noise": private._noise.centred(0.0 * ones, 1.0, ones),
        }
        if method == "dp-hmc":
            vectors = [private._noise.vectors(0.0, 1.0, 1.0, stage) for stage in range(4)]
            found["gradient noise"] = np.array(vectors)
        if method in ladder.BATCHES:
            words = private._words
            assert words.dtype == np.uint64
            found["batch, high bits"] = stats.norm.ppf((words >> np.uint64(32)) / 2**32 + 2.0**-33)
            found["batch, low bits"] = stats.norm.ppf((words % np.uint64(2**32)) / 2**32 + 2.0**-33)
        if method == "dp-barker":
            found["correction"] = stats.norm.ppf(draws.uniform)
        for name, values in found.items():
            seen.setdefault(name, []).append(np.ravel(values))
        return state

    monkeypatch.setattr(algorithm_class(method), "step", spy)
    sample(cells.cell(method, iterations=6000), [0, 1])
    samples = {name: np.concatenate(values) for name, values in seen.items()}
    for name, sample_ in samples.items():
        assert stats.kstest(sample_, "norm").pvalue > 1e-4, name
    length = min(len(values) for values in samples.values())
    together = np.corrcoef([values[:length] for values in samples.values()])
    assert np.abs(together - np.eye(len(samples))).max() < 5.0 / np.sqrt(length)
