"""Cells of `scores.py`: what is simulated or resampled, the model that is told, and the maximum-likelihood fit."""

import csv
import zlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dpmc
from dpmc.models.families import Bernoulli, NegativeBinomial, Normal, Poisson
from dpmc.models.regression import Regression

REFERENCE = Path(__file__).with_name("scores_reference.csv")
SPREAD = {"linear": 0.5, "logistic": 0.5, "poisson": 0.3, "negative binomial": 0.3}  #: sd of coefficients
K2 = NegativeBinomial(0.5)  #: counts whose variance is m + m²/2


class Cell(NamedTuple):
    """One cell of the table; what is None or empty is as in the grid."""

    part: str  # "grid", "hard", "release" or "tables"
    case: str
    regression: str
    predictors: str
    n: int
    d: int
    epsilon: float
    spread: float | None = None  # sd of the true coefficients
    prior: float | None = None  # sd of their prior; by default the true one
    first: tuple[float | None, float] | None = None  # the true intercept, None: drawn; the sd of its prior
    residual: float | None = None  # the true residual sd, which the model does not know
    outcomes: str = ""  # the law of outcomes, if it is not the model's: "counts k=2" or "t3"

    @property
    def key(self) -> str:
        return ", ".join(map(str, self[:7]))

    def generator(self, *stream: int) -> np.random.Generator:
        """Return the generator of a stream; a release has the data of its cell of the grid."""
        name = self._replace(part="grid").key if self.part == "release" else self.key
        return np.random.default_rng([zlib.crc32(name.encode()), *stream])

    @property
    def model(self) -> Regression:
        """Return the regression that the method is told."""
        own = SPREAD[self.regression] if self.spread is None else self.spread
        prior = [own if self.prior is None else self.prior] * self.d
        if self.first:
            prior[0] = self.first[1]
        names = [f"x{i}" for i in range(1, self.d)]
        if self.regression == "linear":
            sd = None if self.residual else 1.0
            return dpmc.LinearRegression("y", names, sd=sd, prior_sd=[*prior, 2.0][: self.d + (sd is None)])
        if self.regression == "negative binomial":
            return dpmc.NegativeBinomialRegression("y", names, dispersion=K2.dispersion, prior_sd=prior)
        kind = dpmc.LogisticRegression if self.regression == "logistic" else dpmc.PoissonRegression
        return kind("y", names, prior_sd=prior)


class DataSet(NamedTuple):
    """Rows, the truth, and the fit without privacy."""

    rows: np.ndarray  # (n, columns of the model)
    theta: np.ndarray  # (d,)
    fit: np.ndarray  # (d,)
    error: np.ndarray  # standard errors of the fit (d,)


def simulated(cell: Cell, number: int) -> DataSet:
    """Return the data set `number` of a cell."""
    g = cell.generator(number)
    spread = SPREAD[cell.regression] if cell.spread is None else cell.spread
    theta = spread * g.standard_normal(cell.d)
    if cell.first and cell.first[0] is not None:
        theta[0] = cell.first[0]
    z = predictors(g, cell.n, cell.d, cell.predictors)
    eta = z @ theta
    family = cell.model.family
    if cell.outcomes == "t3":
        y = eta + g.standard_t(3, cell.n)
    elif cell.outcomes:
        y = K2.draw(g, eta)
    else:
        y = eta + cell.residual * g.standard_normal(cell.n) if cell.residual else family.draw(g, eta)
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


@cache
def reference() -> list[dict[str, str]]:
    """Return the cells of the grid with what the trial of the method measured there."""
    with REFERENCE.open() as file:
        return list(csv.DictReader(file))


def grid(part: str = "grid") -> list[Cell]:
    def cell(row: dict[str, str]) -> Cell:
        size = int(row["n"]), int(row["d"]), float(row["epsilon"])
        return Cell(part, "", row["regression"], row["predictors"], *size)

    return [cell(row) for row in reference()]


def release() -> list[Cell]:
    """Return ten cells of the grid, to be asked in the integers of a release."""
    wanted = [
        *(
            (way, kind, 1000, 8, 1.0)
            for way, kind in (("linear", "skew"), ("logistic", "skew"), ("poisson", "skew"))
        ),
        ("linear", "normal", 1000, 8, 0.5),
        ("logistic", "normal", 1000, 8, 4.0),
        ("poisson", "binary", 1000, 8, 4.0),
        ("linear", "binary", 1000, 3, 1.0),
        ("poisson", "normal", 1000, 3, 1.0),
        ("logistic", "binary", 5000, 8, 1.0),
        ("poisson", "skew", 5000, 8, 1.0),
    ]
    return [cell for cell in grid("release") if cell[2:7] in wanted]


def hard() -> list[Cell]:
    """Return cells in which the method was expected to have trouble."""
    ways = ("linear", "logistic", "poisson")

    def cell(case: str, way: str, kind: str, n: int, d: int, epsilon: float, **further: Any) -> Cell:
        return Cell("hard", case, way, kind, n, d, float(epsilon), **further)

    found = [cell("few rows", way, "normal", n, 4, 1) for way in ways for n in (200, 500, 2000)]
    found += [
        cell("many coefficients", way, "normal", n, d, 1)
        for way in ways
        for d in (15, 30)
        for n in (2000, 10000)
    ]
    for way in ways:
        found += [cell("correlated", way, "correlated 0.9", 2000, 8, 1)]
        found += [cell("correlated", way, "correlated 0.99", 5000, 8, 4)]
        found += [cell("0/1, not centred", way, "0 or 1", 5000, 4, 1)]
        found += [cell("heavy tails", way, "t2.5", 5000, 4, 1)]
        spread = 0.15 if way == "poisson" else 0.3
        far = cell(
            "not centred", way, "skew, mean 3", 5000, 4, 1, spread=spread, prior=0.5, first=(None, 2.0)
        )
        found += [far]
    for n, epsilon in ((5000, 1), (5000, 4), (20000, 1)):
        found += [cell("2 % ones", "logistic", "normal", n, 4, epsilon, first=(-4.0, 3.0))]
    for kind in ("normal", "0 or 1"):
        found += [cell("mean count 20", "poisson", kind, 2000, 4, e, first=(3.0, 3.0)) for e in (1, 4)]
    found += [cell("near separation", "logistic", "normal", 500, 4, e, spread=3.0) for e in (1, 4)]
    unknown = [
        ("normal", 1000, 1, 1.0),
        ("normal", 5000, 1, 0.1),
        ("normal", 5000, 1, 10.0),
        ("skew", 5000, 1, 1.0),
    ]
    for kind, n, epsilon, sd in [*unknown, ("normal", 20000, 4, 0.1)]:
        case = f"unknown sd, {sd:g}"
        found += [cell(case, "linear", kind, n, 4, epsilon, spread=0.5 * sd, residual=sd)]
    found += [
        cell("t3 errors", "linear", "normal", 5000, 4, e, prior=1.0, residual=1.21, outcomes="t3")
        for e in (1, 4)
    ]
    for way in ("poisson", "negative binomial"):
        for n, epsilon in ((1000, 1), (5000, 4), (20000, 4)):
            found += [cell("overdispersed", way, "normal", n, 4, epsilon, outcomes="counts k=2")]
    for way in ways:
        found += [
            cell("prior sd 10", way, kind, n, 8, 1, prior=10.0)
            for kind in ("normal", "binary", "skew")
            for n in (1000, 5000)
        ]
        found += [cell("small epsilon", way, "normal", 1000, 8, e) for e in (0.1, 0.01, 1e-6)]
        found += [cell("narrow prior", way, "normal", 1000, 8, 1, spread=0.5, prior=0.15)]
    return found
