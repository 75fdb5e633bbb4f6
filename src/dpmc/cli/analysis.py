"""The commands of an analysis: fit a formula, and read an answer again."""

import argparse
from pathlib import Path

from dpmc.analysis.fit import Fit
from dpmc.analysis.fitting import fit as fitted
from dpmc.cli import outputs
from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing, write_netcdf
from dpmc.models.codebook import Codebook

#: Options of `dpmc fit` that are arguments as they are.
GIVEN = (
    "family epsilon delta ledger n prior_sd clip rows_per_person seed offset weights dispersion sd".split()
)
WRITTEN = ("report", "csv", "plot")  #: options with files that are made of an answer


def fit(options: argparse.Namespace) -> None:
    """Fit a regression by noisy scores, as a release if there is a ledger; print and write what it says."""
    inputs = [("TABLE", options.table), ("--codebook", options.codebook), ("--ledger", options.ledger)]
    outputs.check_outputs(options, inputs, [("--output", options.output), *_written(options)])
    if options.ledger is not None and options.output is None:
        raise DpmcError("--output: needed: a release whose file is lost has spent its epsilon for nothing")
    given = {name: getattr(options, name) for name in GIVEN}
    given = {name: value for name, value in given.items() if value is not None}
    book, output = Codebook.read(options.codebook), options.output if options.ledger else None
    found = fitted(options.formula, options.table, book, output=output, **given)
    if options.output and not options.ledger:
        write_netcdf(options.output, found.tree, {})
        found.files = (options.output.name,)
    _say(found, options)


def read(options: argparse.Namespace) -> None:
    """Print what answers say, of one table: coefficients, contrasts; write a report, a table, a picture."""
    outputs.check_outputs(options, [("files", Path(file)) for file in options.files], _written(options))
    given = options.prior_sd
    prior_sd = given[0] if given and len(given) == 1 else given
    if not options.apart:
        _say(Fit(options.files, prior_sd=prior_sd), options)
        return
    if options.report or options.csv:
        raise DpmcError("--apart: is for the text and --plot; a report and a CSV are of one answer")
    fits = {Path(file).stem: Fit(file, prior_sd=prior_sd) for file in options.files}
    for fit in fits.values():
        _say(fit, argparse.Namespace(**{**vars(options), "plot": None}))
    if options.plot:
        from dpmc.analysis.forest import side_by_side

        side_by_side(fits, options.level).savefig(options.plot, dpi=200)


def _written(options: argparse.Namespace) -> list[tuple[str, Path | None]]:
    """Return the files that are made of an answer, each with its option."""
    return [(f"--{name}", getattr(options, name)) for name in WRITTEN]


def _say(fit: Fit, options: argparse.Namespace) -> None:
    """Print the summary of a fit and its contrasts; write what is asked for."""
    contrasts = fit.contrast(*options.contrast, level=options.level) if options.contrast else None
    if not options.quiet:
        print(fit.summary(options.level))
        if contrasts is not None:
            print("", fit.as_text(contrasts), sep="\n")
    if options.csv:
        with replacing(options.csv) as temporary:
            fit.to_frame(options.level).to_csv(temporary, index_label="coefficient")
    if options.plot:
        fit.plot(options.plot, level=options.level)
    if options.report:
        fit.report(options.report, options.level)
