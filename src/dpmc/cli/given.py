"""Options that several commands share: study, data, hyperparameters and outputs."""

import argparse
import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmc.common.errors import DpmcError
from dpmc.common.progress import reporter
from dpmc.common.values import MOST_CHAINS
from dpmc.data import outputs
from dpmc.data.outputs import Output
from dpmc.studies import (
    Hyperparameters,
    Study,
    definition_of,
    load_study,
    number_of_rows,
    pinned_hyperparameters,
    read_rows,
    read_yaml,
)


def study_as_asked(options: argparse.Namespace) -> Study:
    """Read the study; `--chains` and `--delta` replace its own numbers.

    Raises DpmcError for a number out of range.
    """
    study = load_study(options.study)
    delta, chains = options.delta, at_least(1, "chains", options.chains, study.chains)
    if delta is not None and not 0.0 < delta < 1.0:
        raise DpmcError(f"--delta: {delta} must be between 0 and 1, both excluded")
    if options.chains is not None and options.chains > MOST_CHAINS:
        raise DpmcError(f"--chains: {options.chains} must be at most {MOST_CHAINS}")
    return dataclasses.replace(
        study, chains=chains or study.chains, delta=study.delta if delta is None else delta
    )


def problem_of(
    study: Study,
    label: str,
    file: Path | None,
    dataset: str | None = None,
    rows: Path | None = None,
    starts: int = 20,
) -> Any:
    """Return the problem of a model: from a file, from a user's rows, or generated as in the study.

    Raises DpmcError for a file with another model or another number of rows than the study's.
    """
    from dpmc.data.problem import read_problem

    spec = study.model(label)
    starts = max(starts, study.start_points)
    if file is not None and file.suffix in (".csv", ".parquet"):
        file, rows = None, file
    elif file is None and rows is None and dataset in (None, spec.data):
        rows = spec.rows_file
    if rows is not None or file is None:
        from dpmc.data import datasets  # slow to import; a job that reads a problem file does not need it
    if rows is not None:
        definition = definition_of(study, label)
        problem = datasets.from_rows(
            label, spec.model, rows.stem, read_rows(study, label, rows), starts, str(rows), definition
        )
        if spec.start == "true":
            problem.starts[:] = problem.true_theta
        return problem
    if file is None:
        name = datasets.tuning_set(spec.data) if dataset == "tuning" else dataset or spec.data
        n = number_of_rows(study, label) if spec.rows_file else spec.n
        return datasets.build(label, spec.model, name, n, starts, spec.start, definition_of(study, label))
    problem = read_problem(file)
    for kind, held, wanted in (("label", problem.label, label), ("model", problem.model_id, spec.model)):
        if held != wanted:
            raise DpmcError(f"{file}: {kind}: holds data for {held}, not for {wanted}")
    if spec.n is not None and spec.n != problem.n:
        raise DpmcError(f"{file}: rows: {problem.n}, the study wants n = {spec.n}")
    return problem


def hyperparameters_of(study: Study, options: argparse.Namespace) -> Hyperparameters:
    """Return hyperparameters and their source: `--hyperparameters`, or the study's own."""
    if options.hyperparameters is None:
        return pinned_hyperparameters(study, options.model, options.method)
    path = options.hyperparameters
    content = read_yaml(path)
    if isinstance(content, dict) and "hyperparameters" in content:
        for key, wanted in (("model", options.model), ("method", options.method)):
            if content.get(key, wanted) != wanted:
                raise DpmcError(f"{path}: {key}: {content[key]!r} is not {wanted!r}")
        content = content["hyperparameters"]
    if not isinstance(content, dict):
        raise DpmcError(f"{path}: must be a mapping of hyperparameters")
    return Hyperparameters(content, str(path))


def at_least(least: int, key: str, *values: int | None) -> int | None:
    """Return the first value that is not None; raise DpmcError if it is below `least`."""
    for value in values:
        if value is not None:
            if value < least:
                raise DpmcError(f"--{key}: {value} must be at least {least}")
            return value
    return None


def check_output(
    options: argparse.Namespace, kind: outputs.Kind, inputs: Sequence[tuple[str, Path | None]] = ()
) -> None:
    """Refuse an `--output` that would overwrite something else; see `outputs.check`."""
    if options.output is not None:
        outputs.check([Output("--output", options.output, kind)], inputs, options.force)


def write_table(output: Path, columns: tuple[str, ...], rows: Any) -> None:
    """Write rows, mappings with these keys, as CSV."""
    from dpmc.common import files

    with files.replacing(output) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def progress_of(name: str, quiet: bool, what: str = "iterations") -> Any:
    """Return a function that reports progress on standard error; None if `quiet`. `what` is counted."""
    return None if quiet else reporter(name, what)
