"""A model made of functions: `dpmc.Model(dimension, log_likelihood, log_prior)`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.values import shown

#: What a model may have beside its densities and their gradients (docs/how-to/own-model.md).
OPTIONAL = (
    *("columns", "parameters", "n", "tempering", "true_theta", "start", "simulate", "posterior"),
    *("row_bounds", "statistics", "ratio_form", "gradient_form"),
)


class Model:
    """A likelihood and a prior given as functions.

    Parameters
    ----------
    dimension
        Number of parameters d.
    log_likelihood
        (θ (d,), rows (n, columns)) -> (n,), ln p(x_j|θ) of each row. The value of a row depends on that row
        alone.
    log_prior
        θ (d,) -> ln p(θ), a number; a flat prior if there is none.
    log_likelihood_gradient
        (θ, rows) -> (n, d), for algorithms with gradients.
    log_prior_gradient
        θ -> (d,), likewise.
    gradient
        "jax": both gradients are taken by JAX; the densities are written with `jax.numpy`.
    optional
        `simulate(generator, theta, n)`, `true_theta`, `columns` (number or names), `parameters` (names),
        `tempering`, `start`, `n`, `posterior`, `row_bounds`, and the methods of an affine form.

    Raises
    ------
    DpmcError
        For an unknown option, and for gradients that are given twice.
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
        **optional: Any,
    ) -> None:
        self.dimension = dimension
        functions = {
            "log_likelihood": log_likelihood,
            "log_prior": log_prior,
            "log_likelihood_gradient": log_likelihood_gradient,
            "log_prior_gradient": log_prior_gradient,
        }
        for name in optional:
            if name not in OPTIONAL:
                raise DpmcError(f"Model: {shown(name)} is unknown; known: {', '.join(OPTIONAL)}")
        if gradient not in (None, "jax"):
            raise DpmcError(f'Model: gradient: {shown(gradient)} must be "jax", or left out')
        if gradient == "jax":
            if log_likelihood_gradient is not None or log_prior_gradient is not None:
                raise DpmcError('Model: gradient: "jax" takes the gradients, none can be given beside it')
            from dpmc.models.automatic import differentiated  # imports JAX

            functions |= differentiated(log_likelihood, log_prior)
        #: Only what is there becomes an attribute: whether a model has a method decides how it is run.
        self.__dict__ |= {name: given for name, given in functions.items() if given is not None} | optional
