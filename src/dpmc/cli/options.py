"""The commands of the command line: purpose, example and options of each, declared once."""

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from dpmc.common.shipped import shipped
from dpmc.common.values import MOST_CHAINS, MOST_ROWS_PER_PERSON, count, decimal, whole
from dpmc.common.version import __version__

Value = TypeVar("Value")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message as one line and exit with 2."""
        self.exit(2, f"dpmc: error: {' '.join(message.split())} (see {self.prog} --help)\n")


def argument(read: Callable[[str], Value]) -> Callable[[str], Value]:
    """Turn a function that raises ValueError into a type of argparse that keeps its message."""

    def convert(text: str) -> Value:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


number = argument(decimal)
positive = argument(lambda text: count(whole(text)))
seed = argument(lambda text: count(whole(text), least=0))
chains = argument(lambda text: count(whole(text), most=MOST_CHAINS))


@argument
def file(text: str) -> Path:
    """Return the path of a file; refuse an empty name and the name of a folder."""
    if not Path(text).name or text.endswith("/"):
        raise ValueError(f"{text!r} must be the name of a file")
    return Path(text)


Option = tuple[str, dict[str, Any]]  #: name and keywords of argparse


def option(name: str, about: str | None = None, **keywords: Any) -> Option:
    """Declare an option, as `add_argument` of argparse; `about` is for --help."""
    return name, {"help": about, **keywords}


def path(name: str, about: str | None = None, **keywords: Any) -> Option:
    """Declare an option whose value is a file."""
    return option(name, about, **{"type": file, "metavar": "FILE", **keywords})


def flag(name: str, about: str) -> Option:
    """Declare an option without a value."""
    return option(name, about, action="store_true")


class Command(NamedTuple):
    """A command of the command line."""

    module: str  # of dpmc.cli; the function has the command's name, with _ for -
    purpose: str
    example: str
    options: tuple[Option, ...]


COMMANDS: dict[str, Command] = {}


def command(name: str, module: str, purpose: str, example: str, *options: Option) -> None:
    """Declare a command, with --force if it writes a file."""
    force = flag("--force", "overwrite files that exist, never inputs")
    writes = "--output" in dict(options)
    COMMANDS[name] = Command(module, purpose, example, (*options, *([force] if writes else [])))


# Options that several commands have.
STUDY = option("--study", "name in config/studies, or a file (default: thesis)", default="thesis")
MODEL_HELP = "model of the study, or your own as module:Class"
MODEL = option("--model", MODEL_HELP, required=True)
CELL = (STUDY, MODEL, option("--method", "method of the study", required=True))
DATA = path(
    "--data", "NetCDF written by dpmc data, or a table: .csv, .csv.gz, .parquet, .xlsx (default: generated)"
)
HYPERPARAMETERS = path(
    "--hyperparameters", "YAML file, or a file written by dpmc tune (default: the study's published ones)"
)
ROWS_PER_PERSON = option(
    "--rows-per-person",
    "protect a person with at most M rows (default: 1)",
    type=argument(lambda text: count(whole(text), most=MOST_ROWS_PER_PERSON)),
    metavar="M",
)
BUDGET = (
    option(
        "--chains", "chains that share the budget of a seed (default: the study's)", type=chains, metavar="N"
    ),
    option("--delta", "delta of the budget (default: the study's rule)", type=number),
)
EVALUATED = (
    STUDY,
    option("--model", MODEL_HELP),
    DATA,
    option(
        "--chains",
        "chain files of one model, or folders with the chain files of a cell",
        type=Path,
        metavar="FILE",
        nargs="+",
        default=[],
    ),
)
OUTPUT = path("--output", required=True)
TABLE = path("--output", required=True, metavar="CSV")

command(
    "init",
    "project",
    "write a small project of your own that runs: model, data, study, Snakefile",
    "dpmc init my-project",
    option("folder", "new or empty folder (default: this)", nargs="?", type=Path, default=Path()),
    option("--seed", "seed of the simulated data (default: 1)", type=seed, default=1),
)
command(
    "fetch",
    "data",
    "find or download the files of image data, and check them",
    "dpmc fetch fashion",
    option("source", "fashion, digits or mnist (docs/explanation/data.md)"),
    path("--output", "file for the checksums (default: printed)"),
)
command(
    "data",
    "data",
    "make a model's data set, start points and exact reference draws",
    "dpmc data --study thesis --model circle --output circle.nc",
    STUDY,
    MODEL,
    option(
        "--data",
        "data set: published, tuning, fresh-<number> or pictures (docs/explanation/data.md)",
        metavar="SET",
    ),
    path("--rows", "your own rows instead (.csv, .csv.gz, .parquet, .xlsx or NetCDF)"),
    OUTPUT,
)
command(
    "tune",
    "tuning",
    "try or search hyperparameters on tuning data; write them with their results",
    "dpmc tune --study thesis --model circle --method dp-hmc --output circle.yaml",
    *CELL,
    DATA,
    OUTPUT,
    option("--epsilon", "budget of a trial (default: the study's; needed to search for your own model)"),
    flag("--search", "search for better hyperparameters (default: try the study's)"),
    option("--trials", "number of settings to try (default: the study's)", type=positive, metavar="N"),
    option("--seeds", "runs of a trial (default: the study's)", type=positive, metavar="N"),
    path("--table", "CSV of the trials, from which an interrupted search is resumed"),
    flag("--rows-are-public", "your own rows are public: tune on them"),
    flag(
        "--leak-private-rows-into-hyperparameters",
        "tune on private rows; no epsilon covers what the hyperparameters reveal",
    ),
)
command(
    "sample",
    "sampling",
    "run private chains",
    "dpmc sample --study thesis --model circle --method dp-hmc --epsilon 1 --seed 0 --output chain.nc",
    STUDY,
    MODEL,
    option(
        "--method",
        "method of the study, for module:Class any algorithm "
        "(default: from output names <method>/eps-<epsilon>/seed-<n>.nc)",
    ),
    option(
        "--epsilon",
        "total budget of a run, or epsilon per iteration, as in the study; inf for no privacy "
        "(default: from output names eps-<epsilon>/seed-<n>.nc)",
        nargs="+",
        metavar="EPSILON",
    ),
    option(
        "--seed",
        "seeds; each spends the whole epsilon (default: from output names seed-<n>.nc)",
        type=seed,
        nargs="+",
        metavar="SEED",
    ),
    path(
        "--output",
        'one file per run, epsilon by epsilon, or a pattern with "{seed}" and "{epsilon}"',
        required=True,
        nargs="+",
    ),
    DATA,
    HYPERPARAMETERS,
    option("--iterations", "iterations of each chain (default: all that the budget allows)", type=positive),
    option("--thin", "keep every THIN-th draw", type=positive),
    *BUDGET,
    ROWS_PER_PERSON,
    option(
        "--person",
        "column of --data that says whose a row is: rows of a person beyond M are dropped",
        metavar="COLUMN",
    ),
    flag("--no-summary", "leave out the table at the end"),
    path("--times", "write seconds and memory of the process here, as one line of TSV with a head"),
    option("--checkpoint-seconds", "seconds between checkpoints (default: 20)", type=number, default=20.0),
)
command(
    "summary",
    "evaluation",
    "print what chains spent, how well they mixed, and mean and interval of each parameter",
    "dpmc summary chain.nc",
    option("files", "chain files; those of one model, method and epsilon are joined", nargs="+"),
    option("--level", "posterior probability of the interval (default: 0.9)", type=number, default=0.9),
)
command(
    "evaluate",
    "evaluation",
    "compute metrics of the chains of a model's cells, and of exact samples",
    "dpmc evaluate --study thesis --model circle --chains chain.nc --output metrics.csv",
    *EVALUATED,
    flag("--baselines", "evaluate the exact samples of the data file, too"),
    TABLE,
)
command(
    "trace",
    "evaluation",
    "compute metrics along the chains of one model",
    "dpmc trace --study dp-fast-mh --model mixture --chains chain.nc --output traces.csv",
    *EVALUATED,
    TABLE,
)
command(
    "speed",
    "sampling",
    "measure seconds per iteration of a study's methods, one after another",
    "dpmc speed --study dp-fast-mh --output speed.csv",
    STUDY,
    path(
        "--data",
        "NetCDF written by dpmc data, <model>/<set>.nc for each model (default: generated)",
        default=[],
        nargs="+",
    ),
    TABLE,
)
command(
    "plot",
    "plotting",
    "draw a figure from a table of metrics",
    "dpmc plot --study thesis --figure mmd-easy --metrics results/thesis/metrics.csv --output mmd-easy.pdf",
    STUDY,
    option("--figure", "name of the figure, or of a table", required=True),
    path(
        "--metrics",
        "metrics of the models that a figure draws; tables and some figures need none",
        default=[],
        nargs="*",
        metavar="CSV",
    ),
    option("--published", "published results (CSV files)", type=Path, default=shipped("data", "published")),
    option(
        "--results",
        "results of all studies, for tables and figures that show chains (default: results)",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
    ),
    path("--output", required=True, nargs="+"),
)
command(
    "budget",
    "budgets",
    "iterations that a budget allows, or the epsilon that iterations cost",
    "dpmc budget --study thesis --model flat-banana-2d --method dp-penalty --epsilon 4 --json",
    *CELL,
    option("--epsilon", "total budget: print the iterations it allows; or per iteration, as in the study"),
    option("--iterations", "print the epsilon that these iterations cost", type=positive),
    *BUDGET,
    ROWS_PER_PERSON,
    option("--n", "number of rows (default: the model's)", type=positive),
    HYPERPARAMETERS,
    flag("--json", "print a JSON object, accountant -> answer"),
)
command(
    "budgets",
    "budgets",
    "write the iterations of all cells of a study, and the epsilon that they spend",
    "dpmc budgets --study thesis --output budgets.csv",
    STUDY,
    path(
        "--hyperparameters",
        "files written by dpmc tune (default: the study's published hyperparameters)",
        default=[],
        nargs="+",
        metavar="YAML",
    ),
    TABLE,
)
command(
    "ledger",
    "ledger",
    "create, show or verify the ledger of a data set, from which all releases of its rows are taken",
    "dpmc ledger init people.ledger --epsilon 3 --delta 1e-6",
    option("action", "init, show or verify", choices=("init", "show", "verify")),
    option("file", "file of the ledger; keep one for each data set", type=file, metavar="LEDGER"),
    option("--epsilon", "init: total of all releases", type=number),
    option("--delta", "init: total of all releases", type=number),
    option("--name", "init: your name of the data set (default: the file's)"),
    path("--against", "verify: releases whose entries must be in the ledger", nargs="+"),
)
command(
    "release",
    "releasing",
    "run private chains that may be published, paid from the ledger of their data set",
    "dpmc release --study my.yaml --model people --method dp-penalty --epsilon 1 --data people.csv "
    "--ledger people.ledger --output release.nc",
    *CELL,
    option("--epsilon", "total budget of all chains together", required=True),
    path("--ledger", "file of the data set's ledger", required=True),
    path("--output", "file to write; if OUTPUT.partial exists, it is continued", required=True),
    path("--data", "private rows: .csv or .csv.gz with a line of names, or .parquet (default: the study's)"),
    option(
        "--n", "rows, if known without looking: the first N count (default: lines of the file)", type=positive
    ),
    HYPERPARAMETERS,
    option("--iterations", "iterations of each chain (default: all that the budget allows)", type=positive),
    option("--thin", "keep every THIN-th draw", type=positive),
    *BUDGET,
)
command(
    "check-release",
    "ledger",
    "say what a release contains, and refuse it if that is more than may be published",
    "dpmc check-release release.nc",
    option("file", "file written by dpmc release", type=file, metavar="RELEASE"),
)


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
        for option_name, keywords in command.options:
            subparser.add_argument(option_name, **keywords)
        output = subparser.add_mutually_exclusive_group()
        output.add_argument("--quiet", action="store_true", help="print only errors and warnings")
        output.add_argument("--verbose", action="store_true", help="print the traceback of an error")
    return parser
