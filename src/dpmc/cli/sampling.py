"""The command that runs chains."""

import argparse
import dataclasses
import itertools
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dpmc.cli.given import hyperparameters_of, problem_of, study_as_asked
from dpmc.common.errors import DpmcError
from dpmc.common.progress import reporter
from dpmc.common.streams import canonical_epsilon
from dpmc.data import outputs
from dpmc.data.outputs import Output
from dpmc.studies import Study, calibrated_values, definition_of, make_cell

if TYPE_CHECKING:
    from dpmc.data.problem import Problem
    from dpmc.sampling.cell import Cell
    from dpmc.sampling.jobs import Job


class Asked(NamedTuple):
    """The runs of one method: every ε with every seed, each with its file."""

    method: str
    epsilons: list[str]
    seeds: list[int]
    files: dict[tuple[str, int], Path]  # by ε and seed


def sample(options: argparse.Namespace) -> None:
    """Run chains; write one file per run, then a summary on standard error."""
    from dpmc.sampling import jobs

    study = study_as_asked(options)
    asked = _asked(options)
    for method in asked:
        study.own_method(method.method)
    inputs = [("--data", options.data), ("--hyperparameters", options.hyperparameters)]
    written = [Output("--output", file, outputs.CHAINS) for a in asked for file in a.files.values()]
    if options.times is not None:
        written.append(Output("--times", options.times, outputs.TIMES))
    outputs.check(written, inputs, options.force)
    definition_of(study, options.model)
    starts = (max(seed for method in asked for seed in method.seeds) + 1) * study.chains
    problem = problem_of(study, options.model, options.data, starts=max(starts, 20))
    all_jobs = [job for method in asked for job in _jobs(method, options, study, problem)]
    cells = [cell for job in all_jobs for cell in job.cells]
    for cell in cells:
        _require_draws(cell)
    _say_what_runs_cost(cells, len(asked[0].seeds))
    with jobs.alone(all_jobs):
        # All are there if another process made them while this one waited.
        if options.force or not all(path.exists() for a in asked for path in a.files.values()):
            for job in all_jobs:
                epsilons = " ".join(cell.epsilon for cell in job.cells)
                name = f"{options.model} {job.cells[0].method} epsilon {epsilons}"
                jobs.sample(job, options.checkpoint_seconds, None if options.quiet else reporter(name))
            jobs.finish(all_jobs)
    files = [[a.files[epsilon, seed] for seed in a.seeds] for a in asked for epsilon in a.epsilons]
    _say_how_it_went(files, options.quiet or options.no_summary)


def _asked(options: argparse.Namespace) -> list[Asked]:
    """Return the runs of each method; without `--method` they are those that the output names say."""
    names = [str(path) for path in options.output]
    if options.method is not None:
        return [_runs_of(options.method, options, names)]
    methods = _in_names(names, r"(?:^|/)([^/]+)/eps-[^/]+/[^/]+$", "--method", "<method>/eps-<epsilon>/")
    by_method: dict[str, list[str]] = {}
    for method, name in zip(methods, names, strict=True):
        by_method.setdefault(method, []).append(name)
    return [_runs_of(method, options, names) for method, names in by_method.items()]


def _runs_of(method: str, options: argparse.Namespace, names: list[str]) -> Asked:
    """Return the runs of one method.

    `names` is a pattern with {epsilon} and {seed}, or a list of files, ε by ε. Without `--epsilon` or
    `--seed` they are read from the file names, eps-<epsilon>/seed-<seed>.nc.
    """
    epsilons = [canonical_epsilon(epsilon) for epsilon in options.epsilon or []]
    epsilons = epsilons or list(dict.fromkeys(_epsilons_in(names)))
    seeds = options.seed or list(dict.fromkeys(_seeds_in(names)))
    for option, values in (("--epsilon", epsilons), ("--seed", seeds)):
        if len(set(values)) != len(values):
            raise DpmcError(f"{option}: {' '.join(map(str, values))} must be different")
    runs = list(itertools.product(epsilons, seeds))
    if len(names) == 1 and ("{seed}" in names[0] or "{epsilon}" in names[0]):
        names = [names[0].replace("{epsilon}", e).replace("{seed}", str(seed)) for e, seed in runs]
    if len(names) != len(runs):
        wanted = f"{len(seeds)} seeds" + (f" at {len(epsilons)} epsilons" if len(epsilons) > 1 else "")
        pattern = '"{epsilon}" and "{seed}"' if len(epsilons) > 1 else '"{seed}"'
        raise DpmcError(f"--output: {len(names)} files for {wanted}; give one each, or a name with {pattern}")
    # What was read from the names must be in the order of the runs.
    read_epsilons = [epsilon for epsilon, _ in runs] if options.epsilon else _epsilons_in(names)
    read_seeds = [seed for _, seed in runs] if options.seed else _seeds_in(names)
    for name, run, read in zip(names, runs, zip(read_epsilons, read_seeds, strict=True), strict=True):
        if run != read:
            raise DpmcError(f"--output: {name}: stands where epsilon {run[0]}, seed {run[1]} is expected")
    return Asked(method, epsilons, seeds, dict(zip(runs, map(Path, names), strict=True)))


def _epsilons_in(names: list[str]) -> list[str]:
    texts = _in_names(names, r"(?:^|/)eps-([^/]+)/[^/]+$", "--epsilon", "eps-<epsilon>/")
    return [canonical_epsilon(text) for text in texts]


def _seeds_in(names: list[str]) -> list[int]:
    return [int(text) for text in _in_names(names, r"seed-([0-9]{1,9})\.nc$", "--seed", "seed-<n>.nc")]


def _in_names(names: list[str], pattern: str, option: str, form: str) -> list[str]:
    """Return the first group of a pattern in each name; raise DpmcError for a name that does not match."""
    texts = []
    for name in names:
        match = re.search(pattern, name)
        if match is None:
            raise DpmcError(f"{option}: needed, since the output {name!r} is not named {form}")
        texts.append(match[1])
    return texts


def _jobs(asked: Asked, options: argparse.Namespace, study: Study, problem: "Problem") -> list["Job"]:
    """Return the jobs of a method: one, or with ε per iteration one for each set of hyperparameters."""
    from dpmc.sampling import jobs
    from dpmc.sampling.cell import described

    spec = study.own_method(asked.method)
    pinned = hyperparameters_of(study, options.model, asked.method, options.hyperparameters)
    lengths = {"iterations": options.iterations, "thin": options.thin}
    given = {name: value for name, value in lengths.items() if value is not None}
    alike: dict[str, list[Cell]] = {}
    about = {}
    for epsilon in asked.epsilons:
        cell = dataclasses.replace(make_cell(study, problem, asked.method, epsilon, pinned), **given)
        about[epsilon] = described(cell, pinned.values, study.name, spec.algorithm, spec.options)
        if study.epsilon_kind != "total":
            calibrated = calibrated_values(study, asked.method, pinned.values, epsilon, problem.n)
            about[epsilon]["calibrated"] = json.dumps(calibrated, sort_keys=True)
        alike.setdefault(about[epsilon].get("calibrated", ""), []).append(cell)
    return [jobs.Job(cells, asked.seeds, about, asked.files) for cells in alike.values()]


def _require_draws(cell: "Cell") -> None:
    """Raise DpmcError for a run that keeps no draw, or on private rows has too few iterations to evaluate.

    On public rows too few are a result, and a run without any iteration spends nothing.
    """
    from dpmc.data import datasets

    iterations = cell.allowed_iterations()
    cell.kept_every(iterations)
    if iterations and not datasets.is_public(cell.problem.dataset):
        cell.require_enough()


def _say_how_it_went(files: list[list[Path]], quiet: bool) -> None:
    """Print too small budgets and, unless `quiet`, a summary. `files`: for each cell those of its seeds."""
    from dpmc.data import chain_files
    from dpmc.metrics import summary

    cells = [[chain_files.read_chain(file) for file in cell[: 1 if quiet else None]] for cell in files]
    for about in (chains[0].attrs for chains in cells):
        if about["status"] != "ok":
            variant = f" ({about['variant']})" if about["variant"] else ""
            print(f"dpmc: {summary.name(about)}{variant}: {about['status']}", file=sys.stderr)
    if not quiet:
        print(*summary.lines(list(zip(cells, files, strict=True))), sep="\n", file=sys.stderr)


def _say_what_runs_cost(cells: list["Cell"], seeds: int) -> None:
    """Print a warning with the total ε of several runs on private data."""
    from dpmc.data import datasets
    from dpmc.metrics.summary import rounded_up
    from dpmc.privacy.events import repeat

    private = [cell for cell in cells if cell.epsilon != "inf"]
    if len(private) * seeds < 2 or datasets.is_public(private[0].problem.dataset):
        return
    accountant, delta = private[0].resolved_accountant(), private[0].delta
    runs = [cell.releases().total(cell.allowed_iterations()) for cell in private]
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
        f"spend epsilon {', '.join(map(rounded_up, of_each))} each, "
        f"together {rounded_up(together)}, at delta {delta:.3g}{hint}",
        file=sys.stderr,
    )
