"""The loop of a release: integer sums, secret noise, a budget taken from the ledger of the data set.

Algorithms, mechanisms, accountants and iterations are those of `loop`. A block of iterations is reserved on
the disk before it is computed, if there is a file for it. Whoever resumes a killed release forfeits the block
under way and draws new noise. A run pays for a few spare blocks, which make up for forfeited ones and are
left out of every run (`Plan`), so that its file does not tell whether it was killed.

Draws and their acceptance depend on the rows; messages, numbers of iterations and sizes of files do not. Time
and memory may, and with them whether a run that is killed more often than it has spare blocks ends in a file
(docs/explanation/threat-model.md).
"""

from __future__ import annotations

import dataclasses
import json
import math
import secrets
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from dpmc.algorithms.hyperparameters import calibrated
from dpmc.base import State, SummaryModel
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.roles import Role, attributes, facts, public_facts
from dpmc.common.streams import canonical_epsilon
from dpmc.common.threads import one_blas_thread
from dpmc.common.values import not_above_text
from dpmc.data.chain_files import Group, grouped
from dpmc.data.problem import Setting
from dpmc.evaluators.calls import silent
from dpmc.evaluators.lattice import LARGEST_SCALE, LatticeEvaluator
from dpmc.models.fingerprint import digest
from dpmc.privacy import secure_noise
from dpmc.privacy.data_ledger import DataLedger
from dpmc.privacy.events import counts, from_counts
from dpmc.privacy.lattice import SUM, Price, lattice_of, price_of
from dpmc.privacy.ledger import BudgetExceeded, ReleaseLedger
from dpmc.privacy.mechanisms import PrivateData
from dpmc.releases import files as release_files
from dpmc.releases.facts import Published, block_of, spare_of
from dpmc.sampling.cell import LEAST_ITERATIONS, Cell
from dpmc.sampling.loop import Loop, try_cell
from dpmc.sampling.run import Run, begun, counted

if TYPE_CHECKING:
    import xarray

ONE_AT_A_TIME = threading.Lock()  #: silence redirects the streams of the whole process
PUBLIC = ("proposal", "component", "accept")  #: purposes of random numbers that need not be secret
FORMAT = "dpmc unfinished release, format 3"


Report = Callable[[int, int], None]  # iterations done, and in all


class Plan(NamedTuple):
    """How many iterations a run makes and pays for. It follows from public numbers, before the first one.

    Whether a process is killed by a time limit depends on its run time, and that on the rows. So a file has
    `made` iterations and says that `paid` were spent, however many of the others were lost in kills.
    """

    made: int  # of each chain, in the file
    paid: int  # `made`, and spare ones
    block: int  # iterations that are reserved and computed together
    thin: int  # every thin-th draw is kept

    @classmethod
    def of(cls, cell: Cell[Setting], resumed: bool) -> Plan:
        """Return the plan of a run, with spare iterations if it is resumed; DpmcError beyond the budget."""
        made, most, queries = cell.allowed_iterations(), cell.budget_iterations, cell.queries()
        block, spare = block_of(made), 0
        if resumed and most is not None:
            spare = spare_of(made, queries)
            if cell.iterations is None:
                made = min(made, most - spare)
            if made + spare > most or (cell.iterations is None and made < LEAST_ITERATIONS):
                raise BudgetExceeded(
                    f"iterations: {max(made, LEAST_ITERATIONS)} and {spare} spare ones, for processes that "
                    f"are stopped, exceed the budget: epsilon {cell.epsilon} allows {most}"
                )
        return cls(made, made + spare, block if cell.queries().each else max(1, made), cell.kept_every(made))


def release(
    cell: Cell[Setting],
    rows: np.ndarray,
    ledger: DataLedger,
    output: Path | None = None,
    report: Report | None = None,
) -> xarray.DataTree:
    """Run the chains of a cell on private rows (n, columns); return the tree of a release.

    The run's ε and δ are taken from `ledger` before anything is computed from the rows. With `output` the
    tree is also written there. Until then `OUTPUT.partial` has what was released, and a call with the same
    arguments continues it; no further ε is taken.

    Raises DpmcError, before anything is taken, for a method that cannot be released, a budget that cannot be
    kept, a model that must not be used, an output that exists or cannot be written, and the file of another
    run.
    """
    secure_noise.require()
    asked, (cell, price, plan) = cell, priced(cell, resumed=output is not None)
    known = attributes(facts(asked, Role.RELEASE))
    release_files.refuse(known, asked.problem.parameters, asked.problem.dimension)
    release_files.known_model(asked.problem.description, asked.problem.model_id)
    try_cell(cell)
    run = begin_release(cell, price, plan)
    about = json.loads(json.dumps(facts(asked, Role.ENTRY) | facts(run, Role.ENTRY)))
    # Whoever resumes the run must have equal ones.
    public = public_facts(asked) | public_facts(run) | {"lengths": plan, "opendp": version("opendp")}
    wanted = {key: digest(value) for key, value in public.items()} | {"ledger": ledger.header["id"]}
    with ONE_AT_A_TIME, one_blas_thread(), alone(output):
        partial, unfinished = None, None
        name = secrets.token_hex(16)  # by which the entry of a killed run is found again
        if output is not None:
            partial = files.file_named_as(output, ".partial")
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
            loop = ReleaseLoop(run, rows, plan, Unfinished(partial, wanted, name, entry))
            if unfinished is not None and "theta" in unfinished:
                loop.resume_from(unfinished)
        loop.make(report)
        tree = tree_of(asked, loop)
        if output is not None and partial is not None:
            release_files.write(output, tree)
            partial.unlink()
    return tree


def priced(cell: Cell[Setting], resumed: bool) -> tuple[Cell[Setting], Price, Plan]:
    """Return a cell with the budget that prices leave, the price of its run, and its plan.

    Noise that follows from the budget, because it was not given, follows from that which is left. It is more
    than that of the whole budget, whose price is no smaller.

    Raises DpmcError for a cell without a total budget, and for queries without Gaussian noise.
    """
    if cell.algorithm.is_for_comparison:
        raise DpmcError(f"algorithm: {cell.method}: is for comparison only, no release has it")
    if cell.rows_per_person > 1:
        raise DpmcError("rows_per_person: a release protects single rows; give 1")
    if cell.epsilon == "inf" or cell.epsilon_kind != "total":
        which = "inf" if cell.epsilon == "inf" else "per iteration"
        raise DpmcError(f"epsilon: {which}: a release needs a finite epsilon of the whole run")
    # The ledger counts decimals, and the double next to one may be above it.
    problem, epsilon, delta = cell.problem, not_above_text(float(cell.epsilon)), not_above_text(cell.delta)
    lattice = lattice_of(cell.queries().total(1), problem.n)  # raises for what cannot be released
    if cell.algorithm.largest_scale(lattice.ratio) > LARGEST_SCALE:
        raise DpmcError("clip_factor: is too small: each answer would be a rejection")
    cell.require_enough()
    most = cell.queries().total(Plan.of(cell, resumed).paid)
    cell.algorithm.check(problem.model, problem.n, problem.temperature)
    asks_sum = any(event.name == SUM for event in cell.queries().once)
    summaries = cast(SummaryModel, problem.model).summary_count if asks_sum else 0
    price = price_of(most, problem.n, problem.dimension, summaries, epsilon, delta)
    left, values = math.nextafter(delta - price.delta, 0.0), cell.given.hyperparameters
    made = calibrated(type(cell.algorithm), values, epsilon, left, problem.n)
    noise = {key: value for key, value in made.items() if key not in values}
    algorithm = dataclasses.replace(cell.algorithm, **noise)
    cell = dataclasses.replace(cell, epsilon=canonical_epsilon(epsilon), delta=left, algorithm=algorithm)
    cell.require_enough()
    return cell, price, Plan.of(cell, resumed)


def begin_release(cell: Cell[Setting], price: Price, plan: Plan) -> Run:
    """Return a run before its first iteration, with fresh public random numbers."""
    ledger = ReleaseLedger(cell.budget, cell.resolved_accountant())
    ledger.prices = (price.to_json(),)
    ledger.foresee(cell.queries().total(plan.paid))
    # Noise and batches are drawn elsewhere: only the lab draws them from generators.
    return begun(cell, ledger, fresh_generator, PUBLIC, 0, plan.made, plan.thin)


def fresh_generator(*_: object) -> np.random.Generator:
    """Return a generator of public random numbers, seeded with 256 bits of the operating system's entropy."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(secrets.randbits(256), pool_size=8)))


class Unfinished(NamedTuple):
    """The file of a release under way, and what it says of the run from the beginning."""

    path: Path | None  # None: there is none
    facts: Mapping[str, Any]  # those that a resumed run must have, too
    name: str  # of the run, in its entry
    entry: dict[str, Any]  # in the ledger of the data set


class ReleaseLoop(Loop):
    """The state of one run that is released."""

    def __init__(self, run: Run, rows: np.ndarray, plan: Plan, unfinished: Unfinished) -> None:
        problem = run.cell.problem
        lattice = lattice_of(run.cell.queries().total(1), problem.n)
        super().__init__([run], LatticeEvaluator(problem.model, rows, lattice))
        self.run, self.plan, self.unfinished = run, plan, unfinished
        self.whole = self.queries.total(plan.paid)  # all that is paid for
        self.lost = 0  # iterations that were lost in kills

    def private_data(self, m: int) -> PrivateData:
        """Return the mechanisms for m iterations, whose noise and batches are drawn when they are needed."""
        words = np.zeros((m, len(self.state.theta), self.needs.words), np.uint64)  # only their shape is used
        noise = secure_noise.SecureNoise()
        return PrivateData(self.evaluator, self.problem.temperature, noise, words)

    def make(self, report: Report | None) -> None:
        """Make all iterations in blocks, each reserved before; write off the spare ones."""
        self.save_partial()
        if self.done < self.run.total and not self.prepared:
            self.prepare_alone()
        while self.done < self.run.total:
            m = min(self.plan.block, self.run.total - self.done)
            self.run.ledger.reserve(self.queries.total(m, first=self.done == 0))
            self.reserved = m
            self.save_partial()
            with silent():
                self.advance(m)
            if report is not None:
                report(self.done, self.run.total)
        ledger = self.run.ledger
        ledger.reserve(from_counts(counts(self.whole) - counts(ledger.spent_events)))
        ledger.forfeit()
        self.save_partial()

    def prepare_alone(self) -> None:
        """Make the queries before the first iteration in a block of their own, if there are any.

        Raises DpmcError if they were made before, were lost in a kill, and cannot be paid for again.
        """
        once, self.queries = self.queries.once, self.queries._replace(once=())
        if not once:
            return
        try:
            # Without queries in the iterations the budget is for one alone, whatever it leaves.
            if not self.queries.each and self.run.ledger.spent_events:
                raise BudgetExceeded
            self.run.ledger.reserve(once)
        except BudgetExceeded:
            raise DpmcError(
                f"{self.unfinished.path}: the process stopped while it made the query before the first "
                "iteration, which is paid for and lost; nothing is left for another one. Remove the file; "
                "a new release takes its epsilon from the ledger of the data set again"
            ) from None
        self.save_partial()
        with silent():
            self._prepare(self.private_data(1), ())
        self.run.ledger.perform(once)
        self.save_partial()

    def save_partial(self) -> None:
        """Write what was released, and the ledger with the block under way; wait until it is on the disk."""
        partial, facts, name, entry = self.unfinished
        if partial is None:
            return
        run, (draws, numbers) = self.run, self.run.joined()
        arrays = {"theta": self.state.theta, "carried": self.state.carried, "draws": draws, "counts": numbers}
        about = {
            "facts": facts,
            "run": name,
            "entry": entry,
            "ledger": run.ledger.to_json(with_spent=False),
            "done": self.done,
            "reserved": self.reserved,
            "prepared": self.prepared,
            "lost": self.lost,
        }
        write_partial(partial, arrays, about)

    def resume_from(self, unfinished: Mapping[str, Any]) -> None:
        """Restore what a killed release had released; forfeit the block under way: a spare one replaces it.

        Raises DpmcError if no spare iterations are left. If the block was that of the queries before the
        first iteration, one iteration is lost: it pays for these.
        """
        run, about = self.run, unfinished
        run.ledger = ReleaseLedger.from_json(about["ledger"])
        began = bool(run.ledger.outstanding_events)
        run.ledger.forfeit()
        self.done, no = about["done"], np.zeros(len(about["theta"]), np.bool_)
        self.state, self.prepared = State(about["theta"], about["carried"], no, no), about["prepared"]
        if self.prepared:
            self.keep_answers()
        run.draws, run.counts = [about["draws"]], [about["counts"]]
        self.lost = about["lost"] + (about["reserved"] if began else 0)
        if self.prepared:
            self.queries = self.queries._replace(once=())
        elif began and self.queries.once and self.queries.each:
            self.lost += 1
        if self.lost > self.plan.paid - self.plan.made:
            raise DpmcError(
                f"{self.unfinished.path}: the process was stopped more often than its "
                f"{self.plan.paid - self.plan.made} spare iterations make up for. What it took from the "
                "ledger is spent, and no file can be made of it, since its length would tell of run times. "
                "Remove it, and start anew with more time for each process"
            )


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
    """Return an unfinished release; None without one; DpmcError if broken, or of a run with other facts."""
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
    """Return the entry of a killed run, None if it had none; DpmcError if it is not in this ledger."""
    if unfinished is not None and "entry" in unfinished:
        ledger.verify(unfinished["entry"])
        return dict(unfinished["entry"])
    entries = DataLedger.open(ledger.path).entries
    return next((entry for entry in entries if entry["about"].get("run") == name), None)


@contextmanager
def alone(output: Path | None) -> Iterator[None]:
    """Let others with the same output wait: two must not release its next block. DpmcError if it exists."""
    if output is None:
        yield
        return
    with files.alone(files.lock_of(output), f"{output}: waiting for another process that makes this release"):
        if output.exists():
            raise DpmcError(f"{output}: exists; name another output, since each release spends its epsilon")
        files.require_writable(output)
        yield


def tree_of(asked: Cell[Setting], loop: ReleaseLoop) -> xarray.DataTree:
    """Return a finished run in ArviZ's groups: public facts and what ε covers, all of it in `asked`."""
    run, problem = loop.run, asked.problem
    thin, k, (draws, numbers), names = run.thin, loop.done // run.thin, run.joined(), counted(asked.algorithm)
    accepted, diverging = (numbers[names.index(name)] for name in ("accepted", "diverging"))
    labels = {
        "chain": np.arange(asked.chains),
        "draw": thin * np.arange(1, k + 1),
        "parameter": np.array(problem.parameters or range(problem.dimension)),
    }
    said = Published(loop.plan.paid - loop.plan.made, version("opendp"), loop.unfinished.entry)
    root = attributes(facts(asked, Role.RELEASE) | facts(run, Role.RELEASE) | facts(said, Role.RELEASE))
    along = ("chain", "draw")
    statistics = {"acceptance_rate": accepted[:, :k] / thin, "diverging": diverging[:, :k] > 0}
    totals = {"accepted_total": accepted.sum(axis=1), "diverging_total": diverging.sum(axis=1)}
    groups: list[Group] = [
        ("posterior", (*along, "parameter"), {"theta": draws}, {}),
        ("sample_stats", along, statistics, totals),
        ("constant_data", ("chain", "parameter"), {"theta_0": run.start}, {}),
    ]
    return grouped(root, labels, groups, run.answer)
