"""The command line, `dpmc <command>`: dispatch, exit codes and errors. Commands are in `options.py`."""

import argparse
import importlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from dpmc.cli.options import COMMANDS, parser
from dpmc.common.errors import DpmcError

LONGEST = 1000  #: characters of an error's line
AT_ONCE = ("fetch", "budget", "init")  #: short commands, which do not report time and memory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code, 2 for a user's mistake."""
    began = time.monotonic()
    program = parser()
    complete(program)
    try:
        options = program.parse_args(arguments)
    except SystemExit as leaving:
        if not leaving.code:  # --help
            raise
        return 2

    def run() -> None:
        module = importlib.import_module(f"dpmc.cli.{COMMANDS[options.command].module}")
        getattr(module, options.command)(options)
        if options.command not in AT_ONCE and not options.quiet:
            print(_used(options.command, time.monotonic() - began), file=sys.stderr)

    return reported(run, options.verbose)


def complete(program: argparse.ArgumentParser) -> None:
    """Print completions and exit if the shell requests them (TAB); otherwise do nothing."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(program)


def reported(action: Callable[[], object], verbose: bool = False) -> int:
    """Run `action`; return the exit code. Print a user's mistake in one line; `verbose`: with traceback."""
    try:
        action()
    except BrokenPipeError:
        return 141
    except (DpmcError, OSError, MemoryError) as error:
        if verbose:
            traceback.print_exception(error)
        print(f"dpmc: error: {_in_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dpmc: interrupted", file=sys.stderr)
        return 130
    return 0


def _in_one_line(error: Exception) -> str:
    """Format an error as one line of at most `LONGEST` characters."""
    if isinstance(error, OSError):  # mostly about a file
        where = f"{error.filename}: " if error.filename else ""
        text = f"{where}{error.strerror or error}"
    elif isinstance(error, MemoryError):
        text = f"not enough memory ({error})"
    else:
        text = str(error)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _used(command: str, seconds: float) -> str:
    """Return a line on time and memory of this process and its children; benchmarks/ parses it."""
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    kilobytes = max(one.ru_maxrss for one in used) / (1024 if sys.platform == "darwin" else 1)
    return f"{command}: {cpu:.2f} s CPU in {seconds:.2f} s, at most {kilobytes / 1024:.0f} MB in a process"
