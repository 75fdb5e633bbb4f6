"""Regression on the columns of a table: a design, a family of outcomes, a normal prior.

A row is (outcome, predictors, categories). `dpmc.models.design` says how predictors become numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import array, positive_number, shown
from dpmc.models import prediction
from dpmc.models.columns import Coding, same_name
from dpmc.models.design import Column, Columns, Design, Fault, refuse_first, standardised
from dpmc.models.exponential import ExponentialFamily
from dpmc.models.families import (
    SUPPORTS,
    Bernoulli,
    Family,
    NegativeBinomial,
    Normal,
    Poisson,
    checked_family,
)
from dpmc.models.formula import FormulaDesign
from dpmc.models.gaussian import GaussianPosterior
from dpmc.models.logistic import LogisticForm

OPTIONS = (
    *"prior_sd tempering true_theta intercept norm binary levels fills codebook".split(),
    *("offset", "exposure", "weights"),
)


class Regression:
    """Outcomes y of a family given η = θ·z + offset, z = (1 for the intercept, standardised predictors).

    Centres, scales, shares, levels, fills and maxima are public: take them from codebooks and general
    knowledge, never from the rows.

    Parameters
    ----------
    outcome
        Name of the outcome's column; if outcomes are any real numbers also {name: (centre, scale)}, and the
        family is that of (value − centre)/scale. Or a formula, "visits ~ age + female * plan", whose fields
        are those of `codebook`, and which takes the place of `predictors` and `intercept`
        (`dpmc.models.formula`).
    predictors
        Names of columns; or {name: (centre, scale)}, and the predictor is (value − centre)/scale.
    family
        Distribution of an outcome given η: `Normal(sd)`, `Bernoulli()`, `Poisson()` or
        `NegativeBinomial(dispersion)` of `dpmc.models.families`, or one of your own, an object as `Family`
        there.
    prior_sd
        Of the normal prior around 0 of coefficients; one number, or one per parameter. For standardised
        predictors and a small ε about 1: where noise dominates, it decides the intervals' width.
    tempering
        Number of rows that the tempered likelihood counts as, at most all; None: all.
    true_theta
        Parameters with which rows are simulated, and around which chains start; default 0.
    intercept
        Whether the model has an intercept, which is the first parameter; by default yes.
    norm
        Bound of ‖z‖ without intercept: longer vectors of predictors are scaled down to it; None: no bound.
    binary
        {name: share of ones} of predictors that are 0 or 1, by which they are simulated.
    levels
        {name: levels} of further predictors that are categories, for example {"region": ["north", "south"]},
        or {"region": {"north": 0.7, "south": 0.3}} with a guess of their shares, for simulated rows. Each
        level but the first has a coefficient, "region=south". A row with another level is refused.
    fills
        {name: value} that stands for a missing value of a predictor: a number, or a level of a category.
        Without it a missing value is refused.
    codebook
        A `dpmc.Codebook`, a mapping or a file, in place of `binary`, `levels` and `fills`: it says how
        columns are read, which are categories, and centre and scale of numbers, also of an outcome that may
        be any real number; {name: (centre, scale)} says them otherwise, and {name: None} not. An offset, an
        exposure and weights are fields, too; `weights` may then be a name, whose field has the maximum.
    offset
        Name of a column that is added to η, in η's unit: a coefficient that is 1. With {name: (centre,
        scale)} value − centre is added, so that the intercept is that of a row with this offset, as chains
        and noisy scores begin there; the scale is for simulated rows alone.
    exposure
        As `offset`, for counts: name of a column such as "days", or {"days": (365, 100)}. ln(value/centre) is
        added to η, so that θ is about rates for the centre, without one for a unit. Not beside an offset.
    weights
        {name: maximum} of a column of frequency weights: a row's log-likelihood counts w times, as if the row
        were there w times, and ε is that of a row: if it stands for w persons, of all of them. Noise is in
        proportion to the maximum: where most weights are far below, cap them beforehand. Another weight is
        refused, in a release such a row counts as nothing. Sampling weights and strata are not covered.
    """

    #: Attribute and argument of the constructor that says the family, with its default.
    _argument: tuple[str, Any] = ("family", None)

    def __init__(
        self,
        outcome: Column,
        predictors: Columns | None = None,
        *,
        family: Family,
        prior_sd: float | Sequence[float] = 10.0,
        tempering: float | None = None,
        true_theta: Sequence[float] | None = None,
        **design: Any,
    ) -> None:
        who = type(self).__name__
        if isinstance(outcome, str) and "~" in outcome:
            given = {} if predictors is None else {"predictors": predictors}
            self.design: Design = FormulaDesign(outcome, who=who, **given, **_checked(self, design))
            outcome = self.design.outcome
        else:
            # None is refused there.
            self.design = Design(predictors, who=who, **_checked(self, design))  # type: ignore[arg-type]
        self.family = checked_family(family, f"{who}: family")
        further = ("log_sd",) if isinstance(family, Normal) and family.sd is None else ()
        if further and not isinstance(self, LinearRegression):
            raise DpmcError(
                f"{who}: family: {family}: an unknown sd is a parameter of LinearRegression alone"
            )
        if (shift := self.design.shift) and shift.is_exposure and family.support in ("real", "binary"):
            raise DpmcError(f"{who}: exposure: {shift.name}: is for counts; give an offset, in eta's unit")
        self._unit, name = self._outcome_of(outcome)
        self.columns = (name, *self.design.columns)
        self.parameters = (*self.design.coefficients, *further)
        for labels in (self.columns, self.parameters):
            texts = list(map(same_name, labels))
            for text in (text for text in texts if texts.count(text) > 1):
                rule = f"two columns or parameters are called {text}: give the column another name"
                raise DpmcError(f"{who}: {rule}")
        self.dimension = len(self.parameters)
        self.tempering = None if tempering is None else positive_number(tempering, f"{who}: tempering")
        sds = [prior_sd] * self.dimension if np.ndim(prior_sd) == 0 else prior_sd
        self.prior_sd = array(sds, (self.dimension,), f"{who}: prior_sd")
        if not (self.prior_sd > 0.0).all():
            raise DpmcError(f"{who}: prior_sd: {shown(prior_sd)} must be greater than 0")
        theta = np.zeros(self.dimension) if true_theta is None else true_theta
        self.true_theta = array(theta, (self.dimension,), f"{who}: true_theta")

    def _outcome_of(self, outcome: Column) -> tuple[tuple[float, float], str]:
        """Return centre and scale of the outcome, and its name."""
        where = f"{type(self).__name__}: outcome"
        given = {outcome: self._usual_unit(outcome)} if isinstance(outcome, str) else outcome
        names, centre, scale = standardised(given, where)
        unit = float(centre.sum()), float(scale.sum())  # of one column
        is_column = len(names) == 1 and (unit == (0.0, 1.0) or self.family.support == "real")
        if not is_column or names[0] in self.design.columns or not self.design.coefficients:
            raise DpmcError(f"{where}: {shown(outcome)} must be the name of a column of its own")
        if self.design.formula and self.design.shift and unit != (0.0, 1.0):
            raise DpmcError(f"{where}: {names[0]}: has centre and scale, so a formula cannot have an offset")
        return unit, names[0]

    def _usual_unit(self, outcome: str) -> tuple[float, float]:
        """Return centre and scale of an outcome given by its name: of the codebook, or 0 and 1."""
        book = self.design.codebook
        if book is None:
            return 0.0, 1.0
        field = book.field(outcome)
        if field.levels or field.is_text:
            rule = "a category" if field.levels else "a string without words for true and false"
            raise DpmcError(f"{type(self).__name__}: outcome: {outcome}: is {rule} in the codebook")
        is_number = self.family.support == "real" and field.type in ("number", "integer")
        centre, scale = (field.standard or (0.0, 1.0)) if is_number else (0.0, 1.0)
        # A formula without an intercept is of the numbers as they are.
        return (0.0 if self.design.formula and not self.design.intercept else centre), scale

    @property
    def caution(self) -> str:
        """Return what the codebook says against the family; "" if nothing."""
        book, name = self.design.codebook, self.columns[0]
        if book is None or not isinstance(self.family, Normal):
            return ""
        field = book.field(name)
        (centre, scale), least = field.standard or self._unit, field.constraints.minimum
        if field.shape == "normal" and (least is None or centre - least > 1.99 * scale):
            return ""
        return (
            f"the codebook says that {name} is skewed, or less than two scales above its minimum: linear "
            "estimates are not those of least squares, and the residual sd is too small; of counts take the "
            "family poisson or negative-binomial, of positive numbers model the logarithm"
        )

    @property
    def coding(self) -> Coding:
        """Return how tables are read: all of it is public. No fill stands for a missing outcome."""
        book = self.design.codebook
        return self.design.coding if book is None else book.coding(self.columns, self.columns[0])

    @property
    def description(self) -> str:
        """Return the call that makes the model, which a release carries: all of it is public."""
        return repr(self)

    def __repr__(self) -> str:
        """Return the call that makes the model, without arguments that have their default."""
        sds, theta = np.unique(self.prior_sd).tolist(), self.true_theta.tolist()
        name, (own, default) = self.columns[0], self._argument
        given: dict[str, tuple[Any, Any]] = {
            own: (getattr(self, own), default),
            "prior_sd": (sds[0] if len(sds) == 1 else self.prior_sd.tolist(), 10.0),
            "tempering": (self.tempering, None),
            "true_theta": (theta, [0.0] * len(theta)),
            **self.design.options,
        }
        if book := self.design.codebook:
            given["codebook"] = (book.only(self.columns), None)
        outcome = name if self._unit == self._usual_unit(name) else {name: self._unit}
        options = [f"{key}={value!r}" for key, (value, default) in given.items() if value != default]
        formula = self.design.formula
        first = [repr(outcome), repr(self.design.predictors)] if formula is None else [repr(formula)]
        return f"{type(self).__name__}({', '.join([*first, *options])})"

    def own_units(self) -> tuple[np.ndarray, np.ndarray]:
        """Return A (d, d), b (d,): A θ + b are the parameters of predictors and outcome in the table's units.

        Offsets are not centred there. Raises DpmcError if no parameters say the same: if something is centred
        without an intercept, or the outcome is scaled and the family not normal.
        """
        (centre, scale), (middle, unit) = self.design.standard, self._unit
        middle -= unit * self.design.offset_removed
        first = int(self.design.intercept)
        p = first + len(scale)
        if self._unit != (0.0, 1.0) and not isinstance(self.family, Normal):
            raise DpmcError(f"own_units: the outcome is scaled, and {self.family} not normal")
        if not first and (centre.any() or middle):
            raise DpmcError("own_units: without an intercept nothing may be centred")
        a, b = np.eye(self.dimension), np.zeros(self.dimension)
        a[range(first, p), range(first, p)] = 1.0 / scale
        a[:first, first:p] = -centre / scale
        a[:p] *= unit
        b[:first], b[p:] = middle, np.log(unit)  # log_sd is the last
        return a, b

    def check_rows(self, rows: np.ndarray) -> None:
        """Raise DpmcError for a row (n, columns) with an outcome or a level that there is not."""
        refuse_first(self._faults(rows))

    def allowed_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return which rows (n,) `check_rows` does not refuse; each depends on that row alone."""
        return np.asarray(~np.any([fault.wrong for fault in self._faults(rows)], axis=0))

    def _faults(self, rows: np.ndarray) -> Iterator[Fault]:
        who, y, (has, rule) = type(self).__name__, rows[:, 0], SUPPORTS[self.family.support]
        yield from self.design.faults(rows[:, 1:], who)
        yield Fault(y, ~has(y), f"{who}: outcome {self.columns[0]}", rule)

    def response(self, rows: np.ndarray) -> np.ndarray:
        """Return the outcomes (n,) in the family's unit."""
        centre, scale = self._unit
        return (rows[:, 0] - centre) / scale

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the expected outcome at η, in η's shape and the outcome's own unit."""
        centre, scale = self._unit
        return centre + scale * self.family.mean(eta)

    def outcomes(
        self,
        generator: np.random.Generator,
        theta: np.ndarray,
        z: np.ndarray,
        offset: np.ndarray | float = 0.0,
    ) -> np.ndarray:
        """Draw outcomes (n,) at θ of rows with predictors z and offsets, in the outcome's own unit."""
        centre, scale = self._unit
        family, beta = self._at(theta)
        return centre + scale * family.draw(generator, z @ beta + offset)

    def eta(self, beta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return η = β·z + offset of rows (n,)."""
        return self.design(rows) @ beta + self.design.offset(rows)

    def _at(self, theta: np.ndarray) -> tuple[Family, np.ndarray]:
        """Return the family at θ and the coefficients."""
        return self.family, theta

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        family, beta = self._at(theta)
        return family.log_density(self.eta(beta, rows), self.response(rows)) * self.design.weight(rows)

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        score = self.family.score(self.eta(theta, rows), self.response(rows)) * self.design.weight(rows)
        return score[:, None] * self.design(rows)

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        return -0.5 * ((theta / self.prior_sd) ** 2).sum(axis=-1)

    def log_prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        return -theta / self.prior_sd**2

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        """Draw n rows (n, columns): outcomes at θ (d,), then predictors as `Design.simulate`.

        With weights persons with equal predictors and equal outcomes are one row.
        """
        x, persons = self.design.simulate(generator, n), int(max(1.0, min(self.design.usual_weight, 100.0)))
        x = x.repeat(persons, axis=0)
        rows = np.column_stack([self.outcomes(generator, theta, self.design(x), self.design.offset(x)), x])
        if persons > 1:
            pairs = np.column_stack([np.arange(n).repeat(persons), rows[:, 0]])
            _, first, copies = np.unique(pairs, axis=0, return_index=True, return_counts=True)
            rows = rows[first[:n]]
            rows[:, -1] = copies[:n]
        return rows

    predict = prediction.predict


def _checked(model: Regression, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a regression; raise DpmcError for an argument that it does not have."""
    for name in options:
        if name not in OPTIONS:
            known = f"it has outcome, predictors, {', '.join(OPTIONS)}"
            raise DpmcError(f"{type(model).__name__}: {name}: is not an argument of this model; {known}")
    return options


class LinearRegression(ExponentialFamily, Regression):
    """y ~ N(θ·z, sd²). With `sd=None`, ln sd is the last parameter, "log_sd".

    `dpmc.Regression` says what the other arguments are. With a scaled outcome, {"income": (40_000, 20_000)},
    `sd` and coefficients are in its unit. Log ratios and gradients are affine in zzᵀ and zy (and y²), so the
    number of statistics is about half the square of the number of predictors.
    """

    _argument = ("sd", 1.0)

    def __init__(
        self, outcome: Column, predictors: Columns | None = None, *, sd: float | None = 1.0, **options: Any
    ) -> None:
        self.sd = None if sd is None else positive_number(sd, f"{type(self).__name__}: sd")
        super().__init__(outcome, predictors, family=Normal(self.sd), **_checked(self, options))
        self._size = p = len(self.design.coefficients)
        rows, columns = np.triu_indices(p)
        kept = slice(1 if self.design.intercept else 0, None)  # the square of the intercept's 1 is constant
        self._pairs = rows[kept], columns[kept]
        if self.sd is not None:
            # Only models with a known exact posterior have this method; their chains are compared with it.
            self.posterior = self._posterior

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return the products zy, then z_i z_j, then y² if the sd is a parameter, (n, k).

        y is less the offset. With weights w, all of them w times, then w.
        """
        z, y = self.design(rows), self.response(rows) - self.design.offset(rows)
        squares = [y[:, None] ** 2] if self.sd is None else []
        products = z.take(self._pairs[0], axis=1) * z.take(self._pairs[1], axis=1)  # faster than by indices
        found = np.column_stack([z * y[:, None], products, *squares])
        if not self.design.weights:
            return found
        return np.column_stack([found, np.ones(len(found))]) * np.reshape(self.design.weight(rows), (-1, 1))

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        """Return the factors (chains, k) of a row's summaries in its log-likelihood."""
        beta, precision = self._split(theta)
        i, j = self._pairs
        halves = np.where(i == j, -0.5, -1.0)  # a product of two different predictors counts twice
        squares = [np.full((len(theta), 1), -0.5)] if self.sd is None else []
        found = np.concatenate([beta, halves * beta[:, i] * beta[:, j], *squares], axis=1) * precision
        return np.column_stack([found, self._constant(theta)]) if self.design.weights else found

    def offset(self, theta: np.ndarray) -> np.ndarray:
        return np.zeros(len(theta)) if self.design.weights else self._constant(theta)

    def _constant(self, theta: np.ndarray) -> np.ndarray:
        """Return the term (chains,) of a row's log-likelihood that depends on θ alone."""
        beta, precision = self._split(theta)
        constant = -0.5 * beta[:, 0] ** 2 * precision[:, 0] if self.design.intercept else np.zeros(len(theta))
        return constant - theta[:, -1] if self.sd is None else constant

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G (chains, d, k), h (chains, d): the derivatives of slopes and offset with respect to θ."""
        beta, precision = self._split(theta)
        p, (i, j) = self._size, self._pairs
        pairs = p + np.arange(len(i))
        linear = np.zeros((len(theta), self.dimension, self.slopes(theta[:1]).shape[1]))
        constant = np.zeros(theta.shape)
        linear[:, range(p), range(p)] = precision
        linear[:, i, pairs] -= beta[:, j] * precision
        mixed = i != j
        # A product of two predictors has a derivative for each of them, a square one.
        linear[:, j[mixed], pairs[mixed]] -= beta[:, i[mixed]] * precision
        if self.design.intercept:
            constant[:, 0] = -beta[:, 0] * precision[:, 0]
        if self.sd is None:  # the density's exponent is proportional to the precision, e^(−2 log sd)
            linear[:, -1] = -2.0 * self.slopes(theta)
            constant[:, -1] = -2.0 * (self._constant(theta) + theta[:, -1]) - 1.0
        if self.design.weights:
            linear[:, :, -1], constant = constant, np.zeros(theta.shape)
        return linear, constant

    def _posterior(self, rows: np.ndarray, temperature: float) -> GaussianPosterior:
        """Return the exact posterior, likelihood tempered by T."""
        z, y = self.design(rows), self.response(rows) - self.design.offset(rows)
        weight = temperature / (self.sd or 1.0) ** 2 * self.design.weight(rows)
        covariance = np.linalg.inv(weight * z.T @ z + np.diag(self.prior_sd**-2.0))
        return GaussianPosterior(covariance @ (weight * z.T @ y), covariance)

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (chains, p) and 1/sd² (chains, 1)."""
        if self.sd is None:
            return theta[:, :-1], np.exp(-2.0 * theta[:, -1:])
        return theta, np.full((len(theta), 1), self.sd**-2.0)

    def _at(self, theta: np.ndarray) -> tuple[Family, np.ndarray]:
        return (self.family, theta) if self.sd else (Normal(np.exp(theta[-1])), theta[:-1])

    log_likelihood = Regression.log_likelihood  # fewer roundings than by statistics


class LogisticRegression(LogisticForm, Regression):
    """y = 1 with probability 1/(1 + e^{−θ·z}), else 0; without weights by the kernels of softplus models.

    `dpmc.Regression` says what the arguments are.
    """

    _argument = ("family", Bernoulli())

    def __init__(self, outcome: str, predictors: Columns | None = None, **options: Any) -> None:
        super().__init__(outcome, predictors, family=Bernoulli(), **_checked(self, options))

    @property
    def lossless_clip(self) -> float | None:
        """Return the clip bound, nats per unit distance, that only rounding exceeds; None without `norm`."""
        norm = self.design.norm
        if norm is None:
            return None
        return self.design.largest_weight * float(np.hypot(norm, float(self.design.intercept)))

    @property
    def statistics(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function of rows that returns their t (n, k): models with weights have not this form."""
        if self.design.weights:
            raise AttributeError("statistics")
        return self._statistics

    def _statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return t = (2y − 1)z (n, d); with an offset, (2y − 1) times the offset after it."""
        z = self.design(rows)
        return (2.0 * rows[:, :1] - 1.0) * (
            z if self.design.shift is None else np.column_stack([z, self.design.offset(rows)])
        )

    def _coefficients(self, theta: np.ndarray) -> np.ndarray:
        """Return θ (chains, d), with an offset its coefficient 1 after it."""
        return theta if self.design.shift is None else np.column_stack([theta, np.ones(len(theta))])

    def line(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return super().line(self._coefficients(theta))

    def link(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return super().link(self._coefficients(theta))

    def row_bounds(self, rows: np.ndarray) -> np.ndarray:
        """Return c_j = w_j ‖z_j‖ (n,): |ln p(y_j|z_j, θ') − ln p(y_j|z_j, θ)| ≤ c_j ‖θ' − θ‖."""
        return self.design.weight(rows) * np.sqrt((self.design(rows) ** 2).sum(axis=1))


class PoissonRegression(Regression):
    """Counts y ~ Poisson(e^{θ·z}). `dpmc.Regression` says what the arguments are."""

    _argument = ("family", Poisson())

    def __init__(self, outcome: str, predictors: Columns | None = None, **options: Any) -> None:
        super().__init__(outcome, predictors, family=Poisson(), **_checked(self, options))


class NegativeBinomialRegression(Regression):
    """Counts y with mean m = e^{θ·z} and variance m + `dispersion` m² (NB2), the dispersion known.

    `dpmc.Regression` says what the other arguments are.
    """

    _argument = ("dispersion", 1.0)

    def __init__(
        self, outcome: str, predictors: Columns | None = None, *, dispersion: float = 1.0, **options: Any
    ) -> None:
        self.dispersion = positive_number(dispersion, f"{type(self).__name__}: dispersion")
        family = NegativeBinomial(self.dispersion)
        super().__init__(outcome, predictors, family=family, **_checked(self, options))
