"""DP-Fast MH (Zhang and Zhang 2023, Algorithm 2): TunaMH on a minibatch, or a test on all rows."""

from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.dp_fast_mh_full import DPFastMHFull
from dpmc.algorithms.hyperparameters import flag, integer, positive
from dpmc.base import FastRule, Values


@dataclass(frozen=True, kw_only=True)
class DPFastMH(DPFastMHFull):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept by a test on a minibatch or on all rows.

    The variants are those of `DPFastMHFull`. They choose the minibatch as follows. `published`: if the
    number of rows drawn B < K. `as_coded`: if λ + CM < K. `corrected`: if λ + CM < K, with rows drawn
    uniformly. Noise is added if the sensitivity is above its limit.
    """

    batch_mean: float = positive("λ, expected rows of a minibatch in addition to CM", searched=True)
    most_rows: int = integer("K: with this number of rows or more, the test is on all rows")
    inverted_sensitivity: bool = flag(
        "sensitivity 2 ln(1 + 1/(λCM)) on a minibatch, as in one published script",
        when=("variant", "as_coded"),
    )

    calibration = {"most_rows_per_epsilon": positive("K is this times ε, rounded up", 1.0, searched=True)}

    @classmethod
    def calibrate(cls, values: Values, epsilon: float, delta: float, n: int, per_person: int = 1) -> Values:
        """Return the hyperparameters `values` with ε and δ of one iteration.

        If `values` has `most_rows_per_epsilon` and no `most_rows`, K is that number times ε, rounded up.
        """
        values = super().calibrate(values, epsilon, delta, n, per_person)
        per_epsilon = values.pop("most_rows_per_epsilon", None)
        if per_epsilon is not None and "most_rows" not in values:
            # A product that is whole but for rounding must not go up to the next number.
            values["most_rows"] = int(np.ceil(per_epsilon * epsilon * (1.0 - 1e-12)))
        return values

    def rule(self, n: int) -> FastRule:
        on_all_rows, inverted = super().rule(n), self.inverted_sensitivity
        return on_all_rows._replace(batch_mean=self.batch_mean, most_rows=self.most_rows, inverted=inverted)
