"""numba's `njit`, with a cache on disk if a folder for it can be written."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numba

HINT = (
    "dpmc compiles its sums over rows in each process anew, which takes seconds: neither the folder of the "
    "installed package nor the user's cache folder is writable. Set NUMBA_CACHE_DIR to a writable folder."
)


def njit(**options: Any) -> Callable[[Any], Any]:
    """Return `numba.njit` with these options, without `cache` if numba finds no writable folder."""

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
    """Warn once that compiled code is not cached."""
    warnings.warn(HINT, RuntimeWarning, stacklevel=3)
