"""DP-MALA: DP-HMC with one leapfrog step, a Langevin proposal with noisy gradients and acceptance."""

from dataclasses import dataclass

from dpmc.algorithms.dp_hmc import DPHMC
from dpmc.algorithms.hyperparameters import fixed


@dataclass(frozen=True, kw_only=True)
class DPMALA(DPHMC):
    """p ~ N(0, M); one leapfrog step of size η with noisy clipped gradients; then the penalty test.

    Each iteration releases one log ratio of noise multiplier τ_l√n and two gradients of multiplier τ_g√n, at
    both ends of the step, like DP-HMC (Theorem 4.3) and unlike an unpublished draft's sensitivity bound.
    """

    steps: int = fixed(1)
    reuse_gradients: bool = fixed(False)
    jitter: str = fixed("none")
