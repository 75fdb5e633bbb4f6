"""Commands that read chains (metrics, traces, figures), and the measurement of speed."""

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

from dpmc.cli.given import check_output, problem_of, write_table
from dpmc.common.errors import DpmcError
from dpmc.data import outputs
from dpmc.data.outputs import Output
from dpmc.studies import Study, load_study
from dpmc.studies.figures import declared_figure


def evaluate(options: argparse.Namespace) -> None:
    """Write the metrics of the cells of one model, or of its baselines, as CSV."""
    from dpmc.data import datasets
    from dpmc.metrics import cell

    study = load_study(options.study)
    check_output(options, outputs.csv_table(cell.COLUMNS), _evaluated(study, options))
    if options.baselines:
        if options.model is None:
            raise DpmcError("--model: needed with --baselines")
        problem = datasets.with_exact_posterior(problem_of(study, options.model, options.data))
        rows = cell.baseline_metrics(problem, study=study.name, model=options.model, dataset=problem.dataset)
    else:
        if not options.chains:
            raise DpmcError("--chains: at least one chain file is needed, or --baselines")
        rows = cell.metrics_of_cells(*_chains_and_problem(study, options))
    write_table(options.output, cell.COLUMNS, rows)


def trace(options: argparse.Namespace) -> None:
    """Write metrics along the chains of the cells of one model as CSV."""
    from dpmc.metrics import traces

    study = load_study(options.study)
    check_output(options, outputs.csv_table(traces.COLUMNS), _evaluated(study, options))
    write_table(options.output, traces.COLUMNS, traces.traces(*_chains_and_problem(study, options)))


def speed(options: argparse.Namespace) -> None:
    """Measure seconds per iteration of the cells of a study, one after another; write them as CSV."""
    from dpmc.sampling import speed

    check_output(options, outputs.csv_table(speed.COLUMNS), [("--data", file) for file in options.data])
    study = load_study(options.study)
    files = {path.parent.name: path for path in options.data}
    shown = files or study.models
    chosen: dict[tuple[str, str], str] = {}
    for model, method, epsilon in study.cells():
        wanted = epsilon == study.model(model).tuning_epsilon
        if model in shown and (wanted or (model, method) not in chosen):
            chosen[model, method] = epsilon
    rows = []
    for model, cells in itertools.groupby(chosen.items(), key=lambda item: item[0][0]):
        study.definition(model)
        problem = problem_of(study, model, files.get(model))
        for (_, method), epsilon in cells:
            values, source = study.pinned_hyperparameters(model, method)
            cell = study.cell(problem, method, epsilon, values, source)
            iterations, seconds = speed.seconds_per_iteration(cell)
            values_of_row = (study.name, model, method, epsilon, iterations, seconds)
            rows.append(dict(zip(speed.COLUMNS, values_of_row, strict=True)))
            if not options.quiet:
                print(f"{model} {method}: {1e6 * seconds:.1f} microseconds", file=sys.stderr, flush=True)
    write_table(options.output, speed.COLUMNS, rows)


def plot(options: argparse.Namespace) -> None:
    """Draw one figure, or write one table, into every file given."""
    from dpmc.reports import plots, tables

    study = load_study(options.study)
    if options.figure in tables.TABLES:
        _write_table(study, options)
        return
    declared_figure(study.path, options.figure)
    models, read = plots.reads(options.figure, study, options.results)
    if models and not options.metrics:
        raise DpmcError(f"--metrics: needed to draw {options.figure}")
    written = [
        Output("--output", output, plots.kind_of_output(options.figure, study, output))
        for output in options.output
    ]
    metrics = [("--metrics", file) for file in options.metrics]
    inputs = [*metrics, *(("--results", file) for file in read)]
    outputs.check(written, inputs, options.force)
    plots.plot(options.figure, study, options.metrics, options.published, options.output, options.results)


def _write_table(study: Study, options: argparse.Namespace) -> None:
    """Write one table into every file given."""
    from dpmc.reports import tables

    name = options.figure
    written = [Output("--output", output, tables.kind_of_output(name, output)) for output in options.output]
    read = [("--results", file) for file in tables.inputs(name, study, options.results)]
    outputs.check(written, [*(("--metrics", file) for file in options.metrics), *read], options.force)
    tables.write(name, study, options.output, options.results)


def _chains_and_problem(study: Study, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the chains of `--chains`, read one by one, and the problem on which they ran.

    Raises DpmcError if there are no chains, or if they ran on another data set.
    """
    from dpmc.data import chain_files, datasets

    if not options.chains:
        raise DpmcError("--chains: at least one chain file is needed")
    files = map(chain_files.read_chain, _chain_files(study, options.chains))
    first = next(files)
    problem = problem_of(study, first.attrs["model"], options.data)
    if problem.dataset != first.attrs["dataset"]:
        raise DpmcError(
            f"{options.data}: holds the data set {problem.dataset}, "
            f"the chains ran on {first.attrs['dataset']}"
        )
    return itertools.chain([first], files), datasets.with_exact_posterior(problem)


def _evaluated(study: Study, options: argparse.Namespace) -> list[tuple[str, Path | None]]:
    """Return the files that `evaluate` and `trace` read, each with its option."""
    chains = _chain_files(study, options.chains)
    return [("--data", options.data), *(("--chains", file) for file in chains)]


def _chain_files(study: Study, names: list[Path]) -> list[Path]:
    """Return the chain files; a folder holds one cell and stands for the files of the study's seeds."""
    return [
        file
        for name in names
        for file in ([name / f"seed-{seed}.nc" for seed in range(study.seeds)] if name.is_dir() else [name])
    ]
