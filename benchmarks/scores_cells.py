"""Cells of `scores.py`: what is simulated, the model that is told, and the maximum-likelihood fit."""

import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import dpmc
from dpmc.models.families import Bernoulli, NegativeBinomial, Normal, Poisson
from dpmc.models.regression import Regression

CELLS = Path(__file__).with_name("scores_cells.csv")
SPREAD = {"linear": 0.5, "logistic": 0.5, "poisson": 0.3, "negative binomial": 0.3}  #: sd of coefficients
K2 = NegativeBinomial(0.5)  #: counts whose variance is m + m²/2


class Cell(NamedTuple):
    """One cell of the table; what is NaN or empty is as in the grid."""

    part: str  # "grid", "hard", "release", "chains" or "tables"
    case: str  # of "chains" the method
    regression: str
    predictors: str
    n: int
    d: int
    epsilon: float
    spread: float = np.nan  # sd of the true coefficients
    prior: float = np.nan  # sd of their prior; by default the true one
    intercept: float = np.nan  # the true one, which is drawn by default
    intercept_prior: float = np.nan  # sd
    residual: float = np.nan  # the true residual sd, which the model does not know
    outcomes: str = ""  # the law of outcomes, if it is not the model's: "counts k=2" or "t3"
    trial_error: float = np.nan  # what the trial of the method measured in the grid
    trial_coverage: float = np.nan
    trial_noisy_descent: float = np.nan  # the error of noisy gradient descent, hyperparameters in hindsight

    @property
    def key(self) -> str:
        return ", ".join(map(str, self[:7]))

    def generator(self, *stream: int) -> np.random.Generator:
        """Return the generator of a stream; releases and chains have the data of their cell of the grid."""
        in_grid = self.part in ("release", "chains")
        name = self._replace(part="grid", case="").key if in_grid else self.key
        return np.random.default_rng([zlib.crc32(name.encode()), *stream])

    @property
    def model(self) -> Regression:
        """Return the regression that the method is told."""
        own = given(self.spread, SPREAD[self.regression])
        prior = [given(self.prior, own)] * self.d
        prior[0] = given(self.intercept_prior, prior[0])
        names = [f"x{i}" for i in range(1, self.d)]
        if self.regression == "linear":
            known = np.isnan(self.residual)
            sds = prior if known else [*prior, 2.0]
            return dpmc.LinearRegression("y", names, sd=1.0 if known else None, prior_sd=sds)
        if self.regression == "negative binomial":
            return dpmc.NegativeBinomialRegression("y", names, dispersion=K2.dispersion, prior_sd=prior)
        kind = dpmc.LogisticRegression if self.regression == "logistic" else dpmc.PoissonRegression
        return kind("y", names, prior_sd=prior)


def given(value: float, default: float) -> float:
    """Return a value, or the default for NaN."""
    return default if np.isnan(value) else value


class DataSet(NamedTuple):
    """Rows, the truth, and the fit without privacy."""

    rows: np.ndarray  # (n, columns of the model)
    theta: np.ndarray  # (d,)
    fit: np.ndarray  # (d,)
    error: np.ndarray  # standard errors of the fit (d,)


def simulated(cell: Cell, number: int) -> DataSet:
    """Return the data set `number` of a cell."""
    g = cell.generator(number)
    theta = given(cell.spread, SPREAD[cell.regression]) * g.standard_normal(cell.d)
    theta[0] = given(cell.intercept, theta[0])
    z = predictors(g, cell.n, cell.d, cell.predictors)
    eta = z @ theta
    family = cell.model.family
    if cell.outcomes == "t3":
        y = eta + g.standard_t(3, cell.n)
    elif cell.outcomes:
        y = K2.draw(g, eta)
    else:
        y = (family if np.isnan(cell.residual) else Normal(cell.residual)).draw(g, eta)
    fit, error = fitted(family, z, y)
    return DataSet(np.column_stack([y, z[:, 1:]]), theta, fit, error)


def predictors(g: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    """Return an intercept's ones and d − 1 predictors (n, d)."""
    size = n, d - 1
    if kind.startswith("correlated"):
        r = float(kind.split()[1])
        x = np.sqrt(r) * g.standard_normal((n, 1)) + np.sqrt(1.0 - r) * g.standard_normal(size)
    else:
        ones = g.random(size) < 0.25
        x = {
            "normal": lambda: g.standard_normal(size),
            "binary": lambda: (ones - 0.25) / np.sqrt(0.1875),  # a quarter of ones, standardised
            "0 or 1": lambda: ones.astype(float),
            "skew": lambda: g.exponential(size=size) - 1.0,
            "skew, mean 3": lambda: g.exponential(size=size) + 2.0,
            "t2.5": lambda: g.standard_t(2.5, size) / np.sqrt(5.0),
        }[kind]()
    return np.column_stack([np.ones(n), x])


def fitted(family: Any, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum-likelihood estimate and its standard errors (d,), by Fisher's scoring."""
    theta = np.zeros(z.shape[1])
    if isinstance(family, Normal):
        theta = np.linalg.lstsq(z, y, rcond=None)[0]
        sd = np.sqrt(((y - z @ theta) ** 2).sum() / (len(y) - len(theta))) if family.sd is None else family.sd
        return theta, sd * np.sqrt(np.diag(np.linalg.inv(z.T @ z)))
    theta[0] = 0.0 if isinstance(family, Bernoulli) else np.log(y.mean() + 0.1)
    for _ in range(100):
        eta = np.clip(z @ theta, -30.0, 30.0)
        information = (z * weights(family, eta)[:, None]).T @ z + 1e-8 * np.eye(len(theta))
        step = np.linalg.solve(information, z.T @ family.score(eta, y))
        theta = theta + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-9))
        if np.abs(step).max() < 1e-9:
            break
    return theta, np.sqrt(np.diag(np.linalg.inv(information)))


def weights(family: Any, eta: np.ndarray) -> np.ndarray:
    """Return the information of each row on η (n,)."""
    m = family.mean(eta)
    if isinstance(family, NegativeBinomial):
        return m / (1.0 + family.dispersion * m)
    return {Bernoulli: m * (1.0 - m), Poisson: m}[type(family)]


def cells() -> list[Cell]:
    """Return the cells of `CELLS`."""
    table = pd.read_csv(CELLS).fillna({"case": "", "outcomes": ""})
    return [Cell(**row) for row in table.to_dict("records")]
