"""A sampling job: runs of one method on one model, at one or several ε and with one or several seeds.

A run that is finished is written at once to a waiting file, `.<hash>-seed-<seed>.nc` in its output's folder;
all get their outputs' names when the last one is there. Snakemake deletes the outputs of a job that was
killed, but knows nothing of waiting files, so that a kill loses no finished run. Runs under way are in a
checkpoint, `.checkpoint-<hash>.npz` in the folder of the first output.
"""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmc import sampling, storage

Run = tuple[str, int]  #: ε and seed


@dataclass(frozen=True)
class Job:
    """Cells whose runs advance together: they differ in ε alone. `about` and `outputs` cover all of them."""

    cells: list[sampling.Cell]
    seeds: list[int]
    about: dict[str, dict[str, Any]]  # by ε: attributes of chain files beside what the sampler knows
    outputs: dict[Run, Path]

    def waiting(self, cell: sampling.Cell, seed: int) -> Path:
        """Return where a finished run waits until its job is finished."""
        key = _hash(_settings(cell, self.about[cell.epsilon]))
        return self.outputs[cell.epsilon, seed].parent / f".{key}-seed-{seed}.nc"

    @property
    def checkpoint(self) -> Path:
        """The file that holds the runs under way."""
        settings = [_settings(cell, self.about[cell.epsilon]) for cell in self.cells]
        folder = self.outputs[self.cells[0].epsilon, self.seeds[0]].parent
        return folder / f".checkpoint-{_hash([settings, self.seeds])}.npz"

    def left(self) -> tuple[list[sampling.Cell], list[int]]:
        """Return the cells and seeds that are still to be sampled.

        A checkpoint knows by itself which runs were unfinished. Without one: all seeds and all ε of which any
        run is missing.
        """
        missing = [
            (cell.epsilon, seed)
            for cell in self.cells
            for seed in self.seeds
            if not self.waiting(cell, seed).exists()
        ]
        if missing and self.checkpoint.exists():
            return self.cells, self.seeds
        epsilons, seeds = {epsilon for epsilon, _ in missing}, {seed for _, seed in missing}
        return (
            [cell for cell in self.cells if cell.epsilon in epsilons],
            [seed for seed in self.seeds if seed in seeds],
        )


def run(job: Job, checkpoint_seconds: float, progress: sampling.Progress | None) -> None:
    """Sample what a job still lacks; every run then has its waiting file."""

    def finished(cell: sampling.Cell, chains: storage.Chains) -> None:
        chains.attributes.update(job.about[cell.epsilon])
        storage.write_chains(job.waiting(cell, chains.attributes["seed"]), chains)

    cells, seeds = job.left()
    if cells:
        sampling.sample(cells, seeds, job.checkpoint, checkpoint_seconds, progress, finished=finished)
    job.checkpoint.unlink(missing_ok=True)


def finish(jobs: list[Job]) -> None:
    """Give all waiting files their outputs' names.

    The old names go when all have their new ones, so that a kill in between makes no run again.
    """
    moves = [
        (job.waiting(cell, seed), job.outputs[cell.epsilon, seed])
        for job in jobs
        for cell in job.cells
        for seed in job.seeds
    ]
    for waiting, output in moves:
        with storage.replacing(output) as temporary:
            try:
                os.link(waiting, temporary)
            except OSError:  # a file system without hard links
                shutil.copyfile(waiting, temporary)
    for waiting, _ in moves:
        waiting.unlink()


def _settings(cell: sampling.Cell, about: dict[str, Any]) -> list[Any]:
    """Everything that decides the draws of a cell."""
    problem = cell.problem
    return [
        about,
        [problem.label, problem.dataset, cell.method, cell.epsilon, cell.delta, cell.accountant],
        [cell.iterations, cell.most_iterations, cell.thin, cell.most_draws, cell.algorithm.draws_version],
        problem.digest,
    ]


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
