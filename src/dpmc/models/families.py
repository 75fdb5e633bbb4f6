"""Families of a regression: the distribution of an outcome y given η = θ·z, row by row, arrays (n,).

A family of one's own is a class with `support` and the four functions of `Family`, and no base class.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import betaln, expit, gammaln

from dpmc.common.errors import DpmcError
from dpmc.common.values import positive_number, shown

#: Which outcomes a support has, and how a message says so.
SUPPORTS: dict[str, tuple[Any, str]] = {
    "real": (lambda y: np.ones(len(y), bool), "a number"),
    "positive": (lambda y: y > 0.0, "greater than 0"),
    "counts": (lambda y: (y >= 0.0) & (y == np.floor(y)), "a whole number, at least 0"),
    "binary": (lambda y: (y == 0.0) | (y == 1.0), "0 or 1"),
}
FUNCTIONS = ("log_density", "score", "mean", "draw")


class Family(Protocol):
    """The distribution of an outcome given η; it may also have `log_base(y)` and `is_location`."""

    @property
    def support(self) -> str:
        """Return which outcomes there are: "real", "positive", "counts" or "binary"."""

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ln p(y|η) (n,), up to a term of y alone."""

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the derivative of `log_density` in η (n,)."""

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return E y at η, in η's shape."""

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        """Draw outcomes (n,)."""


def log_base(family: Family, y: np.ndarray) -> np.ndarray:
    """Return the term of y alone that `log_density` lacks (n,): 0 if the family has no `log_base(y)`."""
    base: np.ndarray = family.log_base(y) if hasattr(family, "log_base") else np.zeros(len(y))
    return base


def checked_family(family: Any, where: str) -> Family:
    """Return a family; raise DpmcError naming `where` for a class, what it lacks, and a wrong number."""
    if isinstance(family, type):
        raise DpmcError(f"{where}: {family.__name__} is a class: give an instance, {family.__name__}()")
    kind = type(family).__name__
    for name in FUNCTIONS:
        if not callable(getattr(family, name, None)):
            raise DpmcError(f"{where}: {kind} has no {name}; a family has support, {', '.join(FUNCTIONS)}")
    support = getattr(family, "support", None)
    if not isinstance(support, str) or support not in SUPPORTS:
        raise DpmcError(f"{where}: {kind}: support: {shown(support)} must be one of {', '.join(SUPPORTS)}")
    for name in ("sd", "dispersion"):
        if isinstance(family, Normal | NegativeBinomial) and getattr(family, name, None) is not None:
            positive_number(getattr(family, name), f"{where}: {kind}: {name}")
    checked: Family = family
    return checked


@dataclass(frozen=True)
class Normal:
    """y ~ N(η, sd²). None: the sd is a parameter (`dpmc.LinearRegression`), and functions of η alone fail."""

    sd: Any = 1.0
    support: ClassVar[str] = "real"
    is_location: ClassVar[bool] = True

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -0.5 * ((y - eta) / self.sd) ** 2 - np.log(self.sd)

    def log_base(self, y: np.ndarray) -> np.ndarray:
        return np.full(len(y), -0.5 * np.log(2.0 * np.pi))

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (y - eta) / self.sd**2

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return eta

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        return eta + self.sd * generator.standard_normal(len(eta))


@dataclass(frozen=True)
class Bernoulli:
    """y = 1 with probability 1/(1 + e^−η), else 0."""

    support: ClassVar[str] = "binary"

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.logaddexp(0.0, (1.0 - 2.0 * y) * eta)

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        label = 2.0 * y - 1.0
        return expit(-label * eta) * label

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return expit(eta)

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        return (generator.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)


@dataclass(frozen=True)
class Poisson:
    """Counts y with mean e^η."""

    support: ClassVar[str] = "counts"

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return y * eta - np.exp(eta)

    def log_base(self, y: np.ndarray) -> np.ndarray:
        return -gammaln(y + 1.0)

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return y - np.exp(eta)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta)

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        # A cap far above any use: NumPy refuses means beyond about 9e18.
        return generator.poisson(np.exp(np.minimum(eta, 30.0))).astype(float)


@dataclass(frozen=True)
class NegativeBinomial(Poisson):
    """Counts y with mean m = e^η and variance m + `dispersion` m².

    `dispersion` is `alpha` of statsmodels' NB2, and 1/theta of `glm.nb` in R.
    """

    dispersion: float = 1.0

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = eta + np.log(self.dispersion)  # the log odds of one more count
        return y * t - (y + 1.0 / self.dispersion) * np.logaddexp(0.0, t)

    def log_base(self, y: np.ndarray) -> np.ndarray:
        r = 1.0 / self.dispersion
        return -betaln(y + 1.0, r) - np.log(y + r)

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        t = eta + np.log(self.dispersion)
        return y * expit(-t) - expit(t) / self.dispersion

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        mean = np.exp(np.minimum(eta, 30.0))
        rates = generator.gamma(1.0 / self.dispersion, self.dispersion * mean)
        return generator.poisson(np.minimum(rates, 1e18)).astype(float)
