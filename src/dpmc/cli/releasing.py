"""The command that makes a release."""

import argparse
import dataclasses

from dpmc.cli import outputs
from dpmc.cli.given import hyperparameters_of, study_as_asked
from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import STARTS
from dpmc.data import datasets
from dpmc.data.tables import of_length, read_rows
from dpmc.evaluators.calls import open_closed_streams
from dpmc.privacy.data_ledger import DataLedger
from dpmc.releases import loop as releases
from dpmc.releasing import reporter
from dpmc.studies import definition_of, make_cell


def release(options: argparse.Namespace) -> None:
    """Make a release of a study's model and method on private rows, and write it."""
    open_closed_streams()
    study = study_as_asked(options)
    study.own_method(options.method)
    spec, definition = study.model(options.model), definition_of(study, options.model)
    file = options.data or spec.rows_file
    if file is None:
        raise DpmcError("--data: needed, since the study names no file with rows of this model")
    inputs = [("--data", file), ("--hyperparameters", options.hyperparameters), ("--ledger", options.ledger)]
    outputs.check_outputs(options, inputs)
    ledger = DataLedger.open(options.ledger)
    columns, coding = (getattr(definition.model, key, None) for key in ("column_names", "coding"))
    columns = spec.columns or columns
    rows, chains = (
        of_length(read_rows(file, columns, coding, private=True), options.n),
        max(study.chains, STARTS),
    )
    source = (str(file), repr(columns), repr(coding))
    setting = datasets.public_setting(options.model, spec.model, rows.shape, chains, definition, source)
    if spec.start == "true":
        setting.starts = setting.true_theta[None]
    given = hyperparameters_of(study, options.model, options.method, options.hyperparameters)
    cell = make_cell(study, setting, options.method, canonical_epsilon(options.epsilon), given)
    lengths = {"iterations": options.iterations, "thin": options.thin}
    cell = dataclasses.replace(cell, **{name: k for name, k in lengths.items() if k is not None})
    values = {**given.values, **study.method(options.method).options}
    cell = dataclasses.replace(cell, given=dataclasses.replace(cell.given, hyperparameters=values))
    report = None if options.quiet else reporter(f"{options.model} {options.method}")
    releases.release(cell, rows, ledger, options.output, report)
