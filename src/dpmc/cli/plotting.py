"""The command that draws figures and writes tables."""

import argparse

from dpmc.cli import outputs
from dpmc.common.errors import DpmcError
from dpmc.reports import plots, tables
from dpmc.studies import load_study


def plot(options: argparse.Namespace) -> None:
    """Draw one figure, or write one table, into every file given."""
    study, name = load_study(options.study), options.figure
    if name in tables.LAYOUTS:
        read = tables.table_files(name, study, options.results)
    else:
        models, read = plots.reads(name, study, options.results)
        if models and not options.metrics:
            raise DpmcError(f"--metrics: needed to draw {name}")
    inputs = [("--metrics", file) for file in options.metrics] + [("--results", file) for file in read]
    outputs.check_outputs(options, inputs, [("--output", file) for file in options.output])
    if name in tables.LAYOUTS:
        tables.save_table(name, study, options.output, options.results)
    else:
        plots.plot(name, study, options.metrics, options.output, options.results)
