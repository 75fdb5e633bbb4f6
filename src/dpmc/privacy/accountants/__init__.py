"""Accountants: from queries to (epsilon, delta), and from a budget to a number of iterations.

`base.Accountant` is their base. A new accountant is a subclass in its own module, listed here. A *preset*
selects an accountant by the kinds of queries (`resolve`).
"""

from collections.abc import Iterable

from dpmc.common.errors import DpmcError
from dpmc.privacy.accountants.base import ACCOUNTANTS as ACCOUNTANTS
from dpmc.privacy.accountants.base import Accountant as Accountant
from dpmc.privacy.accountants.base import checked_delta as checked_delta
from dpmc.privacy.accountants.base import checked_epsilon as checked_epsilon
from dpmc.privacy.accountants.basic import BasicComposition
from dpmc.privacy.accountants.gaussian import GaussianDp, ZeroConcentrated
from dpmc.privacy.accountants.loss_distribution import (
    BarkerPld,
    FastMetropolisPld,
    ReplacePld,
    WithoutReplacementPld,
)
from dpmc.privacy.accountants.rdp import RenyiDivergence
from dpmc.privacy.events import (
    ApproximateQuery,
    BarkerQuery,
    FastMetropolisQuery,
    GaussianQuery,
    NonPrivateQuery,
    Query,
    SubsampledGaussianQuery,
)

_KINDS = (
    BasicComposition,
    GaussianDp,
    ZeroConcentrated,
    RenyiDivergence,
    ReplacePld,
    WithoutReplacementPld,
    BarkerPld,
)
ACCOUNTANTS.update({kind.name: kind() for kind in (*_KINDS, FastMetropolisPld)})

# In this order `resolve` looks for kinds: accountants of batches bound Gaussian queries too, not vice versa.
_IN_ORDER = FastMetropolisQuery, BarkerQuery, SubsampledGaussianQuery, GaussianQuery, ApproximateQuery
PRESETS: dict[str, dict[type[Query], str]] = {
    "thesis": dict(zip(_IN_ORDER, "fast-mh-pld rdp replace-pld tight basic".split(), strict=True)),
    "tight": dict(zip(_IN_ORDER, "fast-mh-pld barker-pld wor-pld tight basic".split(), strict=True)),
}
"""Preset -> kind of query -> accountant: those of the thesis, and the tightest of dpmc.

The thesis has no DP-Fast MH; both presets use its only accountant. Studies and chain files have two things
called "tight": this preset, and the accountant of Gaussian queries (`gaussian.GaussianDp`), which it selects
for them. Wherever a preset may stand, "tight" is the preset; in ledgers and in columns of tables it is the
accountant.
"""


def get(name: str) -> Accountant:
    """Return the accountant of this name, no preset; raise DpmcError for an unknown name."""
    if not isinstance(name, str) or name not in ACCOUNTANTS:
        raise DpmcError(f"accountant = {name!r}: must be one of {', '.join(ACCOUNTANTS)}")
    return ACCOUNTANTS[name]


def resolve(name: str, events: Iterable[Query]) -> Accountant:
    """Return the accountant that a preset or an accountant's name selects for these queries.

    A preset selects the accountant of the first kind in its list that occurs among the events and whose
    accountant can bound them all. So "tight" is the exact Gaussian accountant for Gaussian queries,
    `wor-pld` for those on batches, `barker-pld` for Barker tests. An accountant's name selects that one.

    Raises DpmcError for an unknown name, and if the accountant cannot bound the events.
    """
    private = [event for event in events if not isinstance(event, NonPrivateQuery)]
    if name in ACCOUNTANTS and name not in PRESETS:
        ACCOUNTANTS[name].check(private)
        return ACCOUNTANTS[name]
    if name not in PRESETS:
        raise DpmcError(f"accountant = {name!r}: must be one of {', '.join(sorted(names()))}")
    preset = PRESETS[name]
    if not private:  # every accountant then gives 0, or infinity
        return ACCOUNTANTS[preset[GaussianQuery]]
    for kind, chosen in preset.items():
        if any(isinstance(event, kind) for event in private) and ACCOUNTANTS[chosen].can_bound(private):
            return ACCOUNTANTS[chosen]
    able = [accountant.name for accountant in ACCOUNTANTS.values() if accountant.can_bound(private)]
    raise DpmcError(
        f"accountant = {name!r}: the preset's choice cannot bound these queries together "
        f"({', '.join(sorted({type(event).__name__ for event in private}))}); "
        f"accountants that can: {', '.join(able) or 'none'}"
    )


def versions(name: str, events: Iterable[Query] | None = None) -> dict[str, str]:
    """Return name -> version of the accountant that `resolve` selects; all that it may select for no events.

    A result that depends on an accountant is made anew when this changes. Raises DpmcError as `resolve` does.
    """
    possible = PRESETS[name].values() if name in PRESETS else [name]
    chosen = map(get, possible) if events is None else [resolve(name, events)]
    return {accountant.name: accountant.version for accountant in chosen}


def names() -> set[str]:
    """Return the names that `resolve` accepts: accountants and presets."""
    return set(ACCOUNTANTS) | set(PRESETS)
