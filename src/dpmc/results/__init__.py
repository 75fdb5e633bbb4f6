"""Results of runs, in memory or in files: read, summarised, and what they spent together."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.common.draws import loaded
from dpmc.common.errors import DpmcError
from dpmc.data.chain_files import ResultOrFile, read_chain
from dpmc.releases import files

if TYPE_CHECKING:
    import xarray


def as_tree(run: ResultOrFile) -> "xarray.DataTree":
    """Return a run as a tree in memory; a file is read and checked: a chain file or a release."""
    if not isinstance(run, str | Path):
        return loaded(run)
    tree = files.read(run, lab=True)
    if files.mode_of(tree) != "release":
        read_chain(run)
    elif problems := files.check(tree):
        raise DpmcError(f"{run}: {problems[0]}")
    return tree
