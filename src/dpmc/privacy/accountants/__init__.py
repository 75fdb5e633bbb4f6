"""Accountants: from releases to (epsilon, delta), and from a budget to a number of iterations.

`base.Accountant` is what all share. A new one is a subclass in a module of its own, listed here. A *preset*
chooses among them by the kind of releases (`resolve`).
"""

from __future__ import annotations

from collections.abc import Iterable

from dpmc.errors import DpmcError
from dpmc.privacy.accountants.base import ACCOUNTANTS, Accountant, checked_delta, checked_epsilon
from dpmc.privacy.accountants.loss_distribution import (
    BarkerPld,
    FastMetropolisPld,
    ReplacePld,
    WithoutReplacementPld,
)
from dpmc.privacy.accountants.rdp import RenyiDivergence
from dpmc.privacy.accountants.tight import TightGaussian
from dpmc.privacy.accountants.zcdp import ZeroConcentrated
from dpmc.privacy.events import (
    BarkerRelease,
    FastMetropolisRelease,
    GaussianRelease,
    NonPrivateRelease,
    Release,
    SubsampledGaussianRelease,
)

__all__ = [
    "ACCOUNTANTS",
    "PRESETS",
    "Accountant",
    "checked_delta",
    "checked_epsilon",
    "get",
    "names",
    "resolve",
]

for _accountant in (
    TightGaussian(),
    ZeroConcentrated(),
    RenyiDivergence(),
    ReplacePld(),
    WithoutReplacementPld(),
    BarkerPld(),
    FastMetropolisPld(),
):
    ACCOUNTANTS[_accountant.name] = _accountant

PRESETS: dict[str, dict[type[Release], str]] = {
    "thesis": {
        FastMetropolisRelease: "fast-mh-pld",
        BarkerRelease: "rdp",
        SubsampledGaussianRelease: "replace-pld",
        GaussianRelease: "tight",
    },
    "tight": {
        FastMetropolisRelease: "fast-mh-pld",
        BarkerRelease: "barker-pld",
        SubsampledGaussianRelease: "wor-pld",
        GaussianRelease: "tight",
    },
}
"""Preset -> kind of release -> accountant: what the thesis used, and the best that we have.

The thesis has no DP-Fast MH; both presets take its only accountant.
"""


def get(name: str) -> Accountant:
    """The accountant of this name; DpmcError names the known ones.

    "tight" is the exact accountant of Gaussian releases; `resolve` reads it as a preset.
    """
    if not isinstance(name, str) or name not in ACCOUNTANTS:
        raise DpmcError(f"accountant = {name!r}: must be one of {', '.join(ACCOUNTANTS)}")
    return ACCOUNTANTS[name]


def resolve(name: str, events: Iterable[Release]) -> Accountant:
    """The accountant that a preset or an accountant's name means for these releases.

    A preset takes the accountant of the first kind in its list that occurs among the events and
    whose accountant can bound them all: so "tight" is the exact Gaussian accountant for Gaussian
    releases, `wor-pld` for a batch's, `barker-pld` for Barker tests. An accountant's own name is
    that accountant.

    Raises DpmcError for an unknown name, and if the accountant cannot bound the events.
    """
    private = [event for event in events if not isinstance(event, NonPrivateRelease)]
    if name not in PRESETS:
        if name not in ACCOUNTANTS:
            raise DpmcError(f"accountant = {name!r}: must be one of {', '.join(sorted(names()))}")
        ACCOUNTANTS[name].check(private)
        return ACCOUNTANTS[name]
    preset = PRESETS[name]
    if not private:
        return ACCOUNTANTS[preset[GaussianRelease]]
    for kind, chosen in preset.items():
        if any(isinstance(event, kind) for event in private) and ACCOUNTANTS[chosen].can_bound(private):
            return ACCOUNTANTS[chosen]
    able = [accountant.name for accountant in ACCOUNTANTS.values() if accountant.can_bound(private)]
    raise DpmcError(
        f"accountant = {name!r}: the preset's choice cannot bound these releases together "
        f"({', '.join(sorted({type(event).__name__ for event in private}))}); "
        f"accountants that can: {', '.join(able) or 'none'}"
    )


def names() -> set[str]:
    """All that `resolve` understands: accountants and presets."""
    return set(ACCOUNTANTS) | set(PRESETS)
