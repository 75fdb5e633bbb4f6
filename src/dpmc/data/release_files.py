"""Release files: NetCDF that may be published, held against a list of all that they may contain.

The groups are those of chain files, without `private_diagnostics`. What they may contain is a release, a
function of releases, or public. The list is closed: what it does not name is a problem.
"""

import ast
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import models
from dpmc.common.errors import DpmcError
from dpmc.common.files import reading, write_netcdf
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import MOST, MOST_CHAINS, MOST_PARAMETERS, shown
from dpmc.data import release_books
from dpmc.models import regression
from dpmc.privacy.accountants import ACCOUNTANTS
from dpmc.privacy.data_ledger import require_entry
from dpmc.privacy.secure_noise import EXACT, VERSIONS

if TYPE_CHECKING:
    import xarray

LAB = "mode: lab: it is reproducible from its seed, so it cannot become a release"
SCHEMA = 2  #: of releases; equal to `chain_files.SCHEMA` (tested)
LONGEST_NAME = 200  #: characters of a name of a model, a method or a parameter
LONGEST_DESCRIPTION = 20_000  #: characters of the call that makes a model, which has names of levels

#: Attributes by name, each with what raises an error for a wrong value.
Checks = Mapping[str, Callable[[Any], object]]


def _text(pattern: str, rule: str, most: int = LONGEST_NAME) -> Callable[[Any], None]:
    """Return the check of a text: its length, and its grammar."""

    def check(value: object) -> None:
        if not isinstance(value, str) or len(value) > most or not re.fullmatch(pattern, value):
            raise ValueError(f"must be {rule}")

    return check


def _digits(count: int) -> Callable[[Any], None]:
    return _text(f"[0-9a-f]{{{count}}}", f"{count} hexadecimal digits")


def _whole(least: int, most: int = MOST) -> Callable[[Any], None]:
    """Return the check of a whole number of 64 bits, or of JSON."""

    def check(value: object) -> None:
        if not isinstance(value, int | np.int64) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"must be a whole number, at least {least} and at most {most}")

    return check


def _double(most: float) -> Callable[[Any], None]:
    """Return the check of a float of 64 bits."""

    def check(value: object) -> None:
        if not isinstance(value, float) or not 0.0 < value <= most:
            raise ValueError(f"must be a float of 64 bits, greater than 0 and at most {most:g}")

    return check


def _totals(value: Any) -> None:
    counts = np.atleast_1d(value)
    if counts.dtype != np.int64 or counts.ndim > 1 or not (counts >= 0).all():
        raise ValueError("must be counts, one for each chain")


def _epsilon(value: object) -> None:
    if not isinstance(value, str) or value == "inf" or canonical_epsilon(value) != value:
        raise ValueError("must be a finite number as dpmc writes it")


def _description(value: object) -> None:
    if not is_description(value):
        rule = f"as Python writes it, of at most {LONGEST_DESCRIPTION} characters"
        raise ValueError(f"must be a call with plain values, {rule}")


def is_description(value: object) -> bool:
    """Return whether a value may stand in a release as the description of its model."""
    if not isinstance(value, str) or not (len(value) <= LONGEST_DESCRIPTION and value.isprintable()):
        return False
    try:
        name, arguments, named = _call(value)
        parts = [*map(repr, arguments), *(f"{key}={argument!r}" for key, argument in named.items())]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # as of nested brackets
        return False
    # Its one text: nothing hides in a comment, in blanks, or in the spelling of a number.
    return f"{name}({', '.join(parts)})" == value


def _call(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return name and arguments of a call; raise ValueError or the like if they are no plain values."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError("must be a call")
    if any(isinstance(node, ast.Set) for node in ast.walk(call)):
        raise ValueError("must have no sets, whose order is that of a process")
    named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    return call.func.id, [ast.literal_eval(argument) for argument in call.args], named


def _object(value: str) -> dict[str, Any]:
    content = json.loads(value)
    if not isinstance(content, dict):
        raise TypeError("must be a JSON object")
    return content


def _sorted_object(value: str) -> None:
    """Raise ValueError unless a text is the one that is written for its content, with each key once."""
    if json.dumps(_object(value), sort_keys=True) != value:
        raise ValueError("must be JSON with sorted keys, each of them once, as dpmc writes it")


#: Parts of the ledger of a run: of `ReleaseLedger.to_json` those that a release has.
LEDGER = {"mode", "neighbours", "accountant", "budget", "reserved", "performed", "forfeited", "foreseen"}
LEDGER |= {"epsilon_spent", "mu", "prices"}


def _ledger(value: str) -> None:
    if unknown := _object(value).keys() - LEDGER:
        raise ValueError(f"{shown(sorted(unknown))}: not allowed")


def _planned(value: object) -> None:
    if value is not None:
        _whole(1)(value)


def _mapping(value: object) -> None:
    if not isinstance(value, dict):
        raise TypeError("must be an object")


NAME = _text(r"[\w.<>:-]+", f"a name of at most {LONGEST_NAME} letters, digits and . _ < > : -")
LABEL = _text("[a-z0-9][a-z0-9.-]*", f"a name of at most {LONGEST_NAME} small letters, digits and . -")
PART = "(0|[1-9][0-9]?)"  #: of a version
VERSION = _text(rf"{PART}\.{PART}\.{PART}((a|b|rc){PART})?", "a version of dpmc, of short numbers")
OPENDP = _text(VERSIONS, f"{EXACT}*, whose noise is exact")
ACCOUNTANT = _text("|".join(ACCOUNTANTS), "an accountant of dpmc")
#: Facts of a run that attributes of the root repeat.
REPEATED: Checks = {
    "accountant": ACCOUNTANT,
    "chains": _whole(1, MOST_CHAINS),
    "method": LABEL,
    "n": _whole(1),
    "temperature": _double(1.0),
    "thin": _whole(1),
}
#: Facts of a run in its entry.
FACTS: Checks = {
    **REPEATED,
    "hyperparameters": _mapping,
    "model": NAME,
    "model_values": _digits(64),
    "columns": _whole(1),
    "iterations": _planned,
    "start": _digits(64),
    "run": _digits(32),
}


def _entry(value: str) -> None:
    entry = _object(value)
    require_entry(entry)
    about = entry["about"]
    for keys, rule in ((about.keys() - FACTS, "not allowed"), (FACTS.keys() - about, "missing")):
        if keys:
            raise ValueError(f"about: {shown(', '.join(sorted(keys)), 200)}: {rule}")
    for key, check in FACTS.items():
        try:
            check(about[key])
        except (TypeError, ValueError) as error:
            raise ValueError(f"about: {key}: {error}") from None
    _sorted_object(value)


ROOT: Checks = {
    **REPEATED,
    "mode": _text("release", "release"),
    "model": NAME,
    "description": _description,
    "dpmc_version": VERSION,
    "opendp_version": OPENDP,
    "epsilon": _epsilon,
    "delta": _double(1.0),
    "dimension": _whole(1, MOST_PARAMETERS),
    "iterations": _whole(0),
    "forfeited": _whole(0),
    "schema": _whole(SCHEMA, SCHEMA),
    "hyperparameters": _sorted_object,
    "ledger": _ledger,
    "data_ledger": _entry,
}
LIBRARY: Checks = {"inference_library": _text("dpmc", "dpmc"), "inference_library_version": VERSION}
TOTALS: Checks = dict.fromkeys(("accepted_total", "diverging_total"), _totals)
#: Variables of a release: dimensions, and dtypes; of labels `_labels` says more.
VARIABLES: dict[str, tuple[tuple[str, ...], tuple[type, ...]]] = {
    "theta": (("chain", "draw", "parameter"), (np.float64,)),
    "theta_0": (("chain", "parameter"), (np.float64,)),
    "acceptance_rate": (("chain", "draw"), (np.float64,)),
    "diverging": (("chain", "draw"), (np.bool_,)),
    "chain": (("chain",), (np.int64,)),
    "draw": (("draw",), (np.int64,)),
    "parameter": (("parameter",), (np.int64, np.str_, np.object_)),
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
    if mode_of(tree) == "lab":
        return [LAB]
    groups = {group.path: group for group in tree.subtree}
    problems = [f"{_plain(path)}: group is not allowed" for path in groups if path not in ALLOWED]
    problems += [f"{path}: group is missing" for path in ALLOWED if path not in groups]
    for path, group in groups.items():
        if path in ALLOWED:
            problems += [f"{path}: {text}" for text in _of_group(group, *ALLOWED[path])]
    return problems or _inconsistent(tree)


def mode_of(tree: "xarray.DataTree") -> str:
    """Return the attribute `mode` of a tree; "" if it is missing or no text."""
    mode = tree.attrs.get("mode")
    return mode if isinstance(mode, str) else ""


def _plain(path: str) -> str:
    return path if re.fullmatch(r"[\w/.-]{1,100}", path) else shown(path)


def refused_names(labels: "list[Any] | tuple[Any, ...]") -> str:
    """Return why these are no names of parameters that a release may have; "" if they are."""
    if not all(
        isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable() for name in labels
    ):
        return f"labels must be names of 1 to {LONGEST_NAME} printable characters"
    return "" if len(set(labels)) == len(labels) else "labels must be different"


def _of_group(group: "xarray.DataTree", names: tuple[str, ...], checks: Checks) -> list[str]:
    """Return the problems of one group by itself: names, dimensions, types, attributes."""
    variables = dict(group.to_dataset(inherit=False).variables)
    present = {*map(str, variables), *map(str, group.attrs)}
    problems = [f"{name} is missing" for name in sorted({*names, *checks} - OPTIONAL - present)]
    for name, variable in variables.items():
        if name not in names:
            problems.append(f"variable {shown(name)} is not allowed")
            continue
        dims, kinds = VARIABLES[str(name)]
        if variable.dims != dims or not (variable.dtype.type in kinds and variable.dtype.isnative):
            rule = f"{dims} of {' or '.join(kind.__name__ for kind in kinds)}"
            problems.append(f"{name}: {shown(variable.dims)} of {variable.dtype} must be {rule}")
        elif variable.dtype.kind in "OU" and (wrong := refused_names(variable.values.tolist())):
            problems.append(f"{name}: {wrong}")
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
        problems.append(f"unlimited dimensions: {shown(', '.join(sorted(map(str, unlimited))), 200)}")
    return problems


def _inconsistent(tree: "xarray.DataTree") -> list[str]:
    """Return what does not fit together in a tree whose parts are right by themselves."""
    attrs, problems = tree.attrs, []
    c, thin, d = (int(attrs[name]) for name in ("chains", "thin", "dimension"))
    k = int(attrs["iterations"]) // thin
    groups = {name: tree[name].to_dataset() for name in ("posterior", "sample_stats", "constant_data")}
    for path, group in groups.items():
        for name, wanted in {"chain": c, "draw": k, "parameter": d}.items():
            if group.sizes.get(name, wanted) != wanted:
                problems.append(f"/{path}: {name}: {group.sizes[name]} must be {wanted}, by the attributes")
    if problems:  # before arrays of these sizes are made
        return problems
    axes = {"chain": np.arange(c), "draw": thin * np.arange(1, k + 1)}
    for path, group in groups.items():
        for name in axes.keys() & group.variables.keys():
            if not np.array_equal(group[name].values, axes[name]):
                problems.append(f"/{path}: {name}: labels must be numbers of chains, or of iterations")
    labels = [groups[name]["parameter"].values.tolist() for name in ("posterior", "constant_data")]
    if labels[0] != labels[1] or (
        groups["posterior"]["parameter"].dtype.kind == "i" and labels[0] != [*range(d)]
    ):
        problems.append("/posterior: parameter: labels must be names, or 0, 1, …, as in /constant_data")
    rates = groups["sample_stats"]["acceptance_rate"].values
    accepted = (rates * thin).round() + 0.0  # no −0.0
    # By their bits, since low digits could say more.
    if not ((accepted >= 0) & (accepted <= thin)).all() or (accepted / thin).tobytes() != rates.tobytes():
        problems.append(f"/sample_stats: acceptance_rate: must be counts from 0 to {thin}, divided by {thin}")
    diverging = groups["sample_stats"].get("diverging", groups["sample_stats"]["acceptance_rate"] > 1.0)
    # In the iterations of a draw, and in those after the last one.
    least_most = {
        "accepted_total": (accepted.sum(axis=1), 1),
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
    if not attrs["delta"] < 1.0 / attrs["n"]:
        problems.append(f"/: delta: must be less than 1/n = {1.0 / attrs['n']:.3g}")
    own = {str(name): np.asarray(value).tolist() for name, value in attrs.items()}
    given = {**own, "hyperparameters": json.loads(own["hyperparameters"])}
    different = [
        name
        for name in (*REPEATED, "hyperparameters")  # as texts: 1, 1.0 and true are three values
        if json.dumps(entry["about"][name], sort_keys=True) != json.dumps(given[name], sort_keys=True)
    ]
    if different:
        problems.append(f"/: {', '.join(different)}: not as in the entry in data_ledger")
    try:
        model = known_model(own.get("description"), entry["about"]["model"])
    except DpmcError as error:
        return [*problems, f"/: {error}"]
    if model is not None and labels[0] != [*(getattr(model, "parameters", ()) or range(model.dimension))]:
        problems.append("/posterior: parameter: are not the parameters of the model")
    if len(getattr(model, "columns", ())) not in (0, entry["about"]["columns"]):
        problems.append("/: description: has other columns than the entry in data_ledger")
    summaries = getattr(model, "summary_count", None)
    return problems or [f"/: {text}" for text in release_books.problems(own, entry, summaries)]


def known_model(description: str | None, name: str) -> Any:
    """Return the model of a release if it is known: of the catalogue, or a regression of dpmc; else None.

    A regression is made again from its description. Raises DpmcError for a name that is neither in the
    catalogue nor `module:Class`, and for a description that is missing, wrong or none of such a model.
    """
    known = (regression.LinearRegression, regression.LogisticRegression, regression.PoissonRegression)
    cls = {f"{cls.__module__}:{cls.__qualname__}": cls for cls in known}.get(name)
    if cls is None and ":" in name:
        return None
    if cls is None:
        if description is not None:
            raise DpmcError(f"description: {shown(description)}: a model of the catalogue has none")
        return models.definition(name).model
    if description is None:
        rule = f"must be the call that makes it, of at most {LONGEST_DESCRIPTION} characters"
        raise DpmcError(f"description: of a {cls.__name__} {rule}")
    called, arguments, named = _call(description)
    try:
        model = cls(*arguments, **named)
    except Exception as error:  # the arguments may be anything
        raise DpmcError(f"description: {shown(description)}: makes no {cls.__name__} ({error})") from None
    if called != cls.__name__ or repr(model) != description:
        raise DpmcError(f"description: {shown(description)}: is not what a {cls.__name__} writes")
    return model


def refuse(attributes: Mapping[str, Any], parameters: "tuple[str, ...]", dimension: int) -> None:
    """Raise DpmcError if a release must not have these attributes of the root or names of parameters.

    For a run, before its ε is taken. `attributes` are those that are known by then, method, accountant and
    hyperparameters among them.
    """
    for key, value in attributes.items():
        try:
            ROOT[key](value)
        except (TypeError, ValueError) as error:
            raise DpmcError(f"{key}: {shown(value)}: {error}") from None
    if wrong := refused_names(parameters):
        raise DpmcError(f"parameters: {wrong}")
    values = json.loads(attributes["hyperparameters"])
    release_books.refuse_values(values, attributes["accountant"])
    release_books.algorithms_of(attributes["method"], values, dimension)


def write(path: Path, tree: "xarray.DataTree") -> None:
    """Write a release, without compression, so that its size does not depend on values.

    Raises DpmcError, and writes nothing, if the tree is not a release.
    """
    if problems := check(tree):
        raise DpmcError(f"{path}: {problems[0]}")
    _write(path, tree)


def _write(path: Path, tree: "xarray.DataTree") -> None:
    """Write the groups of a release with variables and attributes in one order, which says nothing."""
    import xarray

    groups, nothing = {}, {}
    for name, group in sorted((group.path, group.to_dataset(inherit=False)) for group in tree.subtree):
        content, attrs = dict(sorted(group.variables.items())), dict(sorted(group.attrs.items()))
        groups[name] = xarray.Dataset(content, attrs=attrs)
        nothing[name] = {variable: {"_FillValue": None} for variable in content}
    write_netcdf(path, xarray.DataTree.from_dict(groups), nothing)


def read(path: str | Path, lab: bool = False) -> "xarray.DataTree":
    """Read a file whole, as it is, also if it is no release; raise DpmcError if it is no NetCDF file.

    Arrays larger than the file, which a release does not have, are refused before they are read. With `lab`,
    a file of the lab may have them, since its arrays are compressed.
    """
    with reading(path) as file:
        is_lab = mode_of(file) == "lab"
        arrays = [
            variable
            for group in file.subtree
            for variable in group.to_dataset(inherit=False).variables.values()
        ]
        # A text takes 16 bytes beside its characters.
        sizes = (array.size * (16 if array.dtype.kind in "OU" else array.dtype.itemsize) for array in arrays)
        if sum(sizes) > Path(path).stat().st_size and not (is_lab and lab):
            rule = LAB if is_lab else "has arrays larger than the file, so it is compressed or incomplete"
            raise DpmcError(f"{path}: {rule}")
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
        lines.append(_plain(group.path))
        for name, variable in group.to_dataset(inherit=False).variables.items():
            sizes = ", ".join(f"{_plain(str(dim))} {size}" for dim, size in variable.sizes.items())
            lines.append(f"    {_plain(str(name))} ({sizes}) {variable.dtype}")
        names = (_plain(str(name)) for name in group.attrs)
        lines += [f"    attributes: {', '.join(names)}"] if group.attrs else []
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
    if mode_of(tree) != "release":
        raise DpmcError(f"{path}: {LAB if mode_of(tree) == 'lab' else 'is not a release'}")
    if problems := check(tree):
        raise DpmcError(f"{path}: {problems[0]}")
    return _object(attrs["data_ledger"])
