"""Gradients by JAX (extra `jax`), in double precision whatever JAX's global setting is."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmc.common.errors import DpmcError


def differentiated(
    log_likelihood: Callable[..., Any], log_prior: Callable[..., Any] | None
) -> dict[str, Callable[..., Any]]:
    """Return a model's densities, compiled, and their gradients by name.

    Raises DpmcError if JAX is not installed.
    """
    try:
        import jax
    except ImportError:
        raise DpmcError(
            'Model: gradient: "jax" needs JAX (pip install jax); or give log_likelihood_gradient'
        ) from None
    densities = {"log_likelihood": log_likelihood} | ({"log_prior": log_prior} if log_prior else {})
    found = {}
    for name, function in densities.items():
        # Forward mode: there are few parameters and many rows.
        found[name] = _double(jax.jit(function), log_likelihood)
        found[f"{name}_gradient"] = _double(jax.jit(jax.jacfwd(function)), log_likelihood)
    return found


def _double(function: Callable[..., Any], named: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function on NumPy arrays in double precision, named as the user's log-likelihood."""
    import jax

    def in_double(*arguments: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(function(*arguments))

    in_double.__module__ = getattr(named, "__module__", "__main__")
    in_double.__qualname__ = getattr(named, "__qualname__", "log_likelihood")
    return in_double
