"""Standard errors of medians."""

import math

import numpy as np


def error_of_median(q1: float, q3: float, m: int) -> float:
    """Return the standard error of a median of m values.

    It is 1.2533 σ/√m, with σ of the normal distribution that has these quartiles; NaN for m < 2.
    """
    # √(π/2), and the distance of the quartiles in units of σ.
    return 1.2533 * float(q3 - q1) / 1.349 / math.sqrt(m) if m > 1 else math.nan


def median_error(values: list[float]) -> float:
    """Return the standard error of the median of values; NaN for fewer than two."""
    if not values:
        return math.nan
    q1, q3 = np.quantile(values, [0.25, 0.75])
    return error_of_median(q1, q3, len(values))
