"""Errors of a sample's first two moments against the exact posterior's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def mean_error(draws: Floats, exact_mean: Floats) -> float:
    """Return the Euclidean distance of the draws' mean from the exact posterior mean.

    `draws` is (count, d) with count at least 1; `exact_mean` is (d,).
    """
    return float(np.linalg.norm(draws.mean(axis=0) - exact_mean))


def covariance_error(draws: Floats, exact_covariance: Floats) -> float:
    """Return the Frobenius norm of the draws' covariance (divisor count - 1) minus the exact one.

    `draws` is (count, d) with count at least 2; `exact_covariance` is (d, d). In squared units
    of the parameter.
    """
    centred = draws - draws.mean(axis=0)
    # einsum, not BLAS: bit-identical for any number of threads.
    covariance = np.einsum("ni,nj->ij", centred, centred) / (len(draws) - 1)
    return float(np.linalg.norm(covariance - exact_covariance))
