"""What several commands do with their options: study, problem, hyperparameters, outputs."""

import argparse
import csv
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmc.algorithms import ALGORITHMS
from dpmc.algorithms.hyperparameters import hyperparameters_in
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.studies import SourcedValues, Study, load_study, pinned_hyperparameters, read_yaml


def study_as_asked(options: argparse.Namespace) -> Study:
    """Read the study with the numbers that options replace; on a user's model each algorithm runs."""
    study = load_study(options.study)
    for method in options.method if isinstance(options.method, list) else [options.method]:
        if ":" in options.model and method in ALGORITHMS and method not in study.methods:
            study = study.running(method)
    rows = getattr(options, "rows_per_person", None)  # `dpmc release` protects rows
    given = {"chains": options.chains, "delta": options.delta, "rows_per_person": rows}
    if person := getattr(options, "person", None):
        if rows is None or options.data is None or not files.is_table(options.data):
            raise DpmcError("--person: needs --rows-per-person, and a table of rows as --data")
        given["person"] = person
    return dataclasses.replace(study, **{key: value for key, value in given.items() if value is not None})


def hyperparameters_of(study: Study, model: str, method: str, file: Path | None) -> SourcedValues:
    """Return the hyperparameters of `--hyperparameters`, or the study's own."""
    if file is None:
        return pinned_hyperparameters(study, model, method)
    values = hyperparameters_in(read_yaml(file), str(file), {"model": model, "method": method})
    return SourcedValues(values, str(file))


def write_table(output: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows, mappings with these keys, as CSV."""
    with files.replacing(output) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
