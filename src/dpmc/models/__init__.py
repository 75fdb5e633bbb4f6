"""What is inferred: one model a file, and the catalogue of the models of the published experiments.

A model of one's own needs only `dimension` and `log_likelihood(theta, rows) -> (n,)`; with
`log_prior(theta)` (default: flat), `log_prior_gradient(theta, out)` and
`log_likelihood_gradient(theta, rows) -> (n, d)` the gradient-based samplers work too; with
`true_theta`, `simulate(generator, theta, n)` and `posterior(rows, temperature)` data can be generated and
draws evaluated. It is named as `module:Class` wherever a model id is taken.
"""

import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from dpmc.models.logistic import Logistic
from dpmc.models.mixture import Mixture
from dpmc.models.results import name_of, real_array
from dpmc.values import MOST, MOST_PARAMETERS, array, count, real, shown


@dataclass(frozen=True)
class Definition:
    """One model of the catalogue (Table 5.1 of the thesis; then those of two papers)."""

    model: Any
    n: int  # rows of the published data set
    tempering: float | None  # n_0: T = n_0 / n; None: T = 1
    true_theta: tuple[float, ...]

    def temperature(self, n: int) -> float:
        """T for n rows."""
        return 1.0 if self.tempering is None else self.tempering / n


def _banana(
    d: int,
    n: int,
    tempering: float | None = None,
    a: float = 20.0,
    prior_variance: float = 1000.0,
    variance: tuple[float, float] = (20.0, 2.5),
) -> Definition:
    model = Banana(a, 0.0, 0.0, np.array([*variance, *[1.0] * (d - 2)]), prior_variance)
    return Definition(model, n, tempering, (0.0, 3.0) + (0.0,) * (d - 2))


def _paper_banana(prior_variance: float) -> Definition:
    """The banana of the DP-HMC paper (its Section 4), whose text and public code differ in the prior."""
    return _banana(2, 100_000, prior_variance=prior_variance, variance=(2000.0, 2500.0))


def _paper_gaussian() -> Definition:
    """The 10-dimensional Gaussian of the DP-HMC paper; its covariance is data."""
    from dpmc.datasets.published import dp_hmc_covariance  # that package imports this one

    return _gaussian(dp_hmc_covariance().tolist(), 100_000, prior_sd=100.0)


def _gaussian(covariance: list[list[float]], n: int, prior_sd: float) -> Definition:
    """Prior sd for the samplers, and the same number as variance of the exact posterior, as coded."""
    precision = np.linalg.inv(np.array(covariance))
    model = Gaussian(0.5 * (precision + precision.T), prior_sd**2, prior_sd)
    return Definition(model, n, None, (0.0, 3.0) + (0.0,) * (len(covariance) - 2))


def _logistic(d: int, norm: float, n: int, true_theta: tuple[float, ...] = ()) -> Definition:
    """Logistic regression with rows of ‖x‖ ≤ norm; the true θ of real data is unknown, and given as 0."""
    return Definition(Logistic(d, norm), n, None, true_theta or (0.0,) * d)


_CATALOGUE = {
    "flat-banana-2d": lambda: _banana(2, 100_000),
    "flat-banana-10d": lambda: _banana(10, 200_000),
    "tempered-banana-2d": lambda: _banana(2, 100_000, tempering=1000.0),
    "tempered-banana-10d": lambda: _banana(10, 200_000, tempering=1000.0),
    "gauss-30d": lambda: _banana(30, 200_000, a=0.0),
    "narrow-banana": lambda: _banana(2, 150_000, a=350.0),
    "correlated-gauss": lambda: _gaussian([[1.0, 0.999], [0.999, 1.0]], 200_000, prior_sd=100.0),
    "circle": lambda: Definition(Circle(1e-5), 100_000, None, (0.0, 0.0)),
    # The DP-HMC paper. Its text has σ_0 = 1000 for the banana, its public code, with which the published
    # figures were made, the prior *variance* 1000.
    "paper-banana": lambda: _paper_banana(1000.0),  # by the code
    "paper-banana-wide": lambda: _paper_banana(1000.0**2),  # by the text
    "paper-gauss": _paper_gaussian,
    # The DP-Fast MH paper. Its temperature 500 divides the log-likelihood of 50,000 rows.
    "mixture": lambda: Definition(Mixture(2.0, 3.0), 50_000, 100.0, (0.0, 1.0)),
    "logistic-fashion": lambda: _logistic(50, 6.0, 12_000),  # norms and n: datasets/sources.yaml
    "logistic-digits": lambda: _logistic(50, 6.0, 1_700),
    "logistic-mnist": lambda: _logistic(50, 6.0, 12_214),
    "logistic-simulated": lambda: _logistic(10, 5.0, 12_000, (1.0, -0.5) * 5),
}

MODELS = tuple(_CATALOGUE)


def definition(model: str) -> Definition:
    """Return the definition of a model id of the catalogue, or of `module:Class`.

    Raises DpmcError for what does not exist or lacks what a model needs.
    """
    if ":" in model:
        return _own_model(model)
    if model not in _CATALOGUE:
        raise DpmcError(
            f"model: {shown(model)} is unknown; known: {', '.join(MODELS)}, or your own as module:Class"
        )
    return _CATALOGUE[model]()


def _own_model(name: str) -> Definition:
    """Import `module:Class` (the current folder first) and check that it can serve as a model."""
    module, _, attribute = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    with _telling(f"model: {shown(name)} cannot be loaded", module):
        own = getattr(importlib.import_module(module), attribute)()
    return _checked(own if isinstance(own, tuple) else WithDefaults(_Telling(own, name)), own, name)


def _checked(model: Any, own: Any, name: str) -> Definition:
    """The definition of a model of one's own, if its attributes are what they have to be."""
    where = f"model: {shown(name)}"
    with _telling(f"{where}: its attributes cannot be read", name.partition(":")[0]):
        given = {key: getattr(own, key) for key in (*_ATTRIBUTES, *_METHODS) if hasattr(own, key)}
    for needed in ("dimension", "log_likelihood"):
        if needed not in given:
            raise DpmcError(f"{where} has no {needed}, which every model needs")
    for key in _METHODS:
        if key in given and not callable(given[key]):
            raise DpmcError(f"{where}: {key}: {shown(given[key])} must be a method")
    counts = {}
    for key, most in (("dimension", MOST_PARAMETERS), ("n", MOST), ("columns", MOST)):
        try:
            counts[key] = count(given[key], most=most) if given.get(key) is not None else None
        except ValueError as error:
            raise DpmcError(f"{where}: {key}: {error}") from None
    d = counts["dimension"]
    if d is None:
        raise DpmcError(f"{where}: dimension: None must be a whole number")
    vectors = {
        key: array(given[key], (d,), f"{where}: {key}") for key in ("true_theta", "start") if key in given
    }
    tempering = given.get("tempering")
    if tempering is not None:
        try:
            tempering = real(tempering)
        except ValueError as error:
            raise DpmcError(f"{where}: tempering: {error}") from None
        if not 0.0 < tempering < np.inf:
            raise DpmcError(f"{where}: tempering: {tempering:g} must be greater than 0 and finite")
    if not isinstance(given.get("histogram_truth", False), bool):
        raise DpmcError(f"{where}: histogram_truth: {shown(given['histogram_truth'])} must be True or False")
    theta = vectors.get("true_theta", np.zeros(d))
    return Definition(model, counts["n"] or 0, tempering, tuple(theta))


_ATTRIBUTES = ("dimension", "n", "columns", "tempering", "true_theta", "start", "histogram_truth")
_METHODS = (
    "log_likelihood",
    "log_prior",
    "log_likelihood_gradient",
    "log_prior_gradient",
    "simulate",
    "posterior",
    "row_bounds",
)


@contextmanager
def _telling(what: str, module: str) -> Iterator[None]:
    """Turn whatever a user's code raises, `sys.exit` too, into one DpmcError: what, the error, and where.

    The place is the last line of the user's module, if the error went through it.
    """
    try:
        yield
    except (DpmcError, KeyboardInterrupt):
        raise
    except BaseException as error:
        file = getattr(sys.modules.get(module), "__file__", None) or f"{module.replace('.', '/')}.py"
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if os.path.abspath(frame.filename) == os.path.abspath(file)
        ]
        place = f", {Path(file).name} line {lines[-1]}" if lines else ""
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        raise DpmcError(f"{what} ({text}{place})") from None


class _Telling:
    """A user's object; what its methods raise becomes one DpmcError that names model, method and error."""

    def __init__(self, own: Any, name: str) -> None:
        self._own, self._name = own, name

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        module = self._name.partition(":")[0]
        value = getattr(self._own, key)
        if not callable(value):
            return value

        def method(*arguments: Any) -> Any:
            where = f"model: {shown(self._name)}: {key}"
            with _telling(f"{where} failed", module):
                found = value(*arguments)
            if key != "posterior":
                return found
            if not all(callable(getattr(found, needed, None)) for needed in ("draws", "mean", "covariance")):
                raise DpmcError(f"{where}: {shown(found)} must have methods draws, mean and covariance")
            return _Telling(found, self._name)

        return method


class WithDefaults:
    """A user's model with what it leaves out: a flat prior; a clear error for a missing gradient."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._model, name)

    def log_prior(self, theta: np.ndarray) -> float:
        """ln p(θ); flat if the model has none."""
        if not hasattr(self._model, "log_prior"):
            return 0.0
        return float(real_array(self._model.log_prior(theta), (), f"model: {name_of(self)}: log_prior"))

    def log_prior_gradient(self, theta: np.ndarray, out: np.ndarray) -> None:
        """∇ ln p(θ) into `out`; zero if the prior is flat."""
        if not hasattr(self._model, "log_prior"):
            out[:] = 0.0
        elif hasattr(self._model, "log_prior_gradient"):
            self._model.log_prior_gradient(theta, out)
        else:
            self._lacks("log_prior_gradient")

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """∇ ln p(x_j|θ), (n, d)."""
        if not hasattr(self._model, "log_likelihood_gradient"):
            self._lacks("log_likelihood_gradient")
        found: np.ndarray = self._model.log_likelihood_gradient(theta, rows)
        return found

    def _lacks(self, method: str) -> None:
        raise DpmcError(f"model: {name_of(self)} has no {method}; this algorithm needs it")
