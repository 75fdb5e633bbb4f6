"""The parser of the command line, whose commands and options are declared in `options.yaml`."""

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import yaml

from dpmc.common.values import MOST_CHAINS, MOST_ROWS_PER_PERSON, count, decimal, whole_number
from dpmc.common.version import __version__

_Value = TypeVar("_Value")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message as one line and exit with 2."""
        self.exit(2, f"dpmc: error: {' '.join(message.split())} (see {self.prog} --help)\n")


def argument(read: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Turn a function that raises ValueError into a type of argparse that keeps its message."""

    def convert(text: str) -> _Value:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def file(text: str) -> Path:
    """Return the path of a file; refuse an empty name and the name of a folder."""
    if not Path(text).name or text.endswith("/"):
        raise ValueError(f"{text!r} must be the name of a file")
    return Path(text)


def pair(text: str) -> tuple[str, float]:
    """Return a name and its number."""
    name, _, value = text.rpartition("=")
    if not name:
        raise ValueError(f"{text!r} must be NAME=VALUE")
    return name, decimal(value)


#: Types of values by their names in `options.yaml`; each raises ValueError for a wrong text.
ARGUMENT_TYPES: dict[str, Callable[[str], Any]] = {
    "number": decimal,
    "positive": lambda text: count(whole_number(text)),
    "seed": lambda text: count(whole_number(text), least=0),
    "chains": lambda text: count(whole_number(text), most=MOST_CHAINS),
    "rows_per_person": lambda text: count(whole_number(text), most=MOST_ROWS_PER_PERSON),
    "pair": pair,
    "weights": lambda text: dict([pair(text)]) if "=" in text else text,
    "file": file,
    "path": Path,
}


class Command(NamedTuple):
    """A command of the command line."""

    module: str  # of dpmc.cli; the function has the command's name, with _ for -
    purpose: str
    example: str
    options: dict[str, dict[str, Any]]  # by name, keywords of argparse; `type`: a name in `ARGUMENT_TYPES`


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C, eight times as fast
_TEXT = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
COMMANDS = {name: Command(**entry) for name, entry in yaml.load(_TEXT, _LOADER).items()}


@functools.cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="dpmc",
        description="Differentially private Markov chain Monte Carlo.",
        epilog="Each command has --help with an example. Completion in the shell: "
        'eval "$(register-python-argcomplete dpmc)"',
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dpmc {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(
            name,
            help=command.purpose,
            description=command.purpose[0].upper() + command.purpose[1:] + ".",
            epilog=f"example: {command.example}",
            allow_abbrev=False,
        )
        for option, keywords in command.options.items():
            kind = keywords.get("type")
            read = {"type": argument(ARGUMENT_TYPES[kind])} if kind else {}
            metavar = {"metavar": "FILE"} if kind == "file" else {}
            subparser.add_argument(option, **{**metavar, **keywords, **read})
        if "--output" in command.options:
            about = "overwrite files that exist, never inputs"
            subparser.add_argument("--force", action="store_true", help=about)
        output = subparser.add_mutually_exclusive_group()
        output.add_argument("--quiet", action="store_true", help="print only errors and warnings")
        output.add_argument("--verbose", action="store_true", help="print the traceback of an error")
    return parser
