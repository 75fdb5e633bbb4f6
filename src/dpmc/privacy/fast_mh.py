"""The rule and the calibration of DP-Fast MH, and when they are valid (Zhang and Zhang 2023).

p = max c_i / C is the largest probability with which a row is drawn, 1/n if all rows have one public bound;
K = `most_rows`.
"""

import math

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.privacy.accountants import checked_delta, checked_epsilon
from dpmc.privacy.accountants.fast_mh_profiles import worst
from dpmc.privacy.accountants.gaussian import GaussianDp
from dpmc.privacy.events import FastMetropolisQuery, GaussianQuery

DELTA_ROUNDING = 1e-13  #: exceeds the rounding error of delta, relative to the probability before it


def batch_epsilon(epsilon: float, most_rows: int, share: float) -> float:
    """Return ε_0 = ε/(6Kp), p = `share` = max c_i / C: the limit for a row drawn once (Theorem 2)."""
    return epsilon / (6.0 * most_rows * share)


def batch_multiplier(epsilon: float, delta: float, most_rows: int, share: float) -> float:
    """Return σ_1 = √(2 ln(2.5 Kp/δ)) / ε_0: noise sd over sensitivity on a minibatch; 0 if 2.5 Kp ≤ δ."""
    logarithm = np.log(2.5 * most_rows * share / delta)
    return float(np.sqrt(2.0 * max(logarithm, 0.0)) / batch_epsilon(epsilon, most_rows, share))


def multiplier(epsilon: float, delta: float) -> float:
    """Return σ_2 = √(2 ln(1.25/δ)) / ε: noise sd over sensitivity of the Gaussian mechanism (Theorem 1)."""
    return float(np.sqrt(2.0 * np.log(1.25 / delta)) / epsilon)


def barker_threshold(log_uniform: np.ndarray) -> np.ndarray:
    """Return ln(u/(1 − u)) (...): Barker's test accepts a greater ℓ, with probability 1/(1 + e^−ℓ)."""
    return log_uniform - np.log1p(-np.exp(log_uniform))


def check_classical(epsilon: float, delta: float, noise_multiplier: float, remedy: str) -> None:
    """Raise DpmcError if a classical noise multiplier does not make a query (epsilon, delta)-DP.

    sqrt(2 ln(1.25/delta))/epsilon is proven for epsilon < 1; at delta = 1e-5 it fails from epsilon = 8.42 on.
    `remedy` ends the message.
    """
    exact = GaussianDp().delta((GaussianQuery("test", noise_multiplier),), epsilon)
    if exact > delta:
        raise DpmcError(
            f"epsilon = {epsilon:g}, delta = {delta:g}: the classical noise multiplier "
            f"{noise_multiplier:.4g} has exact delta = {exact:.3g}, must be at most {delta:g}; {remedy}"
        )


def corrected_query(
    name: str, epsilon: float, delta: float, n: int, most_rows: int = 0
) -> FastMetropolisQuery:
    """Return the event of a corrected iteration with the paper's calibration, rows drawn uniformly (p = 1/n).

    epsilon_0 = epsilon/(6 K p), delta_0 = delta/(2 K p), sigma_1 = sqrt(2 ln(1.25/delta_0))/epsilon_0,
    sigma_2 = sqrt(2 ln(1.25/delta))/epsilon (Algorithm 2); K = 0 for the full-batch algorithm.

    Raises DpmcError for a bad epsilon or delta, as `check_classical`, and on minibatches if a condition of
    the calibration fails or one iteration is not (epsilon, delta)-DP. The classical noise multiplier needs
    epsilon_0 <= 1. (1 - p + p e^epsilon_0)^K may be replaced by 1 + 6 K p epsilon_0 only if
    K p (e^epsilon_0 - 1) <= 1. The paper's proof is for K draws or fewer. Their number is Poisson, of a mean
    up to K: for K = 1 more than four have a probability of 0.0037, far above a small delta.
    """
    epsilon, delta, share = checked_epsilon(epsilon), checked_delta(delta), 1.0 / n
    setting = f"most_rows K = {most_rows}, epsilon = {epsilon:g}"
    rule = "must be at most 1 for the paper's calibration to hold"
    free = noise = 0.0
    if most_rows:
        free = batch_epsilon(epsilon, most_rows, share)
        noise = batch_multiplier(epsilon, delta, most_rows, share)
        if free > 1.0:
            least = math.ceil(epsilon / (6.0 * share) * (1.0 - 1e-12))
            form = f"epsilon_0 = epsilon/(6 K p) = {free:.3g}"
            raise DpmcError(f"{setting}: {form}: {rule}; K must be at least {least}")
        if (growth := most_rows * share * math.expm1(free)) > 1.0:
            form = f"K p (e^epsilon_0 - 1) = {growth:.3g}"
            raise DpmcError(f"{setting}: {form}: {rule}; take a smaller K")
        if not noise > 0.0:
            raise DpmcError(
                f"most_rows K = {most_rows}, delta = {delta:g}: delta must be below 2.5 K p = "
                f"{2.5 * most_rows * share:.3g} for the noise on a minibatch to have a size"
            )
    on_all = multiplier(epsilon, delta)
    check_classical(epsilon, delta, on_all, "the corrected algorithm needs a smaller epsilon")
    event = FastMetropolisQuery(name, epsilon, on_all, n, most_rows, free, noise)
    if most_rows:  # by the worst of its tests, rounded up
        (upper,), (lower,) = worst(event).tails(np.array([epsilon]))
        bound = float(upper - math.exp(epsilon) * lower + DELTA_ROUNDING * upper)
        if bound > delta:
            excess = f"an iteration has delta up to {bound:.3g}, must be at most {delta:g}"
            raise DpmcError(f"{setting}: {excess}; take a larger delta or a larger K")
    return event
