"""What decides which test TunaMH and DP-Fast MH make, and with how much noise (Zhang and Zhang 2023).

Formulas alone: whoever only checks hyperparameters need not load the kernels.
"""

from typing import Any, NamedTuple

import numpy as np


class FastRule(NamedTuple):
    """What decides which test is made, and with how much noise; all of it public."""

    epsilon: float  # ε of one iteration; ∞: no noise
    delta: float  # δ of one iteration
    batch_mean: float  # λ
    most_rows: int  # K: from here on all rows; 0: always
    clip: float  # nats per unit distance, untempered, of every row; ∞: rows have bounds of their own
    branch_on_mean: bool  # minibatch where λ + CM < K; else where the number drawn is less than K
    barker: bool  # Barker's acceptance where no noise is drawn
    as_coded: bool  # noise uniform on [0, sd), and drawn already where sensitivity equals its limit
    inverted: bool  # sensitivity 2 ln(1 + 1/(λCM)) on a minibatch, as one script has it


def batch_epsilon(epsilon: float, most_rows: int, share: float) -> float:
    """ε_0 = ε/(6Kp), p = `share` = max c_i / C: what a row drawn once may cost (Theorem 2)."""
    return epsilon / (6.0 * most_rows * share)


def batch_multiplier(epsilon: float, delta: float, most_rows: int, share: float) -> float:
    """σ_1 = √(2 ln(2.5 Kp/δ)) / ε_0: noise sd over sensitivity on a minibatch; 0 if 2.5 Kp ≤ δ."""
    logarithm = np.log(2.5 * most_rows * share / delta)
    return float(np.sqrt(2.0 * max(logarithm, 0.0)) / batch_epsilon(epsilon, most_rows, share))


def multiplier(epsilon: float, delta: float) -> float:
    """σ_2 = √(2 ln(1.25/δ)) / ε: noise sd over sensitivity of the Gaussian mechanism (Theorem 1)."""
    return float(np.sqrt(2.0 * np.log(1.25 / delta)) / epsilon)


def barker_threshold(log_uniform: np.ndarray) -> Any:
    """ln(u/(1 − u)): Barker's test accepts a log ratio ℓ that is greater, with probability 1/(1 + e^−ℓ)."""
    return log_uniform - np.log1p(-np.exp(log_uniform))
