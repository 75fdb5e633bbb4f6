"""DP-HMC (Algorithm 4, Theorem 4.3): Hamiltonian Monte Carlo with noisy gradients and acceptance."""

from dataclasses import dataclass, replace

import numpy as np

from dpmc.algorithms.hyperparameters import flag, integer, lengths, positive
from dpmc.algorithms.leapfrog import Hamiltonian, Jitter, jitter
from dpmc.base import Needs, PrivateData, Queries
from dpmc.privacy.events import GaussianQuery


@dataclass(frozen=True, kw_only=True)
class DPHMC(Hamiltonian):
    """Draw p ~ N(0, M); take L leapfrog steps of size η with noisy clipped gradients; make the penalty test.

    Accept if ln u < T(R + σz) − ½T²σ² + ½pᵀM⁻¹p − ½p'ᵀM⁻¹p' + ln p(θ') − ln p(θ). (The thesis's listing
    writes u for ln u and drops η from the θ-update.) Each iteration asks for one log ratio of noise
    multiplier τ_l√n and L + 1 gradients of noise multiplier τ_g√n.

    `jitter` multiplies η in each iteration by a point of a scrambled Halton sequence, one sequence per chain,
    so that trajectories do not keep returning to their start: on (0, 1) if it is "halton", as in Section 3 of
    the DP-HMC paper, or on (a, b). Jitter costs no privacy and leaves the posterior invariant.

    `reuse_gradients` takes the gradient at the start of a trajectory from the previous iteration, so that k
    iterations ask for kL + 1 gradients. It leaves the posterior invariant, since a rejection keeps that
    gradient and does not draw it anew (proof: docs/reference/algorithms/dp-hmc.md).
    """

    tau_l: float = positive("noise multiplier of a log ratio over √n", searched=True)
    tau_g: float = positive("noise multiplier of a gradient over √n", searched=True)
    steps: int = integer("leapfrog steps L", searched=True)
    step_size: np.ndarray = lengths("step size η", searched=True)
    mass: np.ndarray = lengths("diagonal of the mass matrix M")
    clip_l: float = positive("clip bound of a row's log ratio, nats per unit distance", searched=True)
    clip_g: float = positive("clip bound of the norm of a row's gradient", searched=True)
    reuse_gradients: bool = flag("take the first gradient from the previous iteration")
    jitter: Jitter = jitter()

    first_iterations = 200

    @property
    def note(self) -> str:
        return "reuses gradients" if self.reuse_gradients else ""

    def needs(self, dimension: int) -> Needs:
        """Return what one iteration consumes: always noise for L + 1 gradients, used or not."""
        return replace(super().needs(dimension), noise_vectors=self.steps + 1)

    def queries(self, n: int) -> Queries:
        root = np.sqrt(n)
        # Clip bound and noise scale together, so the multiplier is the same wherever the chain goes.
        ratio = GaussianQuery("log-ratio", self.tau_l * root)
        gradients = GaussianQuery("gradient", self.tau_g * root, self.steps + 1 - self.reuse_gradients)
        # The gradient at θ_0; every later trajectory starts with one that was answered before.
        first = (GaussianQuery("gradient", self.tau_g * root),) if self.reuse_gradients else ()
        return Queries(chain=first, each=(ratio, gradients))

    def gradient(self, theta: np.ndarray, stage: int, private: PrivateData) -> np.ndarray:
        return private.gradient(theta, self.clip_g, self.tau_g, stage)

    def log_ratio(self, theta: np.ndarray, proposal: np.ndarray, private: PrivateData) -> np.ndarray:
        return private.penalty_log_ratio(theta, proposal, self.clip_l, self.tau_l)
