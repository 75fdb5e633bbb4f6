"""DP Barker's tests by a loss distribution, in place of the Rényi bound of Theorem 3.3.

What a test releases about its batch is a normal variable whose mean and variance both depend on the
batch. The largest curve of such a pair of normals is known in closed form (`profiles.BarkerTest`);
sampling without replacement then amplifies it as it does a Gaussian release. Proof:
docs/accounting.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmc.privacy.accountants.pld import BatchAccountant
from dpmc.privacy.events import BarkerRelease, GaussianRelease, Release, SubsampledGaussianRelease


@dataclass(frozen=True)
class BarkerPld(BatchAccountant):
    """Barker tests by the symmetric profile of their worst batch."""

    name: ClassVar[str] = "barker-pld"
    version: ClassVar[str] = "2"
    handles: ClassVar[tuple[type[Release], ...]] = (BarkerRelease,)
    beside: ClassVar[tuple[type[Release], ...]] = (GaussianRelease, SubsampledGaussianRelease)
