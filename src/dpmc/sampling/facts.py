"""What each role yields: `python -m dpmc.sampling.facts` prints the facts of a run by what is made of them."""

from dpmc.common.roles import PUBLIC, Role, checks
from dpmc.data.problem import Problem
from dpmc.sampling.cell import Cell, Given
from dpmc.sampling.release import ReleaseLoop
from dpmc.sampling.run import Run

DECLARED = (Problem, Cell, Given, Run, ReleaseLoop)  #: all classes whose facts are those of a run
MADE = {
    "a digest of the run, which keys random numbers on own rows": Role.DRAWS,
    "names of unfinished files, and what a resumed release must equal": PUBLIC,
    "attributes of a chain file": Role.FILE,
    "attributes of a release": Role.RELEASE,
    "facts of a release in its entry in the ledger of the data set": Role.ENTRY,
    "in nothing that is released": Role.PRIVATE,
}


def names(role: Role) -> list[str]:
    """Return the names of all facts of a run with a role."""
    return [name for cls in DECLARED for name in checks(cls, role)]


if __name__ == "__main__":
    for made, role in MADE.items():
        print(f"{made}:\n    {', '.join(names(role))}")
