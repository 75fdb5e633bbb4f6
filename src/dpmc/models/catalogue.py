"""The catalogue of the models of the published experiments; `definition` finds a model by its id."""

from collections.abc import Callable

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.models import published
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.definition import Definition
from dpmc.models.gaussian import Gaussian, dp_hmc_covariance
from dpmc.models.logistic import Logistic
from dpmc.models.mixture import Mixture
from dpmc.models.own import own_model


def _banana(
    d: int,
    n: int,
    tempering: float | None = None,
    a: float = 20.0,
    prior_variance: float = 1000.0,
    variance: tuple[float, float] = (20.0, 2.5),
) -> Definition:
    model = Banana(a, 0.0, 0.0, np.array([*variance, *[1.0] * (d - 2)]), prior_variance)
    theta = (0.0, 3.0) + (0.0,) * (d - 2)
    return Definition(model, n, tempering, theta, *published.of_banana(model, theta))


def _gaussian(covariance: list[list[float]], n: int, seed: int) -> Definition:
    """Return a Gaussian of prior sd 100 (exact posterior: variance 100, as coded); `seed` is of its rows."""
    precision = np.linalg.inv(np.array(covariance))
    # Symmetric to the last bit, which an inverse need not be.
    model = Gaussian(0.5 * (precision + precision.T), 100.0**2, 100.0)
    theta = (0.0, 3.0) + (0.0,) * (len(covariance) - 2)
    return Definition(model, n, None, theta, *published.of_gaussian(theta, model.precision, seed))


def _logistic(d: int, norm: float, n: int, true_theta: tuple[float, ...] = ()) -> Definition:
    """Return logistic regression with rows of ‖x‖ ≤ norm; the true θ of real data is unknown, set to 0."""
    return Definition(Logistic(d, norm), n, None, true_theta or (0.0,) * d, uniform_starts=True)


_CATALOGUE: dict[str, Callable[[], Definition]] = {
    "flat-banana-2d": lambda: _banana(2, 100_000),
    "flat-banana-10d": lambda: _banana(10, 200_000),
    "tempered-banana-2d": lambda: _banana(2, 100_000, tempering=1000.0),
    "tempered-banana-10d": lambda: _banana(10, 200_000, tempering=1000.0),
    "gauss-30d": lambda: _banana(30, 200_000, a=0.0),
    "narrow-banana": lambda: _banana(2, 150_000, a=350.0),
    "correlated-gauss": lambda: _gaussian([[1.0, 0.999], [0.999, 1.0]], 200_000, published.GAUSSIAN_SEED),
    "circle": lambda: Definition(
        Circle(1e-5), 100_000, None, (0.0, 0.0), published.circle_rows, around=((0.0, 1.0), 1.0)
    ),
    # The DP-HMC paper. Its text has σ_0 = 1000 for the banana. Its public code, which made the published
    # figures, has the prior *variance* 1000.
    "paper-banana": lambda: _banana(2, 100_000, variance=(2000.0, 2500.0)),  # by the code
    "paper-banana-wide": lambda: _banana(2, 100_000, prior_variance=1000.0**2, variance=(2000.0, 2500.0)),
    "paper-gauss": lambda: _gaussian(dp_hmc_covariance().tolist(), 100_000, published.PAPER_GAUSSIAN_SEED),
    # The DP-Fast MH paper. Its temperature 500 divides the log-likelihood of 50,000 rows.
    "mixture": lambda: Definition(Mixture(2.0, 3.0), 50_000, 100.0, (0.0, 1.0), around=((0.0, 0.0), 0.0)),
    "logistic-fashion": lambda: _logistic(50, 6.0, 12_000),  # norms and n: data/sources.yaml
    "logistic-digits": lambda: _logistic(50, 6.0, 1_700),
    "logistic-mnist": lambda: _logistic(50, 6.0, 12_214),
    "logistic-simulated": lambda: _logistic(10, 5.0, 12_000, (1.0, -0.5) * 5),
}

MODELS = tuple(_CATALOGUE)


def definition(model: str) -> Definition:
    """Return the definition of a model id of the catalogue, or of `module:Class`.

    Raises DpmcError if it does not exist or is not a valid model.
    """
    if ":" in model:
        return own_model(model)
    if model not in _CATALOGUE:
        raise DpmcError(
            f"model: {shown(model)} is unknown; known: {', '.join(MODELS)}, or your own as module:Class"
        )
    return _CATALOGUE[model]()
