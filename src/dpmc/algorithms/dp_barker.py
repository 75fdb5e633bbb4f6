"""DP Barker (Section 3.3, Algorithm 3; Heikkilä et al. 2019): batch noise supplies the test's randomness."""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.hyperparameters import fraction, integer, lengths
from dpmc.algorithms.walks import RandomWalk
from dpmc.base import Draws, Needs, PrivateData, Queries, State, Values
from dpmc.common.errors import DpmcError
from dpmc.privacy.barker_correction import barker_correction
from dpmc.privacy.events import BarkerQuery


@dataclass(frozen=True, kw_only=True)
class DPBarker(RandomWalk):
    """Propose θ' ~ N(θ, diag(proposal_sd²)); accept if λ + N(0, 2 − s²) + ln p(θ') − ln p(θ) + V > 0.

    λ is the log ratio of a batch of b rows without replacement and s² estimates its variance. Batch noise and
    N(0, 2 − s²) together have variance 2, up to about s²(b/n − 1/b). Adding V, a correction independent of
    the rows, gives approximately Logistic(0, 1) noise: Barker's test. One query per iteration.
    """

    batch_size: int = integer("rows b of a batch", searched=True)
    clip_factor: float = fraction("clip bound of a row's log ratio in units of √b/(nT)", 1.0)
    proposal_sd: np.ndarray = lengths("standard deviations of the proposal", searched=True)

    calibrates_iteration = clips_by_batch = True

    @classmethod
    def calibrate(cls, values: Values, epsilon: float, delta: float, n: int, per_person: int = 1) -> Values:
        """Return the hyperparameters `values` with the largest batch size for which one test is (ε, δ)-DP.

        The accountant is `barker-pld`. A given batch size is kept if its test is (ε, δ)-DP. Raises DpmcError
        if no batch size is small enough.
        """
        from dpmc.privacy.accountants.profiles import SMALLEST_BARKER_BATCH as LEAST

        given = values.get("batch_size")
        if isinstance(given, int) and LEAST <= given <= n and fits(given, n, epsilon, delta):
            return dict(values)
        # The sizes that fit are those up to the largest; count them by bisection.
        sizes = range(LEAST, n + 1)
        count = bisect_left(sizes, True, key=lambda size: not fits(size, n, epsilon, delta))
        if count == 0:
            raise DpmcError(f"epsilon: {epsilon:g} per iteration is too small for dp-barker with n = {n}")
        return {**values, "batch_size": sizes[count - 1]}

    def needs(self, dimension: int) -> Needs:
        """Return what one iteration consumes; the uniform number is for the correction."""
        return Needs(normals=dimension, uniforms=1, words=self.batch_size)

    def largest_scale(self, ratio: float) -> float:
        return math.sqrt(2.0 * self.batch_size) * ratio / self.clip_factor

    def queries(self, n: int) -> Queries:
        return Queries(each=(BarkerQuery("batch log-ratio", self.batch_size, n),))

    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        return private.barker_log_ratio(theta, proposal, self.clip_factor)

    def decide(self, state: State, proposal: np.ndarray, log_ratio: np.ndarray, draws: Draws) -> State:
        return settle(state, proposal, log_ratio + barker_correction(draws.uniform[:, 0]) > 0.0)


def fits(batch_size: int, n: int, epsilon: float, delta: float) -> bool:
    """Return whether one test on a batch is (ε, δ)-DP by the accountant `barker-pld`."""
    from dpmc.privacy import accountants  # slow to import, and few samplers need them

    query = BarkerQuery("batch log-ratio", batch_size, n)
    return accountants.get("barker-pld").delta((query,), epsilon) <= delta
