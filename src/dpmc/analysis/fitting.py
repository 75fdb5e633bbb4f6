"""`dpmc.fit`: a formula, a table and a codebook; an answer whose intervals count the noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc import api, releasing
from dpmc.algorithms import with_fact
from dpmc.analysis.fit import Fit
from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import shown
from dpmc.models import regression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from dpmc.models.codebook import Codebook

FAMILIES = {
    "linear": regression.LinearRegression,
    "logistic": regression.LogisticRegression,
    "poisson": regression.PoissonRegression,
    "negative-binomial": regression.NegativeBinomialRegression,
}


def model_of(
    formula: str,
    codebook: Codebook | Mapping[str, Any] | str | Path,
    family: str,
    *,
    offset: str | None = None,
    **options: Any,
) -> Any:
    """Return the regression of a formula; `options` are arguments of its class.

    `offset` is what `offset(…)` in the formula is of. The residual sd of `linear` is a parameter unless it is
    given.
    """
    if family not in FAMILIES:
        raise DpmcError(f"family: {shown(family)} must be one of {', '.join(FAMILIES)}")
    if family == "linear":
        options = {"sd": None, **options}
    formula = formula if offset is None else f"{formula} + offset({offset})"
    return FAMILIES[family](formula, codebook=codebook, **options)


def fit(
    formula: str,
    data: object,
    codebook: Codebook | Mapping[str, Any] | str | Path,
    *,
    family: str = "linear",
    epsilon: float | str,
    delta: float | None = None,
    ledger: str | Path | None = None,
    output: str | Path | None = None,
    n: int | None = None,
    prior_sd: ArrayLike = 10.0,
    clip: float | None = None,
    rows_per_person: int = 1,
    seed: int = 0,
    **options: Any,
) -> Fit:
    """Fit a regression by noisy scores; return coefficients and intervals in the table's own units.

    With a `ledger` it is a release: its noise is secret, its ε is taken from the ledger, and the file may be
    published. Without one it is for research, reproducible by `seed`, and must not be published.

    Parameters
    ----------
    formula
        For example "visits ~ age + female * plan" (docs/how-to/an-analysis.md).
    data
        Private rows: a table of pandas, polars, pyarrow, xarray, or a file, as in `dpmc.sample`.
    codebook
        What is public about the table: a `dpmc.Codebook`, its file, or a mapping.
    family
        "linear" (real outcomes, residual sd unknown), "logistic" (0 and 1), "poisson" or "negative-binomial"
        (counts; with `dispersion`).
    epsilon, delta
        Budget; δ by default 0.1/n.
    ledger, output, n
        Of a release: the file made by `dpmc ledger init`, the NetCDF file to write, and the number of rows,
        known without looking at them; None: those of the table.
    prior_sd
        Of the normal prior around 0 of coefficients of standardised predictors; a number, or (d,), one each.
    clip
        Bound of a row's score, in standard deviations of scores; None: the one that is predicted to be best
        if the family is right. Bounded scores are unbiased for the family alone: where outcomes or residuals
        are skewed or have heavy tails, estimates differ from least squares or maximum likelihood. A larger
        bound, for example 4, brings them nearer, with more noise.
    rows_per_person
        In the lab: the guarantee is that of a person with so many rows; the codebook names their column.
    options
        Further arguments of the regression, such as `dispersion`, `sd`, `weights`; and `offset`, "days" or
        "log(days)", which adds offset(…) to the formula.

    Raises
    ------
    DpmcError
        For a wrong argument, formula, codebook or table, and for too few rows at this ε. Nothing is spent.
    """
    model = model_of(formula, codebook, family, prior_sd=prior_sd, **options)
    (method,) = with_fact("is_of_regressions")
    if canonical_epsilon(epsilon) == "inf":
        raise DpmcError("epsilon: 'inf' must be a budget: without privacy use statsmodels, or dpmc.plan")
    values = {} if clip is None else {"clip": clip}
    common: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "hyperparameters": values,
        "progress": False,
    }
    if ledger is None:
        for name, value in (("output", output), ("n", n)):
            if value is not None:
                raise DpmcError(f"{name}: {shown(value)}: only a release has it; give its ledger")
        common |= {"seed": seed, "rows_per_person": rows_per_person}
        tree = api.sample(model, data, method, **common)
    else:
        if seed:
            raise DpmcError(f"seed: {shown(seed)}: the noise of a release is secret, and has none")
        if rows_per_person != 1:
            raise DpmcError("rows_per_person: a release protects one row; give a table with one row a person")
        tree = releasing.release(model, data, method, ledger=ledger, output=output, n=n, **common)
    found = Fit(tree, model=model)
    found.files = () if output is None else (Path(output).name,)
    return found
