"""Commands that make or fetch data."""

import argparse

from dpmc.cli import outputs
from dpmc.common import files
from dpmc.data import sources
from dpmc.studies import load_study, problem_of
from dpmc.studies.study import STARTS_IN_FILE


def data(options: argparse.Namespace) -> None:
    """Write a problem file."""
    outputs.check_outputs(options, [("--rows", options.rows)])
    study = load_study(options.study)
    problem = problem_of(study, options.model, dataset=options.data, rows=options.rows)
    # The same file for any number of seeds, so that more of them leave the first ones' chains alone.
    problem.starts = problem.starts[:STARTS_IN_FILE]
    problem.write(options.output)


def fetch(options: argparse.Namespace) -> None:
    """Find or fetch the files of a source of image data; write their checksums."""
    source = sources.source(options.source)
    if options.output is None:
        print(sources.fetch(source), end="")
        return
    outputs.check_outputs(options)
    # After the check of the output, so that no download is made in vain.
    checksums = sources.fetch(source)
    with files.replacing(options.output) as temporary:
        temporary.write_text(checksums)
