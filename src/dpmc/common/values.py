"""Users' values: strict reading, short display, and one-line errors that name their place."""

import math
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from dpmc.common.errors import DpmcError

if TYPE_CHECKING:
    import numpy as np

_Value = TypeVar("_Value")

MOST = 10**9  #: rows, iterations, seeds and other counts: more is a mistake and does not fit memory
MOST_PARAMETERS = 10_000  #: of a model: covariances have its square
STARTS = 20  #: start points in a data set, at least; further ones follow from their number
MOST_STARTS = 1_000_000  #: one for each chain of each seed up to the largest
MOST_CHAINS = 1000  #: of one run: a budget shared by more leaves none of them an iteration
MOST_ROWS_PER_PERSON = 10_000

# Python reads at most 4300 digits.
_WHOLE = re.compile(r"[-+]?[0-9]{1,4000}")
#: A number in plain digits; `float` would also accept 1_0, nan and the digits of other scripts.
DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def whole_number(text: str) -> int:
    """Read a whole number in plain digits; ValueError for 1_0 and the digits of other scripts, too."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{shown(text)} must be a whole number, in digits")
    return int(text)


def decimal(text: str) -> float:
    """Read a number such as 2, 0.5 or 1e-5, or inf; ValueError also for 1e400, which is inf as a float."""
    if text.lstrip("+-") == "inf":
        return float(text)
    if not DECIMAL.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a number such as 2, 0.5 or 1e-5")
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{shown(text)} is too large a number")
    return number


def real(value: Any) -> float:
    """Return a number of Python, NumPy or text as a float, also NaN; ValueError also for true and false."""
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


def not_above_text(number: float) -> float:
    """Return the largest double that is not above the decimal number that is the text of `number` > 0.

    The double nearest to 0.1 is larger than 0.1; the result for 0.1 is the one below it.
    """
    # The text is nearer to `number` than to its neighbours, so the one below is below the text.
    return number if Fraction(number) <= Fraction(repr(number)) else math.nextafter(number, 0.0)


def rounded_up(number: float, digits: int) -> float:
    """Return a number rounded up to so many significant digits, as the nearest double."""
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(number))


def checked(where: str, check: Callable[..., _Value], *arguments: object) -> _Value:
    """Return `check(*arguments)`; raise DpmcError beginning with `where` in place of its ValueError."""
    try:
        return check(*arguments)
    except DpmcError:
        raise
    except ValueError as error:
        raise DpmcError(f"{where}: {error}") from None


def positive_number(value: object, where: str) -> float:
    """Return a finite number greater than 0; otherwise raise DpmcError naming `where`."""
    number = checked(where, real, value)
    if not 0.0 < number < math.inf:
        raise DpmcError(f"{where}: {number:g} must be greater than 0 and finite")
    return number


def delta_below(value: object, n: int) -> float:
    """Return δ as a number greater than 0 and less than 1/n; raise ValueError otherwise.

    At δ = 1/n a mechanism may publish a whole row, drawn at random.
    """
    delta = real(value)
    if not 0.0 < delta < 1.0 / n:
        raise ValueError(
            f"{delta:g} must be greater than 0 and less than 1/n = {1.0 / n:.3g}: from there on a mechanism "
            "may publish one of the rows"
        )
    return delta


def count(value: Any, least: int = 1, most: int = MOST) -> int:
    """Return a whole number of Python or NumPy in a range; ValueError also for 2.0, true and text."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or getattr(value, "shape", ()) != ():
        raise ValueError(f"{shown(value)} must be a whole number")
    number = int(value)
    if not least <= number <= most:
        raise ValueError(f"{shown(number)} must be a whole number, at least {least} and at most {most}")
    return number


def array(value: object, shape: tuple[int | None, ...], where: str) -> "np.ndarray":
    """Return an array of finite numbers of this shape (None: any length); else DpmcError naming `where`."""
    import numpy as np

    try:
        numbers = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise DpmcError(f"{where}: {shown(value)} must be an array of numbers") from None
    if numbers.dtype.kind not in "fiu":
        raise DpmcError(f"{where}: {shown(value)} must be an array of real numbers")
    fits = numbers.ndim == len(shape) and all(
        wanted is None or wanted == size for wanted, size in zip(shape, numbers.shape, strict=True)
    )
    if not fits:
        text = tuple("any" if size is None else size for size in shape)
        raise DpmcError(f"{where}: shape {numbers.shape} must be {text}")
    if not np.isfinite(numbers).all():
        raise DpmcError(f"{where}: has a value that is NaN or infinite")
    return numbers.astype(float, copy=False)


def shown(value: object, most: int = 60) -> str:
    """Return the `repr` of a value in one line of at most `most` characters."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**most:
        return f"a number of more than {most} digits"
    try:
        # Cut before `repr`, which would be as long as the value.
        text = " ".join(repr(value[: most + 1] if isinstance(value, str | bytes) else value).split())
    except Exception:  # of a user's class
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 1]}…"
