"""Metrics of repeated runs, each on a data set of its own: errors in sds, intervals, predictive score."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from dpmc.data.problem import Problem
from dpmc.evaluators.calls import log_likelihood
from dpmc.metrics.mmd import equally_spaced

LEVELS = (50, 90)  #: probabilities of the intervals in percent
SCORE_ROWS = 1000  #: fresh rows that are predicted
SCORE_DRAWS = 500  #: at most, of which a prediction is the mean


def has_intervals(problem: Problem) -> bool:
    """Return whether intervals are meant to hold the true θ: rows are drawn at it, and count once."""
    return problem.temperature == 1.0 and getattr(problem.model, "has_true_theta", True)


def errors(draws: np.ndarray, problem: Problem, sds: np.ndarray) -> dict[str, float]:
    """Return root mean squares over the parameters of the errors of the mean of draws (m, d), in `sds` (d,).

    `error` is from the exact mean, and missing where that is not known; `error_true` is from the true θ.
    """
    centres = {"error": problem.exact.posterior_mean, "error_true": problem.true_theta}
    standardised = {name: (draws.mean(axis=0) - centre) / sds for name, centre in centres.items()}
    return {name: float(np.sqrt(np.mean(z**2))) for name, z in standardised.items() if np.all(np.isfinite(z))}


def intervals(draws: np.ndarray, true_theta: np.ndarray, sds: np.ndarray) -> dict[str, float]:
    """Return by level the share of the d intervals of draws (m, d) that hold θ, and their width in sds."""
    values: dict[str, float] = {}
    for level in LEVELS:
        tail = 0.5 * (1.0 - level / 100.0)
        low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
        values[f"coverage_{level}"] = float(np.mean((low <= true_theta) & (true_theta <= high)))
        values[f"width_{level}"] = float(np.mean((high - low) / sds))
    return values


def share_interval(shares: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of the shares of each data set, and the ends of its 95 % interval by Wilson.

    Intervals of one data set fail together: as many trials count, at least one a set, as have that variance.
    """
    values = np.asarray(shares, dtype=float)
    m, p = len(values), float(values.mean())
    variance = float(values.var(ddof=1)) / m if m > 1 else 0.0
    trials = max(m, p * (1.0 - p) / variance) if variance > 0.0 else m
    z = 1.96
    centre = (p + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * math.sqrt(p * (1 - p) / trials + (z / (2 * trials)) ** 2)
    return p, centre - half, centre + half


def log_score(draws: np.ndarray, problem: Problem, rows: np.ndarray) -> float:
    """Return the mean over rows of ln(mean of p(x|θ) over draws) − ln p(x|true θ): 0 at the truth.

    Draws are (draws, d), rows (n, columns). Constants that `log_likelihood` may leave out cancel.
    """
    used = equally_spaced(draws, SCORE_DRAWS)
    each = np.array([log_likelihood(problem.model, theta, rows) for theta in used])
    predicted = logsumexp(each, axis=0) - np.log(len(used))
    return float(np.mean(predicted - log_likelihood(problem.model, problem.true_theta, rows)))
