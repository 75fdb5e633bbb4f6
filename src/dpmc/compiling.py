"""numba's `njit`, which keeps what it compiled on disk where a folder for that can be written."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numba

HINT = (
    "dpmc compiles its sums over rows in each process anew, in seconds: neither the installed package's "
    "folder nor the user's cache folder can be written to. Set NUMBA_CACHE_DIR to a folder that can."
)


def njit(**options: Any) -> Callable[[Any], Any]:
    """Return `numba.njit` with these options; without `cache` where numba finds no folder to write to."""

    def compiled(function: Any) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError as error:
            if not str(error).startswith("cannot cache function"):
                raise
            _warn()
            return numba.njit(**{**options, "cache": False})(function)

    return compiled


@functools.cache
def _warn() -> None:
    """Warn once that nothing is kept."""
    warnings.warn(HINT, RuntimeWarning, stacklevel=3)
