"""The command that runs chains."""

import argparse
import dataclasses
import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

from dpmc.cli.given import at_least, hyperparameters_of, problem_of, progress_of, study_as_asked
from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import MOST_STARTS
from dpmc.data import outputs
from dpmc.data.outputs import Output
from dpmc.studies import Study, calibrated_values, definition_of, make_cell


def sample(options: argparse.Namespace) -> None:
    """Run chains; write one file per run, then a summary on standard error."""
    from dpmc.sampling import jobs

    study = study_as_asked(options)
    runs = [(one, *_runs_and_outputs(one.epsilon, one.seed, one.output)) for one in _each_method(options)]
    for one, *_ in runs:
        study.own_method(one.method)
    inputs = [("--data", options.data), ("--hyperparameters", options.hyperparameters)]
    written = [Output("--output", file, outputs.CHAINS) for *_, files in runs for file in files.values()]
    outputs.check(written, inputs, options.force)
    definition_of(study, options.model)
    starts = (max(seed for _, _, seeds, _ in runs for seed in seeds) + 1) * study.chains
    problem = problem_of(study, options.model, options.data, starts=max(starts, 20))
    several = [
        (one, job)
        for one, epsilons, seeds, files in runs
        for job in _jobs(one, study, problem, epsilons, seeds, files)
    ]
    for cell in (cell for _, job in several for cell in job.cells):
        _require_draws(cell)
    _say_what_runs_cost([cell for _, job in several for cell in job.cells], len(runs[0][2]))
    with jobs.alone([job for _, job in several]):
        # All are there if another process made them while this one waited.
        if options.force or not all(output.path.exists() for output in written):
            for one, job in several:
                name = " ".join([one.model, one.method, "epsilon", *(cell.epsilon for cell in job.cells)])
                jobs.sample(job, options.checkpoint_seconds, progress_of(name, options.quiet))
            jobs.finish([job for _, job in several])
    cells = [
        [files[epsilon, seed] for seed in seeds] for _, epsilons, seeds, files in runs for epsilon in epsilons
    ]
    _say_how_it_went(cells, options.quiet or options.no_summary)


def _require_draws(cell: Any) -> None:
    """Raise DpmcError for a run that keeps no draw, or on private rows has too few iterations to evaluate.

    On public rows too few are a result, and a run without any iteration spends nothing.
    """
    from dpmc.data import datasets

    iterations = cell.allowed_iterations()
    cell.kept_every(iterations)
    if iterations and not datasets.is_public(cell.problem.dataset):
        cell.require_enough()


def _each_method(options: argparse.Namespace) -> list[argparse.Namespace]:
    """Return the options of each method with its outputs; without `--method`, from the output names."""
    if options.method is not None:
        return [options]
    where = r"(?:^|/)([^/]+)/eps-[^/]+/[^/]+$"
    names: dict[str, list[str]] = {}
    found = _read_off(options.output, where, "--method", "not in a folder <method>/eps-<epsilon>")
    for method, name in zip(found, options.output, strict=True):
        names.setdefault(method, []).append(name)
    return [
        argparse.Namespace(**{**vars(options), "method": method, "output": some})
        for method, some in names.items()
    ]


def _jobs(
    options: argparse.Namespace,
    study: Study,
    problem: Any,
    epsilons: list[str],
    seeds: list[int],
    files: dict[tuple[str, int], Path],
) -> list[Any]:
    """Return the jobs of `sample`: one, or with ε per iteration one for each set of hyperparameters."""
    from dpmc.sampling import jobs
    from dpmc.sampling.cell import described

    how = study.own_method(options.method)
    pinned = hyperparameters_of(study, options)
    given: dict[str, Any] = {
        name: value
        for name in ("iterations", "thin")
        if (value := at_least(1, name, getattr(options, name))) is not None
    }
    alike: dict[str, list[Any]] = {}
    about = {}
    for epsilon in epsilons:
        cell = dataclasses.replace(make_cell(study, problem, options.method, epsilon, pinned), **given)
        about[epsilon] = described(cell, pinned.values, study.name, how.algorithm, how.options)
        if study.epsilon_kind != "total":
            calibrated = calibrated_values(study, options.method, pinned.values, epsilon, problem.n)
            about[epsilon]["calibrated"] = json.dumps(calibrated, sort_keys=True)
        alike.setdefault(about[epsilon].get("calibrated", ""), []).append(cell)
    return [jobs.Job(cells, seeds, about, files) for cells in alike.values()]


def _say_how_it_went(cells: list[list[Path]], quiet: bool) -> None:
    """Print too small budgets and, unless `quiet`, a summary. A cell is the list of its seeds' files."""
    from dpmc.data import chain_files
    from dpmc.metrics import summary

    runs = [[chain_files.read_chain(file) for file in files[: 1 if quiet else None]] for files in cells]
    for about in (of_cell[0].attrs for of_cell in runs):
        if about["status"] != "ok":
            variant = f" ({about['variant']})" if about["variant"] else ""
            print(f"dpmc: {summary.name(about)}{variant}: {about['status']}", file=sys.stderr)
    if not quiet:
        print(*summary.lines(list(zip(runs, cells, strict=True))), sep="\n", file=sys.stderr)


def _say_what_runs_cost(cells: list[Any], seeds: int) -> None:
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
        each_of = [accountant.epsilon(run, delta) for run in runs]
        together = accountant.epsilon([event for run in runs for event in repeat(run, seeds)], delta)
    except DpmcError:  # the accountant cannot bound them
        each_of, together = [float("inf")], float("inf")
    kinds = "epsilons" if len({cell.method for cell in private}) == 1 else "epsilons and methods"
    at = f" at each of {len(private)} {kinds}" if len(private) > 1 else ""
    hint = f"; the chains of one seed (--chains {seeds}) share one budget" if seeds > 1 else ""
    print(
        f"dpmc: warning: {private[0].problem.dataset}: {seeds} seeds{at} "
        f"spend epsilon {', '.join(map(rounded_up, each_of))} each, "
        f"together {rounded_up(together)}, at delta {delta:.3g}{hint}",
        file=sys.stderr,
    )


def _runs_and_outputs(
    epsilons: list[str] | None, seeds: list[int] | None, names: list[str]
) -> tuple[list[str], list[int], dict[tuple[str, int], Path]]:
    """Return every ε, every seed, and the file of each (ε, seed).

    `names` is a pattern with {epsilon} and {seed}, or a list of files, ε by ε. Without `epsilons` or `seeds`
    they are read from the file names, eps-<epsilon>/seed-<seed>.nc.
    """
    read: list[tuple[str | None, int | None]] = [(None, None)] * len(names)
    if epsilons is None:
        texts = _read_off(names, r"(?:^|/)eps-([^/]+)/[^/]+$", "--epsilon", "not in a folder eps-<epsilon>")
        read = [(canonical_epsilon(text), None) for text in texts]
        epsilons = list(dict.fromkeys(epsilon for epsilon, _ in read if epsilon))
    epsilons = [canonical_epsilon(epsilon) for epsilon in epsilons]
    if len(set(epsilons)) != len(epsilons):
        raise DpmcError(f"--epsilon: {' '.join(epsilons)} must be different")
    if seeds is None:
        texts = _read_off(names, r"seed-([0-9]{1,9})\.nc$", "--seed", "not named seed-<n>.nc")
        read = [(epsilon, int(text)) for (epsilon, _), text in zip(read, texts, strict=True)]
        seeds = list(dict.fromkeys(seed for _, seed in read if seed is not None))
    if min(seeds) < 0 or len(set(seeds)) != len(seeds):
        raise DpmcError(f"--seed: {seeds} must be different whole numbers, at least 0")
    if max(seeds) >= MOST_STARTS:  # start points are made for all seeds up to the largest
        raise DpmcError(f"--seed: {max(seeds)} must be below {MOST_STARTS}")
    runs = list(itertools.product(epsilons, seeds))
    if len(names) == 1 and ("{seed}" in names[0] or "{epsilon}" in names[0]):
        names = [names[0].replace("{epsilon}", e).replace("{seed}", str(seed)) for e, seed in runs]
        read = [(None, None)] * len(names)
    if len(names) != len(runs):
        wanted = f"{len(seeds)} seeds" + (f" at {len(epsilons)} epsilons" if len(epsilons) > 1 else "")
        pattern = '"{epsilon}" and "{seed}"' if len(epsilons) > 1 else '"{seed}"'
        raise DpmcError(f"--output: {len(names)} files for {wanted}; give one each, or a name with {pattern}")
    for name, (epsilon, seed), found in zip(names, runs, read, strict=True):
        if found[0] not in (None, epsilon) or found[1] not in (None, seed):
            raise DpmcError(f"--output: {name}: stands where epsilon {epsilon}, seed {seed} is expected")
    return epsilons, seeds, dict(zip(runs, map(Path, names), strict=True))


def _read_off(names: list[str], pattern: str, option: str, otherwise: str) -> list[str]:
    """Return the first group of a pattern in each name; raise DpmcError for a name that does not match."""
    found = [re.search(pattern, name) for name in names]
    for name, match in zip(names, found, strict=True):
        if match is None:
            raise DpmcError(f"{option}: needed, since the output {name!r} is {otherwise}")
    return [match[1] for match in found if match]
