"""DP-MALA: DP-HMC with one leapfrog step, a Langevin proposal with noisy gradients and acceptance."""

from dataclasses import dataclass

from dpmc.algorithms.dp_hmc import DPHMC
from dpmc.algorithms.hyperparameters import fixed
from dpmc.algorithms.leapfrog import Jitter


@dataclass(frozen=True, kw_only=True)
class DPMALA(DPHMC):
    """Draw p ~ N(0, M); take one leapfrog step of size η with noisy clipped gradients; make the penalty test.

    Each iteration asks for one log ratio of noise multiplier τ_l√n and two gradients of noise multiplier
    τ_g√n, one at each end of the step. With `reuse_gradients` k iterations ask for k + 1 gradients. The
    accounting is that of DP-HMC (Theorem 4.3), not the sensitivity bound of an unpublished draft.
    """

    steps: int = fixed(1)
    jitter: Jitter = fixed("none")

    first_iterations = 400
