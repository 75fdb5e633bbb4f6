"""Commands that make data, and those about the codebook of a table."""

import argparse
import json

from dpmc.cli import outputs
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.values import STARTS
from dpmc.data.tables import names_in, odd_entries
from dpmc.models.codebook import Codebook, template
from dpmc.studies import load_study, problem_of


def data(options: argparse.Namespace) -> None:
    """Write a problem file."""
    outputs.check_outputs(options, [("--rows", options.rows)])
    study = load_study(options.study)
    problem = problem_of(study, options.model, dataset=options.data, rows=options.rows)
    # The same file for any number of seeds, so that more of them leave the first ones' chains alone.
    problem.starts = problem.starts[:STARTS]
    problem.write(options.output)


def codebook(options: argparse.Namespace) -> None:
    """Write a codebook to fill in, from the names of a table's columns; or the JSON schema of codebooks."""
    if (options.table is None) != options.schema:
        raise DpmcError("codebook: needs a table, or --schema")
    outputs.check_outputs(options, [("TABLE", options.table)])
    if options.schema:
        text = json.dumps(Codebook.model_json_schema(), indent=2) + "\n"
    else:
        names, delimiter = names_in(options.table)
        text = template(names, files.stem(options.table), delimiter)
    if options.output is None:
        print(text, end="")
        return
    with files.replacing(options.output) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_rows(options: argparse.Namespace) -> None:
    """Print which entries of a table are not as its codebook says, for the holder's eyes."""
    book = Codebook.read(options.codebook)
    columns = options.columns or [field.name for field in book.fields if not field.is_text]
    for name, count, first in odd_entries(options.table, columns, book.coding(columns)):
        print(f"{name}: {count or 'no'} odd {'entry' if count <= 1 else 'entries'}")
        print(*(f"  {text}" for text in first), sep="\n", end="\n" * bool(first))
    print(
        "This output is private: no epsilon covers it. By it mend how entries are coded, in the table or in "
        "the codebook; nothing else of an analysis may depend on it."
    )
