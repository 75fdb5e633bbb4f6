"""The command that predicts how wide intervals will be."""

import argparse

from dpmc.analysis.planning import plan as planned
from dpmc.cli import outputs
from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing

#: Options that are arguments as they are.
ARGUMENTS = "family n epsilon delta methods rows_per_person".split()
OF_MODEL = "prior_sd offset weights sd dispersion".split()  #: options of a formula's model


def plan(options: argparse.Namespace) -> None:
    """Print half widths of intervals of a formula or a model; write them as a table and a picture."""
    written = [("--csv", options.csv), ("--plot", options.plot)]
    outputs.check_outputs(options, [("--codebook", options.codebook)], written)
    if (options.formula is None) == (options.model is None):
        raise DpmcError("FORMULA, --model: give one of them")
    found = planned(
        options.formula or options.model,
        options.codebook,
        guess=dict(options.guess or ()),
        progress=not options.quiet,
        **{name: getattr(options, name) for name in ARGUMENTS},
        **{name: value for name in OF_MODEL if (value := getattr(options, name)) is not None},
    )
    if not options.quiet:
        print(found)
    if options.csv:
        with replacing(options.csv) as temporary:
            found.to_frame().to_csv(temporary, index=False)
    if options.plot:
        found.plot(options.plot)
