"""A model made of functions: `dpmc.Model(dimension, log_likelihood, log_prior)`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown

#: Optional attributes of a model besides its densities and their gradients (docs/how-to/own-model.md).
OPTIONAL_FUNCTIONS = (
    *("columns", "codebook", "parameters", "n", "tempering", "true_theta", "start", "simulate", "posterior"),
    *("row_bounds", "check_rows", "statistics", "ratio_form", "gradient_form"),
    *("summaries", "summary_count", "posterior_given"),
)


class Model:
    """A likelihood and a prior given as functions.

    Parameters
    ----------
    dimension
        Number of parameters d.
    log_likelihood
        (θ (d,), rows (n, columns)) -> (n,), ln p(x_j|θ) of each row. The value of a row must depend on that
        row alone.
    log_prior
        θ (d,) -> ln p(θ), a number; None: a flat prior.
    log_likelihood_gradient
        (θ, rows) -> (n, d), for algorithms with gradients.
    log_prior_gradient
        θ -> (d,), for algorithms with gradients.
    gradient
        "jax": JAX computes both gradients; write the densities with `jax.numpy`.
    optional
        `simulate(generator, theta, n)`, `true_theta`, `columns` (number or names), `codebook`, `parameters`,
        `tempering`, `start`, `n`, `posterior`, `row_bounds`, `check_rows`, `summaries`, `summary_count`,
        `posterior_given`, and the methods of an affine form.

    Raises
    ------
    DpmcError
        For an unknown option, a `gradient` other than "jax", gradients given besides it, or without JAX.
    """

    def __init__(
        self,
        dimension: int,
        log_likelihood: Callable[[np.ndarray, np.ndarray], Any],
        log_prior: Callable[[np.ndarray], Any] | None = None,
        *,
        log_likelihood_gradient: Callable[[np.ndarray, np.ndarray], Any] | None = None,
        log_prior_gradient: Callable[[np.ndarray], Any] | None = None,
        gradient: str | None = None,
        **optional: object,
    ) -> None:
        self.dimension = dimension
        functions = {
            "log_likelihood": log_likelihood,
            "log_prior": log_prior,
            "log_likelihood_gradient": log_likelihood_gradient,
            "log_prior_gradient": log_prior_gradient,
        }
        for name in optional:
            if name not in OPTIONAL_FUNCTIONS:
                raise DpmcError(f"Model: {shown(name)} is unknown; known: {', '.join(OPTIONAL_FUNCTIONS)}")
        if gradient not in (None, "jax"):
            raise DpmcError(f'Model: gradient: {shown(gradient)} must be "jax", or left out')
        if gradient == "jax":
            if log_likelihood_gradient is not None or log_prior_gradient is not None:
                raise DpmcError('Model: gradient: "jax" computes the gradients, so none can be given')
            functions |= _differentiated(log_likelihood=log_likelihood, log_prior=log_prior)
        #: Missing functions must not become attributes: evaluators are chosen by the methods a model has.
        self.__dict__ |= {name: given for name, given in functions.items() if given is not None} | optional


def _differentiated(**densities: Callable[..., Any] | None) -> dict[str, Callable[..., Any]]:
    """Return densities compiled by JAX, and their gradients, by name; in double precision by any setting.

    Raises DpmcError if JAX is not installed.
    """
    try:
        import jax
    except ImportError:
        raise DpmcError(
            'Model: gradient: "jax" needs JAX (pip install jax); or give log_likelihood_gradient'
        ) from None

    def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
        def on_arrays(*arguments: np.ndarray) -> np.ndarray:
            with jax.enable_x64(True):
                return np.asarray(function(*arguments))

        # A model made of functions has the name of its log-likelihood.
        on_arrays.__module__ = getattr(densities["log_likelihood"], "__module__", "__main__")
        on_arrays.__qualname__ = getattr(densities["log_likelihood"], "__qualname__", "log_likelihood")
        return on_arrays

    compiled = {}
    for name, function in densities.items():
        if function is not None:
            compiled[name] = in_double(jax.jit(function))
            # Forward mode: there are few parameters and many rows.
            compiled[f"{name}_gradient"] = in_double(jax.jit(jax.jacfwd(function)))
    return compiled
