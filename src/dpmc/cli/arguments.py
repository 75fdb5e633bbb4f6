"""A command-line parser with one-line errors, and the types of its arguments."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dpmc.common.values import MOST_CHAINS, count, decimal, whole

Value = TypeVar("Value")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> Any:
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
def seconds(text: str) -> float:
    """Read a number of at least 0."""
    value = decimal(text)
    if value < 0.0:
        raise ValueError(f"{text} must be at least 0")
    return value


@argument
def file(text: str) -> Path:
    """Return the path of a file; refuse an empty name and the name of a folder."""
    if not Path(text).name or text.endswith("/"):
        raise ValueError(f"{text!r} must be the name of a file")
    return Path(text)
