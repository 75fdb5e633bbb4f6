"""The sampling loop: budget → iterations → chains, in blocks, with progress, checkpoints and resumption.

All runs (ε and seeds) of a method on a model step together and leave when they are done. Each has its own
ledger, random streams and arithmetic. So a run is bit-identical whether it is computed alone or with others,
in blocks of any size, without interruption or after a kill.
"""

import json
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.base import Algorithm, Draws, Model, Needs, State
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.progress import Progress
from dpmc.common.threads import one_blas_thread
from dpmc.data import chain_files
from dpmc.data.problem import Problem, Setting
from dpmc.evaluators.calls import without_warnings
from dpmc.evaluators.generic import Evaluator
from dpmc.evaluators.poisson import BoundedRows, bounded_rows
from dpmc.privacy.ledger import Ledger
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise
from dpmc.sampling.cell import Cell
from dpmc.sampling.run import Run, begin, counted

BLOCK_SECONDS = 0.5  #: blocks grow until they take about this long
BLOCK_NUMBERS = 2_000_000  #: random numbers drawn beforehand per block, at most (16 MB)
FIRST_BLOCK = 8  #: iterations

Listener = Callable[[np.ndarray], None]
Finished = Callable[[Cell[Problem], chain_files.Chains], None]


def sample(
    cells: Cell[Problem] | Sequence[Cell[Problem]],
    seeds: Sequence[int],
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 20.0,
    progress: Progress | None = None,
    private_listener: Listener | None = None,
    finished: Finished | None = None,
) -> list[chain_files.Chains]:
    """Return the finished chains of each cell and seed; cells share problem, method and hyperparameters.

    `checkpoint`: file to which the state is saved before a block, if `checkpoint_seconds` have passed, and
    again when runs finish; from it a killed job is resumed. The caller deletes it. Runs that had finished
    when it was saved are not returned again: the caller has got them by `finished(cell, chains)`.
    `progress(done, total)` is called after every block, and `private_listener(sds)` with the standard
    deviations of the log ratios' noise (chains, iterations), NaN if none was drawn: private diagnostics,
    since for DP Barker √(2 − s²) is a function of the rows in the batch. Use it for public data only.

    Raises DpmcError for a seed without a start point, a budget that cannot be kept, and a model whose methods
    return wrong results (`models.trial`).
    """
    cells = [cells] if isinstance(cells, Cell) else list(cells)
    with one_blas_thread(), without_warnings():
        try_cell(cells[0])
        problem, clip = cells[0].problem, cells[0].algorithm.public_clip
        bounds = (
            None if clip is None else bounded_rows(problem.model, problem.rows, problem.temperature, clip)
        )
        loop = Loop([begin(cell, seed) for cell in cells for seed in seeds], problem.evaluator, bounds)
        if checkpoint is not None and checkpoint.exists():
            loop.resume(checkpoint)
        loop.make_chains(checkpoint, checkpoint_seconds, progress, private_listener, finished)
    return [run.chains for run in loop.all_runs if run.chains is not None]


def iterate(
    algorithm: Algorithm, model: Model, private: PrivateData, state: State, draws: Draws
) -> Iterator[State]:
    """Make iterations of all chains, for each of `draws` (m, chains, …) and `private`; yield each state."""
    for i in range(len(draws.normal)):
        private.begin(i)
        with np.errstate(over="ignore", invalid="ignore"):
            state = algorithm.step(state, model, private, Draws(*(numbers[i] for numbers in draws)))
        yield state


def try_cell(cell: Cell[Setting]) -> None:
    """Try a cell's model; raise DpmcError if the algorithm cannot sample it, or if it must not be used."""
    cell.algorithm.check(cell.problem.model, cell.problem.n, cell.problem.temperature)
    cell.problem.try_out(gradients=cell.algorithm.uses_gradients)


class Loop:
    """The state of some runs; `evaluator` has the rows, `bounded_rows` those drawn with replacement."""

    def __init__(
        self, runs: list[Run], evaluator: Evaluator, bounded_rows: BoundedRows | None = None
    ) -> None:
        first = runs[0].cell
        self.problem, self.algorithm = first.problem, first.algorithm
        self.needs: Needs = self.algorithm.needs(self.problem.dimension)
        self.queries = first.queries()
        self.runs = self.all_runs = runs
        theta = np.concatenate([run.start for run in self.runs])
        no = np.zeros(len(theta), np.bool_)
        self.state = State(theta, np.zeros((len(theta), 0)), no, no)
        self.prepared = False  # whether `Algorithm.prepare` has been called
        self.done = self.reserved = 0  # iterations; those of the block under way
        self.evaluator, self.bounded_rows = evaluator, bounded_rows

    def save(self, checkpoint: Path) -> None:
        """Write a checkpoint; ledgers already hold the reservation of the next block's iterations."""
        arrays: dict[str, np.ndarray] = {"theta": self.state.theta, "carried": self.state.carried}
        about: dict[str, Any] = {"done": self.done, "reserved": self.reserved, "runs": []}
        for r, run in enumerate(self.runs):
            arrays[f"draws_{r}"], arrays[f"counts_{r}"] = run.joined()
            states = [{name: g.bit_generator.state for name, g in streams.items()} for streams in run.streams]
            ledger = run.ledger.to_json(with_spent=False)
            name = [run.cell.epsilon, run.seed]
            about["runs"].append({"name": name, "ledger": ledger, "streams": states})
        arrays["about"] = np.array(json.dumps(about, default=np.ndarray.tolist))
        with files.replacing(checkpoint) as temporary, open(temporary, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    def resume(self, checkpoint: Path) -> None:
        """Restore the state of a killed job; its finished runs are left out.

        A reproducible chain repeats the interrupted block with the same random numbers, so its reservation is
        performed rather than forfeited: nothing new is asked. Raises DpmcError for a broken file.
        """
        named = {(run.cell.epsilon, run.seed): run for run in self.runs}
        try:
            # Of a broken file `np.load(path)` would leave the handle open.
            with open(checkpoint, "rb") as file, np.load(file) as saved:
                about = json.loads(str(saved["about"]))
                self.done, self.reserved = about["done"], about["reserved"]
                no = np.zeros(len(saved["theta"]), np.bool_)
                self.state, self.prepared = State(saved["theta"], saved["carried"], no, no), self.done > 0
                self.runs = [named[tuple(known["name"])] for known in about["runs"]]
                for r, (run, known) in enumerate(zip(self.runs, about["runs"], strict=True)):
                    run.ledger = Ledger.from_json(known["ledger"])
                    run.draws, run.counts = [saved[f"draws_{r}"]], [saved[f"counts_{r}"]]
                    for streams, states in zip(run.streams, known["streams"], strict=True):
                        for purpose, state in states.items():
                            streams[purpose].bit_generator.state = state
                    for jitter in run.jitters:
                        jitter.fast_forward(self.done)
                if self.prepared:
                    self.keep_answers()
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            rule = f"cannot be read as a checkpoint ({error}); delete it to start anew"
            raise DpmcError(f"{checkpoint}: {rule}") from None

    def make_chains(
        self,
        checkpoint: Path | None,
        checkpoint_seconds: float,
        progress: Progress | None,
        private_listener: Listener | None,
        finished: Finished | None,
    ) -> None:
        """Make all iterations, in blocks."""
        total = max((run.total for run in self.runs), default=0)
        size, saved = FIRST_BLOCK, time.monotonic()
        self._leave(finished)
        while self.runs:
            # A resumed block is as long as its reservation: the ledgers hold no more and no less.
            m = self.reserved or min(
                size, self._longest_block(), min(run.total for run in self.runs) - self.done
            )
            # Reserve the block in every ledger; after a resumption it is reserved already.
            for run in self.runs:
                if not run.ledger.outstanding_events:
                    run.ledger.reserve(self.queries.total(m, first=self.done == 0))
            self.reserved = m
            if checkpoint is not None and time.monotonic() - saved > checkpoint_seconds:
                self.save(checkpoint)
                saved = time.monotonic()
            began = time.monotonic()
            self.advance(m)
            if private_listener is not None:
                sds = self.noise.sds
                private_listener(np.where(sds == 0.0, np.nan, sds).T)
            seconds = time.monotonic() - began
            size = max(1, m // 2) if seconds > 2.0 * BLOCK_SECONDS else size
            size = 2 * size if seconds < BLOCK_SECONDS else size
            if self._leave(finished) and checkpoint is not None and self.runs and checkpoint.exists():
                self.save(checkpoint)  # without the finished runs
            if progress is not None:
                progress(self.done, total)

    def _longest_block(self) -> int:
        """Return the iterations whose random numbers, drawn beforehand, are within `BLOCK_NUMBERS`."""
        needs, d = self.needs, self.problem.dimension
        each = needs.normals + needs.uniforms + needs.words + (needs.noise_vectors + 2) * d + 5
        return max(1, BLOCK_NUMBERS // (each * len(self.state.theta)))

    def private_data(self, m: int) -> PrivateData:
        """Return the mechanisms for m iterations, with their noise and batches drawn beforehand."""
        normals, gradients = self._numbers("ratio-noise", m), self._numbers("gradient-noise", m)
        self.noise = LabNoise(normals, gradients, [run.shared_noise for run in self.runs])
        words = self._numbers("batch", m)
        return PrivateData(self.evaluator, self.problem.temperature, self.noise, words, self.bounded_rows)

    def advance(self, m: int) -> None:
        """Run m iterations of all runs, keep draws and counts, and record the queries as performed."""
        private = self.private_data(m)
        normal, uniform = self._numbers("proposal", m), self._numbers("component", m)
        with np.errstate(divide="ignore"):
            draws = Draws(normal, uniform, np.log(self._numbers("accept", m)))

        names, model = counted(self.algorithm), self.problem.model
        theta = np.empty((m, *self.state.theta.shape))
        counts = np.empty((m, len(names), len(self.state.theta)), np.int64)
        before = 0 if self.prepared else self._prepare(private, names)
        for i, state in enumerate(iterate(self.algorithm, model, private, self.state, draws)):
            happened = {**private.diagnostics(), **state._asdict()}
            theta[i], counts[i] = state.theta, [happened[name] for name in names]
        counts[0] += before
        self.state = state

        width = self.runs[0].cell.chains
        for r, run in enumerate(self.runs):
            own = slice(r * width, (r + 1) * width)
            run.keep(theta[:, own], counts[:, :, own], self.done)
            run.ledger.perform(self.queries.total(m, first=self.done == 0))
        self.done, self.reserved = self.done + m, 0

    def _prepare(self, private: PrivateData, names: tuple[str, ...]) -> np.ndarray:
        """Let the algorithm prepare; return its counts (kinds, chains), for the first iteration."""
        generators = [generator for run in self.runs for generator in run.beginnings]
        with np.errstate(over="ignore", invalid="ignore"):
            carried = self.algorithm.prepare(self.state.theta, self.problem.model, private, generators)
        self.state, self.prepared = self.state._replace(carried=carried), True
        self.keep_answers()
        none = np.zeros(len(carried), np.int64)
        return np.array([private.diagnostics().get(name, none) for name in names])

    def keep_answers(self) -> None:
        """Give each run its answer, of a method that has one: its chains carry the same."""
        model, chains = self.problem.model, self.runs[0].cell.chains
        for run, carried in zip(self.runs, self.state.carried[::chains], strict=True):
            run.answer = self.algorithm.group(carried, model)
            answered = {name: array for name, (_, array) in run.answer.items()}
            run.remarks = self.algorithm.remarks(answered, model, self.problem.n) if answered else []

    def _numbers(self, purpose: str, m: int) -> np.ndarray:
        """Draw the next random numbers (m, chains, …) of all chains for a purpose, in C order."""
        needs = self.needs
        shape: tuple[int, ...] = {
            "proposal": (needs.normals,),
            "component": (needs.uniforms,),
            "accept": (),
            "batch": (needs.words,),
            "ratio-noise": (),
            "gradient-noise": (needs.noise_vectors, self.problem.dimension),
        }[purpose]
        streams = [streams[purpose] for run in self.runs for streams in run.streams]
        drawn = np.empty((m, len(streams), *shape), np.uint64 if purpose == "batch" else np.float64)
        if drawn.size == 0:
            return drawn
        jitters = [jitter for run in self.runs for jitter in run.jitters]
        for c, generator in enumerate(streams):
            if purpose == "component" and jitters:
                drawn[:, c] = jitters[c].random(m)
            elif purpose in ("component", "accept"):
                drawn[:, c] = generator.random((m, *shape))
            elif purpose == "batch":
                bits = generator.bit_generator.random_raw(m * needs.words)
                drawn[:, c] = bits.reshape(m, needs.words)
            else:
                drawn[:, c] = generator.standard_normal((m, *shape))
        return drawn

    def _leave(self, finished: Finished | None) -> bool:
        """Take out the runs that are done; return whether there were any."""
        over = np.array([run.total == self.done for run in self.runs])
        for run in np.array(self.runs, object)[over]:
            chains = run.finish(self.evaluator.name)
            if finished is not None:
                finished(run.cell, chains)
        if over.any():
            stay = np.repeat(~over, self.runs[0].cell.chains)
            self.state = State(*(part[stay] for part in self.state))
            self.runs = [run for run in self.runs if run.chains is None]
        return bool(over.any())
