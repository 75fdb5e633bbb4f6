"""Equal bits: however a run is cut into blocks, computed beside others, thinned, stopped and resumed."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import qmc
from threadpoolctl import threadpool_info

from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.data import chain_files
from dpmc.privacy.events import NonPrivateQuery
from dpmc.sampling import loop
from dpmc.sampling.loop import Cell, Loop, sample
from dpmc.sampling.run import stream_names
from kernels.cells import HYPERPARAMETERS, PEERS, cell, problem

each_method = pytest.mark.parametrize("method", [*HYPERPARAMETERS, *PEERS])
SLOW_TO_ACCOUNT_FOR = "dp-fast-mh"  #: its other variants run the same code
each_quick_method = pytest.mark.parametrize(
    "method", [m for m in HYPERPARAMETERS if m != SLOW_TO_ACCOUNT_FOR]
)
COUNTS = ("accepted", "diverging", "ratio_clipped", "gradient_clipped")


def blocks_of(monkeypatch: Any, sizes: list[int]) -> None:
    """Cut every run into blocks of these sizes, the last one again and again."""
    left = list(sizes)

    def next_size(*_: Any) -> int:
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(loop, "FIRST_BLOCK", 1000)
    monkeypatch.setattr(loop.Loop, "_longest_block", next_size)


def assert_same(ours: list[chain_files.Chains], theirs: list[chain_files.Chains]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_equal(vars(a), vars(b))


@each_method
def test_block_size_changes_nothing(method: str, monkeypatch: Any) -> None:
    chosen = cell(method, most_draws=7)
    whole = sample(chosen, [0, 1])
    for sizes in ([1], [3, 1, 7, 2], [39, 5]):
        blocks_of(monkeypatch, sizes)
        assert_same(sample(chosen, [0, 1]), whole)


def of_three_lengths(method: str) -> list[Cell]:
    """Cells of one method whose chains leave a job one after the other."""
    budgets = {"1": 13, "2": 40, "3": 26}
    return [
        cell(method, chains=2, epsilon=epsilon, epsilon_kind="per-iteration", iterations=iterations)
        for epsilon, iterations in budgets.items()
    ]


@each_quick_method
def test_cells_computed_together_or_alone_are_the_same(method: str, monkeypatch: Any) -> None:
    together = sample(of_three_lengths(method), [0, 3])
    assert [run.attrs["iterations"] for run in together] == [13, 13, 40, 40, 26, 26]
    alone = [run for one in of_three_lengths(method) for seed in (0, 3) for run in sample(one, [seed])]
    assert_same(together, alone)
    assert len({chain.tobytes() for run in together for chain in run.draws[:, :13]}) == 4 * len(together) // 2
    blocks_of(monkeypatch, [5, 11, 2])
    assert_same(sample(of_three_lengths(method)[::-1], [3, 0])[::-1], alone)


def killed_and_resumed(
    cells: list[Cell], seeds: list[int], path: Path, generator: np.random.Generator, monkeypatch: Any
) -> list[chain_files.Chains]:
    """Run in blocks of random sizes with a checkpoint at each, killed at three random places."""
    blocks_of(monkeypatch, generator.integers(1, 9, 60).tolist())
    kills = sorted(generator.choice(range(1, 40), 3, replace=False).tolist())
    kept: dict[tuple[str, int], chain_files.Chains] = {}

    def finished(of: Cell, chains: chain_files.Chains) -> None:
        kept[of.epsilon, chains.attrs["seed"]] = chains

    def kill(done: int, total: int) -> None:
        if kills and done >= kills[0]:
            kills[:] = [place for place in kills if place > done]
            raise KeyboardInterrupt

    for _ in range(4):
        try:
            sample(cells, seeds, path, checkpoint_seconds=-1.0, progress=kill, finished=finished)
        except KeyboardInterrupt:
            assert path.exists() or not kills
        else:
            return [kept[one.epsilon, seed] for one in cells for seed in seeds]
    raise AssertionError("killed more often than asked for")


@pytest.mark.parametrize("lengths", ["one length", "three lengths"])
@each_method
def test_a_killed_and_resumed_job_has_the_same_results(
    method: str, lengths: str, tmp_path: Path, monkeypatch: Any
) -> None:
    if lengths == "one length":
        cells = [cell(method, chains=3, thin=3, epsilon=budgeted(method))]
    elif method == SLOW_TO_ACCOUNT_FOR:
        pytest.skip("its other variants run the same code")
    else:
        cells = of_three_lengths(method)
    whole, generator = sample(cells, [0, 2]), np.random.default_rng(3)
    assert_same(killed_and_resumed(cells, [0, 2], tmp_path / "c", generator, monkeypatch), whole)


@pytest.mark.parametrize("method", ["dp-penalty", "minibatch-penalty", "dp-hmc", "dp-hmc jittered"])
def test_a_resumption_without_its_streams_is_detected(method: str, tmp_path: Path, monkeypatch: Any) -> None:
    whole = sample(cell(method), [0])
    if "jittered" in method:
        monkeypatch.setattr(qmc.Halton, "fast_forward", lambda self, n: self)
    else:
        resume = Loop.resume

        def forgetting(loop: Loop, checkpoint: Path) -> None:
            streams = copy.deepcopy([run.streams for run in loop.all_runs])
            resume(loop, checkpoint)
            for run, its in zip(loop.all_runs, streams, strict=True):
                run.streams = its

        monkeypatch.setattr(Loop, "resume", forgetting)
    generator = np.random.default_rng(1)
    finished = killed_and_resumed([cell(method)], [0], tmp_path / "c", generator, monkeypatch)
    with pytest.raises(AssertionError):
        assert_same(finished, whole)


def budgeted(method: str) -> str:
    each = cell(method).algorithm.queries(60).each
    exact = any(isinstance(event, NonPrivateQuery) for event in each)
    return "inf" if exact or method == SLOW_TO_ACCOUNT_FOR else "1000000"


# Thinning


@pytest.mark.parametrize(
    ("key", "value", "thin"),
    [("thin", 3, 3), ("thin", 40, 40), ("most_draws", 21, 1), ("most_draws", 20, 2), ("most_draws", 13, 3)],
)
def test_thinning_keeps_some_of_the_same_draws_and_counts_all(
    key: str, value: int, thin: int, monkeypatch: Any
) -> None:
    whole = sample(cell("dp-penalty"), [0])[0]
    blocks_of(monkeypatch, [4, 9, 1])
    thinned = sample(cell("dp-penalty", **{key: value}), [0])[0]
    assert thinned.attrs["thin"] == thin
    assert thinned.attrs["iterations"] == 40
    np.testing.assert_array_equal(thinned.draws, whole.draws[:, thin - 1 :: thin])
    np.testing.assert_equal(thinned.totals, whole.totals)
    kept = 40 // thin
    for name in COUNTS:
        windows = whole.counts[name][:, : kept * thin].reshape(1, kept, thin).sum(axis=2)
        np.testing.assert_array_equal(thinned.counts[name], windows)


# Budgets and ledgers


def test_chains_of_one_run_have_start_points_of_their_own() -> None:
    on = problem(starts=12)
    one = cell("dp-penalty", on, epsilon="40", iterations=None)
    four = replace(one, chains=4)
    assert 4 * four.allowed_iterations() <= one.allowed_iterations() < 4 * four.allowed_iterations() + 4
    run = sample(four, [2])[0]
    np.testing.assert_array_equal(run.start, on.starts[8:12])
    assert run.draws.shape == (4, four.allowed_iterations(), 2)
    assert len({chain.tobytes() for chain in run.draws}) == 4


def test_seeds_beyond_the_start_points_are_refused() -> None:
    with pytest.raises(DpmcError, match="seed: 3 needs start points .* has 12"):
        sample(cell("rwmh", chains=4), [0, 3])


@each_method
def test_the_ledger_holds_exactly_what_was_declared(method: str) -> None:
    chosen: Cell = cell(method, iterations=17, chains=2)
    declared = chosen.algorithm.queries(60)
    performed = json.loads(sample(chosen, [0])[0].attrs["ledger"])["performed"]
    found = {(e["name"], e.get("noise_multiplier")): e["count"] for e in performed}
    wanted: dict[Any, int] = {}
    for events, times in ((declared.run, 1), (declared.chain, 2), (declared.each, 2 * 17)):
        for event in events:
            key = (event.name, getattr(event, "noise_multiplier", None))
            wanted[key] = wanted.get(key, 0) + times * event.count
    assert found == wanted


# numpy.load leaves a file open that is no zip archive after all.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broken_checkpoint_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut-off"
    sample(cell("rwmh"), [0], path, checkpoint_seconds=-1.0)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DpmcError, match="cut-off: cannot be read as a checkpoint"):
        sample(cell("rwmh"), [0], path)


# Random numbers


def test_jitter_is_a_halton_sequence_of_its_own_for_each_chain(monkeypatch: Any) -> None:
    kind = type(cell("dp-hmc jittered").algorithm)
    seen = []

    def spy(self: Any, state: Any, model: Any, private: Any, draws: Any) -> Any:
        seen.append(draws.uniform[:, 0].copy())
        return state

    monkeypatch.setattr(kind, "step", spy)
    blocks_of(monkeypatch, [7, 30])
    chosen = cell("dp-hmc jittered", chains=3, iterations=256)
    sample(chosen, [0, 2])
    points = np.array(seen).T
    assert points.shape == (6, 256)
    assert ((points > 0.0) & (points < 1.0)).all()
    for chain in points:  # base 2: of any 2^k points from the first on, one in each 2^k-th of (0, 1)
        assert sorted(np.floor(256 * chain).astype(int)) == list(range(256))
    assert len({chain.tobytes() for chain in points}) == 6
    names = (*stream_names(chosen, 2), 1, "jitter")
    seed = int(stream(*names).integers(2**63))
    alone = qmc.Halton(d=1, scramble=True, rng=seed).random(256)[:, 0]
    np.testing.assert_array_equal(points[4], alone)


# Options


def test_blas_has_one_thread_while_chains_are_sampled() -> None:
    found: list[int] = []

    def look(done: int, total: int) -> None:
        found.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

    sample(cell("rwmh"), [0], progress=look)
    assert found
    assert set(found) == {1}
