"""Values that users give: read strictly, shown in short, refused in one line that says where they stand."""

import math
import re
from typing import Any

from dpmc.errors import DpmcError

#: Rows, iterations, seeds and other counts are at most so many: more is a slip, and fits no memory.
MOST = 10**9
#: A model's parameters are at most so many: covariances have the square of it in numbers.
MOST_PARAMETERS = 10_000

#: So many start points are made at most: one for each chain of each seed, whichever of them run.
MOST_STARTS = 1_000_000

#: Chains of one run at most: a budget shared by more leaves none of them an iteration.
MOST_CHAINS = 1000

_WHOLE = re.compile(r"[-+]?[0-9]{1,4000}")
_DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def whole(text: str) -> int:
    """Read a whole number in plain digits.

    Raises ValueError for all else: `int` would take `1_0` and the digits of other scripts.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{shown(text)} must be a whole number, in digits")
    return int(text)


def decimal(text: str) -> float:
    """Read a number such as 2, 0.5 or 1e-5, or inf.

    Raises ValueError for all else: `float` would take `1_0`, the digits of other scripts, and 1e400 for inf.
    """
    if text.lstrip("+-") == "inf":
        return float(text)
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a number such as 2, 0.5 or 1e-5")
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{shown(text)} is too large a number")
    return number


def real(value: Any) -> float:
    """A number of Python, NumPy or text as a float, NaN too.

    Raises ValueError for all else, also for true and false.
    """
    if isinstance(value, str):
        return decimal(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{shown(value)} is too large a number") from None
    if getattr(value, "shape", None) == () and value.dtype.kind in "fiu":
        return float(value)
    raise ValueError(f"{shown(value)} is not a number")


def positive(value: Any, where: str) -> float:
    """A finite number greater than 0; DpmcError naming `where` for all else."""
    try:
        number = real(value)
    except ValueError as error:
        raise DpmcError(f"{where}: {error}") from None
    if not 0.0 < number < math.inf:
        raise DpmcError(f"{where}: {number:g} must be greater than 0 and finite")
    return number


def count(value: Any, least: int = 1, most: int = MOST) -> int:
    """A whole number of Python or NumPy in a range.

    Raises ValueError for all else, also for 2.0, true and text.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or getattr(value, "shape", ()) != ():
        raise ValueError(f"{shown(value)} must be a whole number")
    number = int(value)
    if not least <= number <= most:
        raise ValueError(f"{shown(number)} must be a whole number, at least {least} and at most {most}")
    return number


def array(value: Any, shape: tuple[int | None, ...], where: str) -> Any:
    """An array of finite real numbers of this shape; None: any length.

    Raises DpmcError, which begins with `where`, for all else.
    """
    import numpy as np

    try:
        found = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise DpmcError(f"{where}: {shown(value)} must be an array of numbers") from None
    if found.dtype.kind not in "fiu":
        raise DpmcError(f"{where}: {shown(value)} must be an array of real numbers")
    fits = found.ndim == len(shape) and all(
        wanted is None or wanted == size for wanted, size in zip(shape, found.shape, strict=True)
    )
    if not fits:
        text = tuple("any" if size is None else size for size in shape)
        raise DpmcError(f"{where}: shape {found.shape} must be {text}")
    if not np.isfinite(found).all():
        raise DpmcError(f"{where}: has a value that is NaN or infinite")
    return found.astype(float, copy=False)


def shown(value: Any, most: int = 60) -> str:
    """A value as in Python's text, in one line of at most so many characters."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**most:
        return f"a number of more than {most} digits"
    try:
        text = " ".join(repr(value[: most + 1] if isinstance(value, str | bytes) else value).split())
    except Exception:  # of a user's class
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 1]}…"
