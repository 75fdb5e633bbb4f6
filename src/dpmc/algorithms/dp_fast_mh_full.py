"""DP-Fast MH on all rows (Zhang and Zhang 2023, Algorithm 2 with the test on all rows in every iteration)."""

from typing import Any, NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings
from dpmc.algorithms.dp_fast_mh import corrected_release, is_corrected, read_rule, step, variant_of
from dpmc.compiler import compilable
from dpmc.privacy.events import NonPrivateRelease
from dpmc.privacy.fast_mechanism import FastRule


@compilable
class DPFastMHFull(NamedTuple):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept by a test on all rows, with noise where it is needed.

    That is where the sensitivity 2 max c_i ‖θ − θ'‖ is above ε. The variants are those of `DPFastMH`.
    """

    rule: FastRule
    proposal_sd: np.ndarray  # (d,)

    draws_version = 1
    one_component = False
    batch_size = 0
    random_rows = True
    random_words = 1

    @classmethod
    def read(cls, settings: Settings) -> "DPFastMHFull":
        """Take this algorithm's hyperparameters."""
        return cls(read_rule(settings, 1.0, 0), settings.lengths("proposal_sd"))

    @classmethod
    def calibrate(cls, values: dict[str, Any], epsilon: float, delta: float, n: int) -> dict[str, Any]:
        """The hyperparameters `values` for an iteration that is to be (ε, δ)."""
        return {**values, "epsilon": epsilon, "delta": delta}

    @property
    def public_clip(self) -> float:
        """Clip of every row in nats per unit distance; ∞: rows have bounds of their own."""
        return self.rule.clip

    @property
    def variant(self) -> str:
        """What must be said wherever this sampler's output is shown."""
        return variant_of(self.rule)

    @property
    def normals(self) -> int:
        """Standard normals that a proposal needs."""
        return len(self.proposal_sd)

    uniforms = 0
    extras = 0
    evaluations = (1, 0)  # log ratios and gradients per iteration
    noisy_gradients = 0

    def releases(self, n):
        """Events before the first iteration, and of one iteration; exact ones where nothing is guaranteed."""
        if not is_corrected(self.rule):
            return (), (NonPrivateRelease("acceptance test"),)
        return (), (corrected_release(self.rule, n),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        step(self.rule, self.proposal_sd, door, noise, draws, i, state, record)
