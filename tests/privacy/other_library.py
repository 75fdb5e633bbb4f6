"""Releases as events of dp-accounting, the independent accountant of these tests."""

from collections.abc import Iterable

import dp_accounting

from dpmc.common.errors import DpmcError
from dpmc.privacy.events import GaussianRelease, NonPrivateRelease, Release, SubsampledGaussianRelease


def to_dp_accounting(events: Iterable[Release]) -> dp_accounting.DpEvent:
    """The same composition as a dp-accounting event, for cross-checks with that library.

    Multipliers are passed on as sd / sensitivity; such an event has no neighbour relation (a
    Gaussian release on all rows, divided by its sensitivity, has the same loss under each). A
    Gaussian release on a batch becomes one sampled without replacement; dp-accounting bounds it
    under replace-one only (`RdpAccountant`), and reads its multiplier as sd / replace sensitivity.
    Raises DpmcError for a kind of release that has no counterpart there (a Barker test: its noise
    depends on the batch; a bit of DP-Fast MH: it comes from one of four tests).
    """

    def counterpart(event: Release) -> dp_accounting.DpEvent:
        if isinstance(event, GaussianRelease):
            return dp_accounting.GaussianDpEvent(event.noise_multiplier)
        if isinstance(event, NonPrivateRelease):
            return dp_accounting.NonPrivateDpEvent()
        if isinstance(event, SubsampledGaussianRelease):
            noise = dp_accounting.GaussianDpEvent(event.noise_multiplier)
            return dp_accounting.SampledWithoutReplacementDpEvent(event.n, event.batch_size, noise)
        raise DpmcError(f"release {event.name!r}: a {type(event).__name__} has no dp-accounting counterpart")

    return dp_accounting.ComposedDpEvent(
        [dp_accounting.SelfComposedDpEvent(counterpart(event), event.count) for event in events]
    )
