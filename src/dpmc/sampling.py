"""The one loop: budget → iterations → chains, in blocks, with progress, checkpoints, resumption, thinning.

Several runs (seeds) of one cell advance together, block by block; each has its own ledger, its own random
streams and its own arithmetic, so a run has the same bits whether it is computed alone or beside others,
in blocks of any size, at one go or after a kill.
"""

import functools
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
from dpmc.models.results import try_out
from dpmc.privacy import accountants
from dpmc.privacy.events import repeat
from dpmc.privacy.ledger import Budget, BudgetExceeded, Ledger
from dpmc.privacy.mechanisms import Door
from dpmc.privacy.noise import LabNoise, ListeningNoise
from dpmc.problem import Problem
from dpmc.randomness import get_state, set_state, stream

BLOCK_SECONDS = 0.5  #: blocks grow until they take about this long
BLOCK_NUMBERS = 2_000_000  #: random numbers drawn beforehand per block, at most (16 MB)
PURPOSES = ("proposal", "component", "accept", "batch", "ratio-noise", "gradient-noise")

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
    accountant: str  # an accountant or a preset
    chains: int = 1  # chains of one run; they share its budget
    iterations: int | None = None  # of each chain; None: all that the budget allows
    thin: int = 1  # every thin-th draw is kept
    most_draws: int | None = None  # of k > most_draws, every ⌊k/most_draws⌋-th is kept
    most_iterations: int | None = None  # stop there, however much budget is left
    epsilon_kind: str = "total"  # of a run; "per-iteration": no budget, the algorithm is set to keep it

    @property
    def budget(self) -> Budget | None:
        """The (ε, δ) of one run; None without privacy, and where ε is per iteration."""
        if self.epsilon == "inf" or self.epsilon_kind != "total":
            return None
        return Budget(float(self.epsilon), self.delta)

    def releases(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events of a whole run before its first iteration and per iteration, all chains together."""
        once, each = self.algorithm.releases(self.problem.n)
        return repeat(once, self.chains), repeat(each, self.chains)

    def judge(self) -> Any:
        """The accountant that the cell's name or preset means for its releases."""
        once, each = self.releases()
        return accountants.resolve(self.accountant, once + each)

    @functools.cached_property
    def budget_iterations(self) -> int | None:
        """Iterations of each chain that the budget allows; None without a budget."""
        if self.budget is None:
            return None
        once, each = self.releases()
        most: int = self.judge().iterations(once, each, self.budget.epsilon, self.budget.delta)
        return most

    def allowed_iterations(self) -> int:
        """Iterations of each chain.

        Raises DpmcError where neither budget nor `iterations` says how many, and BudgetExceeded where
        `iterations` costs more than the budget.
        """
        most = self.budget_iterations
        if most is None:
            if self.iterations is None:
                which = "inf" if self.epsilon == "inf" else self.epsilon_kind
                raise DpmcError(
                    f"iterations: needed when epsilon is {which}, since no budget limits the chain"
                )
            return self.iterations
        if self.iterations is not None and self.iterations > most:
            raise BudgetExceeded(
                f"iterations: {self.iterations} exceeds the budget: epsilon {self.epsilon} allows {most}"
            )
        if self.iterations is not None:
            return self.iterations
        return most if self.most_iterations is None else min(most, self.most_iterations)

    def kept_every(self, iterations: int) -> int:
        """Every how-many-th draw is kept; at least `most_draws` are, and fewer than twice as many."""
        if self.most_draws is None or self.thin > 1:
            return self.thin
        return max(1, iterations // self.most_draws)

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
    jitters: list[Any]  # per chain, its Halton sequence; none if the algorithm uses none
    thin: int  # every thin-th draw is kept
    draws: list[np.ndarray] = field(default_factory=list)  # blocks (chains, kept, d)
    counts: list[np.ndarray] = field(default_factory=list)  # blocks (kinds, chains, windows of thin)


Progress = Callable[[int, int], None]
Listener = Callable[[np.ndarray], None]


def sample(
    cell: Cell,
    seeds: list[int],
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 20.0,
    progress: Progress | None = None,
    evaluator: Any = None,
    private_listener: Listener | None = None,
) -> list[storage.Chains]:
    """Return the finished chains of each seed.

    `checkpoint`: a file to which the state is saved every `checkpoint_seconds`, and from which a run that
    was killed goes on; the caller deletes it. `progress(done, total)` is called after every block.
    `evaluator`: what `build_evaluator` returned for this problem and kind of algorithm, for callers that
    sample often; building it takes about as long as a short chain. `private_listener(sds)` is called after
    every block with the standard deviations of the log ratios' noise (all chains, iterations), NaN where none
    was drawn. They are private diagnostics: that of DP Barker is √(2 − s²), a function of the rows in the
    batch, and no ε covers it. For generated or public data, as in the search of hyperparameters.

    Raises DpmcError for a seed without a start point, for a budget that cannot be kept, and for a model whose
    methods return what they must not.
    """
    total = cell.allowed_iterations()
    state, runs = _begin(cell, seeds, cell.kept_every(total))
    columns, gradients = cell.problem.rows.shape[1], cell.algorithm.evaluations[1] > 0
    try_out(cell.problem.model, columns, state.theta[0].copy(), gradients)
    done, size = 0, 0
    if checkpoint is not None and checkpoint.exists():
        done, size = _resume(checkpoint, state, runs)
        for jitter in (jitter for run in runs for jitter in run.jitters):
            jitter.fast_forward(done)
    door = Door(
        cell.problem.model,
        build_evaluator(cell.algorithm, cell.problem) if evaluator is None else evaluator,
        float(cell.problem.temperature),
        cell.problem.n,
    )
    advance = compiled_iterations if evaluators.compiles(door.evaluator) else run_iterations
    most = _longest_block(cell, len(runs))
    size = size or min(most, _first_block(door))
    if total > 0:
        whole = _cost(cell, total, first=True)
        for run in runs:
            run.ledger.foresee(whole)
    saved = time.monotonic()
    while done < total:
        m = min(size, total - done)
        cost = _cost(cell, m, first=done == 0)
        _reserve(runs, cost)
        if checkpoint is not None and time.monotonic() - saved > checkpoint_seconds:
            _save(checkpoint, state, runs, done, m)
            saved = time.monotonic()
        began = time.monotonic()
        record = _advance(advance, cell, door, state, runs, m, private_listener)
        for r, run in enumerate(runs):
            _keep(run, record, r, cell, done)
            run.ledger.perform(cost)
        done += m
        size = min(most, _next_block(size, time.monotonic() - began))
        if progress is not None:
            progress(done, total)
    if checkpoint is not None and total > 0 and time.monotonic() - saved > checkpoint_seconds:
        _save(checkpoint, state, runs, done, 0)  # a kill while results are written
    return [_finish(cell, run, total, door) for run in runs]


def build_evaluator(algorithm: Any, problem: Any) -> Any:
    """The evaluator that serves an algorithm best; `problem` has a `model`, `rows` and a `temperature`."""
    if draws_random_rows(algorithm):
        temperature = float(problem.temperature)
        return evaluators.build_poisson(problem.model, problem.rows, temperature, algorithm.public_clip)
    # One component at a time, batches, gradients: that decides the form.
    kind = algorithm.one_component, algorithm.batch_size > 0, algorithm.evaluations[1] > 0
    return evaluators.build(problem.model, problem.rows, *kind)


def draws_random_rows(algorithm: Any) -> bool:
    """Whether an algorithm looks at a random number of rows, of which records are kept."""
    return getattr(algorithm, "random_rows", False)


def words_of(algorithm: Any) -> int:
    """64-bit words that an iteration draws rows by: one for each of a batch, unless it says otherwise."""
    words: int = getattr(algorithm, "random_words", algorithm.batch_size)
    return words


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


def _begin(cell: Cell, seeds: list[int], thin: int) -> tuple[State, list[Run]]:
    """Start points, streams and ledgers of all runs, before the first iteration."""
    runs = []
    judge = cell.judge()
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
        jitters = [
            _halton(stream(*stream_names(cell, seed, c, "jitter")))
            for c in range(cell.chains if getattr(cell.algorithm, "jitter", False) else 0)
        ]
        delta = None if cell.epsilon_kind == "total" else cell.delta
        runs.append(Run(seed, Ledger(cell.budget, judge, delta), start, streams, jitters, thin))
        if cell.algorithm.extras:
            for c in range(cell.chains):
                generator = stream(*stream_names(cell, seed, c, "state"))
                extra[r * cell.chains + c] = cell.algorithm.first_extra(generator)
    return State(np.concatenate([run.start for run in runs]), extra), runs


def _halton(generator: np.random.Generator) -> Any:
    """A scrambled Halton sequence on (0, 1): base 2, its digits permuted at random (Owen 2017).

    SciPy wants a generator that can spawn others, which one with a key of its own cannot: hence an integer.
    """
    from scipy.stats import qmc

    return qmc.Halton(d=1, scramble=True, rng=int(generator.integers(2**63)))


def _cost(cell: Cell, m: int, first: bool) -> tuple[Any, ...]:
    once, each = cell.releases()
    return (once if first else ()) + repeat(each, m)


def _reserve(runs: list[Run], cost: tuple[Any, ...]) -> None:
    """Reserve a block in every ledger that has not reserved it already (after a resumption)."""
    for run in runs:
        if not run.ledger.outstanding_events:
            run.ledger.reserve(cost)


def _first_block(door: Door) -> int:
    """Iterations of the first block: many where rows cost nothing, few where they are read one by one."""
    return 256 if evaluators.compiles(door.evaluator) else 1


def _next_block(size: int, seconds: float) -> int:
    """Iterations of the block after one of `size` in so many seconds: twice as many after a short one."""
    if seconds > 2.0 * BLOCK_SECONDS:
        return max(1, size // 2)
    return 2 * size if seconds < BLOCK_SECONDS else size


def _longest_block(cell: Cell, runs: int) -> int:
    """Iterations whose random numbers, drawn beforehand, keep the limit."""
    ratios, gradients = cell.algorithm.evaluations
    d = cell.problem.dimension
    per_iteration = cell.algorithm.normals + words_of(cell.algorithm) + ratios + (gradients + 2) * d + 4
    return max(1, BLOCK_NUMBERS // (per_iteration * runs * cell.chains))


def _advance(
    advance: Callable[..., None],
    cell: Cell,
    door: Door,
    state: State,
    runs: list[Run],
    m: int,
    private_listener: Listener | None = None,
) -> Record:
    """Draw the numbers of m iterations, run them, return what happened."""
    algorithm, d = cell.algorithm, cell.problem.dimension
    streams = [s for run in runs for s in run.streams]
    jitters = [j for run in runs for j in run.jitters]

    def numbers(purpose: str, shape: tuple[int, ...]) -> np.ndarray:
        drawn = np.empty((len(streams), *shape), np.uint64 if purpose == "batch" else np.float64)
        for s, its in zip(streams, drawn, strict=True):
            _draw(s[purpose], purpose, its)
        return drawn

    with np.errstate(divide="ignore"):
        log_u = np.log(numbers("accept", (m,)))
    if jitters:
        uniform = np.stack([jitter.random(m) for jitter in jitters])
    else:
        uniform = numbers("component", (m, algorithm.uniforms))
    draws = Draws(
        numbers("proposal", (m, algorithm.normals)),
        uniform,
        log_u,
        numbers("batch", (m, words_of(algorithm))),
    )
    normals = numbers("ratio-noise", (m,)), numbers("gradient-noise", (m, algorithm.noisy_gradients, d))
    heard = np.full((len(streams), m), np.nan)
    noise = LabNoise(*normals) if private_listener is None else ListeningNoise(*normals, heard)
    record = Record.empty(len(streams), m, d)
    with np.errstate(over="ignore", invalid="ignore"):
        advance(algorithm, door, noise, draws, state, record)
    if private_listener is not None:
        private_listener(heard)
    return record


def _draw(generator: np.random.Generator, purpose: str, out: np.ndarray) -> None:
    """Fill `out` with a chain's next numbers: uniform, 64-bit words (for batches), or standard normal."""
    if purpose in ("component", "accept"):
        generator.random(out=out)
    elif purpose == "batch":
        out[:] = generator.bit_generator.random_raw(out.size).reshape(out.shape)
    else:
        generator.standard_normal(out=out)


def _keep(run: Run, record: Record, r: int, cell: Cell, done: int) -> None:
    """Append run r's part of a block: every thin-th draw, and the counts in windows of thin iterations."""
    part = slice(r * cell.chains, (r + 1) * cell.chains)
    m, thin = record.theta.shape[1], run.thin
    run.draws.append(record.theta[part][:, thin - 1 - done % thin :: thin])
    kept = record[1:] if draws_random_rows(cell.algorithm) else record[1:5]
    counts = np.stack([a[part].astype(np.int64) for a in kept])
    first = np.flatnonzero(np.diff(np.arange(done, done + m) // thin, prepend=-1))
    sums = np.add.reduceat(counts, first, axis=2)
    if done % thin:  # the first window was begun in the block before
        run.counts[-1][:, :, -1] += sums[:, :, 0]
        sums = sums[:, :, 1:]
    if sums.shape[2]:
        run.counts.append(sums)


def _finish(cell: Cell, run: Run, total: int, door: Door) -> storage.Chains:
    """Put a run's blocks together and describe it."""
    d = cell.problem.dimension
    draws = np.concatenate([np.empty((cell.chains, 0, d)), *run.draws], axis=1)
    random_rows = draws_random_rows(cell.algorithm)
    kinds = len(storage.TOTALS) if random_rows else len(storage.TOTALS) - len(storage.RANDOM_ROWS)
    counts = np.concatenate([np.zeros((kinds, cell.chains, 0), np.int64), *run.counts], axis=2)
    windows = counts[:, :, : total // run.thin]
    ratios, gradients = cell.algorithm.evaluations
    return storage.Chains(
        start=run.start,
        draws=draws,
        accepted=windows[0],
        diverging=windows[1],
        ratio_clipped=windows[2],
        gradient_clipped=windows[3],
        random_rows=windows[4:] if random_rows else None,
        totals=counts.sum(axis=2),
        attributes={
            "model": cell.problem.label,
            "method": cell.method,
            "dataset": cell.problem.dataset,
            "epsilon": cell.epsilon,
            "epsilon_kind": cell.epsilon_kind,
            "delta": cell.delta,
            "seed": run.seed,
            "iterations": total,
            "budget_iterations": "inf" if cell.budget_iterations is None else cell.budget_iterations,
            "thin": run.thin,
            "status": cell.status(total),
            "mode": "lab",
            "n": cell.problem.n,
            "rows_per_evaluation": cell.algorithm.batch_size or cell.problem.n,
            "dimension": d,
            "temperature": cell.problem.temperature,
            "accountant": run.ledger.accountant.name,
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
        about["runs"].append({"ledger": run.ledger.to_json(told=False), "streams": states})
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
