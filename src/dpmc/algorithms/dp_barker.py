"""DP Barker (Section 3.3, Algorithm 3; Heikkilä et al. 2019): the noise of a batch makes the test random."""

from typing import Any, NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, settle, walk
from dpmc.compiler import compilable
from dpmc.errors import DpmcError
from dpmc.privacy.barker_correction import barker_correction
from dpmc.privacy.events import BarkerRelease


@compilable
class DPBarker(NamedTuple):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if λ + N(0, 2 − s²) + ln p(θ') − ln p(θ) + V > 0.

    λ is the log ratio of a batch of b rows without replacement and s² its variance; batch noise and
    N(0, 2 − s²) make N(0, 2), and the correction V, which knows nothing of the rows, nearly a
    Logistic(0, 1) of it: Barker's test. One release per iteration.
    """

    batch_size: int  # b
    clip_factor: float  # clip bound in units of √b/(nT); at most 1
    proposal_sd: np.ndarray  # (d,)

    draws_version = 1
    one_component = False

    @classmethod
    def read(cls, settings: Settings) -> "DPBarker":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.count("batch_size"),
            settings.fraction("clip_factor", 1.0),
            settings.lengths("proposal_sd"),
        )

    @classmethod
    def calibrate(cls, values: dict[str, Any], epsilon: float, delta: float, n: int) -> dict[str, Any]:
        """The hyperparameters `values` with the largest batch of which one test is (ε, δ) by `barker-pld`.

        A batch size among the values stays if it is so. Raises DpmcError if no batch is.
        """
        from dpmc.privacy.accountants.profiles import SMALLEST_BARKER_BATCH as LEAST

        given = values.get("batch_size")
        if isinstance(given, int) and LEAST <= given <= n and fits(given, n, epsilon, delta):
            return dict(values)
        between = [2**k for k in range(n.bit_length(), 0, -1) if LEAST < 2**k < n]
        sizes = [size for size in dict.fromkeys([n, *between, LEAST]) if LEAST <= size <= n]
        place = next((i for i, size in enumerate(sizes) if fits(size, n, epsilon, delta)), None)
        if place is None:
            raise DpmcError(f"epsilon: {epsilon:g} per iteration is too small for dp-barker with n = {n}")
        low, high = sizes[place], sizes[place - 1] if place else n
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle, n, epsilon, delta) else (low, middle)
        return {**values, "batch_size": low}

    @property
    def normals(self) -> int:
        """Standard normals that a proposal needs."""
        return len(self.proposal_sd)

    uniforms = 1  # the correction's
    extras = 0
    evaluations = (1, 0)  # log ratios and gradients per iteration
    noisy_gradients = 0

    def releases(self, n):
        """Events before the first iteration, and of one iteration."""
        return (), (BarkerRelease("batch log-ratio", self.batch_size, n),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        chains = state.theta.shape[0]
        proposal = walk(state.theta, self.proposal_sd, draws.normal, i)
        log_ratio = np.empty(chains)
        door.barker_log_ratio(
            state.theta,
            proposal,
            self.clip_factor,
            noise,
            draws.words,
            i,
            log_ratio,
            record.ratio_clipped,
        )
        for c in range(chains):
            log_ratio[c] += door.log_prior(proposal[c]) - door.log_prior(state.theta[c])
            accepted = log_ratio[c] + barker_correction(draws.uniform[c, i, 0]) > 0.0
            settle(state, proposal, accepted, c, i, record)


def fits(batch_size: int, n: int, epsilon: float, delta: float) -> bool:
    """Whether one test on a batch is (ε, δ) by the accountant `barker-pld`."""
    from dpmc.privacy import accountants

    release = BarkerRelease("batch log-ratio", batch_size, n)
    return accountants.get("barker-pld").delta((release,), epsilon) <= delta
