"""One run, the chains of one cell and seed: its streams, ledger, draws and checkpoint."""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpmc.algorithms.sampler import Sampler
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.streams import get_state, set_state, stream
from dpmc.data import chain_files
from dpmc.models.fingerprint import digest
from dpmc.privacy.ledger import Ledger
from dpmc.sampling.cell import Cell

#: "component" is for all uniform numbers. Names are keys of streams: changing one changes the draws.
PURPOSES = ("proposal", "component", "accept", "batch", "ratio-noise", "gradient-noise")


def counted(algorithm: Sampler) -> tuple[str, ...]:
    """Return the names of the counts of an iteration, in their order in `Record` and chain files."""
    random_rows = algorithm.public_clip is not None
    return tuple(name for name in chain_files.TOTALS if random_rows or name not in chain_files.RANDOM_ROWS)


class Record(NamedTuple):
    """Positions and counts of m iterations of some chains; clip counts are private diagnostics."""

    theta: np.ndarray  # (m, chains, d)
    counts: np.ndarray  # (m, kinds, chains), kinds as `counted`


@dataclass
class Run:
    """The chains of one cell and seed so far."""

    cell: Cell
    seed: int
    total: int  # iterations of each chain
    thin: int  # every thin-th draw is kept
    ledger: Ledger
    start: np.ndarray  # (chains, d) θ_0
    streams: list[dict[str, np.random.Generator]]  # per chain, by purpose
    jitters: list[Any]  # per chain, its Halton sequence; empty if the algorithm uses none
    draws: list[np.ndarray] = field(default_factory=list)  # blocks (chains, kept, d)
    counts: list[np.ndarray] = field(default_factory=list)  # blocks (kinds, chains, windows of thin)

    def keep(self, record: Record, chains: slice, done: int) -> None:
        """Append these chains' part of a block: every thin-th draw, and counts summed in windows of thin."""
        m, thin = len(record.theta), self.thin
        self.draws.append(record.theta[thin - 1 - done % thin :: thin, chains].transpose(1, 0, 2).copy())
        counts = record.counts[:, :, chains].transpose(1, 2, 0)
        first = np.flatnonzero(np.diff(np.arange(done, done + m) // thin, prepend=-1))
        sums = np.add.reduceat(counts, first, axis=2)
        if done % thin:  # the first window was begun in the block before
            self.counts[-1][:, :, -1] += sums[:, :, 0]
            sums = sums[:, :, 1:]
        if sums.shape[2]:
            self.counts.append(sums)

    def finish(self, evaluator: str) -> chain_files.Chains:
        """Join the blocks and describe the run; `evaluator` is its name, for provenance."""
        cell, problem = self.cell, self.cell.problem
        names = counted(cell.algorithm)
        draws = np.concatenate([np.empty((cell.chains, 0, problem.dimension)), *self.draws], axis=1)
        counts = np.concatenate([np.zeros((len(names), cell.chains, 0), np.int64), *self.counts], axis=2)
        windows = dict(zip(names, counts[:, :, : self.total // self.thin], strict=True))
        random_rows = [windows[name] for name in chain_files.RANDOM_ROWS if name in windows]
        needs = cell.algorithm.needs(problem.dimension)
        attributes = {
            "model": problem.label,
            "method": cell.method,
            "dataset": problem.dataset,
            "epsilon": cell.epsilon,
            "epsilon_kind": cell.epsilon_kind,
            "delta": cell.delta,
            "seed": self.seed,
            "iterations": self.total,
            "budget_iterations": "inf" if cell.budget_iterations is None else cell.budget_iterations,
            "thin": self.thin,
            "status": cell.status(self.total),
            "mode": "lab",
            "n": problem.n,
            "rows_per_evaluation": cell.algorithm.batch_size or problem.n,
            "dimension": problem.dimension,
            "temperature": problem.temperature,
            "accountant": self.ledger.accountant.name,
            "evaluator": evaluator,
            "draws_version": cell.algorithm.draws_version,
            "ratio_evaluations_per_iteration": needs.ratios,
            "gradient_evaluations_per_iteration": needs.gradients,
            "ledger": json.dumps(self.ledger.to_json()),
        }
        return chain_files.Chains(
            start=self.start,
            draws=draws,
            accepted=windows["accepted"],
            diverging=windows["diverging"],
            ratio_clipped=windows["ratio_clipped"],
            gradient_clipped=windows["gradient_clipped"],
            random_rows=np.stack(random_rows) if random_rows else None,
            totals=counts.sum(axis=2),
            attributes=attributes,
            parameters=problem.parameters,
        )


def begin(cell: Cell, seed: int) -> Run:
    """Return a run before its first iteration.

    Raises DpmcError for a seed without start points and for a budget that cannot be kept.
    """
    first, available = seed * cell.chains, len(cell.problem.starts)
    if first + cell.chains > available:
        raise DpmcError(
            f"seed: {seed} needs start points {first} to {first + cell.chains - 1}, "
            f"the data set {cell.problem.dataset} has {available}"
        )
    total = cell.allowed_iterations()
    delta = None if cell.epsilon_kind == "total" else cell.delta
    ledger = Ledger(cell.budget, cell.resolved_accountant(), delta)
    if total > 0:
        ledger.foresee(cell.releases().total(total))
    chains = range(cell.chains)
    halton = cell.algorithm.needs(cell.problem.dimension).halton
    names = stream_names(cell, seed)
    return Run(
        cell=cell,
        seed=seed,
        total=total,
        thin=cell.kept_every(total),
        ledger=ledger,
        start=cell.problem.starts[first : first + cell.chains].copy(),
        streams=[{purpose: stream(*names, c, purpose) for purpose in PURPOSES} for c in chains],
        jitters=[_halton(stream(*names, c, "jitter")) for c in chains if halton],
    )


def identity(cell: Cell, seed: int) -> str:
    """Return a digest, in hexadecimal, of everything that determines the draws of a run.

    Names and what is only shown or kept (`thin`, `most_draws`) are no part of it. Equal runs have equal
    digests. Of two that differ in anything else, neither may repeat the noise of the other, and neither may
    be resumed by the other.
    """
    accountant, first = cell.resolved_accountant(), seed * cell.chains
    return digest(
        cell.problem.digest,
        cell.problem.starts[first : first + cell.chains],
        [cell.algorithm, cell.algorithm.draws_version],
        [cell.epsilon, cell.epsilon_kind, cell.delta, accountant.name, accountant.version],
        [cell.chains, cell.allowed_iterations(), seed],
    )


def stream_names(cell: Cell, seed: int) -> tuple[str | int, ...]:
    """Return what keys the random streams of a run, besides chain and purpose.

    On generated or published rows these are names, so that runs with other hyperparameters have the same
    random numbers. On all other rows that would let two runs be compared without their noise, so there it is
    the run's `identity`.
    """
    from dpmc.data.datasets import is_public

    problem, by_names = cell.problem, cell.streams == "names"
    if by_names or (cell.streams == "auto" and is_public(problem.dataset)):
        return (problem.dataset, problem.label, cell.method, cell.epsilon, seed)
    return (identity(cell, seed),)


def first_carried(run: Run) -> np.ndarray:
    """Return what the run's chains carry into their first iteration (chains, e)."""
    algorithm, d = run.cell.algorithm, run.cell.problem.dimension
    names = stream_names(run.cell, run.seed)
    generators = (stream(*names, c, "state") for c in range(run.cell.chains))
    return np.stack([algorithm.first_carried(d, generator) for generator in generators])


def _halton(generator: np.random.Generator) -> Any:
    """Return a scrambled Halton sequence on (0, 1): base 2, digits permuted at random (Owen 2017).

    The seed is an integer, because SciPy spawns generators, which one made from a Philox key cannot do.
    """
    from scipy.stats import qmc  # slow to import, and rarely needed

    return qmc.Halton(d=1, scramble=True, rng=int(generator.integers(2**63)))


class Checkpoint(NamedTuple):
    """The state of a job in a checkpoint, without its runs."""

    theta: np.ndarray  # (chains, d) of all unfinished runs
    carried: np.ndarray  # (chains, e)
    done: int  # iterations
    reserved: int  # iterations of the block under way


def save(path: Path, runs: Sequence[Run], at: Checkpoint) -> None:
    """Write a checkpoint; ledgers already hold the reservation of the next block's iterations."""
    arrays: dict[str, np.ndarray] = {"theta": at.theta, "carried": at.carried}
    about: dict[str, Any] = {"done": at.done, "reserved": at.reserved, "runs": []}
    for r, run in enumerate(runs):
        if run.draws:
            run.draws = [np.concatenate(run.draws, axis=1)]
            run.counts = [np.concatenate(run.counts, axis=2)]
            arrays[f"draws_{r}"], arrays[f"counts_{r}"] = run.draws[0], run.counts[0]
        states = [{p: get_state(g) for p, g in streams.items()} for streams in run.streams]
        ledger = run.ledger.to_json(with_spent=False)
        name = [run.cell.epsilon, run.seed]
        about["runs"].append({"name": name, "ledger": ledger, "streams": states})
    arrays["about"] = np.array(json.dumps(about))
    with files.replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def resume(path: Path, runs: Sequence[Run]) -> tuple[list[Run], Checkpoint]:
    """Restore runs from a checkpoint; return the unfinished ones and the state of the job.

    A reproducible chain repeats the interrupted block with the same random numbers, so its reservation is
    performed rather than forfeited: nothing new is released. Raises DpmcError for a broken file.
    """
    named = {(run.cell.epsilon, run.seed): run for run in runs}
    left = []
    try:
        # Of a broken file `np.load(path)` would leave the handle open.
        with open(path, "rb") as file, np.load(file) as saved:
            about = json.loads(str(saved["about"]))
            at = Checkpoint(saved["theta"], saved["carried"], about["done"], about["reserved"])
            for r, known in enumerate(about["runs"]):
                run = named[tuple(known["name"])]
                left.append(run)
                run.ledger = Ledger.from_json(known["ledger"])
                if f"draws_{r}" in saved:
                    run.draws, run.counts = [saved[f"draws_{r}"]], [saved[f"counts_{r}"]]
                for streams, states in zip(run.streams, known["streams"], strict=True):
                    for purpose, text in states.items():
                        set_state(streams[purpose], text)
                for jitter in run.jitters:
                    jitter.fast_forward(at.done)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DpmcError(
            f"{path}: cannot be read as a checkpoint ({error}); delete it to start anew"
        ) from None
    return left, at
