"""Chain files: ArviZ's groups in NetCDF, written and read by xarray.

`posterior/theta` (chain, draw, parameter), draw = iteration number. `constant_data/theta_0`: the start.
`sample_stats` (chain, draw): functions of the chain, and public facts of its tests if the number of rows is
random. `private_diagnostics` (chain, draw): exact functions of the rows, marked releasable = 0. The root and
every group have attributes; nested ones are JSON text. A file does not depend on when or where it was made.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
#: Further counts of algorithms that use a random number of rows.
RANDOM_ROWS = ("rows_used", "noise_drawn", "all_rows")
TOTALS = ("accepted", "diverging", "ratio_clipped", "gradient_clipped", *RANDOM_ROWS)


@dataclass
class Chains:
    """The chains of one run with their counts and attributes; c chains, k kept draws, d parameters."""

    start: np.ndarray  # (c, d) θ_0
    draws: np.ndarray  # (c, k, d)
    accepted: np.ndarray  # (c, k) proposals accepted since the previous kept draw
    diverging: np.ndarray  # (c, k) proposals not finite or beyond 1e30; in a file: whether there were any
    ratio_clipped: np.ndarray  # (c, k) rows clipped in log ratios
    gradient_clipped: np.ndarray  # (c, k) rows clipped in gradients
    totals: np.ndarray  # (4 or 7, c) all counts summed over all iterations, also after the last kept draw
    attributes: dict[str, Any]
    #: (3, c, k) as RANDOM_ROWS: rows used, tests with noise, on all rows
    random_rows: np.ndarray | None = None
    parameters: tuple[str, ...] = ()  # names of the d parameters; () if they have none


def tree(chains: Chains) -> "xarray.DataTree":
    """Return chains in ArviZ's groups, as in a chain file.

    Chain numbers differ between seeds, so that `xarray.concat` along "chain" joins seeds. Parameters are
    labelled by name, or by 0, 1, … if they have none.
    """
    import xarray

    (c, k, d), thin = chains.draws.shape, chains.attributes["thin"]
    labels = {
        "chain": chains.attributes["seed"] * c + np.arange(c),
        "draw": thin * np.arange(1, k + 1),
        "parameter": np.array(chains.parameters or range(d)),
    }
    along = ("chain", "draw")
    statistics = {
        "acceptance_rate": (along, chains.accepted / thin),
        "diverging": (along, chains.diverging > 0),
    }
    if chains.random_rows is not None:
        counts = zip(RANDOM_ROWS, chains.random_rows, strict=True)
        statistics |= {name: (along, values) for name, values in counts}
    clipped = {
        "ratio_clipped": (along, chains.ratio_clipped),
        "gradient_clipped": (along, chains.gradient_clipped),
    }
    totals = {f"{name}_total": total for name, total in zip(TOTALS, chains.totals, strict=False)}
    clipped_totals = {name: totals.pop(name) for name in ("ratio_clipped_total", "gradient_clipped_total")}

    def group(arrays: Mapping[str, tuple[Any, np.ndarray]], **attributes: Any) -> "xarray.Dataset":
        dims = {dim for of_one, _ in arrays.values() for dim in of_one}
        library = {"inference_library": "dpmc", "inference_library_version": __version__}
        coords = {dim: label for dim, label in labels.items() if dim in dims}
        return xarray.Dataset(arrays, coords, {**library, **attributes})

    root = {**chains.attributes, "schema": SCHEMA, "dpmc_version": __version__}
    return xarray.DataTree.from_dict(
        {
            "/": xarray.Dataset(attrs=root),
            "/posterior": group({"theta": ((*along, "parameter"), chains.draws)}),
            "/sample_stats": group(statistics, **totals),
            "/private_diagnostics": group(clipped, releasable=0, **clipped_totals),
            "/constant_data": group({"theta_0": (("chain", "parameter"), chains.start)}),
        }
    )


def write_chains(path: Path, chains: Chains) -> None:
    """Write one chain file, with large arrays compressed, except draws.

    Compression shrinks counts to a tenth or less. Draws shrink only to a half or a fifth, and compressing
    them would take longer than everything else.
    """
    content = tree(chains)
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


@dataclass
class ChainFile:
    """The chains of one run, read from a file for metrics and figures."""

    path: Path
    attrs: dict[str, Any]
    start: np.ndarray  # (chains, d)
    draws: np.ndarray  # (chains, k, d)
    totals: dict[str, np.ndarray]  # (chains,) by the names of TOTALS; RANDOM_ROWS if recorded
    rows_used: np.ndarray | None = None  # (chains, k) rows used since the previous kept draw, if recorded

    @classmethod
    def of(cls, chains: Chains, attributes: dict[str, Any]) -> "ChainFile":
        """Return finished chains as if read from a file with further attributes."""
        return cls(
            path=Path(),
            attrs={**chains.attributes, **attributes},
            start=chains.start,
            draws=chains.draws,
            totals=dict(zip(TOTALS, chains.totals, strict=False)),
            rows_used=None if chains.random_rows is None else chains.random_rows[0],
        )


#: Attributes that metrics and figures read.
TEXTS = ("study", "model", "method", "epsilon", "dataset", "status", "ledger")
COUNTS = {"seed": 0, "iterations": 0, "n": 1, "rows_per_evaluation": 1}  # each with its least value
COUNTS |= {"ratio_evaluations_per_iteration": 0, "gradient_evaluations_per_iteration": 0}
OPTIONAL_COUNTS = {"thin": 1, "chains": 1, "dimension": 1}  # used if they are there


def read_chain(path: str | Path) -> ChainFile:
    """Read one chain file.

    Raises DpmcError for a file that is missing, truncated or not a chain file, and if its attributes or
    counts are damaged or do not fit its draws.
    """
    with reading(path) as file:
        check_schema(path, file.attrs)
        groups = file.children
        stats, private = groups["sample_stats"], groups["private_diagnostics"]
        names = TOTALS if "rows_used" in stats.variables else TOTALS[: -len(RANDOM_ROWS)]
        totals = {
            name: np.atleast_1d((private if name.endswith("_clipped") else stats).attrs[f"{name}_total"])
            for name in names
        }
        chain = ChainFile(
            path=Path(path),
            attrs={str(name): _plain(value) for name, value in file.attrs.items()},
            start=values_of(groups["constant_data"], "theta_0"),
            draws=values_of(groups["posterior"], "theta"),
            totals=totals,
            rows_used=values_of(stats, "rows_used") if "rows_used" in stats.variables else None,
        )
        _check(chain)  # here, so that `reading` names the file
    return chain


def check_schema(path: str | Path, attributes: Mapping[Any, Any]) -> None:
    """Raise DpmcError for a file with a schema that this version cannot read."""
    if (schema := _plain(attributes["schema"])) not in SCHEMAS:
        raise DpmcError(
            f"{path}: schema: {shown(schema)} must be 1 or 2, which this version reads; make the file anew"
        )


def _check(chain: ChainFile) -> None:
    """Raise KeyError, TypeError or ValueError for attributes and counts that are damaged or do not fit."""
    attrs = chain.attrs
    for key in TEXTS:
        if not isinstance(attrs[key], str):
            raise TypeError(f"{key}: {shown(attrs[key])} must be a text")
    counts = COUNTS | {key: least for key, least in OPTIONAL_COUNTS.items() if key in attrs}
    if str(attrs.get("budget_iterations", "inf")) != "inf":
        counts |= {"budget_iterations": 0}
    for key, least in counts.items():
        try:
            count(attrs[key], least, most=2**63)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    try:
        canonical_epsilon(attrs["epsilon"])
    except DpmcError as error:
        raise ValueError(str(error)) from None
    if chain.draws.ndim != 3:
        raise ValueError(f"theta: shape {chain.draws.shape} must be of chains, draws and parameters")
    chains, _, d = chain.draws.shape
    kept = attrs["iterations"] // attrs.get("thin", 1)
    shapes = {
        "theta": (chain.draws, (chains, kept, d)),
        "theta_0": (chain.start, (chains, d)),
        "rows_used": (chain.rows_used, (chains, kept)),
    }
    for key, (values, shape) in shapes.items():
        if values is not None and values.shape != shape:
            after = f"after {attrs['iterations']} iterations"
            raise ValueError(f"{key}: shape {values.shape} must be {shape} {after}")
    for key, totals in chain.totals.items():
        if totals.dtype.kind not in "iu" or totals.shape != (chains,) or (totals < 0).any():
            raise ValueError(f"{key}_total: {shown(totals.tolist())} must be counts, one for each chain")
    try:
        _check_ledger(json.loads(attrs["ledger"]))
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError, DpmcError) as error:
        raise ValueError(f"ledger: is damaged: {type(error).__name__}: {error}") from None


def _check_ledger(ledger: Any) -> None:
    """Raise an error if a part of the ledger that is read later is missing or wrong."""
    from dpmc.privacy.events import from_json

    from_json([*ledger["performed"], *ledger["forfeited"]])
    for text in (ledger["accountant"]["name"], ledger["accountant"]["version"]):
        if not isinstance(text, str | int):
            raise TypeError(f"accountant: {shown(text)} must be a text")
    for place in (ledger["budget"], "delta" in ledger and ledger):
        if place and not (0.0 < real(place["delta"]) < 1.0 and real(ledger["epsilon_spent"]) >= 0.0):
            raise ValueError("delta must be in (0, 1), and epsilon_spent at least 0")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
