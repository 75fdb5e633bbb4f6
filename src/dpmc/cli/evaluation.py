"""Commands that read chains: metrics of cells, and metrics along chains."""

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

from xarray import DataTree

from dpmc.cli import outputs
from dpmc.cli.given import write_table
from dpmc.common.errors import DpmcError
from dpmc.common.files import write_netcdf
from dpmc.data import chain_files
from dpmc.data.chain_files import Chains
from dpmc.data.problem import Problem
from dpmc.metrics import cell, table
from dpmc.metrics.summary import cell_name, summary_lines
from dpmc.metrics.traces import TRACE_COLUMNS, traces
from dpmc.results import POSTERIOR, answers, as_tree, parameters
from dpmc.studies import Study, load_study, problem_of


def summary(options: argparse.Namespace) -> None:
    """Print what the chains of each cell spent, and a summary of each parameter."""
    by_cell: dict[tuple[str, str], list[tuple[Path, DataTree]]] = {}
    for file in map(Path, options.files):
        tree = as_tree(file)
        mode = str(tree.attrs.get("mode"))
        of = mode, str(file) if mode == POSTERIOR else cell_name(tree.attrs)
        by_cell.setdefault(of, []).append((file, tree))
    for (mode, _), runs in by_cell.items():
        files, trees = zip(*runs, strict=True)
        if mode != POSTERIOR:  # which spent nothing of its own
            print(*summary_lines([([chain_files.chains_of(tree) for tree in trees], files)]), sep="\n")
        print(*parameters.parameter_lines(parameters.summary(*trees, level=options.level)), sep="\n")


def posterior(options: argparse.Namespace) -> None:
    """Draw from the posterior given the answers in files; print its summary, and write it."""
    outputs.check_outputs(options, [("files", Path(file)) for file in options.files])
    given = options.prior_sd
    tree = answers.posterior(
        options.files,
        prior_sd=given[0] if given and len(given) == 1 else given,
        draws=options.draws,
        chains=options.chains,
        seed=options.seed,
    )
    if options.output:
        write_netcdf(options.output, tree, {})
    print(*parameters.parameter_lines(parameters.summary(tree)), sep="\n")


def evaluate(options: argparse.Namespace) -> None:
    """Write the metrics of the cells of one model, and of its exact samples, as CSV."""
    study, files = _study_and_files(options)
    rows = []
    if files or not options.baselines:
        chains, problem = _chains_and_problem(study, files, options)
        rows += cell.metrics_of_cells(chains, problem)
    elif options.model is None:
        raise DpmcError("--model: needed with --baselines, if there are no chains")
    else:
        problem = problem_of(study, options.model, options.data, exact=True)
    if options.baselines:
        rows += cell.baseline_metrics(problem, study.name)
    write_table(options.output, table.METRIC_COLUMNS, rows)


def trace(options: argparse.Namespace) -> None:
    """Write metrics along the chains of the cells of one model as CSV."""
    study, files = _study_and_files(options)
    write_table(options.output, TRACE_COLUMNS, traces(*_chains_and_problem(study, files, options)))


def _study_and_files(options: argparse.Namespace) -> tuple[Study, list[Path]]:
    """Return study and chain files, of a folder those of the seeds; refuse an output that is one of them."""
    study, files = load_study(options.study), []
    for name in options.chains:
        files += [name / f"seed-{seed}.nc" for seed in range(study.seeds)] if name.is_dir() else [name]
    outputs.check_outputs(options, [("--data", options.data), *(("--chains", file) for file in files)])
    return study, files


def _in_its_folder(file: Path) -> Chains:
    """Return the chains of a file; raise DpmcError if it is named as those of another cell are."""
    chains = chain_files.read_chain(file)
    method, epsilon, seed = (str(chains.attrs[name]) for name in ("method", "epsilon", "seed"))
    own = (method, f"eps-{epsilon}", f"seed-{seed}.nc")
    if (there := file.absolute().parts[-3:])[1].startswith("eps-") and there != own:
        held = f"holds the chains of {method} at epsilon {epsilon}, seed {seed}"
        raise DpmcError(f"{file}: {held}, whose file is {'/'.join(own)}; move it there or remove it")
    return chains


def _chains_and_problem(
    study: Study, files: list[Path], options: argparse.Namespace
) -> tuple[Iterator[Chains], Problem]:
    """Return the chains of the files, read one by one, and the problem on which they all ran."""
    if not files:
        raise DpmcError("--chains: at least one chain file is needed")
    chains = map(_in_its_folder, files)
    first = next(chains)
    dataset = first.attrs["dataset"]
    problem = problem_of(study, first.attrs["model"], options.data, exact=True)
    if problem.dataset != dataset:
        raise DpmcError(f"{options.data}: holds the data set {problem.dataset}, the chains ran on {dataset}")
    return itertools.chain([first], chains), problem
