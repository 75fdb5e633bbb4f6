"""DP-Fast MH on all rows (Zhang and Zhang 2023, Algorithm 2 with the test on all rows in every iteration)."""

from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.hyperparameters import choice, fraction, lengths, positive
from dpmc.algorithms.walks import PoissonWalk
from dpmc.base import FastRule, Queries, Values
from dpmc.privacy.events import NonPrivateQuery


@dataclass(frozen=True, kw_only=True)
class DPFastMHFull(PoissonWalk):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept by a test on all rows, with noise if needed.

    Noise is needed if the sensitivity 2 max c_i ‖θ − θ'‖ is above ε.

    `published`: Metropolis' test; normal noise and its correction only if the sensitivity is above its limit.
    `as_coded`: as the authors' scripts, with noise uniform on [0, sd). `corrected`: rows clipped to a public
    bound, and Barker's test if no noise is drawn. Only `corrected` has a privacy guarantee and declares it.
    """

    variant: str = choice(
        "as published, as in its authors' code, or corrected", "published", "as_coded", "corrected"
    )
    epsilon: float = positive("ε of one iteration")
    delta: float = fraction("δ of one iteration", below_one=True)
    clip: float | None = positive(
        "clip bound of a row's log ratio, nats per unit distance",
        None,
        when=("variant", "corrected"),
        searched=True,
    )
    proposal_sd: np.ndarray = lengths("standard deviations of the proposal", searched=True)

    calibrates_iteration = True

    @classmethod
    def calibrate(cls, values: Values, epsilon: float, delta: float, n: int, per_person: int = 1) -> Values:
        """Return the hyperparameters `values` with ε and δ of one iteration."""
        return {**values, "epsilon": epsilon, "delta": delta}

    @property
    def public_clip(self) -> float:
        return np.inf if self.clip is None else self.clip

    def rule(self, n: int) -> FastRule:
        """Return the rule that decides on noise; K = 0: always all rows."""
        return FastRule(
            epsilon=self.epsilon,
            delta=self.delta,
            batch_mean=1.0,  # without effect: K = 0 leaves no minibatch
            most_rows=0,
            clip=self.public_clip,
            branch_on_mean=self.variant != "published",
            barker=self.variant == "corrected",
            as_coded=self.variant == "as_coded",
        )

    @property
    def note(self) -> str:
        if self.variant == "corrected":
            return (
                "corrected: public bounds, Barker's test without noise, minibatch by the mean number of rows"
            )
        if self.variant == "as_coded":
            inverted = ", sensitivity inverted" if self.rule(1).inverted else ""
            return f"as implemented by its authors, with uniform noise{inverted}: no guarantee"
        return "as published, private on acceptance only: no guarantee"

    def queries(self, n: int) -> Queries:
        """Return what an iteration asks.

        Variants without a guarantee declare a non-private query. Raises DpmcError if the calibration of
        Theorem 2 is not valid at these ε and δ.
        """
        if self.variant != "corrected":
            return Queries(each=(NonPrivateQuery("acceptance test"),))
        from dpmc.privacy.fast_mh import corrected_query  # loads accountants, which few samplers need

        event = corrected_query("acceptance test", self.epsilon, self.delta, n, self.rule(n).most_rows)
        return Queries(each=(event,))
