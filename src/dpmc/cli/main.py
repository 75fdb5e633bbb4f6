"""The command line, `dpmc <command>`: dispatch, exit codes and errors. Commands are in `options.yaml`."""

import argparse
import importlib
import io
import os
import resource
import sys
import time
import traceback
from collections.abc import Sequence

from dpmc.cli.options import COMMANDS, parser
from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.common.logs import on_standard_error

LONGEST_LINE = 1000  #: characters of an error's line
#: Commands that do not report time and memory: short ones, and releases, whose time may depend on the rows.
AT_ONCE = tuple(
    "codebook check-rows fit plan read budget init summary posterior ledger check-release release".split()
)
TIMES = "wall_seconds\tcpu_seconds\tpeak_mib"  #: the head of what `dpmc sample --times` writes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code, 2 for a user's mistake."""
    began = time.monotonic()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack a letter of a name
            stream.reconfigure(errors="backslashreplace")
    program = parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell requests completions (TAB)
        import argcomplete

        argcomplete.autocomplete(program)
    try:
        options = program.parse_args(arguments)
    except SystemExit as leaving:
        if not leaving.code:  # --help
            raise
        return 2
    try:
        with on_standard_error():
            _execute(options, began)
    except BrokenPipeError:
        return 141  # as a shell reports SIGPIPE: the reader of the output has left
    except (DpmcError, OSError, MemoryError) as error:
        if options.verbose:
            traceback.print_exception(error)
        print(f"dpmc: error: {_in_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dpmc: interrupted", file=sys.stderr)
        return 130  # as a shell reports SIGINT
    return 0


def _execute(options: argparse.Namespace, began: float) -> None:
    """Run the command; report time and memory of this process and its children (benchmarks/ parses it)."""
    module = importlib.import_module(f"dpmc.cli.{COMMANDS[options.command].module}")
    getattr(module, options.command.replace("-", "_"))(options)
    if options.command in AT_ONCE:
        return
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    unit = 1024**2 if sys.platform == "darwin" else 1024  # of ru_maxrss in a MiB
    wall, peak = time.monotonic() - began, max(usage.ru_maxrss for usage in usages) / unit
    if not options.quiet:
        measured = f"{cpu:.2f} s CPU in {wall:.2f} s, at most {peak:.0f} MB in a process"
        print(f"{options.command}: {measured}", file=sys.stderr)
    if options.command == "sample" and options.times:
        with replacing(options.times) as temporary:
            temporary.write_text(f"{TIMES}\n{wall:.2f}\t{cpu:.2f}\t{peak:.0f}\n")


def _in_one_line(error: Exception) -> str:
    """Format an error as one line of at most `LONGEST_LINE` characters."""
    text = str(error)
    if isinstance(error, OSError):  # mostly about a file
        text = f"{error.filename}: " * bool(error.filename) + (error.strerror or text)
    elif isinstance(error, MemoryError):
        text = f"not enough memory ({error})"
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
