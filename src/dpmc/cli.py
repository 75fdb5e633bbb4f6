"""The command line, `dpmc <command>`: dispatch, exit codes and errors. `options.py` declares the commands."""

import argparse
import importlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from dpmc.errors import DpmcError
from dpmc.options import COMMANDS, parser

LONGEST = 1000  #: characters of an error's line
AT_ONCE = ("fetch", "budget", "init")  #: commands too short to say what they used


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 2 for a user's mistake, which is one line."""
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
        module = importlib.import_module(f"dpmc.commands.{COMMANDS[options.command].module}")
        getattr(module, options.command)(options)
        if options.command not in AT_ONCE and not options.quiet:
            print(_used(options.command, time.monotonic() - began), file=sys.stderr)

    return reported(run, options.verbose)


def complete(program: argparse.ArgumentParser) -> None:
    """Answer the shell if it asks for completions (TAB), and exit; otherwise do nothing."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(program)


def reported(action: Callable[[], object], verbose: bool = False) -> int:
    """Run `action`; return the exit code. A user's mistake is one line, after its traceback if `verbose`."""
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
    if isinstance(error, OSError):  # of a file, by and large
        where = f"{error.filename}: " if error.filename else ""
        text = f"{where}{error.strerror or error}"
    elif isinstance(error, MemoryError):
        text = f"not enough memory ({error})"
    else:
        text = str(error)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _used(command: str, seconds: float) -> str:
    """Return time and memory used by this process and its children, in one line; benchmarks/ reads it."""
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    kilobytes = max(one.ru_maxrss for one in used) / (1024 if sys.platform == "darwin" else 1)
    return f"{command}: {cpu:.2f} s CPU in {seconds:.2f} s, at most {kilobytes / 1024:.0f} MB in a process"
