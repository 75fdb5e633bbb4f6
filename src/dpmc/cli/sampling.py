"""The command that runs chains."""

import argparse
import dataclasses
import itertools
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

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


class Asked(NamedTuple):
    """The runs of one method: every ε with every seed, each with its file."""

    method: str
    epsilons: list[str]
    seeds: list[int]
    files: dict[tuple[str, int], Path]  # by ε and seed


def sample(options: argparse.Namespace) -> None:
    """Run chains; write one file per run, then a summary on standard error."""
    study = study_as_asked(options)
    asked = _asked(options)
    for method in asked:
        study.own_method(method.method)
    inputs = [("--data", options.data), ("--hyperparameters", options.hyperparameters)]
    written = [("--output", file) for a in asked for file in a.files.values()]
    measured = options.times is not None and options.times.is_file() and options.times.read_bytes()
    if measured and not measured.startswith((b"wall_seconds\t", b"s\th:m:s\t")):  # ours, or of Snakemake
        raise DpmcError(f"--times: {options.times}: exists and has no run times; name another file")
    outputs.check_outputs(options, inputs, [*written, ("--times", options.times)], continued=["--times"])
    starts = (max(seed for method in asked for seed in method.seeds) + 1) * study.chains
    problem = problem_of(study, options.model, options.data, starts=max(starts, 20))
    if study.person and not options.quiet:
        kept = f"n = {problem.n} rows are kept, at most {study.rows_per_person} of each {study.person}"
        print(kept, file=sys.stderr)
    all_jobs = [job for method in asked for job in _jobs(method, options, study, problem)]
    cells = [cell for job in all_jobs for cell in job.cells]
    # All cells before the first is sampled: an error must not come after a part of the budget is spent.
    for cell in cells:
        iterations = cell.allowed_iterations()
        cell.kept_every(iterations)  # raises if no draw would be kept
        # On public rows too few iterations are a result; a run without any spends nothing.
        if iterations and not datasets.is_public(problem.dataset):
            cell.require_enough()
    for seed in sorted({seed for method in asked for seed in method.seeds}):
        first = seed * study.chains
        check_starts(problem.model, problem.starts[first : first + study.chains], first)
    # Before the first query, while it can still be stopped.
    _say_what_runs_cost(cells, len(asked[0].seeds))
    with jobs.alone_with_jobs(all_jobs):
        # All are there if another process made them while this one waited.
        if options.force or not all(path.exists() for a in asked for path in a.files.values()):
            for job in all_jobs:
                epsilons = " ".join(cell.epsilon for cell in job.cells)
                name = f"{options.model} {job.cells[0].method} epsilon {epsilons}"
                jobs.sample_job(job, options.checkpoint_seconds, None if options.quiet else live_line(name))
            jobs.finish(all_jobs)
    files = [[a.files[epsilon, seed] for seed in a.seeds] for a in asked for epsilon in a.epsilons]
    _say_how_it_went(files, options.quiet or options.no_summary)


#: Where an output's name has what an option would say: a pattern, and its form for errors.
IN_NAMES = {
    "--method": (r"(?:^|/)([^/]+)/eps-[^/]+/[^/]+$", "<method>/eps-<epsilon>/"),
    "--epsilon": (r"(?:^|/)eps-([^/]+)/[^/]+$", "eps-<epsilon>/"),
    "--seed": (r"seed-([0-9]{1,9})\.nc$", "seed-<n>.nc"),
}


def _in_names(names: list[str], option: str) -> list[str]:
    """Return what each name says in place of an option; raise DpmcError for a name that does not."""
    pattern, form = IN_NAMES[option]
    texts = []
    for name in names:
        match = re.search(pattern, name)
        if match is None:
            raise DpmcError(f"{option}: needed, since the output {name!r} is not named {form}")
        texts.append(match[1])
    return texts


def _asked(options: argparse.Namespace) -> list[Asked]:
    """Return the runs of each method; method, ε and seeds that are not given are those in the names."""
    names, by_method = [str(path) for path in options.output], dict[str, list[str]]()
    methods = [options.method] * len(names) if options.method else _in_names(names, "--method")
    for method, name in zip(methods, names, strict=True):
        by_method.setdefault(method, []).append(name)
    return [_runs_of(method, options, files) for method, files in by_method.items()]


def _runs_of(method: str, options: argparse.Namespace, names: list[str]) -> Asked:
    """Return the runs of one method: `names` is a pattern with {epsilon} and {seed}, or a list, ε by ε."""
    # What each name says; None for what an option says.
    said_epsilons = None if options.epsilon else list(map(canonical_epsilon, _in_names(names, "--epsilon")))
    said_seeds = None if options.seed else list(map(int, _in_names(names, "--seed")))
    epsilons = list(dict.fromkeys(said_epsilons or [])) or list(map(canonical_epsilon, options.epsilon))
    seeds = list(dict.fromkeys(said_seeds or [])) or options.seed
    for option, values in (("--epsilon", epsilons), ("--seed", seeds)):
        if len(set(values)) != len(values):
            raise DpmcError(f"{option}: {' '.join(map(str, values))} must be different")
    runs = list(itertools.product(epsilons, seeds))
    if len(names) == 1 and ("{seed}" in names[0] or "{epsilon}" in names[0]):
        names = [names[0].replace("{epsilon}", e).replace("{seed}", str(seed)) for e, seed in runs]
        said_epsilons = said_seeds = None  # these names are in the order of the runs
    if len(names) != len(runs):
        wanted = f"{len(seeds)} seeds at {len(epsilons)} epsilons"
        pattern = '"{epsilon}" and "{seed}"'
        raise DpmcError(f"--output: {len(names)} files for {wanted}; give one each, or a name with {pattern}")
    for i, (epsilon, seed) in enumerate(runs):
        if (said_epsilons and said_epsilons[i] != epsilon) or (said_seeds and said_seeds[i] != seed):
            raise DpmcError(f"--output: {names[i]}: stands where epsilon {epsilon}, seed {seed} is expected")
    return Asked(method, epsilons, seeds, dict(zip(runs, map(Path, names), strict=True)))


def _jobs(asked: Asked, options: argparse.Namespace, study: Study, problem: Problem) -> list[jobs.Job]:
    """Return the jobs of a method: one, or if ε sets the noise one for each set of hyperparameters."""
    pinned = hyperparameters_of(study, options.model, asked.method, options.hyperparameters)
    lengths = {"iterations": options.iterations, "thin": options.thin}
    given = {name: value for name, value in lengths.items() if value is not None}
    alike: dict[str, list[Cell[Problem]]] = {}
    for epsilon in asked.epsilons:
        cell = dataclasses.replace(make_cell(study, problem, asked.method, epsilon, pinned), **given)
        alike.setdefault(json.dumps(cell.given.calibrated, sort_keys=True), []).append(cell)
    return [jobs.Job(cells, asked.seeds, asked.files) for cells in alike.values()]


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
