"""The correction V of DP Barker: N(0, 2) + V is nearly Logistic(0, 1) (Section 3.3, Algorithm 3).

Barker's test accepts a log ratio ℓ with probability 1/(1 + e^−ℓ), that is if ℓ + Logistic(0, 1) > 0. A
batch's estimate of ℓ brings noise of variance s² ≤ 1 with it; N(0, 2 − s²) fills it up to N(0, 2), and V
makes a logistic variable of that. V is independent of everything: it tells nothing of the rows.

No V is exact, since the logistic law has no normal factor: the sup-norm error of the CDF is at least
5.87e-4. The table below takes five values, so that one uniform makes a draw. Its errors:

- CDF of N(0, 2) + V against Logistic(0, 1), sup-norm: 8.13e-4;
- detailed balance, |ln a(ℓ) − ln a(−ℓ) − ℓ|: 0.0101 for |ℓ| ≤ 4, 0.0103 for |ℓ| ≤ 6, 0.061 for |ℓ| ≤ 8.

`workflow/scripts/fit_barker_correction.py` makes the table, measures it and proves the lower bound.
"""

from itertools import accumulate

import numpy as np

#: The values of V and their probabilities, symmetric about 0; printed by the script.
VALUES = (-6.2, -2.81, 0.0, 2.81, 6.2)
PROBABILITIES = (0.003032, 0.066488, 0.86096, 0.066488, 0.003032)

#: P(V ≤ value) but for the last, which is 1 whatever the rounding.
CUMULATIVE = tuple(accumulate(PROBABILITIES[:-1]))


def barker_correction(u: np.ndarray) -> np.ndarray:
    """V (chains,) as its quantiles at u (chains,), uniform on [0, 1): one uniform a draw."""
    return np.array(VALUES)[np.searchsorted(CUMULATIVE, u, side="right")]
