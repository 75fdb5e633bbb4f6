"""Release files: NetCDF that may be published, held against a list of all that they may contain.

The groups are those of chain files, without `private_diagnostics`. What they may contain is a release, a
function of releases, or public. The list is closed: what it does not name is a problem.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc import models
from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import read as read_algorithm
from dpmc.base import DIVERGED, Algorithm, has_diverged
from dpmc.common import checks
from dpmc.common.errors import DpmcError
from dpmc.common.files import reading, write_netcdf
from dpmc.common.roles import Role
from dpmc.common.values import shown
from dpmc.data.problem import columns_of
from dpmc.models import regression
from dpmc.models.definition import Definition
from dpmc.privacy.data_ledger import require_entry
from dpmc.privacy.lattice import LENGTH
from dpmc.releases import books
from dpmc.releases.facts import in_both, named
from dpmc.sampling.run import start_digest

if TYPE_CHECKING:
    import xarray

Checks = dict[str, checks.Check]
Groups = Mapping[str, "xarray.Dataset"]  # by name
LAB = "mode: lab: it is reproducible from its seed, so it cannot become a release"


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
LEDGER = {"mode", "neighbours", "accountant", "budget", "reserved", "performed", "forfeited"}
LEDGER |= {"epsilon_spent", "mu", "prices"}


def _ledger(value: str) -> None:
    if unknown := _object(value).keys() - LEDGER:
        raise ValueError(f"{shown(sorted(unknown))}: not allowed")


#: Facts of a run in its entry, and those of them that attributes of the root repeat.
FACTS = {**named(Role.ENTRY), "run": checks.digits(32)}
REPEATED = in_both(Role.ENTRY, Role.RELEASE)


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


DEEPER = {"ledger": _ledger, "data_ledger": _entry}
ROOT = {  # whose mappings are texts
    name: DEEPER.get(name, _sorted_object) if check is checks.mapping else check
    for name, check in named(Role.RELEASE).items()
}
LIBRARY: Checks = {"inference_library": checks.text("dpmc", "dpmc")}
LIBRARY |= {"inference_library_version": checks.version}
TOTALS: Checks = dict.fromkeys(("accepted_total", "diverging_total"), checks.totals)
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
OPTIONAL = {"description"}  #: of that, what a release may lack
#: Methods that ask once, whose releases have a group of what was asked and answered.
ANSWERING = [cls for name in ALGORITHMS if (cls := algorithm_class(name)).asks]
VARIABLES |= {name: (dims, (np.float64,)) for cls in ANSWERING for name, dims in cls.arrays.items()}
RECOMPUTED = 1e-6  #: relative difference of what is asked by two machines, at most


def check(tree: "xarray.DataTree") -> list[str]:
    """Return what keeps a tree from being a release, one text each; [] if nothing does."""
    if mode_of(tree) == "lab":
        return [LAB]
    groups, method = {group.path: group for group in tree.subtree}, answering(tree.attrs.get("ledger"))
    allowed = ALLOWED | ({"/answer": (tuple(method.arrays), LIBRARY)} if method else {})
    problems = [f"{_plain(path)}: group is not allowed" for path in groups if path not in allowed]
    problems += [f"{path}: group is missing" for path in allowed if path not in groups]
    for path, group in groups.items():
        if path in allowed:
            problems += [f"{path}: {text}" for text in _of_group(group, *allowed[path])]
    if problems:
        return problems
    by_name = {name: group.to_dataset() for name, group in tree.children.items()}
    own = {str(name): np.asarray(value).tolist() for name, value in tree.attrs.items()}
    # Sizes first, before arrays of these sizes are made.
    problems = _of_sizes(by_name, own)
    return problems or _of_labels(by_name, own) + _of_draws(by_name, own) + _of_entry(by_name, own)


def answering(ledger: object) -> type[Algorithm] | None:
    """Return the method that asks once whose queries the text of a ledger has; None if it has others."""
    try:
        names = {event["name"] for event in json.loads(str(ledger))["reserved"]}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return next((cls for cls in ANSWERING if names == cls.asks), None)


def mode_of(tree: "xarray.DataTree") -> str:
    """Return the attribute `mode` of a tree; "" if it is missing or no text."""
    mode = tree.attrs.get("mode")
    return mode if isinstance(mode, str) else ""


def _plain(path: str) -> str:
    return path if re.fullmatch(r"[\w/.-]{1,100}", path) else shown(path)


def refused_names(labels: "list[Any] | tuple[Any, ...]") -> str:
    """Return why these are no names of parameters that a release may have; "" if they are."""
    if not all(
        isinstance(name, str) and 0 < len(name) <= checks.LONGEST_NAME and name.isprintable()
        for name in labels
    ):
        return f"labels must be names of 1 to {checks.LONGEST_NAME} printable characters"
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
        except (TypeError, ValueError, RecursionError) as error:
            problems.append(f"attribute {key}: {shown(value)}: {error}")
    if unlimited := group.encoding.get("unlimited_dims", ()):
        problems.append(f"unlimited dimensions: {shown(', '.join(sorted(map(str, unlimited))), 200)}")
    return problems


def _of_sizes(groups: Groups, own: Mapping[str, Any]) -> list[str]:
    """Return the dimensions that are not as the attributes of the root say."""
    sizes = {"chain": own["chains"], "draw": own["iterations"] // own["thin"], "parameter": own["dimension"]}
    return [
        f"/{path}: {name}: {group.sizes[name]} must be {wanted}, by the attributes"
        for path, group in groups.items()
        for name, wanted in sizes.items()
        if group.sizes.get(name, wanted) != wanted
    ]


def _of_labels(groups: Groups, own: Mapping[str, Any]) -> list[str]:
    """Return problems of labels, and of versions of groups."""
    problems, k = [], own["iterations"] // own["thin"]
    axes = {"chain": np.arange(own["chains"]), "draw": own["thin"] * np.arange(1, k + 1)}
    for path, group in groups.items():
        for name in axes.keys() & group.variables.keys():
            if not np.array_equal(group[name].values, axes[name]):
                problems.append(f"/{path}: {name}: labels must be numbers of chains, or of iterations")
        if group.attrs["inference_library_version"] != own["dpmc_version"]:
            problems.append(f"/{path}: inference_library_version: must be that of dpmc, as in the root")
    names, again = (groups[name]["parameter"] for name in ("posterior", "constant_data"))
    numbered = names.dtype.kind == "i" and names.values.tolist() != [*range(own["dimension"])]
    if numbered or names.values.tolist() != again.values.tolist():
        problems.append("/posterior: parameter: labels must be names, or 0, 1, …, as in /constant_data")
    return problems


def _of_draws(groups: Groups, own: Mapping[str, Any]) -> list[str]:
    """Return problems of draws, start points, and counts of accepted and diverged proposals."""
    problems, stats, thin = [], groups["sample_stats"], own["thin"]
    draws, start = groups["posterior"]["theta"].values, groups["constant_data"]["theta_0"].values
    rates, diverging = stats["acceptance_rate"].values, stats["diverging"].values
    accepted = (rates * thin).round() + 0.0  # no −0.0
    # By their bits, since low digits could say more.
    if not ((accepted >= 0) & (accepted <= thin)).all() or (accepted / thin).tobytes() != rates.tobytes():
        problems.append(f"/sample_stats: acceptance_rate: must be counts from 0 to {thin}, divided by {thin}")
    after = own["iterations"] - thin * rates.shape[1]  # iterations after the last draw
    # In the iterations of a draw, and in those after the last one.
    least_most = {
        "accepted_total": (accepted.sum(axis=1), 1),
        "diverging_total": (diverging.sum(axis=1), thin),
    }
    totals = {name: np.atleast_1d(stats.attrs[name]) for name in least_most}
    for name, (least, most) in least_most.items():
        if totals[name].size != own["chains"]:
            problems.append(f"/sample_stats: attribute {name}: must have one number for each chain")
        elif not ((least <= totals[name]) & (totals[name] <= most * least + after)).all():
            problems.append(f"/sample_stats: attribute {name}: does not fit the draws and the iterations")
    made = sum(totals.values()) if not problems else own["iterations"]
    if (accepted + diverging > thin).any() or np.any(made > own["iterations"]):
        problems.append("/sample_stats: diverging: no proposal is accepted and diverging")
    if has_diverged(draws).any() or not np.isfinite(start).all():  # NaN has bits that mean nothing
        problems.append(f"/posterior: theta, theta_0: must be finite, and no draw beyond {DIVERGED:g}")
    if (np.diff(draws, axis=1, prepend=start[:, None]).any(axis=2) & (accepted == 0)).any():
        problems.append("/posterior: theta: moves where no proposal was accepted")
    return problems


def _of_entry(groups: Groups, own: Mapping[str, Any]) -> list[str]:
    """Return what does not fit the entry in the ledger of the data set, then what does not fit the model."""
    problems, entry = [], json.loads(own["data_ledger"])
    if start_digest(groups["constant_data"]["theta_0"].values) != entry["about"]["start"]:
        problems.append("/constant_data: theta_0: is not the start of the entry in data_ledger")
    if (entry["epsilon"], entry["delta"]) != (float(own["epsilon"]), own["delta"]):
        problems.append("/: epsilon, delta: are not those of the entry in data_ledger")
    if not own["delta"] < 1.0 / own["n"]:
        problems.append(f"/: delta: must be less than 1/n = {1.0 / own['n']:.3g}")
    given = {**own, "hyperparameters": json.loads(own["hyperparameters"])}
    different = [
        name
        for name in REPEATED  # as texts: 1, 1.0 and true are three values
        if json.dumps(entry["about"][name], sort_keys=True) != json.dumps(given[name], sort_keys=True)
    ]
    if different:
        problems.append(f"/: {', '.join(different)}: not as in the entry in data_ledger")
    try:
        known = known_model(own.get("description"), entry["about"]["model_id"])
        temperature = own["temperature"] if known is None else known.temperature(own["n"])
    except DpmcError as error:
        return [*problems, f"/: {error}"]
    model = None if known is None else known.model
    labels = groups["posterior"]["parameter"].values.tolist()
    if model is not None and labels != [*(getattr(model, "parameters", ()) or range(model.dimension))]:
        problems.append("/posterior: parameter: are not the parameters of the model")
    if model is not None and columns_of(model) != entry["about"]["columns"]:
        problems.append("/: model: has other columns than the entry in data_ledger")
    if own["temperature"] != temperature:
        problems.append(f"/: temperature: must be {temperature}, that of the model with n rows")
    summaries = getattr(model, "summary_count", None)
    problems = problems or [f"/: {text}" for text in books.problems(own, entry, summaries)]
    return problems or _of_answer(groups, own, model)


def _of_answer(groups: Groups, own: Mapping[str, Any], model: Any) -> list[str]:
    """Return problems of what was asked and answered: what was asked follows from the answers before it."""
    cls = answering(own["ledger"])
    if cls is None:
        return []
    arrays = {name: groups["answer"][name].values for name in cls.arrays}
    if not all(np.isfinite(values).all() for values in arrays.values()):
        return ["/answer: must be finite"]
    ledger, found, d = json.loads(own["ledger"]), groups["answer"].sizes, own["dimension"]
    events = ledger["reserved"]
    if model is None:
        rounds = sum(event["count"] for event in events if event["name"] != LENGTH)
        few = {"round": [rounds], "summary": [ledger["prices"][0]["numbers"]]}
        wrong = [name for name, size in found.items() if size not in few.get(str(name), (d - 1, d))]
        return [f"/answer: {name}: {found[name]} are not those of the queries" for name in wrong]
    costs = [event["count"] / event["noise_multiplier"] ** 2 for event in events]
    values = {"noise_multiplier": sum(costs) ** -0.5, **json.loads(own["hyperparameters"])}
    method: Any = read_algorithm(cls, values, "hyperparameters", d)
    sizes = method.sizes(model)
    if any(size != sizes[name] for name, size in found.items()):
        return [f"/answer: sizes {shown(dict(found))}: must be {sizes}"]
    try:
        with np.errstate(all="ignore"):
            asked = method.asked(arrays, model, own["n"])
        same = {
            name: np.abs(values - asked[name]).max(initial=0.0)
            <= RECOMPUTED * np.abs(values).max(initial=0.0)
            for name, values in arrays.items()
        }
    except (ArithmeticError, ValueError) as error:  # of linear algebra on arbitrary numbers
        return [f"/answer: cannot be computed again ({error})"]
    return [f"/answer: {name}: is not what is asked after these answers" for name in same if not same[name]]


def known_model(description: str | None, name: str) -> Definition | None:
    """Return the definition of a model that is known: of the catalogue, or a regression of dpmc; else None.

    A regression is made again from its description. Raises DpmcError for a name that is neither in the
    catalogue nor `module:Class`, and for a description that is missing, wrong or none of such a model.
    """
    known: list[Any] = [*regression.Regression.__subclasses__()]
    cls = {
        f"{cls.__module__}:{cls.__qualname__}": cls for cls in known if cls.__module__ == regression.__name__
    }.get(name)
    if cls is None and ":" in name:
        return None
    if cls is None:
        if description is not None:
            raise DpmcError(f"description: {shown(description)}: a model of the catalogue has none")
        return models.definition(name)
    if description is None:
        rule = f"must be the call that makes it, of at most {checks.LONGEST_DESCRIPTION} characters"
        raise DpmcError(f"description: of a {cls.__name__} {rule}")
    called, arguments, named = checks.call(description)
    if isinstance(named.get("codebook"), str):
        raise DpmcError("description: codebook: must be a mapping: no file that it names is opened")
    try:
        model = cls(*arguments, **named)
    except Exception as error:  # the arguments may be anything
        raise DpmcError(f"description: {shown(description)}: makes no {cls.__name__} ({error})") from None
    if called != cls.__name__ or repr(model) != description:
        raise DpmcError(f"description: {shown(description)}: is not what a {cls.__name__} writes")
    return Definition(model, 0, model.tempering, ())


def refuse(attributes: Mapping[str, Any], parameters: "tuple[str, ...]", dimension: int) -> None:
    """Raise DpmcError for attributes or names of parameters that no release has, before its ε is taken."""
    for key, value in attributes.items():
        try:
            ROOT[key](value)
        except (TypeError, ValueError) as error:
            raise DpmcError(f"{key}: {shown(value)}: {error}") from None
    if wrong := refused_names(parameters):
        raise DpmcError(f"parameters: {wrong}")
    values = json.loads(attributes["hyperparameters"])
    books.refuse_values(values, attributes["accountant"])
    books.algorithms_of(attributes["method"], values, dimension)


def write(path: Path, tree: "xarray.DataTree") -> None:
    """Write a release, uncompressed: its size says nothing. DpmcError, and no file, for another tree."""
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
    lines += [f"model: {attrs['description']}"] if checks.is_description(attrs.get("description")) else []
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

    with netCDF4.Dataset(Path(path).absolute()) as file:
        return shown(getattr(file, "_NCProperties", "another library"), 200)


def entry_of(path: str | Path) -> dict[str, Any]:
    """Return the ledger's entry that a release carries; raise DpmcError for what is no right release."""
    tree = read(path)
    attrs = tree.attrs
    if mode_of(tree) != "release":
        raise DpmcError(f"{path}: {LAB if mode_of(tree) == 'lab' else 'is not a release'}")
    if problems := check(tree):
        raise DpmcError(f"{path}: {problems[0]}")
    return _object(attrs["data_ledger"])
