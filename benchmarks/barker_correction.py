"""Fit the table of `dpmc.privacy.barker_correction`, measure its errors, and compare it with the package's.

    python benchmarks/barker_correction.py

Prints a lower bound for the error of any correction V, the fitted table, its errors, and whether it equals
the package's table; exit status 1 if it does not. Takes a second or two; nothing is random.

The CDF of N(0, 2) + V is linear in the distribution of V, so the best distribution on a grid of values is a
linear programme: minimise M subject to |P(N(0, 2) + V ≤ x) − Logistic(x)| ≤ M tolerance(x) at many x. An
optimum has as few values as the error has peaks. It is computed on a coarse grid, then on a fine grid around
the values found. On a grid each value appears as a pair of neighbours. These are merged and rounded, and the
programme is solved again for the probabilities only.

By symmetry, values v ≥ 0 represent ±v with equal probabilities, and x > 0 is enough.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit, ndtr

from dpmc.privacy import barker_correction

#: Points at which the CDFs are compared. The error is smooth: its peaks are found to within 1e-6.
POINTS = np.arange(1, 1201) / 50.0
#: Candidates for |V|, and how much finer the second grid is.
GRID = np.arange(0, 321) / 20.0
FINER = 10
NEGLIGIBLE = 1e-7  # a probability

#: Target errors. A smaller CDF error (down to 5.9e-4) increases the error of detailed balance: with 7e-4 it
#: is 0.08 nats at |log ratio| = 6 instead of 0.01.
CDF_ERROR = 8e-4
BALANCE_ERROR = 1e-2  # nats
BALANCED = 6.0  # log ratios up to this

VALUE_DECIMALS, PROBABILITY_DECIMALS = 2, 6


@dataclass(frozen=True)
class Solution:
    """The optimum of one programme."""

    values: np.ndarray  # ≥ 0
    probabilities: np.ndarray  # of ±v together, one per value
    largest: float  # M, the largest error in units of its tolerance
    dual: np.ndarray  # one signed multiplier per point


def pair_cdf(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return P(N(0, 2) ± v ≤ x), the sign a fair coin: shape (points, values)."""
    x = np.asarray(x)[:, None]
    return 0.5 * (ndtr((x - values) / np.sqrt(2.0)) + ndtr((x + values) / np.sqrt(2.0)))


def solve(values: np.ndarray, tolerance: np.ndarray) -> Solution:
    """Return the probabilities of `values` (≥ 0) with the smallest largest error/tolerance over POINTS."""
    count = len(values)
    # ½ is subtracted from both sides, to avoid differences of numbers near 1 in the tails.
    left = (pair_cdf(POINTS, values) - 0.5) / tolerance[:, None]
    right = (expit(POINTS) - 0.5) / tolerance
    bound = -np.ones((len(POINTS), 1))
    optimum = linprog(
        c=np.r_[np.zeros(count), 1.0],
        A_ub=np.block([[left, bound], [-left, bound]]),
        b_ub=np.r_[right, -right],
        A_eq=np.r_[np.ones(count), 0.0][None],
        b_eq=[1.0],
        method="highs",
    )
    if optimum.status != 0:
        raise RuntimeError(f"linear programme: {optimum.message}")
    above, below = -optimum.ineqlin.marginals.reshape(2, -1)
    return Solution(values, optimum.x[:-1], optimum.x[-1], above - below)


def solve_on_grids(tolerance: np.ndarray) -> Solution:
    """Solve the programme on GRID, then on a grid refined around the values found."""
    coarse = solve(GRID, tolerance)
    step = GRID[1] / FINER
    near = np.arange(-FINER, FINER + 1) * step
    values = (GRID[coarse.probabilities > NEGLIGIBLE][:, None] + near).ravel()
    return solve(np.unique(np.round(np.abs(np.r_[GRID, values]) / step)) * step, tolerance)


def merged(solution: Solution) -> np.ndarray:
    """Return the values in use, groups of neighbours replaced by their rounded mean."""
    used = np.flatnonzero(solution.probabilities > NEGLIGIBLE)
    groups = np.split(used, np.flatnonzero(np.diff(used) > 1) + 1)
    means = [np.average(solution.values[g], weights=solution.probabilities[g]) for g in groups]
    return np.round(means, VALUE_DECIMALS)


def tolerances() -> np.ndarray:
    """Return the tolerance of the CDF's error at each point, from both target errors.

    The relative error of a(ℓ)/a(−ℓ) = e^ℓ is the CDF's error over the logistic density, up to second order.
    """
    density = expit(POINTS) * expit(-POINTS)
    balance = np.where(POINTS <= BALANCED, BALANCE_ERROR * density, np.inf)
    return np.minimum(CDF_ERROR, balance)


def fit() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the table: values in ascending order and their probabilities, symmetric about 0."""
    values = merged(solve_on_grids(tolerances()))
    if values[0] != 0.0:
        raise RuntimeError("the fit has no value at 0, which this table needs to be symmetric")
    half = np.round(solve(values, tolerances()).probabilities[1:] / 2.0, PROBABILITY_DECIMALS)
    middle = round(1.0 - 2.0 * float(half.sum()), PROBABILITY_DECIMALS)
    return (
        (*(-values[:0:-1]).tolist(), 0.0, *values[1:].tolist()),
        (*half[::-1].tolist(), middle, *half.tolist()),
    )


def noisy_cdf(x: np.ndarray, values: Sequence[float], probabilities: Sequence[float]) -> np.ndarray:
    """Return P(N(0, 2) + V ≤ x) of a table."""
    return ndtr((x[:, None] - np.array(values)) / np.sqrt(2.0)) @ np.array(probabilities)


def cdf_error(values: Sequence[float], probabilities: Sequence[float]) -> float:
    """Return the largest |P(N(0, 2) + V ≤ x) − Logistic(x)| on a grid of step 1/1000 up to ±40."""
    x = np.arange(-40_000, 40_001) / 1000.0
    return float(np.abs(noisy_cdf(x, values, probabilities) - expit(x)).max())


def balance_error(values: Sequence[float], probabilities: Sequence[float], furthest: float) -> float:
    """Return the largest |ln a(ℓ) − ln a(−ℓ) − ℓ| up to |ℓ| = furthest: detailed balance's error in nats.

    a(ℓ) = P(ℓ + N(0, 2) + V > 0), which is the CDF at ℓ because V is symmetric.
    """
    ratio = np.arange(0, round(1000 * furthest) + 1) / 1000.0
    up, down = (noisy_cdf(r, values, probabilities) for r in (ratio, -ratio))
    return float(np.abs(np.log(up) - np.log(down) - ratio).max())


@dataclass(frozen=True)
class Certificate:
    """Proof of a lower bound for all V: a signed measure on points x > 0 of total mass 1.

    V may be taken symmetric, since this increases no error. The largest error is at least the average of
    P(N(0, 2) + V ≤ x) − Logistic(x) under the measure. That is an average over V of the value at fixed v,
    hence at least the smallest value over v.
    """

    points: np.ndarray
    masses: np.ndarray

    def bound(self) -> float:
        """Return a lower bound for the sup-norm CDF error of every V.

        The minimum over v is taken on a grid of step h up to 60; beyond it nothing changes, since the points
        are below 25. Between two neighbours f is at least the smaller value minus h²/8 max|f''|, and
        |f''| ≤ max|φ'|/2 = φ(1)/2, since the masses sum to 1.
        """
        masses = self.masses / np.abs(self.masses).sum()
        step = 1e-3
        lowest = min(
            float((masses @ pair_cdf(self.points, v)).min())
            for v in np.array_split(np.arange(0.0, 60.0 + step, step), 100)
        )
        curvature = np.exp(-0.5) / np.sqrt(2.0 * np.pi) / 2.0
        return lowest - float(masses @ expit(self.points)) - curvature * step**2 / 8.0


def certificate(solution: Solution) -> Certificate:
    """Return the dual of a solution with the same tolerance at all points."""
    used = np.flatnonzero(np.abs(solution.dual) > 1e-9)
    return Certificate(POINTS[used], solution.dual[used])


def main() -> None:
    """Print everything; exit status 1 unless the package's table is the fitted one."""
    best = solve_on_grids(np.full(len(POINTS), CDF_ERROR))
    proof = certificate(best)
    print(f"sup-norm CDF error of any V          {proof.bound():.5e} at least")
    print(f"    proved by masses {np.round(proof.masses, 4)} at {proof.points}")
    print(f"    attained         {CDF_ERROR * best.largest:.5e} by values {merged(best)}")
    table = fit()
    print("VALUES = {}\nPROBABILITIES = {}".format(*table))
    print(f"sup-norm CDF error                   {cdf_error(*table):.4e}")
    for furthest in (4, 6, 8):
        print(f"balance error on |log ratio| <= {furthest}    {balance_error(*table, furthest):.4e}")
    variance = 2.0 + np.dot(np.square(table[0]), table[1])
    print(f"variance                             {variance:.4f}  (logistic: {np.pi**2 / 3.0:.4f})")
    same = table == (barker_correction.VALUES, barker_correction.PROBABILITIES)
    print("the package's table: " + ("the same" if same else "differs"))
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
