"""The command that predicts how wide intervals will be."""

import argparse

from dpmc.analysis.planning import plan as planned
from dpmc.cli import outputs
from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.common.values import decimal

#: Options that are arguments as they are.
ARGUMENTS = "family n epsilon delta methods rows_per_person".split()


def plan(options: argparse.Namespace) -> None:
    """Print half widths of intervals of a formula or a model; write them as a table and a picture."""
    written = [("--csv", options.csv), ("--plot", options.plot)]
    outputs.check_outputs(options, [("--codebook", options.codebook)], written)
    if (options.formula is None) == (options.model is None):
        raise DpmcError("FORMULA, --model: give one of them")
    found = planned(
        options.formula or options.model,
        options.codebook,
        guess=dict(map(_pair, options.guess or ())),
        progress=not options.quiet,
        **{name: getattr(options, name) for name in ARGUMENTS},
        **({} if options.prior_sd is None else {"prior_sd": options.prior_sd}),
    )
    if not options.quiet:
        print(found)
    if options.csv:
        with replacing(options.csv) as temporary:
            found.to_frame().to_csv(temporary, index=False)
    if options.plot:
        found.plot(options.plot)


def _pair(text: str) -> tuple[str, float]:
    """Return name and value of a guess; raise DpmcError for another text."""
    name, _, value = text.rpartition("=")
    try:
        return name, decimal(value)
    except ValueError as error:
        raise DpmcError(f"--guess: {text}: must be NAME=VALUE ({error})") from None
