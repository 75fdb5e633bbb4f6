"""The sampling loop: budget → iterations → chains, in blocks, with progress, checkpoints and resumption.

All runs (ε and seeds) of a method on a model step together and leave when they are done. Each has its own
ledger, random streams and arithmetic. So a run is bit-identical whether it is computed alone or with others,
in blocks of any size, without interruption or after a kill.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dpmc.base import Draws, Needs, State
from dpmc.common.threads import one_blas_thread
from dpmc.data import chain_files
from dpmc.evaluators.calls import without_warnings
from dpmc.evaluators.poisson import bounded_rows
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise, RecordedNoise
from dpmc.sampling.cell import LEAST_ITERATIONS as LEAST_ITERATIONS
from dpmc.sampling.cell import Cell as Cell
from dpmc.sampling.run import Checkpoint, Record, begin, counted, first_carried, resume, save

BLOCK_SECONDS = 0.5  #: blocks grow until they take about this long
BLOCK_NUMBERS = 2_000_000  #: random numbers drawn beforehand per block, at most (16 MB)
FIRST_BLOCK = 8  #: iterations

Progress = Callable[[int, int], None]
Listener = Callable[[np.ndarray], None]
Finished = Callable[[Cell, chain_files.Chains], None]


def sample(
    cells: Cell | Sequence[Cell],
    seeds: Sequence[int],
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 20.0,
    progress: Progress | None = None,
    private_listener: Listener | None = None,
    finished: Finished | None = None,
) -> list[chain_files.Chains]:
    """Return the finished chains of each cell and seed; cells share problem, method and hyperparameters.

    `checkpoint`: file to which the state is saved every `checkpoint_seconds`, and from which a killed job is
    resumed; the caller deletes it. Runs that had finished before the kill are not returned again: the caller
    has got them by `finished(cell, chains)`. `progress(done, total)` is called after every block.

    `private_listener(sds)` is called after every block with the standard deviations of the log ratios' noise
    (chains, iterations), NaN if none was drawn. They are private diagnostics: for DP Barker √(2 − s²) is a
    function of the rows in the batch, and no ε covers it. Use it for generated or public data only, as the
    search of hyperparameters does.

    Raises DpmcError for a seed without a start point, a budget that cannot be kept, and a model whose methods
    return wrong results (`models.trial`).
    """
    cells = [cells] if isinstance(cells, Cell) else list(cells)
    with one_blas_thread(), without_warnings():
        loop = Loop(cells, seeds)
        if checkpoint is not None and checkpoint.exists():
            loop.resume(checkpoint)
        loop.run(checkpoint, checkpoint_seconds, progress, private_listener, finished)
    return [loop.chains[id(run)] for run in loop.all_runs if id(run) in loop.chains]


class Loop:
    """The state of all runs of some cells and seeds."""

    def __init__(self, cells: Sequence[Cell], seeds: Sequence[int]) -> None:
        first = cells[0]
        self.problem, self.algorithm = first.problem, first.algorithm
        self.needs: Needs = self.algorithm.needs(self.problem.dimension)
        self.runs = self.all_runs = [begin(cell, seed) for cell in cells for seed in seeds]
        self.chains: dict[int, chain_files.Chains] = {}
        theta = np.concatenate([run.start for run in self.runs])
        no = np.zeros(len(theta), np.bool_)
        self.state = State(theta, np.concatenate([first_carried(run) for run in self.runs]), no, no)
        self.done = self.reserved = 0
        self.problem.try_out(gradients=self.needs.gradients > 0)
        self.evaluator = self.problem.evaluator
        clip = self.algorithm.public_clip
        self.bounded_rows = None
        if clip is not None:
            problem = self.problem
            self.bounded_rows = bounded_rows(problem.model, problem.rows, problem.temperature, clip)

    def resume(self, checkpoint: Path) -> None:
        """Restore the state of a killed job; its finished runs are left out."""
        self.runs, at = resume(checkpoint, self.runs)
        no = np.zeros(len(at.theta), np.bool_)
        self.state = State(at.theta, at.carried, no, no)
        self.done, self.reserved = at.done, at.reserved

    def save(self, checkpoint: Path) -> None:
        """Write a checkpoint."""
        at = Checkpoint(self.state.theta, self.state.carried, self.done, self.reserved)
        save(checkpoint, self.runs, at)

    def run(
        self,
        checkpoint: Path | None,
        checkpoint_seconds: float,
        progress: Progress | None,
        private_listener: Listener | None,
        finished: Finished | None,
    ) -> None:
        """Run all blocks."""
        total = max((run.total for run in self.runs), default=0)
        size, saved = FIRST_BLOCK, time.monotonic()
        self._leave(finished)
        while self.runs:
            m = self.reserved or min(
                size, self._longest_block(), min(run.total for run in self.runs) - self.done
            )
            self._reserve(m)
            if checkpoint is not None and time.monotonic() - saved > checkpoint_seconds:
                self.save(checkpoint)
                saved = time.monotonic()
            began = time.monotonic()
            self._advance(m, private_listener)
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

    def _reserve(self, m: int) -> None:
        """Reserve a block in every ledger; after a resumption it is reserved already."""
        cost = self.runs[0].cell.releases().total(m, first=self.done == 0)
        for run in self.runs:
            if not run.ledger.outstanding_events:
                run.ledger.reserve(cost)
        self.reserved = m

    def _advance(self, m: int, private_listener: Listener | None) -> None:
        """Run m iterations of all runs, keep draws and counts, and record the releases as performed."""
        normals, gradients = self._numbers("ratio-noise", m), self._numbers("gradient-noise", m)
        noise = (LabNoise if private_listener is None else RecordedNoise)(normals, gradients)
        words = self._numbers("batch", m)
        private = PrivateData(self.evaluator, self.problem.temperature, noise, words, self.bounded_rows)
        record = self._iterate(m, private)
        if isinstance(noise, RecordedNoise) and private_listener is not None:
            private_listener(noise.sds.T)
        cost = self.runs[0].cell.releases().total(m, first=self.done == 0)
        chains = self.runs[0].cell.chains
        for r, run in enumerate(self.runs):
            run.keep(record, slice(r * chains, (r + 1) * chains), self.done)
            run.ledger.perform(cost)
        self.done, self.reserved = self.done + m, 0

    def _iterate(self, m: int, private: PrivateData) -> Record:
        """Make m iterations of every chain; return positions and counts."""
        normal, uniform = self._numbers("proposal", m), self._numbers("component", m)
        with np.errstate(divide="ignore"):
            log_uniform = np.log(self._numbers("accept", m))
        state, model, step = self.state, self.problem.model, self.algorithm.step
        chains, d = state.theta.shape
        names = counted(self.algorithm)
        record = Record(np.empty((m, chains, d)), np.empty((m, len(names), chains), np.int64))
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(m):
                private.begin(i)
                state = step(state, model, private, Draws(normal[i], uniform[i], log_uniform[i]))
                record.theta[i] = state.theta
                happened = {**private.diagnostics(), **state._asdict()}
                record.counts[i] = [happened[name] for name in names]
        self.state = state
        return record

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
        if not over.any():
            return False
        for run in (run for run, is_over in zip(self.runs, over, strict=True) if is_over):
            chains = self.chains[id(run)] = run.finish(self.evaluator.name)
            if finished is not None:
                finished(run.cell, chains)
        stay = np.repeat(~over, self.runs[0].cell.chains)
        self.state = State(*(part[stay] for part in self.state))
        self.runs = [run for run, is_over in zip(self.runs, over, strict=True) if not is_over]
        return True
