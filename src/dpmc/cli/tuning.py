"""The command that tries or searches hyperparameters."""

import argparse
import sys
from pathlib import Path
from typing import Any

from dpmc.cli.given import at_least, problem_of, progress_of
from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.data import outputs
from dpmc.data.outputs import Output
from dpmc.studies import Study, load_study


def tune(options: argparse.Namespace) -> None:
    """Try or search the hyperparameters of a method on a model; write them with their results."""
    import yaml

    from dpmc.common import files
    from dpmc.tuning import pinned

    study = load_study(options.study)
    study.own_method(options.method)
    if options.epsilon is not None:
        study = study.tuned_at(options.model, canonical_epsilon(options.epsilon))
    elif options.search and ":" in options.model:
        raise DpmcError(f"--epsilon: needed to search for {options.model}, the one it will be sampled at")
    for name in ("trials", "seeds", "table", "figure"):
        if getattr(options, name) is not None and not options.search:
            raise DpmcError(f"--{name}: only with --search")
    table = options.table or options.output.with_suffix(".trials.csv")
    written = [Output("--output", options.output, outputs.HYPERPARAMETERS)]
    if options.search:
        written.append(Output("--table", table, outputs.STATE))
    if options.figure is not None:
        written.append(Output("--figure", options.figure, outputs.FIGURE))
    outputs.check(written, [("--data", options.data)], options.force)
    if options.search:
        result = _search(study, options, table)
    elif not study.is_tried(options.model, options.method):
        result = pinned.untried(study, options.model, options.method)
    else:
        problem = _tuning_problem(study, options)
        progress = progress_of(f"tune {options.model} {options.method}", options.quiet)
        result = pinned.pinned(study, options.model, options.method, problem, progress)
    with files.replacing(options.output) as temporary:
        temporary.write_text(yaml.safe_dump(result, sort_keys=False, allow_unicode=True))


def _search(study: Study, options: argparse.Namespace, table: Path) -> dict[str, Any]:
    """Search hyperparameters; draw the search if `--figure` is given. Returns what `tune` writes."""
    from dpmc.reports.plots import FORMATS
    from dpmc.tuning import search

    if study.model(options.model).tuning_epsilon == "inf":
        raise DpmcError(f"--search: {options.model} has no budget to tune at: epsilon is inf")
    if options.figure and options.figure.suffix[1:].lower() not in FORMATS:
        raise DpmcError(f"--figure: {options.figure}: must end in .{', .'.join(FORMATS)}")
    problem = _tuning_problem(study, options)
    name = f"search {options.model} {options.method}"
    result = search.search(
        study,
        options.model,
        options.method,
        problem,
        table,
        trials=at_least(1, "trials", options.trials, study.tuning.trials) or 1,
        seeds=at_least(1, "seeds", options.seeds, study.tuning.seeds) or 1,
        progress=progress_of(name, options.quiet, "trials"),
    )
    for text in search.warnings(result):
        print(f"dpmc: warning: {name}: {text}", file=sys.stderr)
    if options.figure:
        _draw_search(study, table, result, options.figure)
    return result


def _draw_search(study: Study, table: Path, result: dict[str, Any], output: Path) -> None:
    """Write the figure of a search."""
    from dpmc.reports.plots import search as figure
    from dpmc.reports.plots import style
    from dpmc.tuning import trials

    style.save(figure.draw(trials.read(table), result, study), output)


def _tuning_problem(study: Study, options: argparse.Namespace) -> Any:
    """Return the problem to tune on.

    Raises DpmcError for rows that may be private, unless an option allows them.
    """
    from dpmc.data import datasets

    problem = problem_of(study, options.model, options.data, "tuning")
    if datasets.is_public(problem.dataset) or options.rows_are_public:
        return datasets.with_exact_posterior(problem)
    warning = (
        f"{options.data}: hyperparameters chosen on private rows reveal information about them that no "
        "epsilon covers; "
    )
    if not options.leak_private_rows_into_hyperparameters:
        raise DpmcError(
            warning + "tune on generated rows (no --data), or give --rows-are-public, "
            "or --leak-private-rows-into-hyperparameters"
        )
    print(f"dpmc: warning: {warning}allowed by an option", file=sys.stderr)
    return datasets.with_exact_posterior(problem)
