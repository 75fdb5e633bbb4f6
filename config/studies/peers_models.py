"""Regressions of the study `peers-coverage`: normal predictors of variance 1, coefficients of norm 1."""

import dpmc


def names(d: int) -> dict[str, tuple[float, float]]:
    """Return d − 1 predictors with their centre and scale; the intercept is the d-th coefficient."""
    return {f"x{i}": (0.0, 1.0) for i in range(1, d)}


def theta(d: int) -> list[float]:
    """Return coefficients of both signs whose norm is 1 for any d."""
    return [(-1.0) ** i / d**0.5 for i in range(d)]


def logistic(d: int) -> dpmc.LogisticRegression:
    """Return a logistic regression of d coefficients."""
    return dpmc.LogisticRegression("y", names(d), prior_sd=2.5, true_theta=theta(d))


logistic_2, logistic_5, logistic_10, logistic_20, logistic_50 = map(logistic, (2, 5, 10, 20, 50))
linear_5 = dpmc.LinearRegression("y", names(5), sd=1.0, prior_sd=2.5, true_theta=theta(5))
poisson_5 = dpmc.PoissonRegression("y", names(5), prior_sd=2.5, true_theta=theta(5))
