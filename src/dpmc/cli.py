"""The command line: `dpmc fetch | data | tune | sample | evaluate | trace | speed | plot | budget | budgets`.

Each has --help.
"""

import argparse
import functools
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpmc import __version__
from dpmc.errors import DpmcError
from dpmc.values import MOST, decimal, shown, whole

_EXAMPLES = {
    "fetch": "dpmc fetch fashion",
    "data": "dpmc data --study thesis --model circle --output circle.nc",
    "tune": "dpmc tune --study thesis --model circle --method dp-hmc --output circle.yaml",
    "sample": "dpmc sample --study thesis --model flat-banana-2d --method dp-hmc --epsilon 4 "
    "--seed 0 --output chain.nc",
    "evaluate": "dpmc evaluate --study thesis --model flat-banana-2d --chains chain.nc --output metrics.csv",
    "trace": "dpmc trace --study dp-fast-mh --model mixture --chains chain.nc --output traces.csv",
    "speed": "dpmc speed --study dp-fast-mh --output speed.csv",
    "plot": "dpmc plot --study thesis --figure mmd-easy --metrics results/thesis/metrics.csv "
    "--output mmd-easy.pdf",
    "budget": "dpmc budget --study thesis --model flat-banana-2d --method dp-penalty --epsilon 4 --json",
    "budgets": "dpmc budgets --study thesis --output budgets.csv",
}
_PURPOSE = {
    "fetch": "find or fetch the files of image data, and check them",
    "data": "make a model's data set, start points and exact reference draws",
    "tune": "try a study's hyperparameters on tuning data and write them down with the verdict",
    "sample": "run private chains",
    "evaluate": "compute metrics of the chains of a model's cells, or of its baselines",
    "trace": "compute metrics along the chains of one model",
    "speed": "measure seconds per iteration of a study's methods, one after another",
    "plot": "draw a figure from a table of metrics",
    "budget": "iterations that a budget allows, or the epsilon that iterations cost",
    "budgets": "write the iterations of all cells of a study, and the epsilon that they spend",
}

_LONGEST = 1000  #: characters of an error's line
_AT_ONCE = ("fetch", "budget")  # nobody asks what these used


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (2 for a user's mistake, told in one line)."""
    began = time.monotonic()
    try:
        options = parser().parse_args(arguments)
    except SystemExit as leaving:
        if not leaving.code:  # --help
            raise
        return 2
    from dpmc import commands

    def run() -> None:
        getattr(commands, options.command)(options)
        if options.command not in _AT_ONCE and not getattr(options, "quiet", False):
            print(_used(options.command, time.monotonic() - began), file=sys.stderr)

    return reported(run)


def reported(action: Callable[[], object]) -> int:
    """Do something; return the exit code. A failure by what was given is one line on standard error."""
    try:
        action()
    except BrokenPipeError:
        return 141
    except (DpmcError, OSError, MemoryError) as error:
        print(f"dpmc: error: {_in_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dpmc: interrupted", file=sys.stderr)
        return 130
    return 0


def _in_one_line(error: Exception) -> str:
    """Format an error as one line of at most `_LONGEST` characters."""
    if isinstance(error, OSError):  # of a file, by and large
        where = f"{error.filename}: " if error.filename else ""
        text = f"{where}{error.strerror or error}"
    elif isinstance(error, MemoryError):
        text = f"not enough memory ({error})"
    else:
        text = str(error)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _used(command: str, seconds: float) -> str:
    """What this process and those it waited for have used, in one line; benchmarks/ reads it in logs."""
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    kilobytes = max(one.ru_maxrss for one in used) / (1024 if sys.platform == "darwin" else 1)
    return f"{command}: {cpu:.2f} s CPU in {seconds:.2f} s, at most {kilobytes / 1024:.0f} MB in a process"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose numbers (`type=int`, `type=float`) are plain."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register("type", int, _count)
        self.register("type", float, _decimal)

    def error(self, message: str) -> Any:
        self.exit(2, f"dpmc: error: {' '.join(message.split())} (see {self.prog} --help)\n")


def _count(text: str) -> int:
    """A whole number on the command line; what it counts says how small it may be."""
    try:
        number = whole(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if number > MOST:
        raise argparse.ArgumentTypeError(f"{shown(number)} must be at most {MOST}")
    return number


def _decimal(text: str) -> float:
    try:
        return decimal(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> float:
    seconds = _decimal(text)
    if seconds < 0.0:
        raise argparse.ArgumentTypeError(f"{text} must be at least 0")
    return seconds


@functools.cache
def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="dpmc", description="Differentially private Markov chain Monte Carlo.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"dpmc {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, purpose in _PURPOSE.items():
        command = commands.add_parser(
            name,
            help=purpose,
            description=purpose[0].upper() + purpose[1:] + ".",
            epilog=f"example: {_EXAMPLES[name]}",
            allow_abbrev=False,
        )
        if name != "fetch":
            command.add_argument(
                "--study", default="thesis", help="name in config/studies, or a file (default: thesis)"
            )
        _OPTIONS[name](command)
        if name != "budget":  # which writes no file
            command.add_argument(
                "--force",
                action="store_true",
                help="overwrite results of this command (never an input, nor a file that is none)",
            )
    return parser


def _name(text: str) -> str:
    """A file's name; the parser refuses what can only be a folder's, or nobody's."""
    if not Path(text).name or text.endswith("/"):
        raise argparse.ArgumentTypeError(f"{text!r} must be the name of a file")
    return text


def _file(text: str) -> Path:
    return Path(_name(text))


def _model(command: argparse.ArgumentParser, required: bool = True) -> None:
    command.add_argument("--model", required=required, help="model of the study, or your own as module:Class")


def _cell(command: argparse.ArgumentParser) -> None:
    _model(command)
    command.add_argument("--method", required=True, help="method of the study")


def _data_file(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data",
        type=_file,
        metavar="FILE",
        help="NetCDF written by dpmc data, or rows as CSV (default: made on the spot)",
    )


def _fetch(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", help="fashion, digits or mnist (docs/data.md)")
    command.add_argument("--output", type=_file, metavar="FILE", help="for the checksums (default: printed)")


def _data(command: argparse.ArgumentParser) -> None:
    _model(command)
    command.add_argument(
        "--data", metavar="SET", help="published, tuning, fresh-<number>, or pictures (docs/data.md)"
    )
    command.add_argument("--rows", type=_file, metavar="CSV", help="your own rows instead")
    command.add_argument("--output", required=True, type=_file, metavar="FILE")


def _tune(command: argparse.ArgumentParser) -> None:
    _cell(command)
    _data_file(command)
    command.add_argument("--output", required=True, type=_file, metavar="FILE")
    command.add_argument(
        "--search", action="store_true", help="search for better ones than the pinned (default: try those)"
    )
    command.add_argument("--trials", type=int, metavar="N", help="settings to try (default: as in the study)")
    command.add_argument("--seeds", type=int, metavar="N", help="runs of a trial (default: as in the study)")
    command.add_argument(
        "--table",
        type=_file,
        metavar="FILE",
        help="CSV of the trials, from which a search that was killed goes on",
    )
    command.add_argument("--figure", type=_file, metavar="FILE", help="draw the search (PDF, PNG or SVG)")
    command.add_argument(
        "--rows-are-public", action="store_true", help="your own rows need no protection: tune on them"
    )
    command.add_argument(
        "--leak-private-rows-into-hyperparameters",
        action="store_true",
        help="tune on private rows all the same; no epsilon covers what the settings then tell of them",
    )
    _quiet(command)


def _sample(command: argparse.ArgumentParser) -> None:
    _cell(command)
    command.add_argument(
        "--epsilon",
        nargs="+",
        metavar="EPSILON",
        help="total budget of a run, or per iteration where the study says so; inf for no privacy "
        "(default: read off output names eps-<epsilon>/seed-<n>.nc)",
    )
    command.add_argument(
        "--seed",
        type=int,
        nargs="+",
        metavar="SEED",
        help="each spends the whole epsilon (default: read off output names seed-<n>.nc)",
    )
    command.add_argument(
        "--output",
        required=True,
        nargs="+",
        type=_name,
        metavar="FILE",
        help='one file a run, epsilon by epsilon, or a pattern with "{seed}" and "{epsilon}"',
    )
    _data_file(command)
    _hyperparameters(command)
    command.add_argument("--iterations", type=int, help="of each chain, instead of all the budget")
    command.add_argument("--thin", type=int, help="keep every THIN-th draw")
    _chains_and_delta(command)
    command.add_argument(
        "--checkpoint-seconds", type=_seconds, default=20.0, help="between checkpoints (default: 20)"
    )
    _quiet(command)


def _chains_and_delta(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--chains", type=int, metavar="N", help="that share the budget of a seed (default: the study's)"
    )
    command.add_argument("--delta", type=float, help="default: the study's rule")


def _chains(command: argparse.ArgumentParser) -> None:
    _model(command, required=False)
    _data_file(command)
    command.add_argument(
        "--chains",
        nargs="+",
        default=[],
        type=Path,
        metavar="FILE",
        help="chains of one model, or folders of a cell each",
    )


def _trace(command: argparse.ArgumentParser) -> None:
    _chains(command)
    command.add_argument("--output", required=True, type=_file, metavar="CSV")


def _budgets(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--hyperparameters",
        nargs="+",
        default=[],
        type=_file,
        metavar="YAML",
        help="files written by dpmc tune (default: the study's published hyperparameters)",
    )
    command.add_argument("--output", required=True, type=_file, metavar="CSV")


def _speed(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data",
        nargs="+",
        default=[],
        type=_file,
        metavar="FILE",
        help="NetCDF written by dpmc data, <model>/<set>.nc for each model (default: made on the spot)",
    )
    command.add_argument("--output", required=True, type=_file, metavar="CSV")
    _quiet(command)


def _evaluate(command: argparse.ArgumentParser) -> None:
    _chains(command)
    command.add_argument("--baselines", action="store_true", help="exact samples against each other")
    command.add_argument("--output", required=True, type=_file, metavar="CSV")


def _plot(command: argparse.ArgumentParser) -> None:
    command.add_argument("--figure", required=True, help="name of the figure")
    command.add_argument("--metrics", type=_file, metavar="CSV", help="needed by all but the table of models")
    command.add_argument(
        "--published", type=Path, default=Path("data/published"), help="published results (CSV files)"
    )
    command.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="results of all studies, for figures that show chains (default: results)",
    )
    command.add_argument("--output", required=True, nargs="+", type=_file, metavar="FILE")


def _budget(command: argparse.ArgumentParser) -> None:
    _cell(command)
    command.add_argument(
        "--epsilon", help="total budget: print the iterations it allows; or per iteration, as the study says"
    )
    command.add_argument("--iterations", type=int, help="print the epsilon that they cost")
    _chains_and_delta(command)
    command.add_argument("--n", type=int, help="number of rows (default: the model's)")
    _hyperparameters(command)
    command.add_argument("--json", action="store_true", help="one object, accountant -> answer")


def _hyperparameters(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--hyperparameters",
        type=_file,
        metavar="FILE",
        help="your own (YAML), or a file written by dpmc tune (default: the study's published ones)",
    )


def _quiet(command: argparse.ArgumentParser) -> None:
    command.add_argument("--quiet", action="store_true", help="no progress")


_OPTIONS = {
    "fetch": _fetch,
    "data": _data,
    "tune": _tune,
    "sample": _sample,
    "evaluate": _evaluate,
    "trace": _trace,
    "budgets": _budgets,
    "speed": _speed,
    "plot": _plot,
    "budget": _budget,
}
