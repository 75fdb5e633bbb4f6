"""A command-line parser with one-line errors, and the types of its arguments."""

import argparse
from pathlib import Path
from typing import Any

from dpmc.common.values import MOST, decimal, shown, whole


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors and plain decimal numbers (`type=int`, `type=float`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register("type", int, count)
        self.register("type", float, number)

    def error(self, message: str) -> Any:
        """Print the message as one line and exit with 2."""
        self.exit(2, f"dpmc: error: {' '.join(message.split())} (see {self.prog} --help)\n")


def count(text: str) -> int:
    """Read a whole number, at most `MOST`; the command checks the lower bound."""
    try:
        found = whole(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found > MOST:
        raise argparse.ArgumentTypeError(f"{shown(found)} must be at most {MOST}")
    return found


def number(text: str) -> float:
    """Read a plain number."""
    try:
        return decimal(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seconds(text: str) -> float:
    """Read a number of at least 0."""
    found = number(text)
    if found < 0.0:
        raise argparse.ArgumentTypeError(f"{text} must be at least 0")
    return found


def file_name(text: str) -> str:
    """Return the name of a file; refuse an empty name and the name of a folder."""
    if not Path(text).name or text.endswith("/"):
        raise argparse.ArgumentTypeError(f"{text!r} must be the name of a file")
    return text


def file_path(text: str) -> Path:
    """Return the path of a file, as `file_name`."""
    return Path(file_name(text))
