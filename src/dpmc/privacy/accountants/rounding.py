"""Rounding up what closed forms give: by more than the error of their arithmetic, less than 1e-9 of delta."""

import math

#: More than the few roundings that a sum of costs has had.
ROUNDED_UP = 1.0 + 2.0**-49
#: More than the relative and the absolute error of a ln delta: the difference of two values of erfcx, the
#: larger error, loses two digits of sixteen.
LOG_ERROR = 2.0**-42


def exp_rounded_up(log_delta: float) -> float:
    """e^log_delta, at most 1, rounded up by more than the error of a computed `log_delta` <= 0."""
    if log_delta == -math.inf:
        return 0.0
    return math.exp(min(0.0, log_delta + LOG_ERROR * (1.0 - log_delta)))
