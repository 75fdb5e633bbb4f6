"""The rule by which TunaMH and DP-Fast MH choose their test and its noise (Zhang and Zhang 2023).

Formulas only, so that hyperparameters can be checked without loading the kernels.
"""

import numpy as np


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
