"""Results of runs, in memory or in files: read, compared, summarised, and what they spent together."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc.common import checks
from dpmc.common.draws import loaded
from dpmc.common.errors import DpmcError
from dpmc.data.chain_files import ResultOrFile, read_chain
from dpmc.releases import files

if TYPE_CHECKING:
    import xarray

POSTERIOR = "posterior"  #: mode of draws from answers (`dpmc.posterior`), which are no run
SAME = ("model", "model_id", "dataset", "n", "temperature")  #: attributes that all runs have in common


def as_tree(run: ResultOrFile) -> "xarray.DataTree":
    """Return a run as a tree in memory; a file is read and checked: a chain file or a release."""
    if not isinstance(run, str | Path):
        return loaded(run)
    tree = files.read(run, lab=True)
    if files.mode_of(tree) == POSTERIOR:
        return loaded(tree)
    if files.mode_of(tree) != "release":
        read_chain(run)
    elif problems := files.check(tree):
        raise DpmcError(f"{run}: {problems[0]}")
    return tree


def require_alike(trees: "Sequence[xarray.DataTree]", who: str, *, any_prior: bool = False) -> None:
    """Raise DpmcError, beginning with `who`, unless runs have one model (of `any_prior`) and one table."""
    if not trees:
        raise DpmcError(f"{who}: needs runs")
    keys = (*SAME, "parameters", "description", "ledger of the rows")
    for key, *values in zip(keys, *(_alike(tree, any_prior) for tree in trees), strict=True):
        if len(different := dict.fromkeys(values)) > 1:
            raise DpmcError(f"{who}: {key} must be the same in all runs, is {', '.join(different)}")


def _alike(tree: "xarray.DataTree", any_prior: bool) -> list[str]:
    """Return what runs must have in common, as texts: `SAME`, parameters, and of releases the ledger.

    Of the call that makes a regression the parts that only simulated rows depend on are left out.
    """
    about: dict[Any, Any] = tree.attrs
    ledger = json.loads(str(about["data_ledger"]))["ledger"] if "data_ledger" in about else ""
    labels = tree["posterior"].dataset["parameter"].values.tolist()
    text = str(about.get("description"))
    name, arguments, named = checks.call(text) if checks.is_description(text) else ("", [], {})
    free = {"true_theta", "binary", *(["prior_sd"] if any_prior else [])}
    call = name, arguments, {key: value for key, value in named.items() if key not in free}
    return [*(str(about.get(key)) for key in SAME), str(labels), str(call), str(ledger)]
