"""DP penalty (Section 3.1; Yıldırım & Ermiş 2019): random walk with a noisy, corrected acceptance test."""

from typing import Any, NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, accept, walk
from dpmc.compiler import compilable
from dpmc.errors import DpmcError
from dpmc.privacy.events import GaussianRelease
from dpmc.privacy.fast_mechanism import multiplier


@compilable
class DPPenalty(NamedTuple):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if ln u < noisy log ratio + ln p(θ') − ln p(θ).

    The noisy log ratio is T(R + σz) − ½T²σ², whose correction makes the posterior exactly invariant when
    nothing is clipped. One release per iteration, of noise multiplier τ√n.
    """

    tau: float  # noise multiplier over √n
    clip: float  # nats per unit distance
    proposal_sd: np.ndarray  # (d,)

    draws_version = 1
    one_component = False
    batch_size = 0  # it looks at all rows

    @classmethod
    def read(cls, settings: Settings) -> "DPPenalty":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.positive("tau"),
            settings.positive("clip"),
            settings.lengths("proposal_sd"),
        )

    @staticmethod
    def check_calibration(settings: Settings) -> None:
        """Take what only `calibrate` reads."""
        settings.choice("calibration", ("classical", "exact"), "classical")

    @classmethod
    def calibrate(cls, values: dict[str, Any], epsilon: float, delta: float, n: int) -> dict[str, Any]:
        """The hyperparameters `values` with τ such that one iteration is (ε, δ).

        `calibration` among them says how: "classical", noise multiplier √(2 ln(1.25/δ))/ε, or "exact", the
        smallest that is (ε, δ). Raises DpmcError where the classical one is not (ε, δ).
        """
        from dpmc.privacy.fast_mh import check_classical  # and with it accountants

        values = dict(values)
        how = values.pop("calibration", "classical")
        if how not in ("classical", "exact"):
            raise DpmcError(f"calibration: {how!r} must be one of classical, exact")
        if how == "exact":
            found = exact_multiplier(epsilon, delta)
        else:
            found = float(multiplier(epsilon, delta))
            check_classical(epsilon, delta, found, "say calibration: exact")
        return {**values, "tau": found / float(np.sqrt(n))}

    @property
    def normals(self) -> int:
        """Standard normals that a proposal needs."""
        return len(self.proposal_sd)

    uniforms = 0
    extras = 0
    evaluations = (1, 0)  # log ratios and gradients per iteration
    noisy_gradients = 0

    def releases(self, n):
        """Events before the first iteration, and of one iteration."""
        return (), (GaussianRelease("log-ratio", self.tau * np.sqrt(n)),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains = state.theta.shape[0]
        proposal = walk(state.theta, self.proposal_sd, draws.normal, i)
        log_ratio = np.empty(chains)
        door.noisy_log_ratio(
            state.theta, proposal, self.clip, self.tau, noise, i, log_ratio, record.ratio_clipped
        )
        for c in range(chains):
            log_ratio[c] += door.log_prior(proposal[c]) - door.log_prior(state.theta[c])
            accept(state, proposal, log_ratio[c], draws, c, i, record)


def exact_multiplier(epsilon: float, delta: float) -> float:
    """The smallest noise multiplier of a Gaussian release that is (ε, δ), rounded up."""
    from dpmc.privacy.accountants.tight import TightGaussian

    accountant = TightGaussian()
    low, high = 0.0, 1.0
    while accountant.delta([GaussianRelease("log-ratio", high)], epsilon) > delta:
        low, high = high, 2.0 * high
    while low < 0.5 * (low + high) < high:
        middle = 0.5 * (low + high)
        fits = accountant.delta([GaussianRelease("log-ratio", middle)], epsilon) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high
