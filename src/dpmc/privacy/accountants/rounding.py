"""Rounding up results of closed forms, by more than their rounding errors and less than 1e-9 of delta."""

import math

#: Exceeds the relative rounding error of a sum of costs.
ROUNDED_UP = 1.0 + 2.0**-49
#: Exceeds the relative and the absolute error of ln delta. The larger error is that of the difference of two
#: values of erfcx, which loses two digits of sixteen.
LOG_ERROR = 2.0**-42


def exp_rounded_up(log_delta: float) -> float:
    """Return e^log_delta, at most 1, rounded up by more than the error of a computed `log_delta` <= 0."""
    if log_delta == -math.inf:
        return 0.0
    return math.exp(min(0.0, log_delta + LOG_ERROR * (1.0 - log_delta)))
