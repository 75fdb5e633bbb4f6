"""The DP-HMC paper's samplers: equal bits, whatever the blocks, the company and the kills; thinned draws."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

sys.path.insert(0, str(Path(__file__).parents[1]))

from dpmc import sampling, storage
from dpmc.errors import DpmcError
from dpmc.evaluators.generic import GenericEvaluator
from dpmc.models.gaussian import Gaussian
from dpmc.randomness import stream
from dpmc.sampling import Cell, sample
from kernels import cells
from kernels.paper_cells import HYPERPARAMETERS, cell

GOLDEN = Path(__file__).with_name("paper_golden.json")
ARRAYS = [field for field in storage.Chains.__dataclass_fields__ if field != "attributes"]
SGMCMC = [method for method in HYPERPARAMETERS if "sg" in method]
each_method = pytest.mark.parametrize("method", HYPERPARAMETERS)


def blocks_of(monkeypatch: Any, sizes: list[int]) -> None:
    """Cut every run into blocks of these sizes, the last one again and again."""
    left = list(sizes)

    def next_size(*_: Any) -> int:
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(sampling, "_first_block", next_size)
    monkeypatch.setattr(sampling, "_next_block", next_size)


def assert_same(ours: list[storage.Chains], theirs: list[storage.Chains]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
        assert a.attributes == b.attributes


@each_method
def test_block_size_changes_nothing(method: str, monkeypatch: Any) -> None:
    whole = sample(cell(method, most_draws=7), [0, 1])
    for sizes in ([1], [3, 1, 7, 2], [39, 5]):
        blocks_of(monkeypatch, sizes)
        assert_same(sample(cell(method, most_draws=7), [0, 1]), whole)


@each_method
def test_seeds_computed_together_or_alone_are_the_same(method: str) -> None:
    together = sample(cell(method, chains=2), [0, 3, 1])
    for place, seed in enumerate([0, 3, 1]):
        assert_same(sample(cell(method, chains=2), [seed]), [together[place]])
    assert not np.array_equal(together[0].draws, together[1].draws)
    assert not np.array_equal(together[0].draws[0], together[0].draws[1])


@each_method
@pytest.mark.parametrize("most_draws", [None, 9])
def test_a_killed_run_goes_on_as_if_nothing_had_been(
    method: str, most_draws: int | None, tmp_path: Path, monkeypatch: Any
) -> None:
    chosen = cell(method, chains=2, epsilon="1000000", most_draws=most_draws)
    whole = sample(chosen, [0, 2])
    blocks_of(monkeypatch, [5, 1, 8, 3, 2, 7, 1, 4])
    for place in (3, 17, 30):

        def kill(done: int, total: int, place: int = place) -> None:
            if done >= place:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            sample(chosen, [0, 2], tmp_path / "c", checkpoint_seconds=-1.0, progress=kill)
    assert_same(sample(chosen, [0, 2], tmp_path / "c"), whole)
    assert_same(sample(chosen, [0, 2], tmp_path / "c"), whole)  # a finished one is read back


def test_a_resumption_that_forgot_its_jitter_would_be_seen(tmp_path: Path, monkeypatch: Any) -> None:
    whole = sample(cell("dp-hmc jittered"), [0])
    blocks_of(monkeypatch, [5])

    def kill(done: int, total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(cell("dp-hmc jittered"), [0], tmp_path / "c", checkpoint_seconds=-1.0, progress=kill)
    monkeypatch.setattr(qmc.Halton, "fast_forward", lambda self, n: self)
    with pytest.raises(AssertionError):
        assert_same(sample(cell("dp-hmc jittered"), [0], tmp_path / "c"), whole)


@each_method
def test_compiled_equals_plain_python(method: str, monkeypatch: Any) -> None:
    ours = sample(cell(method, iterations=12), [0, 1])
    monkeypatch.setattr(sampling, "compiled_iterations", sampling.run_iterations)
    for a, b in zip(ours, sample(cell(method, iterations=12), [0, 1]), strict=True):
        np.testing.assert_allclose(a.draws, b.draws, rtol=1e-9, atol=1e-9)
        for name in ("accepted", "diverging", "ratio_clipped", "gradient_clipped"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


class Plain:
    """A Gaussian with nothing but what the generic evaluator needs."""

    def __init__(self, model: Gaussian) -> None:
        self._model = model
        self.dimension = model.dimension
        self.log_prior, self.log_prior_gradient = model.log_prior, model.log_prior_gradient
        self.log_likelihood = model.log_likelihood

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (rows - theta) @ self._model.precision


@pytest.mark.parametrize("method", SGMCMC)
def test_the_generic_evaluator_gives_the_same_chains(method: str, monkeypatch: Any) -> None:
    on = cells.problem()
    on.model = Gaussian(np.array([[0.8, -0.3], [-0.3, 1.0]]), 4.0, 4.0)
    ours = sample(cell(method, on), [0])
    on.model = Plain(on.model)
    monkeypatch.setattr(sampling.evaluators, "build", lambda model, rows, *_: GenericEvaluator(rows))
    theirs = sample(cell(method, on), [0])
    assert theirs[0].attributes["evaluator"] == "generic"
    assert 0 < theirs[0].totals[3] < 40 * 20
    np.testing.assert_allclose(ours[0].draws, theirs[0].draws, rtol=1e-9)
    np.testing.assert_array_equal(ours[0].gradient_clipped, theirs[0].gradient_clipped)


@pytest.mark.parametrize(
    ("most_draws", "thin"), [(40, 1), (39, 1), (21, 1), (20, 2), (13, 3), (5, 8), (1, 40)]
)
def test_long_chains_keep_some_of_the_same_draws_and_count_all(
    most_draws: int, thin: int, monkeypatch: Any
) -> None:
    whole = sample(cell("dp-sgld"), [0])[0]
    blocks_of(monkeypatch, [4, 9, 1])
    thinned = sample(cell("dp-sgld", most_draws=most_draws), [0])[0]
    assert thinned.attributes["thin"] == thin
    assert thinned.attributes["iterations"] == 40
    np.testing.assert_array_equal(thinned.draws, whole.draws[:, thin - 1 :: thin])
    np.testing.assert_array_equal(thinned.totals, whole.totals)
    kept = 40 // thin
    assert most_draws <= kept < 2 * most_draws + 1
    for name in ("accepted", "diverging", "ratio_clipped", "gradient_clipped"):
        windows = getattr(whole, name)[:, : kept * thin].reshape(1, kept, thin).sum(axis=2)
        np.testing.assert_array_equal(getattr(thinned, name), windows)


def test_jitter_is_a_halton_sequence_of_its_own_for_each_chain(monkeypatch: Any) -> None:
    seen = []

    def spy(algorithm: Any, door: Any, noise: Any, draws: Any, state: Any, record: Any) -> None:
        seen.append(draws.uniform[:, :, 0])
        record.theta[:] = 0.0

    monkeypatch.setattr(sampling, "compiled_iterations", spy)
    blocks_of(monkeypatch, [7, 30])
    chosen = cell("dp-hmc jittered", chains=3, iterations=256)
    sample(chosen, [0, 2])
    points = np.concatenate(seen, axis=1)
    assert points.shape == (6, 256)
    assert ((points > 0.0) & (points < 1.0)).all()
    for chain in points:  # base 2: of any 2^k points from the first on, one in each 2^k-th of (0, 1)
        assert sorted(np.floor(256 * chain).astype(int)) == list(range(256))
        assert sorted(np.floor(16 * chain[:16]).astype(int)) == list(range(16))
    assert len({chain.tobytes() for chain in points}) == 6
    names = sampling.stream_names(chosen, 2, 1, "jitter")
    seed = int(stream(*names).integers(2**63))
    alone = qmc.Halton(d=1, scramble=True, rng=seed).random(256)[:, 0]
    np.testing.assert_array_equal(points[4], alone)


def test_without_jitter_nothing_is_drawn_for_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(sampling, "_halton", None)
    sample(cell("dp-mala"), [0])
    plain = sample(cell("dp-hmc jittered", jitter="none"), [0])[0]
    assert plain.draws.shape == (1, 40, 2)


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("dp-sgld", {"drift": "half"}),
        ("dp-sgnht", {"order": "new"}),
        ("dp-hmc jittered", {"jitter": "sobol"}),
    ],
)
def test_unknown_options_are_named(method: str, change: dict[str, str]) -> None:
    key, value = next(iter(change.items()))
    with pytest.raises(DpmcError, match=f"tests: {key}: '{value}' must be one of"):
        cell(method, **change)


@each_method
def test_what_departs_from_the_algorithm_says_so(method: str) -> None:
    variant = getattr(cell(method).algorithm, "variant", "")
    assert ("as published" in variant) == ("published" in method)


@pytest.mark.parametrize("method", SGMCMC)
def test_a_chain_that_always_diverges_pays_and_stays(method: str) -> None:
    lost = sample(cell(method, chains=2, step_size=1e80, accountant="rdp"), [0])[0]
    kept = sample(cell(method, chains=2), [0])[0]
    assert lost.totals[:2].tolist() == [[0, 0], [40, 40]]
    assert kept.totals[:2].tolist() == [[40, 40], [0, 0]]
    assert (lost.draws == lost.start[:, None]).all()
    counts = [json.loads(run.attributes["ledger"])["performed"][0]["count"] for run in (lost, kept)]
    assert counts == [80, 80]


@pytest.mark.parametrize("method", SGMCMC)
@pytest.mark.parametrize("bad", [1e80, np.inf, np.nan])
def test_only_the_iteration_that_diverges_is_lost(method: str, bad: float, monkeypatch: Any) -> None:
    whole = sample(cell(method, iterations=6), [0, 1])

    def sick(self: Any, c: int, i: int, stage: int, sd: float, out: np.ndarray) -> None:
        out[:] = bad if (c, i) == (1, 3) else sd * self.gradient_normals[c, i, stage]

    monkeypatch.setattr(sampling, "compiled_iterations", sampling.run_iterations)
    monkeypatch.setattr(sampling.LabNoise, "vector", sick)
    found = sample(cell(method, iterations=6), [0, 1])
    np.testing.assert_allclose(found[0].draws, whole[0].draws, rtol=1e-9)
    assert found[1].diverging.tolist() == [[0, 0, 0, 1, 0, 0]]
    assert found[1].accepted.tolist() == [[1, 1, 1, 0, 1, 1]]
    np.testing.assert_array_equal(found[1].draws[0, 3], found[1].draws[0, 2])
    assert np.isfinite(found[1].draws).all()


def golden_numbers(chosen: Cell) -> list[float]:
    """A few numbers that any change of the draws changes."""
    run = sample(chosen, [1])[0]
    weights = np.arange(1, run.draws.size + 1).reshape(run.draws.shape) / run.draws.size
    sums = [float((run.draws * weights).sum()), float((run.draws**2).sum())]
    return [*run.draws[0, -1].tolist(), *sums, *(int(total) for total in run.totals[:, 0])]


@each_method
def test_draws_are_those_of_their_version(method: str) -> None:
    golden = json.loads(GOLDEN.read_text())[method]
    assert cell(method).algorithm.draws_version == golden["draws_version"]
    np.testing.assert_allclose(golden_numbers(cell(method)), golden["numbers"], rtol=1e-9, atol=1e-9)


def test_momenta_start_as_standard_normals_and_the_thermostat_at_the_diffusion() -> None:
    algorithm = cell("dp-sgnht", diffusion=2.5).algorithm
    extra = np.stack([algorithm.first_extra(np.random.default_rng(seed)) for seed in range(2000)])
    assert extra.shape == (2000, 3)
    assert (extra[:, 2] == 2.5).all()
    assert stats.kstest(extra[:, :2].ravel(), "norm").pvalue > 1e-4


if __name__ == "__main__":
    found = {
        method: {
            "draws_version": cell(method).algorithm.draws_version,
            "numbers": golden_numbers(cell(method)),
        }
        for method in HYPERPARAMETERS
    }
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
