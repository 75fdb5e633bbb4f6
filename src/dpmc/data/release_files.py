"""Release files: NetCDF that may be published, held against a list of all that they may contain.

The groups are those of chain files, without `private_diagnostics`. What they may contain is a release, a
function of releases, or public. The list is closed: what it does not name is a problem.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.files import reading, write_netcdf
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import count, real, shown
from dpmc.data import release_books
from dpmc.privacy.data_ledger import is_entry
from dpmc.privacy.secure_noise import EXACT

if TYPE_CHECKING:
    import xarray

LAB = "mode: lab: it is reproducible from its seed, so it cannot become a release"


#: Attributes by name, each with what raises an error for a wrong value.
Checks = Mapping[str, Callable[[Any], object]]


def _name(value: object) -> None:
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not value.isprintable():
        raise ValueError(f"must be a name of at most {LONGEST_NAME} printable characters")


def _description(value: object) -> None:
    if not is_description(value):
        raise ValueError(f"must be at most {LONGEST_DESCRIPTION} printable characters")


def is_description(value: object) -> bool:
    """Return whether a value may stand in a release as the description of its model."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_DESCRIPTION and value.isprintable()


def _version(value: object) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9A-Za-z.+!-]{1,40}", value):
        raise ValueError("must be a version")


def _opendp(value: object) -> None:
    _version(value)
    if not str(value).startswith(EXACT):
        raise ValueError(f"must be {EXACT}*, whose noise is exact")


def _dpmc(value: object) -> None:
    if value != "dpmc":
        raise ValueError("must be dpmc")


def _object(value: str) -> dict[str, Any]:
    content = json.loads(value)
    if not isinstance(content, dict):
        raise TypeError("must be a JSON object")
    return content


def _sorted_object(value: str) -> None:
    """Raise ValueError unless a text is the one that is written for its content, with each key once."""
    if json.dumps(_object(value), sort_keys=True) != value:
        raise ValueError("must be JSON with sorted keys, each of them once, as dpmc writes it")


#: Parts of the ledger of a run: `Ledger.to_json`, and the prices of what is not exact.
LEDGER = {"mode", "neighbours", "accountant", "budget", "delta", "reserved", "performed", "forfeited"}
LEDGER |= {"foreseen", "epsilon_spent", "mu", "prices"}


def _ledger(value: str) -> None:
    if unknown := _object(value).keys() - LEDGER:
        raise ValueError(f"{', '.join(sorted(unknown))}: not allowed")


LONGEST_NAME = 200  #: characters of a name of a model
LONGEST_DESCRIPTION = 20_000  #: characters of the call that makes a model, which has names of levels
#: Facts of a run in its entry, those that attributes of the root repeat, and others.
REPEATED = ("accountant", "chains", "hyperparameters", "method", "n", "temperature", "thin")
FACTS = {*REPEATED, "model", "model_values", "columns", "iterations", "start", "run"}
HEXADECIMAL = ("id", "ledger", "previous", "model_values", "start", "run")  #: parts of an entry, or facts


def _entry(value: str) -> None:
    entry = _object(value)
    if not is_entry(entry):
        raise ValueError("is not an entry of a ledger of a data set, or was changed")
    if unknown := entry["about"].keys() - FACTS:
        raise ValueError(f"about: {', '.join(sorted(unknown))}: not allowed")
    if missing := FACTS - entry["about"].keys():
        raise ValueError(f"about: {', '.join(sorted(missing))}: missing")
    about = entry["about"]
    _name(about["model"])
    for key, number in (("number", entry["number"]), ("columns", about["columns"])):
        if type(number) is not int or number < 1:
            raise ValueError(f"{key}: must be a whole number, at least 1")
    for key, digits in ((key, {**about, **entry}[key]) for key in HEXADECIMAL):
        if not isinstance(digits, str) or not re.fullmatch("[0-9a-f]{2,64}", digits):
            raise ValueError(f"{key}: must be 2 to 64 hexadecimal digits")
    _sorted_object(value)


def _release(value: object) -> None:
    if value != "release":
        raise ValueError("must be release")


def _totals(value: Any) -> None:
    if any(count(total, 0) < 0 for total in np.atleast_1d(value)) or np.ndim(value) > 1:
        raise ValueError("must be counts, one for each chain")


def _positive(value: object) -> None:
    if not 0.0 < real(value) < math.inf:
        raise ValueError("must be greater than 0 and finite")


def _from(least: int) -> Callable[[Any], object]:
    return lambda value: count(value, least)


ROOT: Checks = {
    "mode": _release,
    **dict.fromkeys(("model", "method", "accountant"), _name),
    "description": _description,
    "dpmc_version": _version,
    "opendp_version": _opendp,
    "epsilon": canonical_epsilon,
    **dict.fromkeys(("delta", "temperature"), _positive),
    **dict.fromkeys(("n", "dimension", "chains", "thin"), _from(1)),
    **dict.fromkeys(("iterations", "forfeited"), _from(0)),
    "schema": _from(1),
    "hyperparameters": _sorted_object,
    "ledger": _ledger,
    "data_ledger": _entry,
}
LIBRARY: Checks = {"inference_library": _dpmc, "inference_library_version": _version}
TOTALS: Checks = dict.fromkeys(("accepted_total", "diverging_total"), _totals)
#: Variables of a release: dimensions, and kinds of dtype as NumPy's letters.
VARIABLES = {
    "theta": (("chain", "draw", "parameter"), "f"),
    "theta_0": (("chain", "parameter"), "f"),
    "acceptance_rate": (("chain", "draw"), "f"),
    "diverging": (("chain", "draw"), "b"),
    "chain": (("chain",), "i"),
    "draw": (("draw",), "i"),
    "parameter": (("parameter",), "iUO"),
}
#: All that a release may contain: variables and attributes, by path of the group.
ALLOWED: dict[str, tuple[tuple[str, ...], Checks]] = {
    "/": ((), ROOT),
    "/posterior": (("theta", "chain", "draw", "parameter"), LIBRARY),
    "/sample_stats": (("acceptance_rate", "diverging", "chain", "draw"), {**LIBRARY, **TOTALS}),
    "/constant_data": (("theta_0", "chain", "parameter"), LIBRARY),
}
#: Of that, what a release may lack.
OPTIONAL = {"description", "diverging", *TOTALS, *LIBRARY}


def check(tree: "xarray.DataTree") -> list[str]:
    """Return what keeps a tree from being a release, one text each; [] if nothing does."""
    if tree.attrs.get("mode") == "lab":
        return [LAB]
    groups = {group.path: group for group in tree.subtree}
    problems = [f"{path}: group is not allowed" for path in groups if path not in ALLOWED]
    problems += [f"{path}: group is missing" for path in ALLOWED if path not in groups]
    for path, group in groups.items():
        if path in ALLOWED:
            problems += [f"{path}: {text}" for text in _of_group(group, *ALLOWED[path])]
    return problems or _inconsistent(tree)


def _of_group(group: "xarray.DataTree", names: tuple[str, ...], checks: Checks) -> list[str]:
    """Return the problems of one group by itself: names, dimensions, types, attributes."""
    variables = dict(group.to_dataset(inherit=False).variables)
    present = {*map(str, variables), *map(str, group.attrs)}
    problems = [f"{name} is missing" for name in sorted({*names, *checks} - OPTIONAL - present)]
    for name, variable in variables.items():
        dims, kinds = VARIABLES.get(str(name), ((), ""))
        if name not in names:
            problems.append(f"variable {shown(name)} is not allowed")
        elif variable.dims != dims or variable.dtype.kind not in kinds:
            problems.append(f"{name}: {variable.dims} of {variable.dtype} must be {dims} of kind {kinds}")
        elif "O" == variable.dtype.kind and not all(isinstance(label, str) for label in variable.values):
            problems.append(f"{name}: labels must be texts")
        problems += [f"{name}: attribute {shown(key)} is not allowed" for key in variable.attrs]
    for key, value in ((str(key), value) for key, value in group.attrs.items()):
        if key not in checks:
            problems.append(f"attribute {shown(key)} is not allowed")
            continue
        try:
            checks[key](value)
        except (TypeError, ValueError, RecursionError, DpmcError) as error:
            problems.append(f"attribute {key}: {shown(value)}: {error}")
    # NetCDF has no dimension of size 0 but an unlimited one: of a release whose draws are all forfeited.
    empty = {"draw"} if group.to_dataset(inherit=False).sizes.get("draw") == 0 else set()
    if unlimited := set(group.encoding.get("unlimited_dims", ())) - empty:
        problems.append(f"unlimited dimensions: {', '.join(sorted(unlimited))}")
    return problems


def _inconsistent(tree: "xarray.DataTree") -> list[str]:
    """Return what does not fit together in a tree whose parts are right by themselves."""
    attrs, problems = tree.attrs, []
    c, thin, d = (int(attrs[name]) for name in ("chains", "thin", "dimension"))
    k = int(attrs["iterations"]) // thin
    groups = {name: tree[name].to_dataset() for name in ("posterior", "sample_stats", "constant_data")}
    axes = {"chain": np.arange(c), "draw": thin * np.arange(1, k + 1)}
    for path, group in groups.items():
        for name, wanted in {"chain": c, "draw": k, "parameter": d}.items():
            if group.sizes.get(name, wanted) != wanted:
                problems.append(f"/{path}: {name}: {group.sizes[name]} must be {wanted}, by the attributes")
            elif name in axes and name in group and not np.array_equal(group[name].values, axes[name]):
                problems.append(f"/{path}: {name}: labels must be numbers of chains, or of iterations")
    labels = [groups[name]["parameter"].values.tolist() for name in ("posterior", "constant_data")]
    if labels[0] != labels[1] or (
        groups["posterior"]["parameter"].dtype.kind == "i" and labels[0] != [*range(d)]
    ):
        problems.append("/posterior: parameter: labels must be names, or 0, 1, …, as in /constant_data")
    accepted = groups["sample_stats"]["acceptance_rate"].values * thin
    if (
        not (np.abs(accepted - accepted.round()) < 1e-6).all()
        or not ((accepted >= 0) & (accepted <= thin)).all()
    ):
        problems.append(f"/sample_stats: acceptance_rate: must be counts from 0 to {thin}, divided by {thin}")
    diverging = groups["sample_stats"].get("diverging", groups["sample_stats"]["acceptance_rate"] > 1.0)
    # In the iterations of a draw, and in those after the last one.
    least_most = {
        "accepted_total": (accepted.round().sum(axis=1), 1),
        "diverging_total": (diverging.values.sum(axis=1), thin),
    }
    for name, (least, most) in least_most.items():
        total = np.atleast_1d(groups["sample_stats"].attrs.get(name, least))
        if total.size != c:
            problems.append(f"/sample_stats: attribute {name}: must have one number for each chain")
        elif not ((least <= total) & (total <= most * least + int(attrs["iterations"]) - thin * k)).all():
            problems.append(f"/sample_stats: attribute {name}: does not fit the draws and the iterations")
    for path, group in groups.items():
        if group.attrs.get("inference_library_version", attrs["dpmc_version"]) != attrs["dpmc_version"]:
            problems.append(f"/{path}: inference_library_version: must be that of dpmc, as in the root")
    for path, name in (("posterior", "theta"), ("constant_data", "theta_0")):
        if not np.isfinite(groups[path][name].values).all():  # NaN has bits that mean nothing
            problems.append(f"/{path}: {name}: must be finite")
    entry = json.loads(attrs["data_ledger"])
    start = np.ascontiguousarray(groups["constant_data"]["theta_0"].values)
    if hashlib.sha256(start.tobytes()).hexdigest() != entry["about"]["start"]:
        problems.append("/constant_data: theta_0: is not the start of the entry in data_ledger")
    if (entry["epsilon"], entry["delta"]) != (float(attrs["epsilon"]), float(attrs["delta"])):
        problems.append("/: epsilon, delta: are not those of the entry in data_ledger")
    plain = {name: np.asarray(attrs[name]).tolist() for name in REPEATED}
    plain["hyperparameters"] = json.loads(attrs["hyperparameters"])
    if different := [name for name in REPEATED if entry["about"][name] != plain[name]]:
        problems.append(f"/: {', '.join(different)}: not as in the entry in data_ledger")
    own = {str(name): value for name, value in attrs.items()}
    return problems + [f"/: ledger: {text}" for text in release_books.problems(own, entry)]


def write(path: Path, tree: "xarray.DataTree") -> None:
    """Write a release, without compression, so that its size does not depend on values.

    Raises DpmcError, and writes nothing, if the tree is not a release.
    """
    if problems := check(tree):
        raise DpmcError(f"{path}: {problems[0]}")
    _write(path, tree)


def _write(path: Path, tree: "xarray.DataTree") -> None:
    nothing = {
        group.path: {name: {"_FillValue": None} for name in group.to_dataset(inherit=False).variables}
        for group in tree.subtree
    }
    write_netcdf(path, tree, nothing)


def read(path: str | Path) -> "xarray.DataTree":
    """Read a file whole, as it is, also if it is no release; raise DpmcError if it is no NetCDF file."""
    with reading(path) as file:
        return file.load()


def contents(tree: "xarray.DataTree") -> list[str]:
    """Return lines that say what a tree contains: budget, entry, variables, names of attributes."""
    attrs = tree.attrs
    named = ("mode", "model", "method", "n", "iterations", "forfeited", "epsilon", "delta")
    plain = {name: np.asarray(attrs[name]).tolist() for name in named if name in attrs}
    lines = [", ".join(f"{name} {shown(value)}" for name, value in plain.items())]
    lines += [f"protects one row of {shown(plain['n'])}, replaced by any other"] if "n" in plain else []
    lines += [f"model: {attrs['description']}"] if is_description(attrs.get("description")) else []
    try:
        entry = _object(attrs["data_ledger"])
        lines += [f"ledger {shown(entry['ledger'])}, entry {shown(entry['number'])}, {shown(entry['id'])}"]
        lines += [f"head {shown(entry['hash'], 70)}"]
    except (KeyError, TypeError, ValueError, RecursionError):
        lines += ["no entry of a ledger"]
    for group in tree.subtree:
        lines.append(group.path)
        for name, variable in group.to_dataset(inherit=False).variables.items():
            sizes = ", ".join(f"{dim} {size}" for dim, size in variable.sizes.items())
            lines.append(f"    {name} ({sizes}) {variable.dtype}")
        lines += [f"    attributes: {', '.join(map(str, group.attrs))}"] if group.attrs else []
    return lines


def hidden(path: str | Path, tree: "xarray.DataTree") -> list[str]:
    """Return how a file differs from what `write` makes of its content, byte by byte; [] if it does not.

    Bytes that no reader shows are found in this way: after the end, in a fill value, beside the groups.
    """
    with TemporaryDirectory() as folder:
        again = Path(folder) / "again.nc"
        _write(again, tree)
        if again.read_bytes() == Path(path).read_bytes():
            return []
        theirs, ours = _library(path), _library(again)
    if theirs != ours:
        return [f"bytes: cannot be compared with what dpmc writes: {theirs} wrote them, here is {ours}"]
    return ["bytes: are not those that dpmc writes for this content; something may be hidden in the file"]


def _library(path: str | Path) -> str:
    """Return the versions of the libraries that wrote a file, as it says."""
    import netCDF4

    with netCDF4.Dataset(path) as file:
        return str(getattr(file, "_NCProperties", "another library"))


def entry_of(path: str | Path) -> dict[str, Any]:
    """Return the entry of a ledger that a release carries.

    Raises DpmcError for another file, and for one whose parts are not allowed or do not fit together.
    """
    tree = read(path)
    attrs = tree.attrs
    if attrs.get("mode") != "release":
        raise DpmcError(f"{path}: {LAB if attrs.get('mode') == 'lab' else 'is not a release'}")
    try:
        _entry(attrs["data_ledger"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DpmcError(f"{path}: data_ledger: {error}") from None
    if problems := check(tree):
        raise DpmcError(f"{path}: {problems[0]}")
    return _object(attrs["data_ledger"])
