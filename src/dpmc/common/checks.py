"""Checks of what stands in a release: type, range, grammar and length, of one value by itself.

Each raises ValueError, or DpmcError, for a value that no release of dpmc has.
"""

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import MOST

LONGEST_NAME = 200  #: characters of a name of a model, a method or a parameter

Check = Callable[[Any], object]  #: raises for a wrong value


def text(pattern: str, rule: str, most: int = LONGEST_NAME) -> Check:
    """Return the check of a text: its length, and its grammar."""

    def check(value: object) -> None:
        if not isinstance(value, str) or len(value) > most or not re.fullmatch(pattern, value):
            raise ValueError(f"must be {rule}")

    return check


def digits(count: int) -> Check:
    """Return the check of hexadecimal digits."""
    return text(f"[0-9a-f]{{{count}}}", f"{count} hexadecimal digits")


def whole(least: int, most: int = MOST) -> Check:
    """Return the check of a whole number of 64 bits, or of JSON."""

    def check(value: object) -> None:
        if not isinstance(value, int | np.int64) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be a whole number, at least {least} and at most {most}")

    return check


def double(most: float) -> Check:
    """Return the check of a float of 64 bits."""

    def check(value: object) -> None:
        if not isinstance(value, float) or not 0.0 < value <= most:
            raise ValueError(f"must be a float of 64 bits, greater than 0 and at most {most:g}")

    return check


def totals(value: Any) -> None:
    """Check counts, one for each chain."""
    counts = np.atleast_1d(value)
    if counts.dtype != np.int64 or counts.ndim > 1 or not (counts >= 0).all():
        raise ValueError("must be counts, one for each chain")


def epsilon(value: object) -> None:
    """Check a finite ε as text."""
    if not isinstance(value, str) or value == "inf" or canonical_epsilon(value) != value:
        raise ValueError("must be a finite number as dpmc writes it")


def mapping(value: object) -> None:
    """Check an object of JSON."""
    if not isinstance(value, dict):
        raise TypeError("must be an object")


name = text(r"[\w.<>:-]+", f"a name of at most {LONGEST_NAME} letters, digits and . _ < > : -")
label = text("[a-z0-9][a-z0-9.-]*", f"a name of at most {LONGEST_NAME} small letters, digits and . -")
PART = "(0|[1-9][0-9]?)"  #: of a version
version = text(rf"{PART}\.{PART}\.{PART}((a|b|rc){PART})?", "a version of dpmc, of short numbers")


LONGEST_DESCRIPTION = 20_000  #: characters of the call that makes a model, which has names of levels


def description(value: object) -> None:
    """Check the call that makes a model."""
    if not is_description(value):
        rule = f"as Python writes it, of at most {LONGEST_DESCRIPTION} characters"
        raise ValueError(f"must be a call with plain values, {rule}")


def is_description(value: object) -> bool:
    """Return whether a value may stand in a release as the description of its model."""
    if not isinstance(value, str) or not (len(value) <= LONGEST_DESCRIPTION and value.isprintable()):
        return False
    try:
        name, arguments, named = call(value)
        parts = [*map(repr, arguments), *(f"{key}={argument!r}" for key, argument in named.items())]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # as of nested brackets
        return False
    # Its one text: nothing hides in a comment, in blanks, or in the spelling of a number.
    return f"{name}({', '.join(parts)})" == value


def call(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return name and arguments of a call; raise ValueError or the like if they are no plain values."""
    parsed = ast.parse(text, mode="eval").body
    if not isinstance(parsed, ast.Call) or not isinstance(parsed.func, ast.Name):
        raise ValueError("must be a call")
    if any(isinstance(node, ast.Set) for node in ast.walk(parsed)):
        raise ValueError("must have no sets, whose order is that of a process")
    named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in parsed.keywords}
    return parsed.func.id, [ast.literal_eval(argument) for argument in parsed.args], named
