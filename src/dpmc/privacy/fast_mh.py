"""The calibration of DP-Fast MH, and the conditions under which it is valid (Zhang and Zhang 2023).

It has the paper's numbers (Algorithm 2, Theorem 2), the conditions under which they are valid for the
corrected algorithm, and the event of a corrected iteration. p = max c_i / C is the largest probability with
which a row is drawn, 1/n if all rows have one public bound; K = `most_rows`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.privacy.accountants import checked_delta, checked_epsilon
from dpmc.privacy.accountants.fast_mh_profiles import worst
from dpmc.privacy.accountants.tight import TightGaussian
from dpmc.privacy.events import FastMetropolisRelease, GaussianRelease
from dpmc.privacy.fast_rule import batch_epsilon, batch_multiplier, multiplier

ROUNDING = 1e-13  #: exceeds the rounding error of delta, a difference, relative to the probability before it


class Calibration(NamedTuple):
    """The thresholds and noise multipliers of one iteration.

    Attributes
    ----------
    epsilon, noise_multiplier : on all rows: no noise up to this sensitivity; noise sd / sensitivity.
    batch_epsilon, batch_noise_multiplier : the same on a minibatch; 0 without minibatches.
    """

    epsilon: float
    noise_multiplier: float
    batch_epsilon: float = 0.0
    batch_noise_multiplier: float = 0.0


def calibration(epsilon: float, delta: float, most_rows: int = 0, share: float = 0.0) -> Calibration:
    """Return the paper's thresholds and noise multipliers for `epsilon`, `delta` per iteration (Algorithm 2).

    epsilon_0 = epsilon/(6 K p), delta_0 = delta/(2 K p), sigma_1 = sqrt(2 ln(1.25/delta_0))/epsilon_0,
    sigma_2 = sqrt(2 ln(1.25/delta))/epsilon. `share` is p; K and p are 0 for the full-batch algorithm. Their
    validity is not checked here: see `check`.

    Raises DpmcError for a bad epsilon or delta, and if delta_0 is not below 1.25.
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
    """Raise DpmcError if the paper's calibration of minibatches is not valid.

    The classical noise multiplier needs epsilon_0 <= 1. (1 - p + p e^epsilon_0)^K may be replaced by
    1 + 6 K p epsilon_0 only if K p (e^epsilon_0 - 1) <= 1.
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
    """Raise DpmcError if a classical noise multiplier does not make a release (epsilon, delta)-DP.

    sqrt(2 ln(1.25/delta))/epsilon is proven for epsilon < 1; at delta = 1e-5 it fails from epsilon = 8.42 on.
    `remedy` ends the message.
    """
    exact = TightGaussian().delta((GaussianRelease("test", noise_multiplier),), epsilon)
    if exact > delta:
        raise DpmcError(
            f"epsilon = {epsilon:g}, delta = {delta:g}: the classical noise multiplier "
            f"{noise_multiplier:.4g} has exact delta = {exact:.3g}, must be at most {delta:g}; {remedy}"
        )


def corrected_release(
    name: str, epsilon: float, delta: float, n: int, most_rows: int = 0, count: int = 1
) -> FastMetropolisRelease:
    """Return the event of corrected iterations with the paper's calibration, rows drawn uniformly (p = 1/n).

    Raises DpmcError as `calibration`, `check_classical` and, with minibatches, `check`, and if one iteration
    on a minibatch is not (epsilon, delta)-DP. The paper's proof is for K draws or fewer. Their number is
    Poisson, of a mean up to K, and many more are as likely as 1e-3 for K = 1, far above a small delta.
    """
    if most_rows:
        check(epsilon, most_rows, 1.0 / n)
    numbers = calibration(epsilon, delta, most_rows, 1.0 / n)
    smaller = "the corrected algorithm needs a smaller epsilon"
    check_classical(epsilon, delta, numbers.noise_multiplier, smaller)
    free, noise, batch_free, batch_noise = numbers
    event = FastMetropolisRelease(name, free, noise, n, most_rows, batch_free, batch_noise)
    if most_rows:  # by the worst of its tests, rounded up
        (upper,), (lower,) = worst(event).tails(np.array([epsilon]))
        bound = float(upper - math.exp(epsilon) * lower + ROUNDING * upper)
        if bound > delta:
            raise DpmcError(
                f"most_rows K = {most_rows}, epsilon = {epsilon:g}: an iteration has delta up to "
                f"{bound:.3g}, must be at most {delta:g}; take a larger delta or a larger K"
            )
    return replace(event, count=count)
