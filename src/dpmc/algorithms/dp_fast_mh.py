"""DP-Fast MH (Zhang and Zhang 2023, Algorithm 2): TunaMH on few rows, all rows where these are not enough."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmc.algorithms.dp_fast_mh_full import DPFastMHFull
from dpmc.algorithms.hyperparameters import flag, positive, whole
from dpmc.privacy.fast_rule import FastRule


@dataclass(frozen=True, kw_only=True)
class DPFastMH(DPFastMHFull):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept by a test on a minibatch or all rows, with noise or not.

    The variants are those of `DPFastMHFull`, and: `published`: minibatch where the number drawn B < K.
    `as_coded`: minibatch where λ + CM < K. `corrected`: likewise, with rows drawn uniformly.
    """

    batch_mean: float = positive("λ, rows of a minibatch beyond those that a move needs")
    most_rows: int = whole("K: from this number on, all rows")
    inverted_sensitivity: bool = flag(
        "sensitivity 2 ln(1 + 1/(λCM)) on a minibatch, as one script has it", when=("variant", "as_coded")
    )

    @dataclass(frozen=True)
    class Calibration:
        """What only `calibrate` reads."""

        most_rows_per_epsilon: float = positive("K is this times ε, rounded up", 1.0)

    @classmethod
    def calibrate(cls, values: dict[str, Any], epsilon: float, delta: float, n: int) -> dict[str, Any]:
        """Return the hyperparameters `values` for an iteration that is to be (ε, δ).

        `most_rows_per_epsilon` among them, in place of K itself, says that K is that times ε, rounded up.
        """
        values = super().calibrate(values, epsilon, delta, n)
        per_epsilon = values.pop("most_rows_per_epsilon", None)
        if per_epsilon is not None and "most_rows" not in values:
            values["most_rows"] = int(np.ceil(per_epsilon * epsilon * (1.0 - 1e-12)))
        return values

    @property
    def rule(self) -> FastRule:
        """What decides which test is made, and with how much noise."""
        return super().rule._replace(
            batch_mean=self.batch_mean, most_rows=self.most_rows, inverted=self.inverted_sensitivity
        )
