"""DP-SGLD (Wang et al. 2015, Li et al. 2019): Langevin steps whose injected noise is the privacy noise."""

from typing import NamedTuple

import numpy as np

from dpmc.algorithms.common import Settings, batch_gradient_release, settle
from dpmc.compiler import compilable
from dpmc.privacy.mechanisms import has_diverged

#: What the gradient is multiplied by, in units of h: Langevin's ½, and the public code's 1.
DRIFTS = {"correct": 0.5, "published": 1.0}


@compilable
class DPSGLD(NamedTuple):
    """θ' = θ + (h/2)(∇ ln p(θ) + (n/b) Σ_B clip(∇ ln p(x_j|θ))) + N(0, h), h = η/n; no acceptance test.

    The batch B is b rows without replacement, anew in each iteration. One release per iteration: the sum with
    N(0, 4/h) noise, of which the step is a function. Its sensitivity is 2nC/b, C the clip bound, so its noise
    multiplier on the batch is b/(C√(ηn)). The DP-HMC paper's code (`drift: published`) has h in place of h/2:
    half the posterior's variance as h → 0, and a multiplier of b/(2C√(ηn)).

    Nothing corrects for the noise of batches: (h/4)(n²/b)(1 − b/n)S beside 1 of the injected noise, S the
    covariance of the rows' gradients; it vanishes as h → 0, but widens stiff directions at a given h.

    A step to where θ has diverged is not made: the chain stays, which is counted and paid for.
    """

    batch_size: int  # b
    clip: float  # C, norm of one row's gradient (tempered)
    step_size: float  # η
    drift: float  # of the gradient in units of h; see DRIFTS

    draws_version = 1
    one_component = False
    normals = 0
    uniforms = 0
    extras = 0
    evaluations = (0, 1)  # log ratios and gradients per iteration
    noisy_gradients = 1

    @classmethod
    def read(cls, settings: Settings) -> "DPSGLD":
        """Take this algorithm's hyperparameters."""
        return cls(
            settings.count("batch_size"),
            settings.positive("clip"),
            settings.positive("step_size"),
            DRIFTS[settings.choice("drift", tuple(DRIFTS), "correct")],
        )

    @property
    def variant(self) -> str:
        """What must be said wherever this sampler's output is shown; "" for the algorithm as it is."""
        return "drift h in place of h/2, as published" if self.drift != 0.5 else ""

    def noise_multiplier(self, n):
        """Of the batch gradient, such that `drift` h times its noise is N(0, h); its sensitivity is 2nC/b."""
        return self.batch_size / (2.0 * self.drift * self.clip * np.sqrt(self.step_size * n))

    def releases(self, n):
        """Events before the first iteration, and of one iteration."""
        return (), (batch_gradient_release(self.noise_multiplier(n), self.clip, self.batch_size, n),)

    def iterate(self, door, noise, draws, i, state, record):
        """One iteration of every chain."""
        h = self.step_size / door.n
        gradient = np.empty(state.theta.shape)
        door.noisy_batch_gradient(
            state.theta,
            self.clip,
            self.noise_multiplier(door.n),
            noise,
            draws.words,
            i,
            gradient,
            record.gradient_clipped,
        )
        proposal = state.theta.copy()
        for c in range(proposal.shape[0]):
            for k in range(proposal.shape[1]):
                proposal[c, k] += self.drift * h * gradient[c, k]
            settle(state, proposal, not has_diverged(proposal[c]), c, i, record)
