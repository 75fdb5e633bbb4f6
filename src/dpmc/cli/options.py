"""The commands of the command line: purpose, example and options of each."""

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dpmc.cli.arguments import Parser, file_name, file_path, seconds
from dpmc.common.shipped import shipped
from dpmc.common.version import __version__


def _model(command: argparse.ArgumentParser, required: bool = True) -> None:
    command.add_argument("--model", required=required, help="model of the study, or your own as module:Class")


def _cell(command: argparse.ArgumentParser) -> None:
    _model(command)
    command.add_argument("--method", required=True, help="method of the study")


def _data_file(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data",
        type=file_path,
        metavar="FILE",
        help="NetCDF written by dpmc data, or rows as CSV or Parquet (default: generated)",
    )


def _init(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="new or empty folder (default: this)"
    )
    command.add_argument("--seed", type=int, default=1, help="seed of the simulated data (default: 1)")


def _fetch(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", help="fashion, digits or mnist (docs/explanation/data.md)")
    command.add_argument(
        "--output", type=file_path, metavar="FILE", help="file for the checksums (default: printed)"
    )


def _data(command: argparse.ArgumentParser) -> None:
    _model(command)
    command.add_argument(
        "--data",
        metavar="SET",
        help="data set: published, tuning, fresh-<number> or pictures (docs/explanation/data.md)",
    )
    command.add_argument(
        "--rows", type=file_path, metavar="FILE", help="your own rows instead (CSV, Parquet or NetCDF)"
    )
    command.add_argument("--output", required=True, type=file_path, metavar="FILE")


def _tune(command: argparse.ArgumentParser) -> None:
    _cell(command)
    _data_file(command)
    command.add_argument("--output", required=True, type=file_path, metavar="FILE")
    command.add_argument(
        "--epsilon",
        help="budget of a trial (default: the study's; needed to search for your own model)",
    )
    command.add_argument(
        "--search", action="store_true", help="search for better hyperparameters (default: try the study's)"
    )
    command.add_argument(
        "--trials", type=int, metavar="N", help="number of settings to try (default: the study's)"
    )
    command.add_argument("--seeds", type=int, metavar="N", help="runs of a trial (default: the study's)")
    command.add_argument(
        "--table",
        type=file_path,
        metavar="FILE",
        help="CSV of the trials, from which an interrupted search is resumed",
    )
    command.add_argument("--figure", type=file_path, metavar="FILE", help="draw the search (PDF, PNG or SVG)")
    command.add_argument(
        "--rows-are-public", action="store_true", help="your own rows are public: tune on them"
    )
    command.add_argument(
        "--leak-private-rows-into-hyperparameters",
        action="store_true",
        help="tune on private rows; no epsilon covers what the hyperparameters reveal",
    )


def _sample(command: argparse.ArgumentParser) -> None:
    _model(command)
    command.add_argument(
        "--method",
        help="method of the study (default: from output names <method>/eps-<epsilon>/seed-<n>.nc)",
    )
    command.add_argument(
        "--epsilon",
        nargs="+",
        metavar="EPSILON",
        help="total budget of a run, or epsilon per iteration, as in the study; inf for no privacy "
        "(default: from output names eps-<epsilon>/seed-<n>.nc)",
    )
    command.add_argument(
        "--seed",
        type=int,
        nargs="+",
        metavar="SEED",
        help="seeds; each spends the whole epsilon (default: from output names seed-<n>.nc)",
    )
    command.add_argument(
        "--output",
        required=True,
        nargs="+",
        type=file_name,
        metavar="FILE",
        help='one file per run, epsilon by epsilon, or a pattern with "{seed}" and "{epsilon}"',
    )
    _data_file(command)
    _hyperparameters(command)
    command.add_argument(
        "--iterations", type=int, help="iterations of each chain (default: all that the budget allows)"
    )
    command.add_argument("--thin", type=int, help="keep every THIN-th draw")
    _chains_and_delta(command)
    command.add_argument("--no-summary", action="store_true", help="leave out the table at the end")
    command.add_argument(
        "--checkpoint-seconds", type=seconds, default=20.0, help="seconds between checkpoints (default: 20)"
    )


def _chains_and_delta(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--chains",
        type=int,
        metavar="N",
        help="chains that share the budget of a seed (default: the study's)",
    )
    command.add_argument("--delta", type=float, help="delta of the budget (default: the study's rule)")


def _chains(command: argparse.ArgumentParser) -> None:
    _model(command, required=False)
    _data_file(command)
    command.add_argument(
        "--chains",
        nargs="+",
        default=[],
        type=Path,
        metavar="FILE",
        help="chain files of one model, or folders with the chain files of a cell",
    )


def _trace(command: argparse.ArgumentParser) -> None:
    _chains(command)
    command.add_argument("--output", required=True, type=file_path, metavar="CSV")


def _budgets(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--hyperparameters",
        nargs="+",
        default=[],
        type=file_path,
        metavar="YAML",
        help="files written by dpmc tune (default: the study's published hyperparameters)",
    )
    command.add_argument("--output", required=True, type=file_path, metavar="CSV")


def _speed(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data",
        nargs="+",
        default=[],
        type=file_path,
        metavar="FILE",
        help="NetCDF written by dpmc data, <model>/<set>.nc for each model (default: generated)",
    )
    command.add_argument("--output", required=True, type=file_path, metavar="CSV")


def _evaluate(command: argparse.ArgumentParser) -> None:
    _chains(command)
    command.add_argument(
        "--baselines",
        action="store_true",
        help="evaluate the exact samples of the data file instead of chains",
    )
    command.add_argument("--output", required=True, type=file_path, metavar="CSV")


def _plot(command: argparse.ArgumentParser) -> None:
    command.add_argument("--figure", required=True, help="name of the figure, or of a table")
    command.add_argument(
        "--metrics",
        nargs="*",
        default=[],
        type=file_path,
        metavar="CSV",
        help="metrics of the models that a figure draws; tables and some figures need none",
    )
    command.add_argument(
        "--published", type=Path, default=shipped("data", "published"), help="published results (CSV files)"
    )
    command.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="results of all studies, for tables and figures that show chains (default: results)",
    )
    command.add_argument("--output", required=True, nargs="+", type=file_path, metavar="FILE")


def _budget(command: argparse.ArgumentParser) -> None:
    _cell(command)
    command.add_argument(
        "--epsilon", help="total budget: print the iterations it allows; or per iteration, as in the study"
    )
    command.add_argument("--iterations", type=int, help="print the epsilon that these iterations cost")
    _chains_and_delta(command)
    command.add_argument("--n", type=int, help="number of rows (default: the model's)")
    _hyperparameters(command)
    command.add_argument("--json", action="store_true", help="print a JSON object, accountant -> answer")


def _hyperparameters(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--hyperparameters",
        type=file_path,
        metavar="FILE",
        help="YAML file, or a file written by dpmc tune (default: the study's published ones)",
    )


class Command(NamedTuple):
    """A command of the command line."""

    module: str  # of dpmc.cli; the function has the command's name
    purpose: str
    example: str
    add_options: Callable[[argparse.ArgumentParser], None]
    reads_study: bool = True
    overwrites: bool = True


COMMANDS = {
    "init": Command(
        "project",
        "write a small project of your own that runs: model, data, study, Snakefile",
        "dpmc init my-project",
        _init,
        reads_study=False,
        overwrites=False,
    ),
    "fetch": Command(
        "data",
        "find or download the files of image data, and check them",
        "dpmc fetch fashion",
        _fetch,
        reads_study=False,
    ),
    "data": Command(
        "data",
        "make a model's data set, start points and exact reference draws",
        "dpmc data --study thesis --model circle --output circle.nc",
        _data,
    ),
    "tune": Command(
        "tuning",
        "try or search hyperparameters on tuning data; write them with their results",
        "dpmc tune --study thesis --model circle --method dp-hmc --output circle.yaml",
        _tune,
    ),
    "sample": Command(
        "sampling",
        "run private chains",
        "dpmc sample --study thesis --model circle --method dp-hmc --epsilon 1 --seed 0 --output chain.nc",
        _sample,
    ),
    "evaluate": Command(
        "evaluation",
        "compute metrics of the chains of a model's cells, or of its baselines",
        "dpmc evaluate --study thesis --model circle --chains chain.nc --output metrics.csv",
        _evaluate,
    ),
    "trace": Command(
        "evaluation",
        "compute metrics along the chains of one model",
        "dpmc trace --study dp-fast-mh --model mixture --chains chain.nc --output traces.csv",
        _trace,
    ),
    "speed": Command(
        "evaluation",
        "measure seconds per iteration of a study's methods, one after another",
        "dpmc speed --study dp-fast-mh --output speed.csv",
        _speed,
    ),
    "plot": Command(
        "evaluation",
        "draw a figure from a table of metrics",
        "dpmc plot --study thesis --figure mmd-easy --metrics results/thesis/metrics.csv "
        "--output mmd-easy.pdf",
        _plot,
    ),
    "budget": Command(
        "budgets",
        "iterations that a budget allows, or the epsilon that iterations cost",
        "dpmc budget --study thesis --model flat-banana-2d --method dp-penalty --epsilon 4 --json",
        _budget,
        overwrites=False,  # writes no file
    ),
    "budgets": Command(
        "budgets",
        "write the iterations of all cells of a study, and the epsilon that they spend",
        "dpmc budgets --study thesis --output budgets.csv",
        _budgets,
    ),
}


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
        purpose = command.purpose
        one = commands.add_parser(
            name,
            help=purpose,
            description=purpose[0].upper() + purpose[1:] + ".",
            epilog=f"example: {command.example}",
            allow_abbrev=False,
        )
        if command.reads_study:
            one.add_argument(
                "--study", default="thesis", help="name in config/studies, or a file (default: thesis)"
            )
        command.add_options(one)
        if command.overwrites:
            one.add_argument(
                "--force",
                action="store_true",
                help="overwrite earlier results of this command, never inputs or other files",
            )
        said = one.add_mutually_exclusive_group()
        said.add_argument("--quiet", action="store_true", help="print only errors and warnings")
        said.add_argument("--verbose", action="store_true", help="print the traceback of an error")
    return parser
