"""One run, the chains of one cell and seed: its streams, ledger and draws."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpmc.base import Algorithm
from dpmc.common import checks
from dpmc.common.roles import PUBLIC, Role, attributes, declared, derived, fact, facts, working
from dpmc.common.streams import stream
from dpmc.common.version import __version__
from dpmc.data import chain_files
from dpmc.data.problem import Problem, Setting
from dpmc.models.fingerprint import digest
from dpmc.models.trial import check_starts
from dpmc.privacy.ledger import Ledger
from dpmc.sampling.cell import FILE, RELEASE, Cell

#: "component" is for all uniform numbers. Names are keys of streams: changing one changes the draws.
PURPOSES = ("proposal", "component", "accept", "batch", "ratio-noise", "gradient-noise")


def counted(algorithm: Algorithm) -> tuple[str, ...]:
    """Return the names of the counts of an iteration, in their order in chain files."""
    random_rows = algorithm.public_clip is not None
    return tuple(name for name in chain_files.COUNTERS if random_rows or name not in chain_files.RANDOM_ROWS)


def start_digest(start: np.ndarray) -> str:
    """Return the SHA-256 hash of start points (chains, d), in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(start).tobytes()).hexdigest()


@declared
@dataclass(kw_only=True)
class Run:
    """The chains of one cell and seed so far."""

    cell: Cell[Setting] = working()
    seed: int = fact(Role.DRAWS | FILE)
    total: int = fact(FILE | RELEASE, name="iterations", check=checks.whole(0))  # of each chain
    thin: int = fact(FILE | RELEASE | Role.ENTRY, check=checks.whole(1))  # every thin-th draw is kept
    ledger: Ledger = working()
    start: np.ndarray = fact(Role.ENTRY, plain=start_digest, check=checks.digits(64))  # (chains, d) θ_0
    beginnings: list[np.random.Generator] = working()  # per chain, before the first iteration
    shared_noise: np.random.Generator = working()  # of queries that all chains share
    streams: list[dict[str, np.random.Generator]] = working()  # per chain, by purpose
    jitters: list[Any] = working()  # per chain, its Halton sequence; empty if the algorithm uses none
    draws: list[np.ndarray] = working(default_factory=list)  # blocks (chains, kept, d)
    counts: list[np.ndarray] = working(default_factory=list)  # blocks (kinds, chains, windows of thin)
    #: What was asked and answered, by name, with dimensions; of methods that ask once.
    answer: dict[str, tuple[tuple[str, ...], np.ndarray]] = working(default_factory=dict)
    remarks: list[str] = working(default_factory=list)  # on the answer
    chains: chain_files.Chains | None = working(default=None)  # of a finished run

    mode = derived(FILE | RELEASE, lambda run: run.ledger.mode, check=checks.text("release", "release"))
    status = derived(FILE, lambda run: run.cell.status(run.total))
    schema = derived(
        FILE | RELEASE,
        lambda run: chain_files.SCHEMA,
        check=checks.whole(chain_files.SCHEMA, chain_files.SCHEMA),
    )
    dpmc_version = derived(FILE | RELEASE, lambda run: __version__, check=checks.version)
    # The ledger of the run, with the ε spent.
    books = derived(FILE | RELEASE, lambda run: run.ledger.to_json(), name="ledger", check=checks.mapping)

    def __post_init__(self) -> None:
        """Raise DpmcError for a start from which a chain cannot move: of any run, before it spends."""
        check_starts(self.cell.problem.model, self.start, self.seed * self.cell.chains)

    def keep(self, theta: np.ndarray, counts: np.ndarray, done: int) -> None:
        """Append a block (m, chains, d) of draws and counts (m, kinds, chains), thinned and summed."""
        m, thin = len(theta), self.thin
        # Iterations count from 1: the (done + i + 1)-th is kept if `thin` divides it. A copy frees the block.
        self.draws.append(theta[thin - 1 - done % thin :: thin].transpose(1, 0, 2).copy())
        counts = counts.transpose(1, 2, 0)
        # Where a window begins, and at the start of the block, which may lie within one.
        first = np.flatnonzero(np.diff(np.arange(done, done + m) // thin, prepend=-1))
        sums = np.add.reduceat(counts, first, axis=2)
        if done % thin:  # the first window was begun in the block before
            self.counts[-1][:, :, -1] += sums[:, :, 0]
            sums = sums[:, :, 1:]
        if sums.shape[2]:
            self.counts.append(sums)

    def joined(self) -> tuple[np.ndarray, np.ndarray]:
        """Join the blocks: return all draws (chains, kept, d) and counts (kinds, chains, windows) so far."""
        c = self.cell.chains  # an empty block first, for a run without iterations
        none = (
            np.empty((c, 0, self.cell.problem.dimension)),
            np.empty((len(counted(self.cell.algorithm)), c, 0)),
        )
        self.draws = [np.concatenate([none[0], *self.draws], axis=1)]
        self.counts = [np.concatenate([none[1].astype(np.int64), *self.counts], axis=2)]
        return self.draws[0], self.counts[0]

    def finish(self, evaluator: str) -> chain_files.Chains:
        """Return the finished chains with their description; `evaluator` is its name, for provenance."""
        cell, problem = self.cell, self.cell.problem
        names, (draws, counts) = counted(cell.algorithm), self.joined()
        # Without a last window that has no draw; the totals have its counts.
        windows = dict(zip(names, counts[:, :, : self.total // self.thin], strict=True))
        attrs = attributes(facts(cell, FILE) | facts(self, FILE) | {"evaluator": evaluator})
        totals = dict(zip(names, counts.sum(axis=2), strict=True))
        self.chains = chain_files.Chains(
            attrs, self.start, draws, totals, windows, problem.parameters, self.answer, self.remarks
        )
        return self.chains


def begin(cell: Cell[Problem], seed: int) -> Run:
    """Return a run before its first iteration; DpmcError without start points, or beyond the budget."""
    total = cell.allowed_iterations()
    delta = None if cell.epsilon_kind == "total" else cell.delta
    ledger = Ledger(cell.budget, cell.resolved_accountant(), delta)
    if total > 0:
        # Fixed before the first answer, as an accountant that is no filter needs.
        ledger.foresee(cell.queries().total(total))
    fresh = partial(stream, *stream_names(cell, seed))
    return begun(cell, ledger, fresh, PURPOSES, seed, total, cell.kept_every(total))


def begun(
    cell: Cell[Any],
    ledger: Ledger,
    fresh: Callable[..., np.random.Generator],
    purposes: Sequence[str],
    seed: int,
    total: int,
    thin: int,
) -> Run:
    """Return a run before its first iteration; `fresh(chain, purpose)` makes its generators."""
    chains, jitters = range(cell.chains), []
    if cell.algorithm.needs(cell.problem.dimension).halton:
        from scipy.stats import qmc  # slow to import, and rarely needed

        # Scrambled Halton sequences in base 2, digits permuted at random (Owen 2017). The seeds are integers,
        # because SciPy spawns generators, which one made from a Philox key cannot do.
        seeds = [int(fresh(c, "jitter").integers(2**63)) for c in chains]
        jitters = [qmc.Halton(d=1, scramble=True, rng=number) for number in seeds]
    return Run(
        cell=cell,
        seed=seed,
        total=total,
        thin=thin,
        ledger=ledger,
        start=cell.problem.start_of(seed, cell.chains),
        beginnings=[fresh(c, "state") for c in chains],
        shared_noise=fresh("shared-noise"),
        streams=[{purpose: fresh(c, purpose) for purpose in purposes} for c in chains],
        jitters=jitters,
    )


def run_identity(cell: Cell[Problem], seed: int) -> str:
    """Return a digest of all that determines a run's draws, no labels.

    Where it keys the random streams (`stream_names`), runs that differ share no noise.
    """
    return digest(facts(cell, Role.DRAWS), seed, cell.problem.start_of(seed, cell.chains))


def file_identity(cell: Cell[Problem], seed: int) -> str:
    """Return a digest of everything that determines the content of a run's file."""
    return digest(facts(cell, PUBLIC), run_identity(cell, seed))


def stream_names(cell: Cell[Problem], seed: int) -> tuple[str | int, ...]:
    """Return what keys the random streams of a run, besides chain and purpose.

    By the cell's `streams`, "auto": on generated or published rows these are names, so that runs with other
    hyperparameters have the same random numbers. On all other rows that would let two runs be compared
    without their noise, so there it is the run's `run_identity`. "names" and "content" say it for all rows.
    """
    from dpmc.data.datasets import is_public

    problem, by_names = cell.problem, cell.streams == "names"
    if by_names or (cell.streams == "auto" and is_public(problem.dataset)):
        return (problem.dataset, problem.label, cell.method, cell.epsilon, seed)
    return (run_identity(cell, seed),)
