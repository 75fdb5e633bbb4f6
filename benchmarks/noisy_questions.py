"""Questions of `noisy_grid.py`: regressions, their data sets, and the results of a method on these."""

from typing import Any, NamedTuple

import numpy as np
from noisy_statistics import LEVEL, Fit, maximum_likelihood, names, simulate

import dpmc
from dpmc.metrics.cell import convergence

REGRESSIONS: dict[str, tuple[Any, float]] = {  # class, sd of the prior
    "linear": (dpmc.LinearRegression, 0.5),
    "logistic": (dpmc.LogisticRegression, 0.5),
    "Poisson": (dpmc.PoissonRegression, 0.3),
}
N, D, EPSILON = (1_000, 5_000, 50_000), (2, 8), (0.5, 1.0, 4.0)  #: of the grid


class Question(NamedTuple):
    """What is estimated from which kind of rows; `predictors` as `simulate`'s kind, d coefficients."""

    regression: str
    predictors: str
    d: int
    n: int

    def model(self, tempering: float | None = None) -> Any:
        cls, sd = REGRESSIONS[self.regression]
        return cls("y", names(self.d), prior_sd=sd, tempering=tempering)

    def generator(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([*"".join(map(str, self)).encode(), *purpose])

    @property
    def delta(self) -> float:
        return 0.1 / self.n  # the default of `dpmc.sample`


class Data(NamedTuple):
    theta: np.ndarray  # (d,), drawn from the prior
    rows: np.ndarray
    fit: Fit


def data_set(question: Question, number: int, n: int | None = None) -> Data:
    """Return the data set with this number; those of twins are negative."""
    generator, model = question.generator(0, abs(number), number < 0), question.model()
    theta = REGRESSIONS[question.regression][1] * generator.standard_normal(question.d)
    rows = simulate(model, question.predictors, theta, n or question.n, generator)
    return Data(theta, rows, maximum_likelihood(model, rows))


def judged(found: list[np.ndarray], data: list[Data]) -> dict[str, float]:
    """Return the results of a method from draws (m, d) on each data set; estimates are posterior means."""
    theta, estimate, error = (
        np.array(part) for part in ([d.theta for d in data], *zip(*(d.fit for d in data), strict=True))
    )
    mean, sd = (np.array([of(draws, axis=0) for draws in found]) for of in (np.mean, np.std))
    edges = np.array([np.quantile(draws, [0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL], axis=0) for draws in found])
    low, high = edges[:, 0], edges[:, 1]
    covered = ((low <= theta) & (theta <= high)).mean(axis=1)
    z = (theta - mean) / np.maximum(sd, 1e-9 * error)  # a chain may never have moved
    ess = [least_ess(draws) for draws in found]
    return {
        "sets": len(data),
        "error": rms((mean - estimate) / error),  # from the MLE of the same rows, in its standard errors
        "error_truth": rms((mean - theta) / error),
        "coverage": float(covered.mean()),
        "coverage_error": float(covered.std() / np.sqrt(len(data))),  # standard error
        "width": float(np.mean((high - low) / (2.0 * 1.645 * error))),  # over that without privacy
        # How much farther from 0 the truth is, in posterior sds; 0 and 1 if posteriors are calibrated.
        "bias": float(np.mean(z * np.sign(mean))),
        "spread": rms(z),
        "ess": float(np.median(ess)),  # least of the coefficients, median over data sets
        "ess_least": float(np.min(ess)),  # of all data sets
    }


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def least_ess(draws: np.ndarray) -> float:
    """Return the least ESS of the coefficients, 0 if the chain never moved."""
    try:
        return convergence(draws[None]).ess_bulk_min
    except ValueError:
        return 0.0
