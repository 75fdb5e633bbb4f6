"""A model made of functions: `dpmc.Model(dimension, log_likelihood, log_prior)`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown

GRADIENTS = ("log_likelihood_gradient", "log_prior_gradient")
#: Optional attributes of a model (docs/how-to/own-model.md).
OPTIONAL_FUNCTIONS = (
    *("columns", "codebook", "parameters", "n", "tempering", "true_theta", "start", "simulate", "posterior"),
    *("row_bounds", "check_rows", "statistics", "ratio_form", "gradient_form"),
    *("summaries", "summary_count", "posterior_given", *GRADIENTS),
)


class Model:
    """A likelihood and a prior given as functions; DpmcError for an unknown option.

    Parameters
    ----------
    dimension
        Number of parameters d.
    log_likelihood
        (θ (d,), rows (n, columns)) -> (n,), ln p(x_j|θ) of each row, which must depend on that row alone.
    log_prior
        θ (d,) -> ln p(θ), a number; None: a flat prior.
    optional
        `log_likelihood_gradient`, (θ, rows) -> (n, d), and `log_prior_gradient`, θ -> (d,), for algorithms
        with gradients, and what else a model may have (docs/how-to/own-model.md).
    """

    def __init__(
        self,
        dimension: int,
        log_likelihood: Callable[[np.ndarray, np.ndarray], Any],
        log_prior: Callable[[np.ndarray], Any] | None = None,
        **optional: object,
    ) -> None:
        self.dimension, self.log_likelihood = dimension, log_likelihood
        for name in optional:
            if name not in OPTIONAL_FUNCTIONS:
                raise DpmcError(f"Model: {shown(name)} is unknown; known: {', '.join(OPTIONAL_FUNCTIONS)}")
        #: Missing functions must not become attributes: evaluators are chosen by the methods a model has.
        functions = {"log_prior": log_prior, **{name: optional.pop(name, None) for name in GRADIENTS}}
        self.__dict__ |= {name: each for name, each in functions.items() if each is not None} | optional
