"""The command that tries or searches hyperparameters."""

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from dpmc.cli import outputs
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.progress import live_line
from dpmc.common.streams import canonical_epsilon
from dpmc.data import datasets
from dpmc.data.problem import Problem
from dpmc.studies import Study, load_study, problem_of
from dpmc.tuning import LEAK, pinned, search


def tune(options: argparse.Namespace) -> None:
    """Try the hyperparameters of methods on a model, or search those of one; write them with results."""
    study, model = load_study(options.study), options.model
    for method in options.method:
        study.own_method(method)
    if options.search and len(options.method) > 1:
        raise DpmcError(f"--method: {' '.join(options.method)}: must be one with --search")
    if len(options.method) != len(options.output):
        raise DpmcError(
            f"--output: {len(options.output)} files for {len(options.method)} methods, must be equal"
        )
    if options.epsilon is not None:
        study = study.tuned_at(model, canonical_epsilon(options.epsilon))
    elif options.search and ":" in model:
        raise DpmcError(f"--epsilon: needed to search for {model}, the one it will be sampled at")
    for name in ("trials", "seeds", "table"):
        if getattr(options, name) is not None and not options.search:
            raise DpmcError(f"--{name}: only with --search")
    table = options.table or options.output[0].with_suffix(".trials.csv")
    written = [("--output", file) for file in options.output]
    written += [("--table", table)] if options.search else []
    # The table of an interrupted search exists and is continued.
    outputs.check_outputs(options, [("--data", options.data)], written, continued=["--table"])
    tried = [method for method in options.method if study.is_tried(model, method)]
    problem = _tuning_problem(study, options) if tried or options.search else None
    for method, output in zip(options.method, options.output, strict=True):
        if options.search and problem:
            result = _search(study, options, problem, table)
        else:
            own, progress = problem if method in tried else None, live_line(f"tune {model} {method}")
            result = pinned.pinned(study, model, method, own, None if options.quiet else progress)
        with files.replacing(output) as temporary:
            temporary.write_text(yaml.safe_dump(result, sort_keys=False, allow_unicode=True))


def _search(study: Study, options: argparse.Namespace, problem: Problem, table: Path) -> dict[str, Any]:
    """Search the hyperparameters of one method; return what `tune` writes."""
    (method,) = options.method
    name = f"search {options.model} {method}"
    progress = None if options.quiet else live_line(name, "trials")
    task = search.task_of_study(study, options.model, method, problem)
    trials, seeds = options.trials or study.tuning.trials, options.seeds or study.tuning.seeds
    total = len(problem.starts) // study.chains
    result = search.search(task, table, trials, seeds, total, progress)
    for text in search.warnings(result):
        print(f"dpmc: warning: {name}: {text}", file=sys.stderr)
    return result


def _tuning_problem(study: Study, options: argparse.Namespace) -> Problem:
    """Return the problem to tune on; refuse rows that may be private, unless an option allows them."""
    if options.search and study.model(options.model).tuning_epsilon == "inf":
        raise DpmcError(f"--search: {options.model} has no budget to tune at: epsilon is inf")
    problem = problem_of(study, options.model, options.data, "tuning", exact=True)
    if not datasets.is_public(problem.dataset) and not options.rows_are_public:
        if not options.leak_private_rows_into_hyperparameters:
            raise DpmcError(
                f"{options.data}: {LEAK}; tune on generated rows (no --data), or give --rows-are-public, "
                "or --leak-private-rows-into-hyperparameters"
            )
        print(f"dpmc: warning: {options.data}: {LEAK}; allowed by an option", file=sys.stderr)
    return problem
