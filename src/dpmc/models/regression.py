"""Regression on the columns of a table: linear, logistic, Poisson, and their base class.

A row is (outcome, predictors, categories). Predictors are standardised by a given centre and scale, never by
the rows' own mean, which would invalidate the sensitivity bound. Centres and scales are public guesses, for
example {"age": (45, 15)}; they also define the rows to simulate. So are levels of categories and fills of
missing values: none of them is taken from the rows. In rows as arrays a category is the place of its level.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc, signature
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from dpmc.base import NoisySum
from dpmc.common.draws import (
    diagnostics,
    for_all_rows,
    is_of_tempered_sum,
    late_draws,
    loaded,
    warning_of_unmoved,
)
from dpmc.common.errors import DpmcError
from dpmc.common.logs import LOGGER
from dpmc.common.values import array, checked, count, positive_number, shown
from dpmc.models.columns import Coding, same_name, text_of
from dpmc.models.exponential import ExponentialFamily
from dpmc.models.gaussian import GaussianPosterior
from dpmc.models.in_memory import table_of
from dpmc.models.logistic import LogisticForm
from dpmc.models.summaries import RegressionSummaries, log_normal, noise_covariance, outer, times

if TYPE_CHECKING:
    import xarray

Column = str | Mapping[str, tuple[float, float]]
Columns = Sequence[str] | Mapping[str, tuple[float, float]]
Levels = Mapping[str, Sequence[Any] | Mapping[Any, float]]
OTHER = ("self", "unknown")  #: in the signature of a regression beside its arguments


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
        For standardised predictors and a small ε about 1: where noise dominates, it decides the intervals'
        width.
    norm
        Bound of ‖z‖ without intercept: longer vectors of predictors are scaled down to it; None: no bound.
    true_theta
        Parameters with which rows are simulated, and around which chains start; default 0.
    tempering
        Number of rows that the tempered likelihood counts as, at most all; None: all.
    binary
        {name: share of ones} of predictors that are 0 or 1: they are simulated so, others as normal numbers.
        A guess from public knowledge, like centre and scale; the rows are not compared with it.
    levels
        {name: levels} of further predictors that are categories, for example {"region": ["north", "south"]},
        or {"region": {"north": 0.7, "south": 0.3}} with a guess of their shares, for simulated rows. Each
        level but the first has a coefficient, "region=south". A row with another level is refused.
    fills
        {name: value} that stands for a missing value of a predictor: a number, or a level of a category.
        Without it a missing value is refused.

    Centres, scales, levels and fills are public: take them from codebooks and general knowledge, never from
    the rows.
    """

    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]
    score: Callable[[np.ndarray, np.ndarray], np.ndarray]
    draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    # Attributes that only some models have, so that others keep their fingerprint.
    _binary: Mapping[int, float] = {}  # number of a predictor -> share of ones
    _shares: Mapping[str, tuple[float, ...]] = {}  # of the levels of each category
    _coding = Coding()

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
        levels: Levels | None = None,
        fills: Mapping[str, Any] | None = None,
        **unknown: Any,
    ) -> None:
        who = type(self).__name__
        for name in unknown:
            known = [key for key in signature(GeneralizedLinearModel.__init__).parameters if key not in OTHER]
            raise DpmcError(f"{who}: {name}: is not an argument of this model; it has {', '.join(known)}")
        names, self._centre, self._scale = _standardised(predictors, f"{who}: predictors")
        if levels or fills:
            self._shares, self._coding = _coded(names, levels or {}, fills or {}, who)
        categories = self._coding.levels
        if not isinstance(outcome, str) or outcome in (*names, *categories) or not (names or intercept):
            raise DpmcError(f"{who}: outcome: {shown(outcome)} must be the name of a column of its own")
        self.columns = (outcome, *names, *categories)
        dummies = [f"{name}={level}" for name, known in categories.items() for level in known[1:]]
        self.parameters = (*(("intercept",) if intercept else ()), *names, *dummies, *self._further())
        _refuse_equal(self.columns, who)
        _refuse_equal(self.parameters, who)
        self.dimension = len(self.parameters)
        self.tempering = None if tempering is None else positive_number(tempering, f"{who}: tempering")
        self._intercept = intercept
        self._norm = None if norm is None else positive_number(norm, f"{who}: norm")
        sds = [prior_sd] * self.dimension if np.ndim(prior_sd) == 0 else prior_sd
        self.prior_sd = array(sds, (self.dimension,), f"{who}: prior_sd")
        if not (self.prior_sd > 0.0).all():
            raise DpmcError(f"{who}: prior_sd: {shown(prior_sd)} must be greater than 0")
        theta = np.zeros(self.dimension) if true_theta is None else true_theta
        self.true_theta = array(theta, (self.dimension,), f"{who}: true_theta")
        for name, share in (binary or {}).items():
            if name not in names:
                raise DpmcError(f"{who}: binary: {shown(name)} must be one of the predictors {names}")
            if positive_number(share, f"{who}: binary: {name}") >= 1.0:
                raise DpmcError(f"{who}: binary: {name}: {shown(share)} must be a share of ones below 1")
            self._binary = {**self._binary, names.index(name): float(share)}

    def _further(self) -> tuple[str, ...]:
        """Return the names of parameters other than the coefficients."""
        return ()

    @property
    def centres(self) -> dict[str, float]:
        """Return the public centre of each predictor that is a number."""
        return dict(zip(self.columns[1:], self._centre.tolist(), strict=False))

    @property
    def scales(self) -> dict[str, float]:
        """Return the public scale of each predictor that is a number."""
        return dict(zip(self.columns[1:], self._scale.tolist(), strict=False))

    @property
    def coding(self) -> Coding:
        """Return the public levels of categories and fills of missing values."""
        return self._coding

    @property
    def description(self) -> str:
        """Return the call that makes the model, which a release carries: all of it is public."""
        return repr(self)

    def __repr__(self) -> str:
        """Return the call that makes the model, without arguments that have their default."""
        predictors = {name: (self.centres[name], scale) for name, scale in self.scales.items()}
        plain = all(pair == (0.0, 1.0) for pair in predictors.values())
        sds, theta = np.unique(self.prior_sd).tolist(), self.true_theta.tolist()
        outcome, own = self._own_arguments()
        given: dict[str, tuple[Any, Any]] = {
            "intercept": (self._intercept, True),
            **own,
            "prior_sd": (sds[0] if len(sds) == 1 else self.prior_sd.tolist(), 10.0),
            "norm": (self._norm, None),
            "true_theta": (theta, [0.0] * len(theta)),
            "tempering": (self.tempering, None),
            "binary": ({self.columns[1 + i]: share for i, share in self._binary.items()}, {}),
            "levels": ({name: self._shares_of(name) for name in self._coding.levels}, {}),
            "fills": (dict(self._coding.fills), {}),
        }  # fmt: skip
        options = [f"{name}={value!r}" for name, (value, default) in given.items() if value != default]
        first = [repr(outcome), repr(list(predictors) if plain else predictors)]
        return f"{type(self).__name__}({', '.join([*first, *options])})"

    def _shares_of(self, name: str) -> list[str] | dict[str, float]:
        """Return the levels of a category, with their shares unless these are equal."""
        levels, shares = self._coding.levels[name], self._shares[name]
        return list(levels) if len(set(shares)) == 1 else dict(zip(levels, shares, strict=True))

    def _own_arguments(self) -> tuple[Column, dict[str, tuple[Any, Any]]]:
        """Return the outcome as it was given, and further arguments of a subclass with their defaults."""
        return self.columns[0], {}

    def check_rows(self, rows: np.ndarray) -> None:
        """Raise DpmcError for a category whose value is not the place of one of its levels."""
        first = 1 + len(self._centre)
        for column, (name, known) in enumerate(self._coding.levels.items(), first):
            wrong = ~np.isin(rows[:, column], range(len(known)))
            self._refuse(rows, wrong, f"the place of a level of {name}, 0 to {len(known) - 1}", column)

    def _refuse(self, rows: np.ndarray, wrong: np.ndarray, rule: str, column: int = 0) -> None:
        """Raise DpmcError for the first row that `wrong` (n,) marks; `rule` ends the message."""
        for row in np.flatnonzero(wrong)[:1]:
            who = f"{type(self).__name__}: {'predictor' if column else 'outcome'} {self.columns[column]}"
            raise DpmcError(f"{who}: {rows[row, column]:g} in row {row} must be {rule}")

    def design(self, rows: Any) -> np.ndarray:
        """Return z (n, coefficients) of rows.

        Rows are an array (n, 1 + predictors), or without the outcome (n, predictors); or a table of pandas or
        xarray, or a mapping of columns, with the predictors by name.
        """
        z = self._scaled(rows)
        if self._norm is not None:
            # Row by row, by a public bound: a scale from all rows would let one row change the others.
            length = np.sqrt((z**2).sum(axis=1, keepdims=True))
            z *= np.minimum(1.0, self._norm / np.where(length > 0.0, length, 1.0))
        return np.column_stack([np.ones(len(z)), z]) if self._intercept else z

    def _scaled(self, rows: Any) -> np.ndarray:
        """Return z (n, coefficients) without intercept and bound of the norm."""
        x = self._predictors(rows)
        k = len(self._centre)
        z = (x[:, :k] - self._centre) / self._scale
        categories = self._coding.levels.values()
        dummies = [x[:, [k + j]] == np.arange(1, len(known)) for j, known in enumerate(categories)]
        return np.column_stack([z, *dummies]) if dummies else z

    def beyond_norm(self, rows: Any) -> np.ndarray | None:
        """Return which rows (n,) are longer than `norm` and are shortened; None without `norm`."""
        if self._norm is None:
            return None
        return np.asarray((self._scaled(rows) ** 2).sum(axis=1) > self._norm**2)

    def _predictors(self, rows: Any) -> np.ndarray:
        """Return predictors (n, columns − 1) as numbers; raise DpmcError for a table that lacks some."""
        names = self.columns[1:]
        if isinstance(rows, np.ndarray):
            if rows.ndim != 2 or rows.shape[1] not in (len(names), 1 + len(names)):
                raise DpmcError(f"rows: shape {rows.shape} must be (n, {len(names)}), predictors {names}")
            return rows[:, rows.shape[1] - len(names) :]
        where = f"rows: {type(rows).__name__}"
        if isinstance(rows, str | Path) or not hasattr(rows, "__getitem__"):
            raise DpmcError(
                f"{where}: must be an array, or a table in memory with columns {', '.join(names)}"
            )
        table = table_of(rows, where)
        return table.rows(table.chosen(names), self._coding, np.ones(table.shape[0], bool))

    def _finite(self, x: np.ndarray, where: str) -> np.ndarray:
        """Return predictors (n, columns − 1); raise DpmcError for the first that is NaN or infinite."""
        for row, i in np.argwhere(~np.isfinite(x))[:1]:
            raise DpmcError(f"{where}: row {row}, column {self.columns[1 + i]}: is NaN or infinite")
        return x

    def _new_rows(self, rows: Any) -> np.ndarray:
        """Return predictors (m, columns − 1) of new rows; raise DpmcError for what a table may not have."""
        x = self._predictors(rows)
        where = f"rows: {type(rows).__name__}"
        if x.dtype.kind not in "fiub":
            raise DpmcError(f"{where}: {x.dtype} must be numbers")
        x = self._finite(x.astype(float), where)
        GeneralizedLinearModel.check_rows(self, np.column_stack([np.zeros(len(x)), x]))
        return x

    def predict(self, rows: Any, tree: "xarray.DataTree | str | Path", *, seed: int = 0) -> "xarray.DataTree":
        """Return `tree` with a group `posterior_predictive` for new rows, as ArviZ has it.

        Parameters
        ----------
        rows
            New rows (m), as for `design`; the outcome is not needed. No ε covers them: predictions for
            private rows are as private as these. Rows longer than `norm` are shortened, as in the likelihood;
            a warning counts them.
        tree
            A result of `dpmc.sample` or `dpmc.release` with this model, or its file. Draws of its second half
            are used; a warning names parameters that never moved there. Tempering is taken out of each
            parameter as in `dpmc.summary`, by a normal approximation.
        seed
            Seed of the outcomes.

        Returns
        -------
        xarray.DataTree
            With two variables (chain, draw, row) in the new group: the outcome, drawn by the model, and
            "<outcome>_mean", its expectation at each draw of θ, if the model has `mean(eta)`.

        Raises
        ------
        DpmcError
            For chains of other parameters or with too few draws, rows that lack a column or have a value that
            is missing or infinite, and a model without `draw`.
        """
        import xarray

        seed, tree = checked("predict: seed", count, seed, 0), loaded(tree)
        theta = late_draws(tree)
        if tuple(theta["parameter"].values.tolist()) != tuple(self.parameters):
            raise DpmcError(f"predict: the chains have parameters {theta['parameter'].values.tolist()}")
        if not hasattr(self, "simulate"):
            raise DpmcError(f"predict: {type(self).__name__} needs draw(generator, eta)")
        if is_of_tempered_sum(tree.attrs):
            raise DpmcError(
                "predict: the noise of a sum is not tempered, so the draws have not the spread of all rows: "
                "run noisy-statistics on the model without tempering"
            )
        draws, temperature = theta.values, float(tree.attrs.get("temperature", 1.0))
        if temperature < 1.0:
            draws = for_all_rows(draws, temperature, checked("predict", diagnostics, draws).mcse)
        if warning := warning_of_unmoved(theta.values, self.parameters):
            LOGGER.warning("predict: %s", warning)
        rows = self._new_rows(rows)
        beyond = self.beyond_norm(rows)
        if beyond is not None and beyond.any():
            text = "predict: %s rows are longer than norm %g and are shortened"
            LOGGER.warning(text, beyond.sum(), self._norm)
        z, generator, flat = self.design(rows), np.random.default_rng(seed), draws.reshape(-1, self.dimension)
        shape, dims = (*draws.shape[:2], len(z)), ("chain", "draw", "row")
        drawn = np.stack([self._outcomes(generator, each, z) for each in flat])
        found = {self.columns[0]: (dims, drawn.reshape(shape))}
        if hasattr(self, "mean"):
            expected = self.mean(flat[:, : z.shape[1]] @ z.T)
            found[f"{self.columns[0]}_mean"] = (dims, expected.reshape(shape))
        coordinates = {name: theta[name].values for name in ("chain", "draw")} | {"row": np.arange(len(z))}
        result = tree.copy()
        result["posterior_predictive"] = xarray.DataTree(xarray.Dataset(found, coordinates))
        return result

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self.log_density(self.design(rows) @ theta, rows[:, 0])

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        design = self.design(rows)
        return self.score(design @ theta, rows[:, 0])[:, None] * design

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
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
        """Draw n rows: predictors that are normal with the given scales, or 0 and 1, then outcomes at θ.

        Categories have their levels with the given shares, independently of the other predictors.
        """
        k = len(self._centre)
        normal = generator.standard_normal((n, len(self.columns) - 1))
        x = normal.copy()
        x[:, :k] = self._centre + self._scale * normal[:, :k]
        for column, share in self._binary.items():
            # From the same normal numbers, so that a binary predictor leaves the others as they were.
            x[:, column] = normal[:, column] < NormalDist().inv_cdf(share)
        for column, shares in enumerate(self._shares.values(), k):
            edges = [NormalDist().inv_cdf(share) for share in np.cumsum(shares)[:-1]]
            x[:, column] = np.searchsorted(edges, normal[:, column])
        rows = np.column_stack([np.zeros(n), x])
        rows[:, 0] = self._outcomes(generator, theta, self.design(rows))
        return rows

    def _outcomes(self, generator: np.random.Generator, theta: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Draw outcomes (n,) at θ of rows with predictors z."""
        return self.draw(generator, z @ theta)


class LinearRegression(RegressionSummaries, ExponentialFamily, GeneralizedLinearModel):
    """y ~ N(θ·z, sd²). With `sd=None`, ln sd is the last parameter, "log_sd".

    The outcome may be standardised like predictors, {"income": (40_000, 20_000)}; `sd` and coefficients are
    then in these units. Log ratios and gradients are affine in zzᵀ and zy (and y²), so the number of
    statistics is about half the square of the number of predictors.
    """

    product_weight = 0.7

    def __init__(
        self, outcome: Column, predictors: Columns, *, sd: float | None = 1.0, **options: Any
    ) -> None:
        who = type(self).__name__
        names, centre, scale = _standardised(
            [outcome] if isinstance(outcome, str) else outcome, f"{who}: outcome"
        )
        if len(names) != 1:
            raise DpmcError(f"{who}: outcome: {shown(outcome)} must be one column")
        self._y_centre, self._y_scale = float(centre[0]), float(scale[0])
        self.sd = None if sd is None else positive_number(sd, f"{who}: sd")
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

    def _own_arguments(self) -> tuple[Column, dict[str, tuple[Any, Any]]]:
        name, scaling = self.columns[0], (self._y_centre, self._y_scale)
        return name if scaling == (0.0, 1.0) else {name: scaling}, {"sd": (self.sd, 1.0)}

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the expected outcome at η, in the outcome's own unit."""
        return self._y_centre + self._y_scale * eta

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return the products zy, then z_i z_j, then y² if the sd is a parameter, (n, k)."""
        z, y = self.design(rows), self.response(rows)
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

    @property
    def summary_count(self) -> int:
        return super().summary_count + (self.sd is None)

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        """Return the summaries of a regression, then y² times `product_weight` if the sd is a parameter."""
        summaries = super().summaries(rows)
        if self.sd is not None:
            return summaries
        return np.column_stack([summaries, self.product_weight * self.response(rows) ** 2])

    def summary_log_likelihood(self, theta: np.ndarray, noisy: NoisySum) -> np.ndarray:
        """Return ln p(noisy sums of zy and y²|θ, noisy sum of zzᵀ) (chains,) up to a constant."""
        if self.sd is not None:
            return super().summary_log_likelihood(theta, noisy)
        # Given A: E y² = βᵀAβ + n sd², Var y² = 4 sd² βᵀAβ + 2n sd⁴, Cov(zy, y²) = 2 sd² Aβ; noise of A as in
        # `law`, along β.
        beta, variance = self.coefficients(theta), np.exp(2.0 * theta[:, -1])
        residual, covariance = self.law(theta, noisy)
        mean, spread = self.predictors(noisy)
        along = noisy.n * times(spread + outer(mean, mean), beta)
        explained = (along * beta).sum(axis=1)
        left = noisy.total[:, -1] / self.product_weight - explained - noisy.n * variance
        errors = (noisy.noise_sd / self.product_weight) ** 2
        noise = times(noise_covariance(beta, beta), beta)
        cross = 2.0 * variance[:, None] * along / noisy.temperature + errors * noise
        own = (4.0 * variance * explained + 2.0 * noisy.n * variance**2) / noisy.temperature
        own = own + errors * (1.0 + (beta * noise).sum(axis=1))
        top = np.concatenate([covariance, cross[:, :, None]], axis=2)
        bottom = np.concatenate([cross, own[:, None]], axis=1)[:, None, :]
        return log_normal(np.column_stack([residual, left]), np.concatenate([top, bottom], axis=1))

    def response(self, rows: np.ndarray) -> np.ndarray:
        return (rows[:, 0] - self._y_centre) / self._y_scale

    def expected(self, eta: np.ndarray) -> tuple[np.ndarray, ...]:
        return eta, np.ones_like(eta), np.zeros_like(eta), np.zeros_like(eta)

    def outcome_variance(self, eta: np.ndarray, theta: np.ndarray) -> np.ndarray | float:
        return np.exp(2.0 * theta[:, -1:]) if self.sd is None else self.sd**2

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return ln p(y_j|z_j, θ) of each row (n,), from the density: fewer roundings than by statistics."""
        sd = np.exp(theta[-1]) if self.sd is None else self.sd
        residual = (self.response(rows) - self.design(rows) @ theta[: self._coefficients]) / sd
        return -0.5 * residual**2 - (theta[-1] if self.sd is None else 0.0)

    def _posterior(self, rows: np.ndarray, temperature: float) -> GaussianPosterior:
        """Return the exact posterior, likelihood tempered by T."""
        z, weight = self.design(rows), temperature / (self.sd or 1.0) ** 2
        covariance = np.linalg.inv(weight * z.T @ z + np.diag(self.prior_sd**-2.0))
        return GaussianPosterior(covariance @ (weight * z.T @ self.response(rows)), covariance)

    def _outcomes(self, generator: np.random.Generator, theta: np.ndarray, z: np.ndarray) -> np.ndarray:
        sd = np.exp(theta[-1]) if self.sd is None else self.sd
        y = z @ theta[: self._coefficients] + sd * generator.standard_normal(len(z))
        return self._y_centre + self._y_scale * y

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (chains, p) and 1/sd² (chains, 1)."""
        if self.sd is None:
            return theta[:, :-1], np.exp(-2.0 * theta[:, -1:])
        return theta, np.full((len(theta), 1), self.sd**-2.0)


class LogisticRegression(RegressionSummaries, LogisticForm, GeneralizedLinearModel):
    """y = 1 with probability 1/(1 + e^{−θ·z}), else 0; evaluated by the kernels of softplus models."""

    @property
    def lossless_clip(self) -> float | None:
        """Return the clip bound, nats per unit distance, that only rounding exceeds; None without `norm`."""
        return None if self._norm is None else float(np.hypot(self._norm, float(self._intercept)))

    def check_rows(self, rows: np.ndarray) -> None:
        """Raise DpmcError for an outcome that is neither 0 nor 1, or as the base class does."""
        super().check_rows(rows)
        y = rows[:, 0]
        self._refuse(rows, (y != 0.0) & (y != 1.0), "0 or 1")

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return t = (2y − 1)z (n, d)."""
        return (2.0 * rows[:, :1] - 1.0) * self.design(rows)

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.logaddexp(0.0, (1.0 - 2.0 * y) * eta)

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        label = 2.0 * y - 1.0
        return expit(-label * eta) * label

    def row_bounds(self, rows: np.ndarray) -> np.ndarray:
        """Return c_j = ‖z_j‖ (n,): |ln p(y_j|z_j, θ') − ln p(y_j|z_j, θ)| ≤ c_j ‖θ' − θ‖."""
        return np.sqrt((self.design(rows) ** 2).sum(axis=1))

    def response(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, 0] - 0.5

    def expected(self, eta: np.ndarray) -> tuple[np.ndarray, ...]:
        p = expit(eta)
        slope = p * (1.0 - p)
        return p - 0.5, slope, slope * (1.0 - 2.0 * p), slope * (1.0 - 6.0 * slope)

    def outcome_variance(self, eta: np.ndarray, theta: np.ndarray) -> np.ndarray | float:
        return expit(eta) * expit(-eta)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the probability of 1 at η."""
        return expit(eta)

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        return (generator.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)


class PoissonRegression(RegressionSummaries, GeneralizedLinearModel):
    """Counts y ~ Poisson(e^{θ·z})."""

    product_weight = 1.0
    #: Measured by `benchmarks/noisy_statistics.py`.
    summary_caveat = (
        "Poisson regression given a noisy sum is right for normally distributed predictors alone; with 0/1 "
        "or skew ones its intervals can miss by many standard errors "
        "(docs/reference/algorithms/noisy-statistics.md)"
    )

    def check_rows(self, rows: np.ndarray) -> None:
        """Raise DpmcError for an outcome that is not a whole number ≥ 0, or as the base class does."""
        super().check_rows(rows)
        y = rows[:, 0]
        self._refuse(rows, (y < 0.0) | (y != np.floor(y)), "a whole number, at least 0")

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return ln p(y|η) = yη − e^η (n,), up to a term of y alone."""
        return y * eta - np.exp(eta)

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return y - np.exp(eta)

    def response(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, 0]

    def expected(self, eta: np.ndarray) -> tuple[np.ndarray, ...]:
        mean = np.exp(eta)
        return mean, mean, mean, mean

    def outcome_variance(self, eta: np.ndarray, theta: np.ndarray) -> np.ndarray | float:
        return np.exp(eta)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the expected count at η."""
        return np.exp(eta)

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        # A cap far above any use: NumPy refuses means beyond about 9e18.
        return generator.poisson(np.exp(np.minimum(eta, 30.0))).astype(float)


def _refuse_equal(names: Sequence[str], who: str) -> None:
    """Raise DpmcError if two names of columns, or of parameters, look the same."""
    texts = list(map(same_name, names))
    for text in texts:
        if texts.count(text) > 1:
            raise DpmcError(
                f"{who}: two columns or parameters are called {text}: give the column another name"
            )


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
        positive_number(table[i, 1], f"{where}: {name}: scale")
    return names, table[:, 0], table[:, 1]


def _coded(
    names: tuple[str, ...], levels: Levels, fills: Mapping[str, Any], who: str
) -> tuple[dict[str, tuple[float, ...]], Coding]:
    """Return the shares of the levels of each category, and the coding; raise DpmcError for wrong ones."""
    shares: dict[str, tuple[float, ...]] = {}
    known: dict[str, tuple[str, ...]] = {}
    for name, given in levels.items():
        where = f"{who}: levels: {name}"
        try:
            texts = () if isinstance(given, str) else tuple(map(text_of, given))
        except Exception:  # of methods of a level, or a number of too many digits
            texts = ()
        if name in names:
            raise DpmcError(f"{where}: is also among the predictors; name a category in levels alone")
        if len(texts) < 2 or len(set(texts)) < len(texts):
            raise DpmcError(f"{where}: {shown(given)} must be two or more different levels")
        known[name], parts = texts, list(given.values()) if isinstance(given, Mapping) else [1.0] * len(texts)
        total = sum(positive_number(part, where) for part in parts)
        shares[name] = tuple(float(part) / total for part in parts)
    filled: dict[str, Any] = {}
    for name, value in fills.items():
        where = f"{who}: fills: {name}"
        if name not in (*names, *known):
            raise DpmcError(f"{where}: must be one of the predictors {(*names, *known)}")
        if name in known and text_of(value) not in known[name]:
            raise DpmcError(f"{where}: {shown(value)} must be one of the levels {known[name]}")
        filled[name] = text_of(value) if name in known else float(array([value], (1,), where)[0])
    return shares, Coding(known, filled)


# `help` of each regression lists the parameters of the base class, too.
for _regression in (LinearRegression, LogisticRegression, PoissonRegression):
    _about = cleandoc(GeneralizedLinearModel.__doc__ or "")
    _regression.__doc__ = f"{cleandoc(_regression.__doc__ or '')}\n\n{_about[_about.index('Parameters') :]}\n"
