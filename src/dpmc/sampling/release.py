"""The loop of a release: integer sums, secret noise, a budget taken from the ledger of the data set.

Algorithms, mechanisms, accountants and iterations are those of `loop`. A block of iterations is reserved on
the disk before it is computed, if there is a file for it. Whoever resumes a killed release forfeits the block
under way and draws new noise, so that the chain is shorter by it.

Nothing but draws depends on the rows: no message, no number of iterations, no size of a file. Time and memory
may (docs/explanation/threat-model.md).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import secrets
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpmc.algorithms.dp_barker import DPBarker
from dpmc.base import Algorithm, State, SummaryModel
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.common.threads import one_blas_thread
from dpmc.common.version import __version__
from dpmc.data import chain_files, release_files
from dpmc.evaluators.calls import silent
from dpmc.evaluators.lattice import LARGEST_SCALE, Lattice, LatticeEvaluator
from dpmc.models.fingerprint import public_values
from dpmc.privacy import secure_noise
from dpmc.privacy.data_ledger import DataLedger
from dpmc.privacy.lattice import SUM, Price, lattice_of, price_of
from dpmc.privacy.ledger import BudgetExceeded, ReleaseLedger
from dpmc.privacy.mechanisms import PrivateData
from dpmc.sampling.cell import Cell
from dpmc.sampling.loop import Loop
from dpmc.sampling.run import Run, counted

if TYPE_CHECKING:
    import xarray

BLOCKS = 200  #: of a run of so many iterations, at least: a kill loses at most a two-hundredth of them
ONE_AT_A_TIME = threading.Lock()  #: silence redirects the streams of the whole process
PUBLIC = ("proposal", "component", "accept")  #: purposes of random numbers that need not be secret
FORMAT = "dpmc unfinished release, format 2"

Report = Callable[[int, int], None]  # iterations done, and in all


def release(
    cell: Cell,
    rows: np.ndarray,
    values: Mapping[str, Any],
    ledger: DataLedger,
    output: Path | None = None,
    report: Report | None = None,
) -> xarray.DataTree:
    """Run the chains of a cell on private rows (n, columns); return the tree of a release.

    The cell's problem has zeros in place of the rows (`datasets.without_rows`). `values` are the
    hyperparameters as given. The run's ε and δ are taken from `ledger` before anything is computed from the
    rows. With `output` the tree is also written there. Until then `OUTPUT.partial` has what was released, and
    a call with the same arguments continues it; no further ε is taken.

    Raises DpmcError, before anything is taken, for a method that cannot be released, a budget that cannot be
    kept, a model that must not be used, an output that exists, and a file of another run.
    """
    secure_noise.require()
    asked, (cell, price) = cell, priced(cell, values)
    cell.problem.try_out(gradients=cell.algorithm.needs(cell.problem.dimension).gradients > 0)
    about = facts(asked, values)
    wanted = {**about, "budget": [float(asked.epsilon), asked.delta]}
    with ONE_AT_A_TIME, one_blas_thread(), alone(output):
        run, partial, unfinished = begin_release(cell, price), None, None
        name = secrets.token_hex(16)  # by which the entry of a killed run is found again
        if output is not None:
            partial = output.with_name(f"{output.name}.partial")
            unfinished = read_partial(partial, wanted)
            if unfinished is None:
                write_partial(partial, {}, {"facts": wanted, "run": name})
            else:
                name = unfinished["run"]
        entry = entry_of(name, ledger, unfinished)
        if entry is None:
            try:
                entry = ledger.take(float(asked.epsilon), asked.delta, {**about, "run": name})
            except BudgetExceeded:  # nothing was taken; after another error it may have been, by this name
                if partial is not None:
                    partial.unlink()
                raise
        with silent():
            loop = ReleaseLoop(run, rows, entry, partial)
            if unfinished is not None and "theta" in unfinished:
                loop.resume_from(unfinished)
        loop.make(report)
        tree = tree_of(asked, run, loop, values)
        if output is not None and partial is not None:
            release_files.write(output, tree)
            partial.unlink()
    return tree


def priced(cell: Cell, values: Mapping[str, Any]) -> tuple[Cell, Price]:
    """Return a cell with the budget that prices leave, and the price of its run.

    Noise that follows from the budget, because the hyperparameters `values` do not have it, follows from that
    which is left. It is more than that of the whole budget, whose price is no smaller.

    Raises DpmcError for a cell without a total budget, and for releases without Gaussian noise.
    """
    if cell.rows_per_person > 1:
        raise DpmcError("rows_per_person: a release protects single rows; give 1")
    if cell.epsilon == "inf" or cell.epsilon_kind != "total":
        which = "inf" if cell.epsilon == "inf" else "per iteration"
        raise DpmcError(f"epsilon: {which}: a release needs a finite epsilon of the whole run")
    problem, epsilon = cell.problem, float(cell.epsilon)
    lattice = lattice_of(cell.releases().total(1), problem.n)  # raises for what cannot be released
    if largest_scale(cell.algorithm, lattice) > LARGEST_SCALE:
        raise DpmcError("clip_factor: is too small: each answer would be a rejection")
    cell.require_enough()
    most = cell.releases().total(cell.allowed_iterations())
    cell.algorithm.check(problem.model)
    price = price_of(most, problem.n, problem.dimension, summaries_of(cell), epsilon, cell.delta)
    left = math.nextafter(epsilon - price.epsilon, 0.0) if price.epsilon else epsilon
    cell = dataclasses.replace(
        cell,
        epsilon=canonical_epsilon(left),
        delta=math.nextafter(cell.delta - price.delta, 0.0),
    )
    cell = recalibrated(cell, values)
    cell.require_enough()
    cell.kept_every(cell.allowed_iterations())
    return cell, price


def largest_scale(algorithm: Algorithm, lattice: Lattice) -> float:
    """Return the largest scale of a test's noise that the rows may call for; 0 if they call for none."""
    if not isinstance(algorithm, DPBarker):
        return 0.0
    return math.sqrt(2.0 * algorithm.batch_size) * lattice.ratio / algorithm.clip_factor


def summaries_of(cell: Cell) -> int:
    """Return how many summaries of a row are released; 0 if none are."""
    if not any(event.name == SUM for event in cell.releases().once):
        return 0
    return cast(SummaryModel, cell.problem.model).summary_count


def recalibrated(cell: Cell, values: Mapping[str, Any]) -> Cell:
    """Return a cell with the noise that its budget allows, unless the hyperparameters `values` have noise."""
    algorithm: Any = cell.algorithm
    if not algorithm.calibrates_run:
        return cell
    made = algorithm.calibrate(dict(values), float(cell.epsilon), cell.delta, cell.problem.n)
    noise = {key: value for key, value in made.items() if key not in values}
    return dataclasses.replace(cell, algorithm=dataclasses.replace(algorithm, **noise))


def facts(cell: Cell, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the public facts of a run, for its entry in the ledger; a resumed run must have equal ones."""
    problem = cell.problem
    start = np.ascontiguousarray(problem.starts[: cell.chains]).tobytes()
    about = {
        "model": problem.model_id,
        "model_values": public_values(problem.model, problem.rows.shape[1]),
        "method": cell.method,
        "hyperparameters": dict(values),
        "n": problem.n,
        "columns": problem.rows.shape[1],
        "temperature": problem.temperature,
        "accountant": cell.resolved_accountant().name,
        "chains": cell.chains,
        "iterations": cell.iterations,
        "thin": cell.thin,
        "start": hashlib.sha256(start).hexdigest(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(about))
    return plain


def begin_release(cell: Cell, price: Price) -> Run:
    """Return a run before its first iteration, with fresh public random numbers."""
    available, d, chains = len(cell.problem.starts), cell.problem.dimension, range(cell.chains)
    if available < cell.chains:
        raise DpmcError(f"chains: {cell.chains} need as many start points, there are {available}")
    total = cell.allowed_iterations()
    ledger = ReleaseLedger(cell.budget, cell.resolved_accountant())
    ledger.prices = (price.to_json(),)
    ledger.foresee(cell.releases().total(total))
    jitters = []
    if cell.algorithm.needs(d).halton:
        from scipy.stats import qmc  # slow to import, and rarely needed

        jitters = [qmc.Halton(d=1, scramble=True, rng=secrets.randbits(128)) for _ in chains]
    return Run(
        cell=cell,
        seed=0,
        total=total,
        thin=cell.kept_every(total),
        ledger=ledger,
        start=cell.problem.starts[: cell.chains].copy(),
        beginnings=[fresh_generator() for _ in chains],
        shared_noise=fresh_generator(),  # not used: only the lab draws noise from generators
        streams=[{purpose: fresh_generator() for purpose in PUBLIC} for _ in chains],
        jitters=jitters,
    )


def fresh_generator() -> np.random.Generator:
    """Return a generator of public random numbers, seeded with 256 bits of the operating system's entropy."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(secrets.randbits(256), pool_size=8)))


class ReleaseLoop(Loop):
    """The state of one run that is released."""

    def __init__(self, run: Run, rows: np.ndarray, entry: dict[str, Any], partial: Path | None) -> None:
        problem = run.cell.problem
        lattice = lattice_of(run.cell.releases().total(1), problem.n)
        super().__init__([run], LatticeEvaluator(problem.model, rows, lattice))
        self.run, self.entry, self.partial = run, entry, partial
        self.planned, self.lost = run.total, 0  # iterations; those forfeited

    def private_data(self, m: int) -> PrivateData:
        """Return the mechanisms for m iterations, whose noise and batches are drawn when they are needed."""
        words = np.zeros((m, len(self.state.theta), self.needs.words), np.uint64)  # only their shape is used
        noise = secure_noise.SecureNoise()
        return PrivateData(self.evaluator, self.problem.temperature, noise, words)

    def make(self, report: Report | None) -> None:
        """Make all iterations that are left, in blocks of one size, each reserved before it is computed."""
        size = max(1, self.planned // BLOCKS)
        self.save_partial()
        if self.done < self.run.total and not self.prepared:
            self.prepare_alone()
        while self.done < self.run.total:
            m = min(size, self.run.total - self.done)
            self.run.ledger.reserve(self.releases.total(m, first=self.done == 0))
            self.reserved = m
            self.save_partial()
            with silent():
                self.advance(m)
            if report is not None:
                report(self.done, self.run.total)
        self.save_partial()

    def prepare_alone(self) -> None:
        """Make the releases before the first iteration in a block of their own, if there are any.

        Raises DpmcError if they were made before, were lost in a kill, and cannot be paid for again.
        """
        once, self.releases = self.releases.once, self.releases._replace(once=())
        if not once:
            return
        try:
            # Without releases in the iterations the budget is for one alone, whatever it leaves.
            if not self.releases.each and self.run.ledger.spent_events:
                raise BudgetExceeded
            self.run.ledger.reserve(once)
        except BudgetExceeded:
            raise DpmcError(
                f"{self.partial}: the process stopped while it made the release before the first iteration, "
                "which is paid for and lost; nothing is left for another one. Remove the file; a new release "
                "takes its epsilon from the ledger of the data set again"
            ) from None
        self.save_partial()
        with silent():
            self._prepare(self.private_data(1), ())
        self.run.ledger.perform(once)
        self.save_partial()

    def save_partial(self) -> None:
        """Write what was released, and the ledger with the block under way; wait until it is on the disk."""
        if self.partial is None:
            return
        arrays: dict[str, np.ndarray] = {"theta": self.state.theta, "carried": self.state.carried}
        run = self.run
        if run.draws:
            run.draws = [np.concatenate(run.draws, axis=1)]
            run.counts = [np.concatenate(run.counts, axis=2)]
            arrays |= {"draws": run.draws[0], "counts": run.counts[0]}
        told = {key: value for key, value in self.entry["about"].items() if key != "run"}
        about = {
            "facts": {**told, "budget": [self.entry["epsilon"], self.entry["delta"]]},
            "run": self.entry["about"]["run"],
            "entry": self.entry,
            "ledger": run.ledger.to_json(with_spent=False),
            "done": self.done,
            "reserved": self.reserved,
            "prepared": self.prepared,
            "lost": self.lost,
            "total": run.total,
        }
        write_partial(self.partial, arrays, about)

    def resume_from(self, unfinished: Mapping[str, Any]) -> None:
        """Restore what a killed release had released; forfeit its block under way.

        Without that block, there are as many iterations fewer, unless iterations release nothing. If it was
        that of the releases before the first iteration, one iteration is lost: it pays for these.
        """
        run, about = self.run, unfinished
        run.ledger = ReleaseLedger.from_json(about["ledger"])
        began = bool(run.ledger.outstanding_events)
        run.ledger.forfeit()
        self.done, no = about["done"], np.zeros(len(about["theta"]), np.bool_)
        self.state, self.prepared = State(about["theta"], about["carried"], no, no), about["prepared"]
        if "draws" in about:
            run.draws, run.counts = [about["draws"]], [about["counts"]]
        lost = about["reserved"] if began else 0
        if self.prepared:
            self.releases = self.releases._replace(once=())
        elif began and self.releases.once and self.releases.each:
            lost += 1
        lost = min(lost, about["total"] - self.done)
        self.lost = about["lost"] + lost
        run.total = about["total"] - lost


def write_partial(partial: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Write an unfinished release; wait until it is on the disk."""
    text = np.array(json.dumps({"format": FORMAT, **about}))
    with files.replacing(partial) as temporary, open(temporary, "wb") as file:
        np.savez(file, about=text, **arrays)  # type: ignore[arg-type]
        file.flush()
        files.sync(file, temporary)
    with open(partial, "rb") as file:
        files.sync(file, partial)  # its new name


def read_partial(partial: Path, facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the content of an unfinished release; None if there is none.

    Raises DpmcError for a broken file and for one of a run with other facts.
    """
    if not partial.exists():
        return None
    try:
        with open(partial, "rb") as file, np.load(file) as saved:
            content = {name: saved[name] for name in saved.files if name != "about"}
            content |= json.loads(str(saved["about"]))
        if content["format"] != FORMAT:
            raise ValueError("another format")
        theirs = content["facts"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DpmcError(
            f"{partial}: cannot be read as an unfinished release ({error}); what it took from the ledger is "
            "spent. Remove it to start anew"
        ) from None
    if theirs != facts:
        changed = ", ".join(sorted(key for key in facts if theirs.get(key) != facts[key]))
        raise DpmcError(
            f"{partial}: is of a run with other arguments ({changed}); name another output, or remove it: "
            "what it took from the ledger is spent"
        )
    return content


def entry_of(name: str, ledger: DataLedger, unfinished: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the entry that a killed run took from the ledger; None if it was killed before.

    Raises DpmcError if its unfinished release has an entry that is not in this ledger.
    """
    if unfinished is not None and "entry" in unfinished:
        ledger.verify(unfinished["entry"])
        return dict(unfinished["entry"])
    entries = DataLedger.open(ledger.path).entries
    return next((entry for entry in entries if entry["about"].get("run") == name), None)


@contextmanager
def alone(output: Path | None) -> Iterator[None]:
    """Let other processes with the same output wait; raise DpmcError if it exists then.

    Two processes that continued the same file would both release its next block.
    """
    if output is None:
        yield
        return
    path = output.with_name(f".{output.name}.lock")
    with files.alone(path, f"{output}: waiting for another process that makes this release"):
        if output.exists():
            raise DpmcError(f"{output}: exists; name another output, since each release spends its epsilon")
        yield


def tree_of(cell: Cell, run: Run, loop: ReleaseLoop, values: Mapping[str, Any]) -> xarray.DataTree:
    """Return a finished run in ArviZ's groups, with what ε covers and public facts alone.

    `cell` has the run's whole ε and δ, `run.cell` what prices leave of them.
    """
    import xarray

    problem, thin, done = run.cell.problem, run.thin, loop.done
    d, c, k = problem.dimension, cell.chains, loop.done // run.thin
    draws = np.concatenate([np.empty((c, 0, d)), *run.draws], axis=1)
    names = counted(cell.algorithm)
    counts = np.concatenate([np.zeros((len(names), c, 0), np.int64), *run.counts], axis=2)
    accepted, diverging = (counts[names.index(name)] for name in ("accepted", "diverging"))
    labels = {
        "chain": np.arange(c),
        "draw": thin * np.arange(1, k + 1),
        "parameter": np.array(problem.parameters or range(d)),
    }
    root = {
        "mode": ReleaseLedger.mode,
        "schema": chain_files.SCHEMA,
        "dpmc_version": __version__,
        "opendp_version": version("opendp"),
        "model": problem.label,
        "method": cell.method,
        "hyperparameters": json.dumps(dict(values), sort_keys=True),
        "epsilon": cell.epsilon,
        "delta": cell.delta,
        "accountant": run.ledger.accountant.name,
        "n": problem.n,
        "dimension": d,
        "temperature": problem.temperature,
        "chains": c,
        "thin": thin,
        "iterations": done,
        "forfeited": loop.lost,
        "ledger": json.dumps(run.ledger.to_json()),
        "data_ledger": json.dumps(loop.entry, sort_keys=True),
    }
    # The call that makes a regression has its centres, scales, levels and prior, which its readers need.
    if release_files.is_description(text := getattr(problem.model, "description", None)):
        root["description"] = text
    library = {"inference_library": "dpmc", "inference_library_version": __version__}
    along = ("chain", "draw")
    statistics = {
        "acceptance_rate": (along, accepted[:, :k] / thin),
        "diverging": (along, diverging[:, :k] > 0),
    }
    totals = {"accepted_total": accepted.sum(axis=1), "diverging_total": diverging.sum(axis=1)}

    def group(variables: Any, dims: tuple[str, ...], more: Mapping[str, Any]) -> xarray.Dataset:
        return xarray.Dataset(variables, {dim: labels[dim] for dim in dims}, {**library, **more})

    posterior, start = (*along, "parameter"), ("chain", "parameter")
    return xarray.DataTree.from_dict(
        {
            "/": xarray.Dataset(attrs=root),
            "/posterior": group({"theta": (posterior, draws)}, posterior, {}),
            "/sample_stats": group(statistics, along, totals),
            "/constant_data": group({"theta_0": (start, run.start)}, start, {}),
        }
    )
