"""The thesis's own choice for batches: the loss distribution of its replace-one pair (Section 3.4).

(1 - q) N(0, tau) + q N(1, tau) against (1 - q) N(0, tau) + q N(-1, tau), with tau the squared noise
multiplier and q = b/n, is what the thesis gives to its Fourier accountant, which approximates this
pair without an error bound. Here the pair is rounded up. It dominates the profile of `wor-pld`, so
that the answer is true, and conservative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmc.privacy.accountants.pld import LossDistributionAccountant, noise_multiplier
from dpmc.privacy.accountants.profiles import Profile, ReplacePair
from dpmc.privacy.events import GaussianRelease, Release, SubsampledGaussianRelease


@dataclass(frozen=True)
class ReplacePld(LossDistributionAccountant):
    """Subsampled Gaussian releases as the published figures account for them."""

    name: ClassVar[str] = "replace-pld"
    version: ClassVar[str] = "2"
    handles: ClassVar[tuple[type[Release], ...]] = (SubsampledGaussianRelease,)
    beside: ClassVar[tuple[type[Release], ...]] = (GaussianRelease,)

    def _profile(self, event: Release) -> Profile:
        assert isinstance(event, SubsampledGaussianRelease)
        s = noise_multiplier(event)
        return ReplacePair(s * s, event.sampling_fraction)
