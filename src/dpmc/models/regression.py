"""Regression on the columns of a table: linear, logistic, Poisson, and their base class.

A row is (outcome, predictors). Predictors are standardised by a given centre and scale, never by the rows'
own mean, which would invalidate the sensitivity bound. Centres and scales are public guesses, for example
{"age": (45, 15)}; they also define the rows to simulate.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import array, positive, shown
from dpmc.models.exponential import ExponentialFamily
from dpmc.models.gaussian import GaussianPosterior
from dpmc.models.logistic import LogisticForm

Column = str | Mapping[str, tuple[float, float]]
Columns = Sequence[str] | Mapping[str, tuple[float, float]]


class GeneralizedLinearModel:
    """Outcomes y whose distribution depends on η = θ·z, z = (1 for the intercept, standardised predictors).

    A subclass defines `log_density(eta, y)` (n,) and `score(eta, y)` (n,), its derivative with respect to η.
    With `draw(generator, eta)` (n,), outcomes at η (n,), it can simulate rows: `dpmc.tune` on simulated rows
    needs that, sampling does not.

    Parameters
    ----------
    outcome
        Name of the outcome's column.
    predictors
        Names of columns; or {name: (centre, scale)}, and the predictor is (value − centre)/scale.
    intercept
        Whether the model has an intercept. It is the first parameter.
    prior_sd
        Standard deviation of the normal prior around 0 of each coefficient; one number, or one per parameter.
    norm
        Bound of ‖z‖ without intercept: longer vectors of predictors are scaled down to it; None: no bound.
    true_theta
        Parameters with which rows are simulated, and around which chains start; default 0.
    tempering
        Number of rows that the tempered likelihood counts as, at most all; None: all.
    binary
        {name: share of ones} of predictors that are 0 or 1: they are simulated so, others as normal numbers.
        A guess from public knowledge, like centre and scale; the rows are not compared with it.
    """

    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]
    score: Callable[[np.ndarray, np.ndarray], np.ndarray]
    draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    _binary: Mapping[int, float] = {}  # number of a predictor -> share of ones

    def __init__(
        self,
        outcome: str,
        predictors: Columns,
        *,
        intercept: bool = True,
        prior_sd: float | Sequence[float] = 10.0,
        norm: float | None = None,
        true_theta: Sequence[float] | None = None,
        tempering: float | None = None,
        binary: Mapping[str, float] | None = None,
    ) -> None:
        who = type(self).__name__
        names, self._centre, self._scale = _standardised(predictors, f"{who}: predictors")
        if not isinstance(outcome, str) or outcome in names or not (names or intercept):
            raise DpmcError(f"{who}: outcome: {shown(outcome)} must be the name of a column of its own")
        self.columns = (outcome, *names)
        self.parameters = (*(("intercept",) if intercept else ()), *names, *self._further())
        self.dimension = len(self.parameters)
        self.tempering = None if tempering is None else positive(tempering, f"{who}: tempering")
        self._intercept = intercept
        self._norm = None if norm is None else positive(norm, f"{who}: norm")
        sds = [prior_sd] * self.dimension if np.ndim(prior_sd) == 0 else prior_sd
        self.prior_sd = array(sds, (self.dimension,), f"{who}: prior_sd")
        if not (self.prior_sd > 0.0).all():
            raise DpmcError(f"{who}: prior_sd: {shown(prior_sd)} must be greater than 0")
        theta = np.zeros(self.dimension) if true_theta is None else true_theta
        self.true_theta = array(theta, (self.dimension,), f"{who}: true_theta")
        for name, share in (binary or {}).items():
            if name not in names:
                raise DpmcError(f"{who}: binary: {shown(name)} must be one of the predictors {names}")
            if positive(share, f"{who}: binary: {name}") >= 1.0:
                raise DpmcError(f"{who}: binary: {name}: {shown(share)} must be a share of ones below 1")
            self._binary = {**self._binary, names.index(name): float(share)}

    def _further(self) -> tuple[str, ...]:
        """Return the names of parameters other than the coefficients."""
        return ()

    def _refuse(self, rows: np.ndarray, wrong: np.ndarray, rule: str) -> None:
        """Raise DpmcError for the first row that `wrong` (n,) marks; `rule` ends the message."""
        for row in np.flatnonzero(wrong)[:1]:
            who = f"{type(self).__name__}: outcome {self.columns[0]}"
            raise DpmcError(f"{who}: {rows[row, 0]:g} in row {row} must be {rule}")

    def design(self, rows: np.ndarray) -> np.ndarray:
        """Return z (n, coefficients) of rows (n, 1 + predictors)."""
        z = (rows[:, 1:] - self._centre) / self._scale
        if self._norm is not None:
            # Row by row, by a public bound: a scale from all rows would let one row change the others.
            length = np.sqrt((z**2).sum(axis=1, keepdims=True))
            z *= np.minimum(1.0, self._norm / np.where(length > 0.0, length, 1.0))
        return np.column_stack([np.ones(len(z)), z]) if self._intercept else z

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self.log_density(self.design(rows) @ theta, rows[:, 0])

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        design = self.design(rows)
        return self.score(design @ theta, rows[:, 0])[:, None] * design

    def log_prior(self, theta: np.ndarray) -> Any:
        return -0.5 * ((theta / self.prior_sd) ** 2).sum(axis=-1)

    def log_prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        return -theta / self.prior_sd**2

    @property
    def simulate(self) -> Callable[[np.random.Generator, np.ndarray, int], np.ndarray]:
        """Return the function (generator, θ, n) -> n rows, which a model without `draw` does not have."""
        if not hasattr(self, "draw") and type(self)._outcomes is GeneralizedLinearModel._outcomes:
            raise AttributeError(f"{type(self).__name__}: needs draw(generator, eta) to simulate rows")
        return self._simulate

    def _simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        """Draw n rows: predictors that are normal with the given scales, or 0 and 1, then outcomes at θ."""
        normal = generator.standard_normal((n, len(self._centre)))
        x = self._centre + self._scale * normal
        for column, share in self._binary.items():
            # From the same normal numbers, so that a binary predictor leaves the others as they were.
            x[:, column] = normal[:, column] < NormalDist().inv_cdf(share)
        rows = np.column_stack([np.zeros(n), x])
        rows[:, 0] = self._outcomes(generator, theta, self.design(rows))
        return rows

    def _outcomes(self, generator: np.random.Generator, theta: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Draw outcomes (n,) at θ of rows with predictors z."""
        return self.draw(generator, z @ theta)


class LinearRegression(ExponentialFamily, GeneralizedLinearModel):
    """y ~ N(θ·z, sd²). With `sd=None`, ln sd is the last parameter, "log_sd"; `options` as of the base class.

    The outcome may be standardised like predictors, {"income": (40_000, 20_000)}; `sd` and coefficients are
    then in these units. Log ratios and gradients are affine in zzᵀ and zy (and y²), so the number of
    statistics is about half the square of the number of predictors.
    """

    def __init__(
        self,
        outcome: Column,
        predictors: Columns,
        *,
        sd: float | None = 1.0,
        **options: Any,
    ) -> None:
        who = type(self).__name__
        names, centre, scale = _standardised(
            [outcome] if isinstance(outcome, str) else outcome, f"{who}: outcome"
        )
        if len(names) != 1:
            raise DpmcError(f"{who}: outcome: {shown(outcome)} must be one column")
        self._y_centre, self._y_scale = float(centre[0]), float(scale[0])
        self.sd = None if sd is None else positive(sd, f"{who}: sd")
        super().__init__(names[0], predictors, **options)
        self._coefficients = p = self.dimension - (self.sd is None)
        rows, columns = np.triu_indices(p)
        kept = slice(1 if self._intercept else 0, None)  # the square of the intercept's 1 is constant
        self._pairs = rows[kept], columns[kept]
        if self.sd is not None:
            # Only models with a known exact posterior have this method; their chains are compared with it.
            self.posterior = self._posterior

    def _further(self) -> tuple[str, ...]:
        return ("log_sd",) if self.sd is None else ()

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return the products zy, then z_i z_j, then y² if the sd is a parameter, (n, k)."""
        z, y = self.design(rows), self._outcome(rows)
        squares = [y[:, None] ** 2] if self.sd is None else []
        return np.column_stack([z * y[:, None], z[:, self._pairs[0]] * z[:, self._pairs[1]], *squares])

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        beta, precision = self._split(theta)
        i, j = self._pairs
        halves = np.where(i == j, -0.5, -1.0)  # a product of two different predictors counts twice
        squares = [np.full((len(theta), 1), -0.5)] if self.sd is None else []
        return np.concatenate([beta, halves * beta[:, i] * beta[:, j], *squares], axis=1) * precision

    def offset(self, theta: np.ndarray) -> np.ndarray:
        beta, precision = self._split(theta)
        constant = -0.5 * beta[:, 0] ** 2 * precision[:, 0] if self._intercept else np.zeros(len(theta))
        return constant - theta[:, -1] if self.sd is None else constant

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G (chains, d, k), h (chains, d): the derivatives of slopes and offset with respect to θ."""
        beta, precision = self._split(theta)
        p, (i, j) = self._coefficients, self._pairs
        pairs = p + np.arange(len(i))
        linear = np.zeros((len(theta), self.dimension, self.slopes(theta[:1]).shape[1]))
        constant = np.zeros(theta.shape)
        linear[:, range(p), range(p)] = precision
        linear[:, i, pairs] -= beta[:, j] * precision
        mixed = i != j
        # A product of two predictors has a derivative for each of them, a square one.
        linear[:, j[mixed], pairs[mixed]] -= beta[:, i[mixed]] * precision
        if self._intercept:
            constant[:, 0] = -beta[:, 0] * precision[:, 0]
        if self.sd is None:  # the density's exponent is proportional to the precision, e^(−2 log sd)
            linear[:, -1] = -2.0 * self.slopes(theta)
            constant[:, -1] = -2.0 * (self.offset(theta) + theta[:, -1]) - 1.0
        return linear, constant

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return ln p(y_j|z_j, θ) of each row (n,), from the density: fewer roundings than by statistics."""
        sd = np.exp(theta[-1]) if self.sd is None else self.sd
        residual = (self._outcome(rows) - self.design(rows) @ theta[: self._coefficients]) / sd
        return -0.5 * residual**2 - (theta[-1] if self.sd is None else 0.0)

    def _posterior(self, rows: np.ndarray, temperature: float) -> GaussianPosterior:
        """Return the exact posterior, likelihood tempered by T."""
        z, weight = self.design(rows), temperature / (self.sd or 1.0) ** 2
        covariance = np.linalg.inv(weight * z.T @ z + np.diag(self.prior_sd**-2.0))
        return GaussianPosterior(covariance @ (weight * z.T @ self._outcome(rows)), covariance)

    def _outcomes(self, generator: np.random.Generator, theta: np.ndarray, z: np.ndarray) -> np.ndarray:
        sd = np.exp(theta[-1]) if self.sd is None else self.sd
        y = z @ theta[: self._coefficients] + sd * generator.standard_normal(len(z))
        return self._y_centre + self._y_scale * y

    def _outcome(self, rows: np.ndarray) -> Any:
        return (rows[:, 0] - self._y_centre) / self._y_scale

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (chains, p) and 1/sd² (chains, 1)."""
        if self.sd is None:
            return theta[:, :-1], np.exp(-2.0 * theta[:, -1:])
        return theta, np.full((len(theta), 1), self.sd**-2.0)


class LogisticRegression(LogisticForm, GeneralizedLinearModel):
    """y = 1 with probability 1/(1 + e^{−θ·z}), else 0; evaluated by the kernels of softplus models."""

    @property
    def lossless_clip(self) -> float | None:
        """Return the clip bound, nats per unit distance, that clips no log ratio; None without `norm`."""
        return None if self._norm is None else float(np.hypot(self._norm, float(self._intercept)))

    def check_rows(self, rows: np.ndarray) -> None:
        """Raise DpmcError for an outcome that is neither 0 nor 1."""
        y = rows[:, 0]
        self._refuse(rows, (y != 0.0) & (y != 1.0), "0 or 1")

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return t = (2y − 1)z (n, d)."""
        return (2.0 * rows[:, :1] - 1.0) * self.design(rows)

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.logaddexp(0.0, (1.0 - 2.0 * y) * eta)

    def score(self, eta: np.ndarray, y: np.ndarray) -> Any:
        from scipy.special import expit

        label = 2.0 * y - 1.0
        return expit(-label * eta) * label

    def row_bounds(self, rows: np.ndarray) -> np.ndarray:
        """Return c_j = ‖z_j‖ (n,): |ln p(y_j|z_j, θ') − ln p(y_j|z_j, θ)| ≤ c_j ‖θ' − θ‖."""
        return np.sqrt((self.design(rows) ** 2).sum(axis=1))

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        return (generator.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)


class PoissonRegression(GeneralizedLinearModel):
    """Counts y ~ Poisson(e^{θ·z})."""

    def check_rows(self, rows: np.ndarray) -> None:
        """Raise DpmcError for an outcome that is not a whole number of at least 0."""
        y = rows[:, 0]
        self._refuse(rows, (y < 0.0) | (y != np.floor(y)), "a whole number, at least 0")

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> Any:
        """Return ln p(y|η) = yη − e^η (n,), up to a term of y alone."""
        return y * eta - np.exp(eta)

    def score(self, eta: np.ndarray, y: np.ndarray) -> Any:
        return y - np.exp(eta)

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        # A cap far above any use: NumPy refuses means beyond about 9e18.
        return generator.poisson(np.exp(np.minimum(eta, 30.0))).astype(float)


def _standardised(columns: Columns, where: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return names, centres and scales of columns; default 0 and 1."""
    names = tuple(columns)
    if isinstance(columns, str) or not all(isinstance(name, str) for name in names):
        raise DpmcError(f"{where}: {shown(columns)} must be a list of names, or {{name: (centre, scale)}}")
    if len(set(names)) != len(names):
        raise DpmcError(f"{where}: {shown(columns)} must be different names")
    table = np.tile([0.0, 1.0], (len(names), 1))
    for i, (name, pair) in enumerate(columns.items() if isinstance(columns, Mapping) else ()):
        if not hasattr(pair, "__len__") or isinstance(pair, str) or len(pair) != 2:
            raise DpmcError(f"{where}: {name}: {shown(pair)} must be (centre, scale)")
        table[i] = array(pair, (2,), f"{where}: {name}")
        positive(table[i, 1], f"{where}: {name}: scale")
    return names, table[:, 0], table[:, 1]
