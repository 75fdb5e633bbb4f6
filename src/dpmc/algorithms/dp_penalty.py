"""DP penalty (Section 3.1; Yıldırım & Ermiş 2019): random walk with a noisy, corrected acceptance test."""

from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.hyperparameters import choice, lengths, positive
from dpmc.algorithms.walks import RandomWalk
from dpmc.base import PrivateData, Queries, Values
from dpmc.privacy.events import GaussianQuery
from dpmc.privacy.fast_mh import multiplier


@dataclass(frozen=True, kw_only=True)
class DPPenalty(RandomWalk):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if ln u < noisy log ratio + ln p(θ') − ln p(θ).

    The noisy log ratio is T(R + σz) − ½T²σ². The correction −½T²σ² makes the posterior exactly invariant if
    nothing is clipped. One query per iteration, of noise multiplier τ√n.
    """

    tau: float = positive("noise multiplier of a log ratio over √n", searched=True)
    clip: float = positive("clip bound of a row's log ratio, nats per unit distance", searched=True)
    proposal_sd: np.ndarray = lengths("standard deviations of the proposal", searched=True)

    first_iterations = 2000
    calibrates_iteration = True
    calibration = {"calibration": choice("noise for an ε per iteration", "classical", "exact")}

    @classmethod
    def calibrate(cls, values: Values, epsilon: float, delta: float, n: int, per_person: int = 1) -> Values:
        """Return the hyperparameters `values` with τ such that one iteration is (ε, δ)-DP.

        `values["calibration"]` is "classical", the default, for the noise multiplier √(2 ln(1.25/δ))/ε, or
        "exact" for the smallest that is (ε, δ)-DP. Raises DpmcError if the classical one is not (ε, δ)-DP.
        """
        from dpmc.privacy.fast_mh import check_classical  # loads accountants, which few samplers need

        values = dict(values)
        if values.pop("calibration", "classical") == "exact":
            noise_multiplier = exact_multiplier(epsilon, delta)
        else:
            noise_multiplier = multiplier(epsilon, delta)
            check_classical(epsilon, delta, noise_multiplier, "say calibration: exact")
        return {**values, "tau": noise_multiplier / float(np.sqrt(n))}

    def queries(self, n: int) -> Queries:
        # The sensitivity varies with ‖θ − θ'‖, the multiplier does not: the noise grows with the clip bound.
        return Queries(each=(GaussianQuery("log-ratio", self.tau * np.sqrt(n)),))

    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        return private.penalty_log_ratio(theta, proposal, self.clip, self.tau)


def exact_multiplier(epsilon: float, delta: float) -> float:
    """Return the smallest noise multiplier with which a Gaussian query is (ε, δ)-DP, rounded up."""
    from dpmc.privacy.accountants.gaussian import GaussianDp  # loads accountants, which few samplers need

    accountant = GaussianDp()
    low, high = 0.0, 1.0
    while accountant.delta([GaussianQuery("log-ratio", high)], epsilon) > delta:
        low, high = high, 2.0 * high
    # Down to neighbouring doubles, so that τ depends on no tolerance; `high` fits in every step.
    while low < 0.5 * (low + high) < high:
        middle = 0.5 * (low + high)
        fits = accountant.delta([GaussianQuery("log-ratio", middle)], epsilon) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high
