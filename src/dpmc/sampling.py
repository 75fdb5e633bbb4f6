"""The one loop: budget → iterations → chains, in blocks, with progress, checkpoints, resumption, thinning.

Several runs (seeds) of one cell advance together, block by block; each has its own ledger, its own random
streams and its own arithmetic, so a run has the same bits whether it is computed alone or beside others,
in blocks of any size, at one go or after a kill.
"""

import json
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpmc import evaluators, storage
from dpmc.algorithms.common import Draws, Record, State
from dpmc.compiler import compilable, compiled
from dpmc.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.events import repeat
from dpmc.privacy.ledger import Budget, BudgetExceeded, Ledger
from dpmc.privacy.mechanisms import Door
from dpmc.privacy.noise import LabNoise
from dpmc.problem import Problem
from dpmc.randomness import get_state, set_state, stream

BLOCK_SECONDS = 0.5  #: blocks grow until they take about this long
BLOCK_NUMBERS = 2_000_000  #: random numbers drawn beforehand per block, at most (16 MB)
PURPOSES = ("proposal", "component", "accept", "ratio-noise", "gradient-noise")

#: Fewer iterations than this give a chain that no second half can be taken from.
LEAST_ITERATIONS = 4


@dataclass(frozen=True)
class Cell:
    """What is to be run: everything that decides the draws, apart from the seed."""

    problem: Problem
    method: str  # label
    algorithm: Any  # an algorithm with its hyperparameters
    epsilon: str  # canonical; "inf" without a budget
    delta: float
    accountant: str
    chains: int = 1  # chains of one run; they share its budget
    iterations: int | None = None  # of each chain; None: all that the budget allows
    thin: int = 1  # every thin-th draw is kept

    @property
    def budget(self) -> Budget | None:
        """The (ε, δ) of one run; None without privacy."""
        return None if self.epsilon == "inf" else Budget(float(self.epsilon), self.delta)

    def releases(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events of a whole run before its first iteration and per iteration, all chains together."""
        once, each = self.algorithm.releases(self.problem.n)
        return repeat(once, self.chains), repeat(each, self.chains)

    def allowed_iterations(self) -> int:
        """Iterations of each chain.

        Raises DpmcError where neither budget nor `iterations` says how many, and BudgetExceeded where
        `iterations` costs more than the budget.
        """
        if self.budget is None:
            if self.iterations is None:
                raise DpmcError("iterations: needed when epsilon is inf, since no budget limits the chain")
            return self.iterations
        once, each = self.releases()
        accountant = accountants.get(self.accountant)
        most = accountant.iterations(once, each, self.budget.epsilon, self.budget.delta)
        if self.iterations is not None and self.iterations > most:
            raise BudgetExceeded(
                f"iterations: {self.iterations} exceeds the budget: epsilon {self.epsilon} allows {most}"
            )
        return most if self.iterations is None else self.iterations

    def status(self, iterations: int) -> str:
        """ "ok", or why the chain is too short to be of use."""
        if iterations >= LEAST_ITERATIONS:
            return "ok"
        plural = "" if iterations == 1 else "s"
        return f"budget too small: epsilon {self.epsilon} allows {iterations} iteration{plural}"


@dataclass
class Run:
    """One seed's chains, as far as they have come."""

    seed: int
    ledger: Ledger
    start: np.ndarray  # (chains, d) θ_0
    streams: list[dict[str, np.random.Generator]]  # per chain, by purpose
    draws: list[np.ndarray] = field(default_factory=list)  # blocks (chains, kept, d)
    counts: list[np.ndarray] = field(default_factory=list)  # blocks (4, chains, kept), as Record


Progress = Callable[[int, int], None]


def sample(
    cell: Cell,
    seeds: list[int],
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 20.0,
    progress: Progress | None = None,
) -> list[storage.Chains]:
    """Return the finished chains of each seed.

    `checkpoint`: a file to which the state is saved every `checkpoint_seconds`, and from which a run that
    was killed goes on; the caller deletes it. `progress(done, total)` is called after every block.

    Raises DpmcError for a seed without a start point and for a budget that cannot be kept.
    """
    total = cell.allowed_iterations()
    state, runs = _begin(cell, seeds)
    done, size = 0, 0
    if checkpoint is not None and checkpoint.exists():
        done, size = _resume(checkpoint, state, runs)
    door = Door(
        cell.problem.model,
        evaluators.build(cell.problem.model, cell.problem.rows, cell.algorithm.one_component),
        float(cell.problem.temperature),
        cell.problem.n,
    )
    advance = compiled_iterations if isinstance(door.evaluator, tuple) else run_iterations
    size = size or _first_block(door)
    saved = time.monotonic()
    while done < total:
        m = min(size, total - done)
        _reserve(cell, runs, m, first=done == 0)
        if checkpoint is not None and time.monotonic() - saved > checkpoint_seconds:
            _save(checkpoint, state, runs, done, m)
            saved = time.monotonic()
        began = time.monotonic()
        record = _advance(advance, cell, door, state, runs, m)
        for r, run in enumerate(runs):
            _keep(run, record, r, cell, done)
            run.ledger.perform(_cost(cell, m, first=done == 0))
        done += m
        size = _next_block(size, time.monotonic() - began, cell, len(runs))
        if progress is not None:
            progress(done, total)
    if checkpoint is not None and total > 0:
        _save(checkpoint, state, runs, done, 0)
    return [_finish(cell, run, total, door) for run in runs]


@compilable
def run_iterations(algorithm, door, noise, draws, state, record):
    """All iterations of one block, for all chains."""
    for i in range(draws.log_u.shape[1]):
        algorithm.iterate(door, noise, draws, i, state, record)


compiled_iterations = compiled(run_iterations)


def stream_names(cell: Cell, seed: int, chain: int, purpose: str) -> tuple[str | int, ...]:
    """The names that key one random stream."""
    problem = cell.problem
    return (problem.dataset, problem.label, cell.method, cell.epsilon, seed, chain, purpose)


def _begin(cell: Cell, seeds: list[int]) -> tuple[State, list[Run]]:
    """Start points, streams and ledgers of all runs, before the first iteration."""
    runs = []
    extra = np.zeros((len(seeds) * cell.chains, cell.algorithm.extras))
    for r, seed in enumerate(seeds):
        first = seed * cell.chains
        available = len(cell.problem.starts)
        if first + cell.chains > available:
            raise DpmcError(
                f"seed: {seed} needs start points {first} to {first + cell.chains - 1}, "
                f"the data set {cell.problem.dataset} has {available}"
            )
        streams = [
            {purpose: stream(*stream_names(cell, seed, c, purpose)) for purpose in PURPOSES}
            for c in range(cell.chains)
        ]
        start = cell.problem.starts[first : first + cell.chains].copy()
        runs.append(Run(seed, Ledger(cell.budget, accountants.get(cell.accountant)), start, streams))
        if cell.algorithm.extras:
            for c in range(cell.chains):
                generator = stream(*stream_names(cell, seed, c, "state"))
                extra[r * cell.chains + c] = cell.algorithm.first_extra(generator)
    return State(np.concatenate([run.start for run in runs]), extra), runs


def _cost(cell: Cell, m: int, first: bool) -> tuple[Any, ...]:
    once, each = cell.releases()
    return (once if first else ()) + repeat(each, m)


def _reserve(cell: Cell, runs: list[Run], m: int, first: bool) -> None:
    """Reserve m iterations in every ledger that has not reserved them already (after a resumption)."""
    for run in runs:
        if not run.ledger.outstanding_events:
            run.ledger.reserve(_cost(cell, m, first))


def _first_block(door: Door) -> int:
    """Iterations of the first block: many where rows cost nothing, few where they are read one by one."""
    return 256 if isinstance(door.evaluator, tuple) else 1


def _next_block(size: int, seconds: float, cell: Cell, runs: int) -> int:
    """Double the block while it is short, within the limit on numbers drawn beforehand."""
    ratios, gradients = cell.algorithm.evaluations
    d = cell.problem.dimension
    per_iteration = cell.algorithm.normals + ratios + (gradients + 1) * d + d + 4
    most = max(1, BLOCK_NUMBERS // (per_iteration * runs * cell.chains))
    if seconds > 2.0 * BLOCK_SECONDS:
        size = max(1, size // 2)
    elif seconds < BLOCK_SECONDS:
        size *= 2
    return min(size, most)


def _advance(
    advance: Callable[..., None], cell: Cell, door: Door, state: State, runs: list[Run], m: int
) -> Record:
    """Draw the numbers of m iterations, run them, return what happened."""
    algorithm, d = cell.algorithm, cell.problem.dimension
    streams = [s for run in runs for s in run.streams]

    def numbers(purpose: str, shape: tuple[int, ...]) -> np.ndarray:
        uniform = purpose in ("component", "accept")
        draw = (s[purpose].random if uniform else s[purpose].standard_normal for s in streams)
        return np.stack([one(shape) for one in draw])

    with np.errstate(divide="ignore"):
        log_u = np.log(numbers("accept", (m,)))
    draws = Draws(
        numbers("proposal", (m, algorithm.normals)), numbers("component", (m, algorithm.uniforms)), log_u
    )
    noise = LabNoise(
        numbers("ratio-noise", (m,)), numbers("gradient-noise", (m, algorithm.noisy_gradients, d))
    )
    record = Record.empty(len(streams), m, d)
    with np.errstate(over="ignore", invalid="ignore"):
        advance(algorithm, door, noise, draws, state, record)
    return record


def _keep(run: Run, record: Record, r: int, cell: Cell, done: int) -> None:
    """Append run r's part of a block; iterations are thinned only when the run is finished."""
    part = slice(r * cell.chains, (r + 1) * cell.chains)
    m = record.theta.shape[1]
    kept = np.arange(done + 1, done + m + 1) % cell.thin == 0
    run.draws.append(record.theta[part][:, kept])
    counts = np.stack([a[part].astype(np.int64) for a in record[1:]])
    run.counts.append(counts)


def _finish(cell: Cell, run: Run, total: int, door: Door) -> storage.Chains:
    """Put a run's blocks together and describe it."""
    d = cell.problem.dimension
    draws = np.concatenate([np.empty((cell.chains, 0, d)), *run.draws], axis=1)
    counts = np.concatenate([np.zeros((4, cell.chains, 0), np.int64), *run.counts], axis=2)
    kept = total // cell.thin
    windows = counts[:, :, : kept * cell.thin].reshape(4, cell.chains, kept, cell.thin).sum(axis=3)
    ratios, gradients = cell.algorithm.evaluations
    return storage.Chains(
        start=run.start,
        draws=draws,
        accepted=windows[0],
        diverging=windows[1],
        ratio_clipped=windows[2],
        gradient_clipped=windows[3],
        totals=counts.sum(axis=2),
        attributes={
            "model": cell.problem.label,
            "method": cell.method,
            "dataset": cell.problem.dataset,
            "epsilon": cell.epsilon,
            "epsilon_kind": "total",
            "delta": cell.delta,
            "seed": run.seed,
            "iterations": total,
            "thin": cell.thin,
            "status": cell.status(total),
            "mode": "lab",
            "n": cell.problem.n,
            "dimension": d,
            "temperature": cell.problem.temperature,
            "accountant": cell.accountant,
            "evaluator": evaluators.describe(door.evaluator),
            "draws_version": cell.algorithm.draws_version,
            "ratio_evaluations_per_iteration": ratios,
            "gradient_evaluations_per_iteration": gradients,
            "ledger": json.dumps(run.ledger.to_json()),
        },
    )


def _save(path: Path, state: State, runs: list[Run], done: int, reserved: int) -> None:
    """Write a checkpoint; its ledgers already hold the reservation of the next block's iterations."""
    arrays: dict[str, np.ndarray] = {"theta": state.theta, "extra": state.extra}
    about: dict[str, Any] = {"done": done, "reserved": reserved, "runs": []}
    for r, run in enumerate(runs):
        if run.draws:
            run.draws = [np.concatenate(run.draws, axis=1)]
            run.counts = [np.concatenate(run.counts, axis=2)]
            arrays[f"draws_{r}"], arrays[f"counts_{r}"] = run.draws[0], run.counts[0]
        states = [{p: get_state(g) for p, g in streams.items()} for streams in run.streams]
        about["runs"].append({"ledger": run.ledger.to_json(), "streams": states})
    arrays["about"] = np.array(json.dumps(about))
    with storage.replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _resume(path: Path, state: State, runs: list[Run]) -> tuple[int, int]:
    """Put everything back to the last checkpoint; return the iterations done, and those reserved next.

    A reproducible chain repeats the block that was cut off with the same numbers, so its reservation is
    performed rather than forfeited: nothing new is released.
    """
    try:
        with np.load(path) as saved:
            about = json.loads(str(saved["about"]))
            state.theta[:], state.extra[:] = saved["theta"], saved["extra"]
            for r, (run, known) in enumerate(zip(runs, about["runs"], strict=True)):
                run.ledger = Ledger.from_json(known["ledger"])
                if f"draws_{r}" in saved:
                    run.draws, run.counts = [saved[f"draws_{r}"]], [saved[f"counts_{r}"]]
                for streams, states in zip(run.streams, known["streams"], strict=True):
                    for purpose, text in states.items():
                        set_state(streams[purpose], text)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DpmcError(
            f"{path}: cannot be read as a checkpoint ({error}); delete it to start anew"
        ) from None
    return about["done"], about["reserved"]
