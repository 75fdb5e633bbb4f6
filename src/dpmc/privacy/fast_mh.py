"""What one iteration of DP-Fast MH is said to cost, and what it costs (Zhang and Zhang 2023).

The paper's own numbers (Algorithm 2, Theorem 2, Appendix B), the rule under which they hold for the
corrected algorithm, and the exact curve of one iteration. p = max c_i / C is the largest
probability with which a row is drawn, 1/n with one public bound for all rows; K = `most_rows`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmc.errors import DpmcError
from dpmc.privacy.accountants import checked_delta, checked_epsilon
from dpmc.privacy.accountants.fast_mh_profiles import profiles
from dpmc.privacy.accountants.tight import TightGaussian
from dpmc.privacy.events import FastMetropolisRelease, GaussianRelease
from dpmc.privacy.fast_rule import batch_epsilon, batch_multiplier, multiplier


class Calibration(NamedTuple):
    """The four numbers by which one iteration decides on noise and draws it.

    Attributes
    ----------
    epsilon, noise_multiplier : on all rows: no noise up to this sensitivity; noise sd / sensitivity.
    batch_epsilon, batch_noise_multiplier : the same on a minibatch; 0 where there is none.
    """

    epsilon: float
    noise_multiplier: float
    batch_epsilon: float = 0.0
    batch_noise_multiplier: float = 0.0


def calibration(epsilon: float, delta: float, most_rows: int = 0, share: float = 0.0) -> Calibration:
    """The paper's thresholds and noise multipliers for `epsilon`, `delta` per iteration (Algorithm 2).

    epsilon_0 = epsilon/(6 K p), delta_0 = delta/(2 K p), sigma_1 = sqrt(2 ln(1.25/delta_0))/epsilon_0,
    sigma_2 = sqrt(2 ln(1.25/delta))/epsilon. `share` is p; both 0 for the full-batch algorithm. Nothing
    says that these numbers are valid: see `check`.

    Raises DpmcError for a bad epsilon or delta, and where delta_0 is not below 1.25.
    """
    full = float(multiplier(checked_epsilon(epsilon), checked_delta(delta)))
    if not most_rows:
        return Calibration(float(epsilon), full)
    noise = float(batch_multiplier(epsilon, delta, most_rows, share))
    if not noise > 0.0:
        raise DpmcError(
            f"most_rows K = {most_rows}, delta = {delta:g}: delta must be below 2.5 K p = "
            f"{2.5 * most_rows * share:.3g} for the noise on a minibatch to have a size"
        )
    return Calibration(float(epsilon), full, float(batch_epsilon(epsilon, most_rows, share)), noise)


def check(epsilon: float, most_rows: int, share: float) -> None:
    """DpmcError where the paper's calibration of minibatches does not hold; else nothing.

    The classical noise multiplier needs epsilon_0 <= 1, and (1 - p + p e^epsilon_0)^K may be taken to be
    1 + 6 K p epsilon_0 only with K p (e^epsilon_0 - 1) <= 1.
    """
    free = float(batch_epsilon(checked_epsilon(epsilon), most_rows, share))
    setting = f"most_rows K = {most_rows}, epsilon = {epsilon:g}"
    if free > 1.0:
        least = math.ceil(epsilon / (6.0 * share) * (1.0 - 1e-12))
        raise DpmcError(
            f"{setting}: epsilon_0 = epsilon/(6 K p) = {free:.3g}: must be at most 1 for the paper's "
            f"calibration to hold; K must be at least {least}"
        )
    growth = most_rows * share * math.expm1(free)
    if growth > 1.0:
        raise DpmcError(
            f"{setting}: K p (e^epsilon_0 - 1) = {growth:.3g}: must be at most 1 for the paper's "
            "calibration to hold; take a smaller K"
        )


def check_classical(epsilon: float, delta: float, noise_multiplier: float, remedy: str) -> None:
    """Raise DpmcError where a classical noise multiplier does not make a release (epsilon, delta).

    sqrt(2 ln(1.25/delta))/epsilon is proven for epsilon < 1; at delta = 1e-5 it fails from epsilon = 8.42 on.
    `remedy` ends the message.
    """
    exact = TightGaussian().delta((GaussianRelease("test", noise_multiplier),), epsilon)
    if exact > delta:
        raise DpmcError(
            f"epsilon = {epsilon:g}, delta = {delta:g}: the classical noise multiplier "
            f"{noise_multiplier:.4g} has delta = {exact:.3g} in truth, must be at most {delta:g}; {remedy}"
        )


def corrected_release(
    name: str, epsilon: float, delta: float, n: int, most_rows: int = 0, count: int = 1
) -> FastMetropolisRelease:
    """The event of corrected iterations with the paper's calibration, rows drawn uniformly (p = 1/n).

    Raises DpmcError as `calibration`, `check_classical` and, with minibatches, `check` do.
    """
    if most_rows:
        check(epsilon, most_rows, 1.0 / n)
    numbers = calibration(epsilon, delta, most_rows, 1.0 / n)
    smaller = "the corrected algorithm needs a smaller epsilon"
    check_classical(epsilon, delta, numbers.noise_multiplier, smaller)
    if most_rows:
        free, share = numbers.batch_epsilon, most_rows / n
        check_classical(free, min(0.5, delta / (2.0 * share)), numbers.batch_noise_multiplier, smaller)
    return FastMetropolisRelease(
        name,
        numbers.epsilon,
        numbers.noise_multiplier,
        n,
        most_rows,
        numbers.batch_epsilon,
        numbers.batch_noise_multiplier,
        count,
    )


def claimed_epsilon(free: float, most_rows: int, share: float) -> float:
    """K ln[(1 - p + p e^epsilon_0)/(1 - p + p e^-epsilon_0)]: what Appendix B bounds by 6 K p epsilon_0.

    `free` is epsilon_0. It exceeds the epsilon that the calibration started from where `check` fails.
    """
    up, down = math.log1p(share * math.expm1(free)), math.log1p(share * math.expm1(-free))
    return most_rows * (up - down)


def advanced_composition(epsilon: float, delta: float, iterations: int, slack: float) -> tuple[float, float]:
    """The paper's total (epsilon, delta) of `iterations` steps, each (epsilon, delta) (Appendix B).

    sqrt(2 T ln(1/slack)) epsilon + T epsilon (e^epsilon - 1), at T delta + slack (delta at most 1).
    Raises DpmcError unless epsilon > 0 and `delta`, `slack` lie between 0 and 1.
    """
    epsilon, delta, slack = checked_epsilon(epsilon), checked_delta(delta), checked_delta(slack)
    total = math.sqrt(2.0 * iterations * math.log(1.0 / slack)) * epsilon
    return total + iterations * epsilon * math.expm1(epsilon), min(1.0, iterations * delta + slack)


def delta_of_one(event: FastMetropolisRelease, epsilon: float) -> dict[str, float]:
    """Delta at `epsilon` of one corrected iteration, by the test that is made; the largest is the bit's.

    Keys: "full-free", "full-noisy", "batch-free", "batch-noisy", those that may occur. Exact on all
    rows; on a minibatch an upper bound.
    """
    losses = np.array([checked_epsilon(epsilon)])
    found = {}
    for name, profile in profiles(event).items():
        upper, lower = profile.tails(losses)
        found[name] = max(0.0, float(upper[0] - math.exp(epsilon) * lower[0]))
    return found


def delta_of_published_free_step(sensitivity: float) -> float:
    """1 - e^(-Delta): the delta, at every epsilon >= 0, of a Metropolis accept bit without noise.

    A log ratio of at least 0 never rejects; one that is Delta below does with this probability.
    """
    return -math.expm1(-sensitivity)
