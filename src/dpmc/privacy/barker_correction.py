"""The correction V of DP Barker: N(0, 2) + V is nearly Logistic(0, 1) (Section 3.3, Algorithm 3).

Barker's test accepts a log ratio ℓ with probability 1/(1 + e^−ℓ), that is if ℓ + Logistic(0, 1) > 0. The
variance of a batch's estimate of ℓ is estimated by s² ≤ 1. N(0, 2 − s²) is added to give N(0, 2), and V to
give a nearly logistic variable. V is independent of everything else, so it reveals nothing about the rows.

No V is exact, since the logistic distribution has no normal factor: the sup-norm error of the CDF is at least
5.87e-4. The table below has five values, so that one uniform number makes a draw. Its errors:

- CDF of N(0, 2) + V against Logistic(0, 1), sup-norm: 8.13e-4;
- detailed balance, |ln a(ℓ) − ln a(−ℓ) − ℓ|: 0.0101 for |ℓ| ≤ 4, 0.0103 for |ℓ| ≤ 6, 0.061 for |ℓ| ≤ 8.

`benchmarks/barker_correction.py` makes the table, measures its errors and computes the lower bound.
"""

from itertools import accumulate

import numpy as np

#: The values of V and their probabilities, symmetric about 0; printed by the script.
VALUES = (-6.2, -2.81, 0.0, 2.81, 6.2)
PROBABILITIES = (0.003032, 0.066488, 0.86096, 0.066488, 0.003032)

#: P(V ≤ value) without the last value, for which it is 1.
CUMULATIVE = tuple(accumulate(PROBABILITIES[:-1]))


def barker_correction(u: np.ndarray) -> np.ndarray:
    """Return draws of V (chains,), its quantiles at u (chains,), uniform on [0, 1)."""
    return np.array(VALUES)[np.searchsorted(CUMULATIVE, u, side="right")]
