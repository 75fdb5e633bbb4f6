"""The facts of a run by role: what is made of them, where they stand, and what checks them in a release.

`python -m dpmc.releases.facts` prints what each role yields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpmc.common import checks
from dpmc.common.roles import PUBLIC, Role, declared, fact
from dpmc.common.roles import checks as checks_of
from dpmc.data.problem import Problem
from dpmc.privacy.runs import RunQueries
from dpmc.privacy.secure_noise import EXACT, VERSIONS
from dpmc.sampling.cell import Cell, Given
from dpmc.sampling.run import Run

BLOCKS = 200  #: of a run of so many iterations, at least: a kill loses at most a two-hundredth of them
SPARE = 5  #: blocks that a run with an output pays for besides, whether it is killed or not
OPENDP = checks.text(VERSIONS, f"{EXACT}*, whose noise is exact")


@declared
@dataclass(frozen=True)
class Published:
    """What a release says besides its cell and its run."""

    forfeited: int = fact(Role.RELEASE, check=checks.whole(0))
    """Spare iterations of each chain: paid for, and left out whether a kill took them or not."""
    opendp_version: str = fact(Role.RELEASE, check=OPENDP)  # of the library that drew the noise
    data_ledger: Mapping[str, Any] = fact(Role.RELEASE, check=checks.mapping)
    """The run's entry in the ledger of the data set."""


DECLARED = (Problem, Cell, Given, Run, Published)  #: all classes whose facts are those of a run
MADE = {
    "digest of a run, which keys random numbers on own rows": Role.DRAWS,
    "names of unfinished files, and what a resumed release must equal": PUBLIC,
    "attributes of a chain file": Role.FILE,
    "attributes of a release": Role.RELEASE,
    "facts of a release in its entry in the ledger of the data set": Role.ENTRY,
    "in nothing that is released": Role.PRIVATE,
}


def block_of(made: int) -> int:
    """Return how many of a run's iterations are reserved and computed together."""
    return max(1, made // BLOCKS)


def spare_of(made: int, run: RunQueries) -> int:
    """Return the spare iterations of a run that is resumed after kills; 0 if iterations have no queries."""
    # A kill loses a block, and the queries before the first iteration: at most one more.
    return SPARE * (block_of(made) + bool(run.once)) if run.each else 0


def named(role: Role) -> dict[str, checks.Check]:
    """Return the name of each fact of a run with a role, and what checks it in a release."""
    return {name: check or refused for cls in DECLARED for name, check in checks_of(cls, role).items()}


def in_both(one: Role, other: Role) -> list[str]:
    """Return the names of the facts that have both roles."""
    both = (checks_of(cls, one).keys() & checks_of(cls, other).keys() for cls in DECLARED)
    return sorted(name for names in both for name in names)


def refused(value: object) -> None:
    """Refuse any value of a fact that no release has."""
    raise ValueError("not allowed")


if __name__ == "__main__":
    for made, role in MADE.items():
        print(f"{made}:\n    {', '.join(named(role))}")
