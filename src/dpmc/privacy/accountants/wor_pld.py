"""Batches drawn without replacement: the loss distribution of their symmetric profile.

For replace-one neighbours and a statistic with noise multiplier s on the batch, q = b/n, every
release has, whatever the data and the history,
    delta(epsilon) <= q g(ln(1 + (e^epsilon - 1)/q)),  epsilon >= 0,
with g the curve of N(1/s, 1) against N(0, 1), and the mirrored bound for epsilon < 0; both are
attained. Proof: docs/accounting.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmc.privacy.accountants.pld import BatchAccountant
from dpmc.privacy.events import BarkerRelease, GaussianRelease, Release, SubsampledGaussianRelease


@dataclass(frozen=True)
class WithoutReplacementPld(BatchAccountant):
    """Subsampled Gaussian releases by the profile that no single release exceeds."""

    name: ClassVar[str] = "wor-pld"
    version: ClassVar[str] = "2"
    handles: ClassVar[tuple[type[Release], ...]] = (SubsampledGaussianRelease,)
    beside: ClassVar[tuple[type[Release], ...]] = (GaussianRelease, BarkerRelease)
