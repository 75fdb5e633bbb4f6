"""A sampling job: runs of one method on one model, at one or several ε and with one or several seeds.

A finished run is written at once to a waiting file, `.<hash>-seed-<seed>.nc` in its output's folder. All
files get their output names when the last run is finished. Snakemake deletes the outputs of a killed job but
not waiting files, so a kill loses no finished run. Runs under way are in a checkpoint,
`.checkpoint-<hash>.npz` in the first output's folder; `.lock-<hash>` beside it is that of `alone_with_jobs`.
"""

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpmc.common import files
from dpmc.common.progress import Progress
from dpmc.data import chain_files
from dpmc.data.problem import Problem
from dpmc.models.fingerprint import digest
from dpmc.sampling import loop
from dpmc.sampling.cell import Cell
from dpmc.sampling.run import file_identity


@dataclass(frozen=True)
class Job:
    """Cells whose runs advance together: they differ only in ε."""

    cells: list[Cell[Problem]]
    seeds: list[int]
    outputs: dict[tuple[str, int], Path]  # by ε and seed

    def waiting(self, cell: Cell[Problem], seed: int) -> Path:
        """Return the waiting file of a finished run, used until its job is finished."""
        folder = self.outputs[cell.epsilon, seed].parent
        return folder / f".{file_identity(cell, seed)[:16]}-seed-{seed}.nc"

    @property
    def checkpoint(self) -> Path:
        """Return the checkpoint file of the runs under way."""
        settings = [file_identity(cell, seed) for cell in self.cells for seed in self.seeds]
        folder = self.outputs[self.cells[0].epsilon, self.seeds[0]].parent
        return folder / f".checkpoint-{digest(settings)[:16]}.npz"

    def left(self) -> tuple[list[Cell[Problem]], list[int]]:
        """Return cells and seeds to be sampled: with a checkpoint, which lists them, all."""
        runs = itertools.product(self.cells, self.seeds)
        missing = [(cell, seed) for cell, seed in runs if not self.waiting(cell, seed).exists()]
        if missing and self.checkpoint.exists():
            return self.cells, self.seeds
        epsilons, seeds = {cell.epsilon for cell, _ in missing}, {seed for _, seed in missing}
        cells = [cell for cell in self.cells if cell.epsilon in epsilons]
        return cells, [seed for seed in self.seeds if seed in seeds]


@contextmanager
def alone_with_jobs(jobs: list[Job]) -> Iterator[None]:
    """Let other processes with the same jobs wait, if the file system has locks."""
    checkpoint = jobs[0].checkpoint
    path = checkpoint.with_name(checkpoint.stem.replace("checkpoint", "lock"))
    waiting = f"{path.parent}: waiting for another process that samples these chains"
    with files.alone(path, waiting, required=False):
        yield


def sample_job(job: Job, checkpoint_seconds: float, progress: Progress | None) -> None:
    """Sample the missing runs of a job; afterwards every run has its waiting file."""

    def finished(cell: Cell[Problem], chains: chain_files.Chains) -> None:
        chain_files.write_chains(job.waiting(cell, chains.attrs["seed"]), chains)

    cells, seeds = job.left()
    if cells:
        loop.sample(cells, seeds, job.checkpoint, checkpoint_seconds, progress, finished=finished)
    job.checkpoint.unlink(missing_ok=True)


def finish(jobs: list[Job]) -> None:
    """Give waiting files their output names, then remove the old ones: no run is repeated after a kill."""
    moves = [
        (job.waiting(cell, seed), job.outputs[cell.epsilon, seed])
        for job in jobs
        for cell, seed in itertools.product(job.cells, job.seeds)
    ]
    for waiting, output in moves:
        with files.replacing(output) as temporary:
            try:
                os.link(waiting, temporary)
            except OSError:  # a file system without hard links
                shutil.copyfile(waiting, temporary)
    for waiting, _ in moves:
        waiting.unlink()
