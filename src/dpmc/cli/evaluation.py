"""Commands that read chains (metrics, traces, figures), and the measurement of speed."""

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.cli import outputs
from dpmc.cli.given import write_table
from dpmc.cli.outputs import Files
from dpmc.common.errors import DpmcError
from dpmc.studies import Study, load_study, make_cell, pinned_hyperparameters, problem_of

if TYPE_CHECKING:
    from dpmc.data.chain_files import Chains
    from dpmc.data.problem import Problem


def evaluate(options: argparse.Namespace) -> None:
    """Write the metrics of the cells of one model, or of its baselines, as CSV."""
    from dpmc.metrics import cell

    study = load_study(options.study)
    outputs.check(options, _inputs(study, options))
    if not options.baselines:
        rows = cell.metrics_of_cells(*_chains_and_problem(study, options))
    elif options.model is None:
        raise DpmcError("--model: needed with --baselines")
    else:
        problem = problem_of(study, options.model, options.data, exact=True)
        rows = cell.baseline_metrics(problem, study.name)
    write_table(options.output, cell.COLUMNS, rows)


def trace(options: argparse.Namespace) -> None:
    """Write metrics along the chains of the cells of one model as CSV."""
    from dpmc.metrics import traces

    study = load_study(options.study)
    outputs.check(options, _inputs(study, options))
    write_table(options.output, traces.COLUMNS, traces.traces(*_chains_and_problem(study, options)))


def speed(options: argparse.Namespace) -> None:
    """Measure seconds per iteration of the cells of a study, one after another; write them as CSV.

    Each (model, method) runs at the model's tuning ε, else at the first one of its cells.
    """
    from dpmc.sampling import speed

    outputs.check(options, [("--data", file) for file in options.data])
    study = load_study(options.study)
    files = {path.parent.name: path for path in options.data}
    chosen: dict[tuple[str, str], str] = {}
    for model, method, epsilon in study.cells():
        if epsilon == study.model(model).tuning_epsilon:
            chosen[model, method] = epsilon
        chosen.setdefault((model, method), epsilon)
    rows = []
    for model, cells in itertools.groupby(chosen.items(), key=lambda item: item[0][0]):
        if model not in (files or study.models):
            continue
        problem = problem_of(study, model, files.get(model))
        for (_, method), epsilon in cells:
            cell = make_cell(study, problem, method, epsilon, pinned_hyperparameters(study, model, method))
            iterations, seconds = speed.seconds_per_iteration(cell)
            values = (study.name, model, method, epsilon, iterations, seconds)
            rows.append(dict(zip(speed.COLUMNS, values, strict=True)))
            if not options.quiet:
                print(f"{model} {method}: {1e6 * seconds:.1f} microseconds", file=sys.stderr, flush=True)
    write_table(options.output, speed.COLUMNS, rows)


def plot(options: argparse.Namespace) -> None:
    """Draw one figure, or write one table, into every file given."""
    from dpmc.reports import plots, tables

    study, name = load_study(options.study), options.figure
    if name in tables.TABLES:
        _write_table(study, options)
        return
    models, read = plots.reads(name, study, options.results)
    if models and not options.metrics:
        raise DpmcError(f"--metrics: needed to draw {name}")
    plots.check_names(options.output)
    _check_outputs(options, read)
    plots.plot(name, study, options.metrics, options.published, options.output, options.results)


def _write_table(study: Study, options: argparse.Namespace) -> None:
    """Write one table into every file given; the pipeline's rules follow the sources of this function."""
    from dpmc.reports import tables

    name = options.figure
    tables.check_names(name, options.output)
    _check_outputs(options, tables.inputs(name, study, options.results))
    tables.write(name, study, options.output, options.results)


def _check_outputs(options: argparse.Namespace, results: list[Path]) -> None:
    """Check the outputs of `plot`, which reads these results."""
    read = [("--metrics", options.metrics), ("--results", results)]
    inputs = [(option, file) for option, files in read for file in files]
    outputs.check(options, inputs, [("--output", file) for file in options.output])


def _chains_and_problem(study: Study, options: argparse.Namespace) -> tuple[Iterator["Chains"], "Problem"]:
    """Return the chains of `--chains`, read one by one, and the problem on which they ran.

    Raises DpmcError if there are no chains, or if they ran on another data set.
    """
    from dpmc.data import chain_files

    if not options.chains:
        raise DpmcError("--chains: at least one chain file is needed")
    chains = map(chain_files.read_chain, _chain_files(study, options.chains))
    first = next(chains)
    dataset = first.attrs["dataset"]
    problem = problem_of(study, first.attrs["model"], options.data, exact=True)
    if problem.dataset != dataset:
        raise DpmcError(f"{options.data}: holds the data set {problem.dataset}, the chains ran on {dataset}")
    return itertools.chain([first], chains), problem


def _inputs(study: Study, options: argparse.Namespace) -> Files:
    """Return the files that `evaluate` and `trace` read, each with its option."""
    return [("--data", options.data), *(("--chains", file) for file in _chain_files(study, options.chains))]


def _chain_files(study: Study, names: list[Path]) -> list[Path]:
    """Return the chain files; a folder holds one cell and stands for the files of the study's seeds."""
    files: list[Path] = []
    for name in names:
        files += [name / f"seed-{seed}.nc" for seed in range(study.seeds)] if name.is_dir() else [name]
    return files
