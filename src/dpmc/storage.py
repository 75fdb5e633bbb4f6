"""Chain files: ArviZ's groups in NetCDF, written and read by xarray.

`posterior/theta` (chain, draw, parameter), draw = iteration number; `constant_data/theta_0`, the start;
`sample_stats` (chain, draw): what the chain itself shows, and public facts of its tests where the number of
rows is random; `private_diagnostics` (chain, draw): exact
functions of the rows, marked releasable = 0. Every group and the root carry attributes; nested ones are
JSON text. Nothing in a file depends on when or where it was made.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dpmc import __version__
from dpmc.errors import DpmcError
from dpmc.randomness import canonical_epsilon
from dpmc.values import count, real, shown

if TYPE_CHECKING:
    import xarray

SCHEMA = 2  #: as which files are written
SCHEMAS = (1, 2)  #: and read; chains of the first number each seed from 0, and count diverged proposals
#: What is recorded of algorithms that look at a random number of rows, beside the rest.
RANDOM_ROWS = ("rows_used", "noise_drawn", "all_rows")
TOTALS = ("accepted", "diverging", "ratio_clipped", "gradient_clipped", *RANDOM_ROWS)


@dataclass
class Chains:
    """The chains of one run with all that is known of them; c chains, k kept draws, d parameters."""

    start: np.ndarray  # (c, d) θ_0
    draws: np.ndarray  # (c, k, d)
    accepted: np.ndarray  # (c, k) proposals accepted since the draw kept before
    diverging: np.ndarray  # (c, k) proposals that were not finite or beyond 1e30
    ratio_clipped: np.ndarray  # (c, k) rows clipped in log ratios
    gradient_clipped: np.ndarray  # (c, k) rows clipped in gradients
    totals: np.ndarray  # (4 or 7, c) all counts summed over all iterations, those after the last draw too
    attributes: dict[str, Any]
    random_rows: np.ndarray | None = (
        None  # (3, c, k) as RANDOM_ROWS: rows looked at, tests with noise, on all rows
    )
    parameters: tuple[str, ...] = ()  # names of the d parameters; () if they have none


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path` and rename it to `path` at the end; nothing half-written stays.

    Raises DpmcError for a device or the like, in whose place there would be a file.
    """
    if path.is_dir():
        raise DpmcError(f"{path}: is a folder, must be a file")
    if path.exists() and not path.is_file():
        raise DpmcError(f"{path}: is not a regular file, which a result has to be")
    path.parent.mkdir(parents=True, exist_ok=True)
    begin = f".{path.name}."
    for name in os.listdir(path.parent):
        if name.startswith(begin) and name[len(begin) :].endswith(".tmp"):  # of a process that was killed
            path.with_name(name).unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def tree(chains: Chains) -> "xarray.DataTree":
    """Chains in ArviZ's groups, as a chain file holds them.

    Chain numbers differ between seeds, so that `xarray.concat` along "chain" puts seeds together. Parameters
    are labelled by name, or by 0, 1, … if they have none.
    """
    import xarray

    (c, k, d), about = chains.draws.shape, chains.attributes
    thin, numbers = about["thin"], about["seed"] * c + np.arange(c)
    chain = {"chain": numbers}
    draw = {**chain, "draw": thin * np.arange(1, k + 1)}
    parameter = {"parameter": np.array(chains.parameters or range(d))}
    along = ("chain", "draw")
    totals = {f"{name}_total": total for name, total in zip(TOTALS, chains.totals, strict=False)}
    private = {name: totals.pop(name) for name in list(totals) if name.endswith("_clipped_total")}
    random_rows = () if chains.random_rows is None else chains.random_rows
    statistics = {
        "acceptance_rate": chains.accepted / thin,
        "diverging": chains.diverging > 0,
        **dict(zip(RANDOM_ROWS, random_rows, strict=False)),
    }
    diagnostics = {"ratio_clipped": chains.ratio_clipped, "gradient_clipped": chains.gradient_clipped}
    library = {"inference_library": "dpmc", "inference_library_version": __version__}

    def group(arrays: dict[str, Any], coords: dict[str, Any], **more: Any) -> "xarray.Dataset":
        return xarray.Dataset(arrays, coords, {**library, **more})

    return xarray.DataTree.from_dict(
        {
            "/": xarray.Dataset(attrs={**about, "schema": SCHEMA, "dpmc_version": __version__}),
            "/posterior": group({"theta": ((*along, "parameter"), chains.draws)}, {**draw, **parameter}),
            "/sample_stats": group({name: (along, a) for name, a in statistics.items()}, draw, **totals),
            "/private_diagnostics": group(
                {name: (along, a) for name, a in diagnostics.items()}, draw, releasable=0, **private
            ),
            "/constant_data": group(
                {"theta_0": (("chain", "parameter"), chains.start)}, {**chain, **parameter}
            ),
        }
    )


def write_chains(path: Path, chains: Chains) -> None:
    """Write one chain file."""
    content = tree(chains)
    with replacing(path) as temporary:
        content.to_netcdf(
            temporary,
            engine="netcdf4",
            encoding={node.path: _encoding(node.variables) for node in content.children.values()},
        )


def _encoding(variables: Mapping[Any, "xarray.Variable"]) -> dict[Any, dict[str, Any]]:
    """How variables are written: no value stands for a missing one; large ones compressed, but for draws.

    Counts shrink to a tenth and less, draws to a half or a fifth, which would take longer than all the rest.
    """
    small = {"_FillValue": None}
    large = {**small, "zlib": True, "complevel": 1, "shuffle": True}
    return {
        name: large if variable.size > 10_000 and name != "theta" else small
        for name, variable in variables.items()
    }


@dataclass
class ChainFile:
    """What metrics and figures need of a chain file that was read: the chains of one run."""

    path: Path
    attrs: dict[str, Any]
    start: np.ndarray  # (chains, d)
    draws: np.ndarray  # (chains, k, d)
    totals: dict[str, np.ndarray]  # (chains,) by the names of TOTALS, RANDOM_ROWS where recorded
    rows_used: np.ndarray | None = (
        None  # (chains, k) rows looked at since the draw kept before, where recorded
    )

    @classmethod
    def of(cls, chains: Chains, attributes: dict[str, Any]) -> "ChainFile":
        """Finished chains as they would be read back from a file with further attributes."""
        return cls(
            path=Path(),
            attrs={**chains.attributes, **attributes},
            start=chains.start,
            draws=chains.draws,
            totals=dict(zip(TOTALS, chains.totals, strict=False)),
            rows_used=None if chains.random_rows is None else chains.random_rows[0],
        )


def read_chain(path: str | Path) -> ChainFile:
    """Read one chain file.

    Raises DpmcError for a file that is missing, cut off or not a chain file.
    """
    with reading(path) as file:
        check_schema(path, file.attrs)
        stats, private = file["sample_stats"], file["private_diagnostics"]
        names = TOTALS if "rows_used" in stats else TOTALS[: -len(RANDOM_ROWS)]
        totals = {
            name: np.atleast_1d((private if name.endswith("_clipped") else stats).attrs[f"{name}_total"])
            for name in names
        }
        chain = ChainFile(
            path=Path(path),
            attrs={name: _plain(value) for name, value in file.attrs.items()},
            start=values_of(file["constant_data/theta_0"]),
            draws=values_of(file["posterior/theta"]),
            totals=totals,
            rows_used=values_of(stats["rows_used"]) if "rows_used" in stats else None,
        )
    _check(chain)
    return chain


def check_schema(path: str | Path, attributes: Mapping[str, Any]) -> None:
    """Raise DpmcError for a file that is laid out otherwise than this version reads it."""
    schema = _plain(attributes["schema"])
    if isinstance(schema, str) or schema not in SCHEMAS:
        known = " or ".join(map(str, SCHEMAS))
        raise DpmcError(
            f"{path}: schema: {shown(schema)} must be {known}, which this version reads; make the file anew"
        )


#: What metrics and figures need to know of a chain, and what else they ask for where it is known.
_TEXTS = ("study", "model", "method", "epsilon", "dataset", "status", "ledger")
_COUNTS = {
    "seed": 0,
    "iterations": 0,
    "n": 1,
    "rows_per_evaluation": 1,
    "ratio_evaluations_per_iteration": 0,
    "gradient_evaluations_per_iteration": 0,
}
_COUNTS_IF_KNOWN = {"thin": 1, "chains": 1, "dimension": 1, "budget_iterations": 0}
_TEXTS_IF_KNOWN = ("variant", "epsilon_kind", "algorithm", "caveat")


def _check(chain: ChainFile) -> None:
    """Raise DpmcError where what a chain file says of itself is damaged, or does not fit its draws."""

    def refuse(key: str, rule: str) -> NoReturn:
        raise DpmcError(f"{chain.path}: {key}: {rule}")

    attrs = chain.attrs
    for key in (*_TEXTS, *_COUNTS):
        if key not in attrs:
            refuse(key, "missing: is not the file expected here, or is damaged")
    for key in (*_TEXTS, *(key for key in _TEXTS_IF_KNOWN if key in attrs)):
        if not isinstance(attrs[key], str):
            refuse(key, f"{shown(attrs[key])} must be a text")
    for key, least in {
        **_COUNTS,
        **{k: least for k, least in _COUNTS_IF_KNOWN.items() if k in attrs},
    }.items():
        if key == "budget_iterations" and isinstance(attrs[key], str) and attrs[key] == "inf":
            continue
        try:
            count(attrs[key], least, most=2**63)
        except ValueError as error:
            refuse(key, str(error))
    try:
        canonical_epsilon(attrs["epsilon"])
    except DpmcError as error:
        raise DpmcError(f"{chain.path}: {error}") from None
    chains, kept = chain.draws.shape[:2] if chain.draws.ndim == 3 else (0, 0)
    if chain.draws.ndim != 3 or chain.start.shape != (chains, chain.draws.shape[2]):
        refuse("theta, theta_0", f"shapes {chain.draws.shape} and {chain.start.shape} do not fit each other")
    if kept != attrs["iterations"] // attrs.get("thin", 1):
        refuse(
            "theta", f"{kept} draws of {attrs['iterations']} iterations, every {attrs.get('thin', 1)}th kept"
        )
    if chain.rows_used is not None and chain.rows_used.shape != (chains, kept):
        refuse("rows_used", f"shape {chain.rows_used.shape} must be {(chains, kept)}")
    for key, totals in chain.totals.items():
        if totals.dtype.kind not in "iu" or totals.shape != (chains,) or (totals < 0).any():
            refuse(f"{key}_total", f"{shown(totals.tolist())} must be counts, one for each chain")
    try:
        _check_ledger(json.loads(attrs["ledger"]))
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError, DpmcError) as error:
        refuse("ledger", f"is damaged ({type(error).__name__}: {error})")


def _check_ledger(ledger: Any) -> None:
    """Raise some error unless what is read of a ledger is there: see `dpmc.privacy.ledger`."""
    from dpmc.privacy.events import from_json

    if not isinstance(ledger, dict):
        raise TypeError(f"{shown(ledger)} must be a mapping")
    from_json([*ledger["performed"], *ledger["forfeited"]])
    limits = [
        place for place in (ledger["budget"], ledger if "delta" in ledger else None) if place is not None
    ]
    for text in (ledger["accountant"]["name"], ledger["accountant"]["version"]):
        if not isinstance(text, str | int):
            raise TypeError(f"accountant: {shown(text)} must be a text")
    if limits and not real(ledger["epsilon_spent"]) >= 0.0:
        raise ValueError(f"epsilon_spent: {ledger['epsilon_spent']} must be at least 0")
    for place in limits:
        if not 0.0 < real(place["delta"]) < 1.0:
            raise ValueError(f"delta: {place['delta']} must be in (0, 1)")


@contextmanager
def reading(path: str | Path) -> Iterator["xarray.DataTree"]:
    """Open a NetCDF file for reading; what is missing or broken becomes one DpmcError.

    Values are as they lie in the file: nothing is decoded, no value stands for a missing one.
    """
    import xarray

    if not Path(path).is_file():
        raise DpmcError(f"{path}: no such file")
    try:
        with xarray.open_datatree(
            path, engine="netcdf4", decode_cf=False, create_default_indexes=False
        ) as file:
            yield file
    except (OSError, RuntimeError) as error:
        raise DpmcError(f"{path}: cannot be read as NetCDF, it may be cut off ({error})") from None
    except (KeyError, IndexError, AttributeError) as error:
        raise DpmcError(f"{path}: is not the file expected here, {error} is missing") from None
    except (TypeError, ValueError) as error:
        raise DpmcError(f"{path}: is not the file expected here ({error})") from None


def values_of(variable: "xarray.DataArray") -> np.ndarray:
    """All values of a variable of an open file."""
    values = np.asarray(variable.values)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{variable.name} holds no numbers")
    return values


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
