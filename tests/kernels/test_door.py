"""The only door: algorithms mention no rows; the noise has the law that the mechanisms promise."""

import ast
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import dpmc.algorithms
from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.privacy.events import NonPrivateRelease
from dpmc.privacy.mechanisms import Door
from dpmc.privacy.noise import LabNoise
from dpmc.sampling import sample
from kernels import cells, ladder, paper_cells
from kernels.ladder import LARGE, mutant

FILES = sorted(Path(dpmc.algorithms.__file__).parent.glob("*.py"))
BEHIND_THE_DOOR = {
    "evaluator",
    "evaluators",
    "rows",
    "columns",
    "statistics",
    "ratio_sums",
    "ratio_sums_within",
    "batch_sums",
    "batch_sums_within",
    "batch_gradient_sums",
    "draw_batch",
    "rows_ratio",
    "row_bounds",
    "BatchEvaluator",
    "SoftplusEvaluator",
    "SoftplusBatchEvaluator",
    "gradient_sums",
    "log_likelihood",
    "log_likelihood_gradient",
    "problem",
    "model",
    "Problem",
    "AffineEvaluator",
    "GenericEvaluator",
    "_asdict",
}
EXACT = {"exact_log_ratio", "exact_gradient"}


def mentioned(text: str) -> set[str]:
    """All names, attributes, arguments and imported modules of a Python text."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # as in getattr(door, "rows")
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ImportFrom):
            names.update((node.module or "").split("."), *(a.name.split(".") for a in node.names))
        elif isinstance(node, ast.Import):
            names.update(*(alias.name.split(".") for alias in node.names))
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_algorithm_mentions_what_is_behind_the_door(path: Path) -> None:
    assert not mentioned(path.read_text()) & BEHIND_THE_DOOR


@pytest.mark.parametrize(
    "line",
    [
        "door.evaluator.f(a)",
        "getattr(door, 'model')",
        "from dpmc import evaluators",
        "def f(rows): pass",
    ],
)
def test_a_mention_would_be_seen(line: str) -> None:
    assert mentioned(line) & BEHIND_THE_DOOR


@pytest.mark.parametrize("name", ALGORITHMS)
def test_exact_answers_are_declared_as_exact(name: str) -> None:
    room = cells if name in cells.HYPERPARAMETERS else paper_cells
    algorithm = room.cell(name).algorithm
    once, each = algorithm.releases(60)
    exact = any(isinstance(event, NonPrivateRelease) for event in (*once, *each))
    if getattr(algorithm, "random_rows", False):  # exact or not by its rule
        assert exact == (algorithm.public_clip == np.inf)
        return
    path = Path(__import__(algorithm_class(name).__module__, fromlist=["x"]).__file__)
    assert bool(mentioned(path.read_text()) & EXACT) == exact


def noise_p(noise: type, sd: float = 1.7) -> float:
    """p-value: what a noise source returns as corrected noise is N(−sd²/2, sd²)."""
    normals = np.random.default_rng(3).standard_normal((1, 50_000))
    source = noise(normals, np.empty((1, 0, 0, 2)))
    found = np.array([source.corrected(0, i, sd) for i in range(normals.size)])
    return float(stats.kstest(found, stats.norm(-0.5 * sd * sd, sd).cdf).pvalue)


def test_noise_of_a_log_ratio_is_normal_with_its_correction() -> None:
    assert noise_p(LabNoise) > 1e-4


@pytest.mark.parametrize("wrong", ["+ 0.5 * sd * sd", "- 0.48 * sd * sd", "- 0.5 * sd"])
def test_noise_with_a_wrong_correction_is_seen(wrong: str) -> None:
    names = mutant("dpmc.privacy.noise", ("- 0.5 * sd * sd", wrong))
    assert noise_p(names["LabNoise"]) < 1e-8


def test_gradient_noise_is_normal_and_its_own_for_each_component() -> None:
    normals = np.random.default_rng(4).standard_normal((2, 5, 4, 3))
    out = np.empty(3)
    for c in range(2):
        for i in range(5):
            for stage in range(4):
                LabNoise(np.empty((2, 5)), normals).vector(c, i, stage, 2.5, out)
                np.testing.assert_array_equal(out, 2.5 * normals[c, i, stage])


@pytest.mark.parametrize("method", ["dp-penalty", "minibatch-penalty", "dp-barker", "dp-hmc"])
def test_the_loop_draws_numbers_of_the_right_laws(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(algorithm, door, noise, draws, state, record):  # type: ignore[no-untyped-def]
        seen.append((noise, draws))
        record.theta[:] = 0.0

    monkeypatch.setattr("dpmc.sampling.compiled_iterations", spy)
    sample(cells.cell(method, iterations=6000), [0, 1])
    samples = {
        "proposal": np.concatenate([d.normal.ravel() for _, d in seen]),
        "ratio noise": np.concatenate([n.ratio_normals.ravel() for n, _ in seen]),
        "accept": stats.norm.ppf(np.exp(np.concatenate([d.log_u.ravel() for _, d in seen]))),
    }
    if method == "dp-hmc":
        samples["gradient noise"] = np.concatenate([n.gradient_normals.ravel() for n, _ in seen])
    if method in ladder.BATCHES:
        words = np.concatenate([d.words.ravel() for _, d in seen])
        assert words.dtype == np.uint64
        samples["batch, high bits"] = stats.norm.ppf((words >> np.uint64(32)) / 2**32 + 2.0**-33)
        samples["batch, low bits"] = stats.norm.ppf((words % np.uint64(2**32)) / 2**32 + 2.0**-33)
    if method == "dp-barker":
        samples["correction"] = stats.norm.ppf(np.concatenate([d.uniform.ravel() for _, d in seen]))
    for name, sample_ in samples.items():
        assert stats.kstest(sample_, "norm").pvalue > 1e-4, name
    length = min(len(values) for values in samples.values())
    together = np.corrcoef([values[:length] for values in samples.values()])
    assert np.abs(together - np.eye(len(samples))).max() < 5.0 / np.sqrt(length)


def test_clip_counts_and_sums_on_hand_made_rows() -> None:
    # log ratios of a unit normal from θ = 0 to (1, 0): x_1 − ½ = 0.5, 2.5, −5.5; clipped to ±2
    model = LARGE.model._replace(a=0.0, b=0.0, variance=np.ones(2))
    rows = np.array([[1.0, 0.0], [3.0, 0.0], [-5.0, 0.0]])
    from dpmc import evaluators

    door = Door(model, evaluators.build(model, rows), 0.5, 3)
    answer, clipped = np.empty(1), np.zeros((1, 1), np.int64)
    theta, proposal = np.zeros((1, 2)), np.array([[1.0, 0.0]])
    door.exact_log_ratio(theta, proposal, 2.0, False, answer, clipped, 0)
    assert answer[0] == 0.5 * (0.5 + 2.0 - 2.0)
    assert clipped[0, 0] == 2
    noise = LabNoise(np.full((1, 1), 1.0), np.zeros((1, 1, 1, 2)))
    door.noisy_log_ratio(theta, proposal, 2.0, 0.1, noise, 0, answer, clipped)
    sd = 0.5 * 2.0 * 0.1 * np.sqrt(3.0) * 2.0
    assert answer[0] == pytest.approx(0.25 + sd - 0.5 * sd**2, rel=1e-14)
    assert clipped[0, 0] == 4
    gradient = np.empty((1, 2))
    clipped[:] = 0
    door.exact_gradient(theta, 2.0, 0, gradient, clipped)
    np.testing.assert_allclose(gradient, [[0.5 * (1.0 + 2.0 - 2.0), 0.0]], atol=1e-15)
    assert clipped[0, 0] == 2
