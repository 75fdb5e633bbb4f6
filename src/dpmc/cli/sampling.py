"""The command that runs chains."""

import argparse
import dataclasses
import itertools
import json
import sys
from pathlib import Path

from dpmc.cli import outputs
from dpmc.cli.given import hyperparameters_of, study_as_asked
from dpmc.common.errors import DpmcError
from dpmc.common.progress import live_line
from dpmc.common.streams import canonical_epsilon
from dpmc.data import chain_files, datasets
from dpmc.data.problem import Problem
from dpmc.metrics.summary import cell_name, epsilon_text, summary_lines
from dpmc.models.trial import check_starts
from dpmc.privacy.events import repeat
from dpmc.sampling import jobs
from dpmc.sampling.cell import Cell
from dpmc.studies import Study, make_cell, problem_of

RunFiles = dict[tuple[str, int], Path]  #: of the runs of a method, by ε and seed


def sample(options: argparse.Namespace) -> None:
    """Run chains; write one file per run, then a summary on standard error."""
    study = study_as_asked(options)
    options.epsilon = list(map(canonical_epsilon, options.epsilon))
    asked = _asked(options)
    for method in asked:
        study.own_method(method)
    outputs_of = [file for files in asked.values() for file in files.values()]
    inputs = [("--data", options.data), ("--hyperparameters", options.hyperparameters)]
    written = [("--output", file) for file in outputs_of]
    measured = options.times is not None and options.times.is_file() and options.times.read_bytes()
    if measured and not measured.startswith((b"wall_seconds\t", b"s\th:m:s\t")):  # ours, or of Snakemake
        raise DpmcError(f"--times: {options.times}: exists and has no run times; name another file")
    outputs.check_outputs(options, inputs, [*written, ("--times", options.times)], continued=["--times"])
    starts = (max(options.seed) + 1) * study.chains
    problem = problem_of(study, options.model, options.data, starts=max(starts, 20))
    if study.person and not options.quiet:
        kept = f"n = {problem.n} rows are kept, at most {study.rows_per_person} of each {study.person}"
        print(kept, file=sys.stderr)
    all_jobs = [job for method, of in asked.items() for job in _jobs(method, of, options, study, problem)]
    cells = [cell for job in all_jobs for cell in job.cells]
    # All cells before the first is sampled: an error must not come after a part of the budget is spent.
    for cell in cells:
        iterations = cell.allowed_iterations()
        cell.kept_every(iterations)  # raises if no draw would be kept
        # On public rows too few iterations are a result; a run without any spends nothing.
        if iterations and not datasets.is_public(problem.dataset):
            cell.require_enough()
    for seed in sorted(options.seed):
        first = seed * study.chains
        check_starts(problem.model, problem.starts[first : first + study.chains], first)
    # Before the first query, while it can still be stopped.
    _say_what_runs_cost(cells, len(options.seed))
    with jobs.alone_with_jobs(all_jobs):
        # All are there if another process made them while this one waited.
        if options.force or not all(path.exists() for path in outputs_of):
            for job in all_jobs:
                epsilons = " ".join(cell.epsilon for cell in job.cells)
                name = f"{options.model} {job.cells[0].method} epsilon {epsilons}"
                jobs.sample_job(job, options.checkpoint_seconds, None if options.quiet else live_line(name))
            jobs.finish(all_jobs)
    files = [
        [of[epsilon, seed] for seed in options.seed] for of in asked.values() for epsilon in options.epsilon
    ]
    _say_how_it_went(files, options.quiet or options.no_summary)


def _asked(options: argparse.Namespace) -> dict[str, RunFiles]:
    """Return the runs of each method: every ε with every seed, each with its file, named by the pattern."""
    for option in ("method", "epsilon", "seed"):
        values = getattr(options, option)
        if len(set(values)) != len(values):
            raise DpmcError(f"--{option}: {' '.join(map(str, values))} must be different")

    def file(method: str, epsilon: str, seed: int) -> Path:
        name = str(options.output).replace("{method}", method).replace("{epsilon}", epsilon)
        return Path(name.replace("{seed}", str(seed)))

    runs = list(itertools.product(options.epsilon, options.seed))
    return {method: {run: file(method, *run) for run in runs} for method in options.method}


def _jobs(
    method: str, files: RunFiles, options: argparse.Namespace, study: Study, problem: Problem
) -> list[jobs.Job]:
    """Return the jobs of a method: one, or if ε sets the noise one for each set of hyperparameters."""
    pinned = hyperparameters_of(study, options.model, method, options.hyperparameters)
    lengths = {"iterations": options.iterations, "thin": options.thin}
    given = {name: value for name, value in lengths.items() if value is not None}
    alike: dict[str, list[Cell[Problem]]] = {}
    for epsilon in options.epsilon:
        cell = dataclasses.replace(make_cell(study, problem, method, epsilon, pinned), **given)
        alike.setdefault(json.dumps(cell.given.calibrated, sort_keys=True), []).append(cell)
    return [jobs.Job(cells, options.seed, files) for cells in alike.values()]


def _say_how_it_went(files: list[list[Path]], quiet: bool) -> None:
    """Print too small budgets and, unless `quiet`, a summary. `files`: for each cell those of its seeds."""
    # The status is that of the cell, so one seed's file is enough for it.
    cells = [[chain_files.read_chain(file) for file in cell[: 1 if quiet else None]] for cell in files]
    for about in (chains[0].attrs for chains in cells):
        if about["status"] != "ok":
            variant = f" ({about['variant']})" if about["variant"] else ""
            print(f"dpmc: {cell_name(about)}{variant}: {about['status']}", file=sys.stderr)
    if not quiet:
        print(*summary_lines(list(zip(cells, files, strict=True))), sep="\n", file=sys.stderr)


def _say_what_runs_cost(cells: list[Cell[Problem]], seeds: int) -> None:
    """Print a warning with the total ε of several runs on private data."""
    private = [cell for cell in cells if cell.epsilon != "inf"]
    if len(private) * seeds < 2 or datasets.is_public(private[0].problem.dataset):
        return
    accountant, delta = private[0].resolved_accountant(), private[0].delta
    runs = [cell.queries().total(cell.allowed_iterations()) for cell in private]
    try:
        of_each = [accountant.epsilon(run, delta) for run in runs]
        together = accountant.epsilon([event for run in runs for event in repeat(run, seeds)], delta)
    except DpmcError:  # the accountant cannot bound them
        of_each, together = [float("inf")], float("inf")
    kinds = "epsilons" if len({cell.method for cell in private}) == 1 else "epsilons and methods"
    at = f" at each of {len(private)} {kinds}" if len(private) > 1 else ""
    hint = f"; the chains of one seed (--chains {seeds}) share one budget" if seeds > 1 else ""
    print(
        f"dpmc: warning: {private[0].problem.dataset}: {seeds} seeds{at} "
        f"spend epsilon {', '.join(map(epsilon_text, of_each))} each, "
        f"together {epsilon_text(together)}, at delta {delta:.3g}{hint}",
        file=sys.stderr,
    )
