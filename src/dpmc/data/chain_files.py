"""Chain files: ArviZ's groups in NetCDF, written and read by xarray.

`posterior/theta` (chain, draw, parameter), draw = iteration number. `constant_data/theta_0`: the start.
`sample_stats` (chain, draw): functions of the chain, and public facts of its tests if the number of rows is
random. `private_diagnostics` (chain, draw): exact functions of the rows, marked releasable = 0. The root and
every group have attributes; nested ones are JSON text. A file does not depend on when or where it was made.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.files import reading, values_of, write_netcdf
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import count, real, shown
from dpmc.common.version import __version__

if TYPE_CHECKING:
    import xarray

SCHEMA = 2  #: of files written
SCHEMAS = (1, 2)  #: of files read; schema 1 numbers each seed's chains from 0 and counts diverged proposals
CLIPPED = ("ratio_clipped", "gradient_clipped")  #: rows clipped: exact functions of the rows
#: Further counts of algorithms that use a random number of rows: rows used, tests with noise, on all rows.
RANDOM_ROWS = ("rows_used", "noise_drawn", "all_rows")
#: All counts. `accepted`: proposals accepted. `diverging`: proposals not finite or beyond 1e30.
COUNTERS = ("accepted", "diverging", *CLIPPED, *RANDOM_ROWS)


ResultOrFile: TypeAlias = "xarray.DataTree | str | Path"  #: of `dpmc.sample` or `dpmc.release`
#: Name, dimensions, arrays and attributes of a group.
Group: TypeAlias = tuple[str, tuple[str, ...], Mapping[str, np.ndarray], Mapping[str, Any]]
AnswerArrays: TypeAlias = Mapping[str, tuple[tuple[str, ...], np.ndarray]]  #: arrays by name, with dimensions


@dataclass
class Chains:
    """The chains of one run, finished or read from a file; c chains, k kept draws, d parameters.

    `counts`: by the names of COUNTERS, since the previous kept draw; of a file only `rows_used`, if recorded.
    `totals`: the same summed over all iterations, also after the last kept draw; RANDOM_ROWS if recorded.
    """

    attrs: dict[str, Any]
    start: np.ndarray  # (c, d) θ_0
    draws: np.ndarray  # (c, k, d)
    totals: dict[str, np.ndarray]  # each (c,)
    counts: dict[str, np.ndarray]  # each (c, k)
    parameters: tuple[str, ...] = ()  # names of the d parameters; () if they have none
    #: What was asked and answered, by name, with dimensions; of methods that ask once. Not read from files.
    answer: AnswerArrays = field(default_factory=dict)
    remarks: Sequence[str] = ()  # on the answer; not in files


def tree(chains: Chains) -> "xarray.DataTree":
    """Return chains in ArviZ's groups, as in a file; chain numbers differ between seeds, to join these."""
    (c, k, d), thin = chains.draws.shape, chains.attrs["thin"]
    labels = {
        "chain": chains.attrs["seed"] * c + np.arange(c),
        "draw": thin * np.arange(1, k + 1),
        "parameter": np.array(chains.parameters or range(d)),
    }
    statistics = {
        "acceptance_rate": chains.counts["accepted"] / thin,
        "diverging": chains.counts["diverging"] > 0,
        **{name: chains.counts[name] for name in RANDOM_ROWS if name in chains.counts},
    }
    clipped = {name: chains.counts[name] for name in CLIPPED}
    totals = {f"{name}_total": total for name, total in chains.totals.items()}
    # Totals of clipped rows are functions of the rows like the counts, and go with them.
    private = {"releasable": 0} | {f"{name}_total": totals.pop(f"{name}_total") for name in CLIPPED}
    along = ("chain", "draw")
    root = {**chains.attrs, "schema": SCHEMA, "dpmc_version": __version__}
    # Where the draws are shown without the root's attributes, as by ArviZ.
    temperature = chains.attrs.get("temperature", 1.0)
    note = (
        f"likelihood to the power {temperature:.4g}: wider than the posterior of all rows; see dpmc.summary"
    )
    tempered = {"temperature": temperature} | ({"tempered": note} if temperature < 1.0 else {})
    groups: list[Group] = [
        ("posterior", (*along, "parameter"), {"theta": chains.draws}, tempered),
        ("sample_stats", along, statistics, totals),
        ("private_diagnostics", along, clipped, private),
        ("constant_data", ("chain", "parameter"), {"theta_0": chains.start}, {}),
    ]
    return grouped(root, labels, groups, chains.answer)


def grouped(
    root: Mapping[str, Any], labels: Mapping[str, np.ndarray], groups: Sequence[Group], answer: AnswerArrays
) -> "xarray.DataTree":
    """Return a tree of groups whose dimensions are labelled, with an answer if there is one."""
    import xarray

    library = {"inference_library": "dpmc", "inference_library_version": __version__}
    made = {"/": xarray.Dataset(attrs=root)}
    for name, dims, arrays, attributes in groups:
        variables = {key: (dims, values) for key, values in arrays.items()}
        coords = {dim: labels[dim] for dim in dims}
        made[f"/{name}"] = xarray.Dataset(variables, coords, {**library, **attributes})
    if answer:
        made["/answer"] = xarray.Dataset(dict(answer), attrs=library)
    return xarray.DataTree.from_dict(made)


def write_chains(path: Path, chains: Chains) -> None:
    """Write one chain file, with large arrays compressed, except draws: that would take longer than all else.

    Counts shrink to a tenth or less, draws only to a half or a fifth.
    """
    content = tree(chains)
    # Otherwise xarray would declare NaN to be a missing value.
    small = {"_FillValue": None}
    large = {**small, "zlib": True, "complevel": 1, "shuffle": True}
    encoding = {
        group.path: {
            name: large if variable.size > 10_000 and name != "theta" else small
            for name, variable in group.variables.items()
        }
        for group in content.children.values()
    }
    write_netcdf(path, content, encoding)


def read_chain(path: str | Path) -> Chains:
    """Read the chains of one run; raise DpmcError for a file that is missing, damaged or no chain file."""
    with reading(path) as file:
        check_schema(path, file.attrs)
        chains = chains_of(file)
        _check(chains)  # here, so that `reading` names the file
    return chains


def chains_of(tree: "xarray.DataTree") -> Chains:
    """Return the chains of a chain file's or checked release's tree; KeyError or TypeError for another."""
    attrs = {str(k): v.item() if isinstance(v, np.generic) else v for k, v in tree.attrs.items()}
    groups = tree.children
    stats = groups["sample_stats"]
    random_rows = "rows_used" in stats.variables
    names = [name for name in COUNTERS if random_rows or name not in RANDOM_ROWS]
    if attrs.get("mode") == "release":
        names = [name for name in names if name not in CLIPPED and f"{name}_total" in stats.attrs]
        asked = [event["name"] for event in json.loads(attrs["ledger"])["performed"]]
        attrs["is_tested"] = "/answer" not in tree.groups and any("gradient" not in name for name in asked)
    of = {name: groups["private_diagnostics"] if name in CLIPPED else stats for name in names}
    labels = groups["posterior"].variables["parameter"].values.tolist()
    return Chains(
        attrs=attrs,
        start=values_of(groups["constant_data"], "theta_0"),
        draws=values_of(groups["posterior"], "theta"),
        totals={name: np.atleast_1d(group.attrs[f"{name}_total"]) for name, group in of.items()},
        counts={"rows_used": values_of(stats, "rows_used")} if random_rows else {},
        parameters=tuple(labels) if all(isinstance(label, str) for label in labels) else (),
    )


def check_schema(path: str | Path, attributes: Mapping[Any, Any]) -> None:
    """Raise DpmcError for a file with a schema that this version cannot read."""
    if (schema := attributes["schema"]) not in SCHEMAS:
        raise DpmcError(f"{path}: schema: {schema} must be 1 or 2; make the file anew")


def _check(chains: Chains) -> None:
    """Raise KeyError, TypeError or ValueError for attributes and counts that are damaged or do not fit."""
    attrs = chains.attrs
    for key, check in CHECKS.items():
        if key in OPTIONAL_ATTRIBUTES and str(attrs.get(key, "inf")) == "inf":
            continue
        value = attrs[key]  # a KeyError names what is missing
        try:
            check(value)
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"{key}: is damaged: {error}") from None
    if chains.draws.ndim != 3:
        raise ValueError(f"theta: {chains.draws.shape} must be of chains, draws and parameters")
    c, _, d = chains.draws.shape
    kept = attrs["iterations"] // attrs.get("thin", 1)
    shapes = {"theta": (chains.draws, (c, kept, d)), "theta_0": (chains.start, (c, d))}
    shapes |= {name: (values, (c, kept)) for name, values in chains.counts.items()}
    for key, (values, shape) in shapes.items():
        if values.shape != shape:
            raise ValueError(f"{key}: {values.shape} must be {shape}, after {attrs['iterations']} iterations")
    for key, totals in chains.totals.items():
        if totals.dtype.kind not in "iu" or totals.shape != (c,) or (totals < 0).any():
            raise ValueError(f"{key}_total: {shown(totals.tolist())} must be counts, one for each chain")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{shown(value)} must be a text")
    return value


def _check_ledger(text: str) -> None:
    """Raise an error if a part of the ledger that is read later is missing or wrong."""
    from dpmc.privacy.events import from_json

    ledger = json.loads(text)
    from_json([*ledger["performed"], *ledger["forfeited"]])
    for name in (ledger["accountant"]["name"], ledger["accountant"]["version"]):
        if not isinstance(name, str | int):
            raise TypeError(f"accountant: {shown(name)} must be a text")
    for place in (ledger["budget"], "delta" in ledger and ledger):
        if place and not (0.0 < real(place["delta"]) < 1.0 and real(ledger["epsilon_spent"]) >= 0.0):
            raise ValueError("delta must be in (0, 1), and epsilon_spent at least 0")


_from_0, _from_1 = (partial(count, least=least, most=2**63) for least in (0, 1))
#: Attributes that metrics and figures read, each with what raises an error for a wrong value.
CHECKS: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(("study", "model", "method", "dataset", "status"), _text),
    "epsilon": lambda value: canonical_epsilon(_text(value)),
    **dict.fromkeys(("seed", "iterations", "budget_iterations"), _from_0),
    **dict.fromkeys(("ratio_evaluations_per_iteration", "gradient_evaluations_per_iteration"), _from_0),
    **dict.fromkeys(("n", "rows_per_evaluation", "thin", "chains", "dimension"), _from_1),
    "ledger": _check_ledger,
}
#: Of them, those that are checked only if they are there and finite: without a budget it allows "inf".
OPTIONAL_ATTRIBUTES = ("thin", "chains", "dimension", "budget_iterations")
