"""What several commands do with their options: study, problem, hyperparameters, outputs."""

import argparse
import csv
import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.algorithms.hyperparameters import hyperparameters_in
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.data import outputs
from dpmc.data.outputs import Kind, Output
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

if TYPE_CHECKING:
    from dpmc.data.problem import Problem

#: Files that a command reads, each with its option; None if the option is not given.
Inputs = list[tuple[str, Path | None]]


def study_as_asked(options: argparse.Namespace) -> Study:
    """Read the study; `--chains` and `--delta` replace its own numbers."""
    study = load_study(options.study)
    given = {"chains": options.chains, "delta": options.delta}
    return dataclasses.replace(study, **{key: value for key, value in given.items() if value is not None})


def problem_of(
    study: Study,
    label: str,
    file: Path | None = None,
    dataset: str | None = None,
    rows: Path | None = None,
    starts: int = 20,
) -> "Problem":
    """Return the problem of a model: from a file, from a user's rows, or generated as in the study.

    Rows are in the file `rows`, in a CSV or Parquet `file`, or in that of the study. Raises DpmcError for a
    file with another model or another number of rows than the study's.
    """
    from dpmc.data.problem import read_problem

    spec = study.model(label)
    if file is not None and file.suffix not in (".csv", ".parquet"):
        problem = read_problem(file)
        for kind, held, wanted in (("label", problem.label, label), ("model", problem.model_id, spec.model)):
            if held != wanted:
                raise DpmcError(f"{file}: {kind}: holds data for {held}, not for {wanted}")
        if spec.n not in (None, problem.n):
            raise DpmcError(f"{file}: rows: {problem.n}, the study wants n = {spec.n}")
        return problem
    from dpmc.data import datasets  # slow to import; a job that reads a problem file does not need it

    definition, starts = definition_of(study, label), max(starts, study.start_points)
    file = rows or file or (spec.rows_file if dataset in (None, spec.data) else None)
    if file is None:
        name = datasets.tuning_set(spec.data) if dataset == "tuning" else dataset or spec.data
        n = number_of_rows(study, label) if spec.rows_file else spec.n
        return datasets.build(label, spec.model, name, n, starts, spec.start, definition)
    table = read_rows(study, label, file)
    problem = datasets.from_rows(label, spec.model, file.stem, table, starts, str(file), definition)
    if spec.start == "true":
        problem.starts[:] = problem.true_theta
    return problem


def hyperparameters_of(study: Study, model: str, method: str, file: Path | None) -> Hyperparameters:
    """Return the hyperparameters of `--hyperparameters`, or the study's own."""
    if file is None:
        return pinned_hyperparameters(study, model, method)
    values = hyperparameters_in(read_yaml(file), str(file), {"model": model, "method": method})
    return Hyperparameters(values, str(file))


def check_output(options: argparse.Namespace, kind: Kind, inputs: Inputs | None = None) -> None:
    """Refuse an `--output` that would overwrite something else; see `outputs.check`."""
    outputs.check([Output("--output", options.output, kind)], inputs or [], options.force)


def write_table(output: Path, columns: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows, mappings with these keys, as CSV."""
    with files.replacing(output) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
