"""The command that tries or searches hyperparameters."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.cli import outputs
from dpmc.common.errors import DpmcError
from dpmc.common.progress import reporter
from dpmc.common.streams import canonical_epsilon
from dpmc.studies import Study, load_study, problem_of
from dpmc.tuning import LEAK

if TYPE_CHECKING:
    from dpmc.data.problem import Problem


def tune(options: argparse.Namespace) -> None:
    """Try hyperparameters of methods on a model, or search those of one; write them with their results."""
    import yaml

    from dpmc.common import files

    study = load_study(options.study)
    if len(options.method) != len(options.output):
        rule = f"{len(options.output)}, must be as many as methods ({len(options.method)})"
        raise DpmcError(f"--output: {rule}")
    for method in options.method:
        study.own_method(method)
    if options.epsilon is not None:
        study = study.tuned_at(options.model, canonical_epsilon(options.epsilon))
    elif options.search and ":" in options.model:
        raise DpmcError(f"--epsilon: needed to search for {options.model}, the one it will be sampled at")
    if options.search and len(options.method) > 1:
        raise DpmcError(f"--method: {', '.join(options.method)}: --search takes one")
    for name in ("trials", "seeds", "table"):
        if getattr(options, name) is not None and not options.search:
            raise DpmcError(f"--{name}: only with --search")
    table = options.table or options.output[0].with_suffix(".trials.csv")
    written = [("--output", file) for file in options.output]
    written += [("--table", table)] if options.search else []
    outputs.check(options, [("--data", options.data)], written, continued=["--table"])
    results = [_search(study, options, table)] if options.search else _pinned(study, options)
    for result, file in zip(results, options.output, strict=True):
        with files.replacing(file) as temporary:
            temporary.write_text(yaml.safe_dump(result, sort_keys=False, allow_unicode=True))


def _pinned(study: Study, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Try the pinned hyperparameters of each method; return what `tune` writes."""
    from dpmc.tuning import pinned

    tried = [method for method in options.method if study.is_tried(options.model, method)]
    problem = _tuning_problem(study, options) if tried else None
    results = []
    for method in options.method:
        progress = None if options.quiet else reporter(f"tune {options.model} {method}")
        given = problem if method in tried else None
        results.append(pinned.pinned(study, options.model, method, given, progress))
    return results


def _search(study: Study, options: argparse.Namespace, table: Path) -> dict[str, Any]:
    """Search hyperparameters; return what `tune` writes."""
    from dpmc.tuning import search

    (method,) = options.method
    if study.model(options.model).tuning_epsilon == "inf":
        raise DpmcError(f"--search: {options.model} has no budget to tune at: epsilon is inf")
    name = f"search {options.model} {method}"
    result = search.search(
        study,
        options.model,
        method,
        _tuning_problem(study, options),
        table,
        trials=options.trials or study.tuning.trials,
        seeds=options.seeds or study.tuning.seeds,
        progress=None if options.quiet else reporter(name, "trials"),
    )
    for text in search.warnings(result):
        print(f"dpmc: warning: {name}: {text}", file=sys.stderr)
    return result


def _tuning_problem(study: Study, options: argparse.Namespace) -> "Problem":
    """Return the problem to tune on.

    Raises DpmcError for rows that may be private, unless an option allows them.
    """
    from dpmc.data import datasets

    problem = problem_of(study, options.model, options.data, "tuning", exact=True)
    if not datasets.is_public(problem.dataset) and not options.rows_are_public:
        if not options.leak_private_rows_into_hyperparameters:
            raise DpmcError(
                f"{options.data}: {LEAK}; tune on generated rows (no --data), or give --rows-are-public, "
                "or --leak-private-rows-into-hyperparameters"
            )
        print(f"dpmc: warning: {options.data}: {LEAK}; allowed by an option", file=sys.stderr)
    return problem
