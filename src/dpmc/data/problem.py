"""A problem: model, private rows, temperature, start points, and its exact posterior if known."""

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpmc import models
from dpmc.base import Evaluator
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.values import real, shown
from dpmc.data import chain_files
from dpmc.evaluators.calls import without_warnings
from dpmc.models.fingerprint import digest, fingerprint
from dpmc.models.trial import try_out

LARGEST_VALUE = 1e150  #: of a row, so that its square is finite
OPTIONAL = ("test_rows", "histogram_edges", "histogram_counts")  #: arrays that a file may lack


def _none() -> Any:
    return field(default_factory=lambda: np.empty((0, 0)))


@dataclass
class Problem:
    """Input of a sampler and its evaluation; n rows, d parameters, s start points."""

    label: str  # name of the model in the study
    model_id: str  # catalogue id, or module:Class
    dataset: str  # published, fresh-r, tuning, or a name given by the user
    model: Any
    rows: np.ndarray  # (n, d_x), private
    temperature: float  # T
    starts: np.ndarray  # (s, d)
    true_theta: np.ndarray  # (d,)
    reference: np.ndarray  # (draws, d) exact posterior draws; (0, d) if there are none
    baselines: np.ndarray  # (samples, draws, d) further exact draws
    posterior_mean: np.ndarray  # (d,); NaN where unknown
    posterior_covariance: np.ndarray  # (d, d); NaN where unknown
    # Only some models have these; empty arrays otherwise.
    test_rows: np.ndarray = _none()  # (m, d_x), public
    histogram_edges: np.ndarray = _none()  # (d, e), of metrics/histogram.py
    histogram_counts: np.ndarray = _none()  # (e − 1, …, e − 1), of exact draws
    caveat: str = ""  # a limit of the privacy guarantee for these rows
    tried: set[bool] = field(init=False, default_factory=set)  # gradients, of the trials that were passed

    @functools.cached_property
    def evaluator(self) -> Evaluator:
        """Return the evaluator of the rows; it makes its layouts when they are first needed."""
        from dpmc import evaluators  # numba is slow to import, and only samplers need it

        return evaluators.build(self.model, self.rows)

    @functools.cached_property
    def digest(self) -> str:
        """Return a SHA-256 hash of rows, temperature and model, in hexadecimal (`models.fingerprint`)."""
        rows = np.ascontiguousarray(self.rows)
        return digest(fingerprint(self.model, rows), self.temperature, rows)

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    @property
    def dimension(self) -> int:
        """Return the number of parameters d."""
        return int(self.model.dimension)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters; () if the model does not name them."""
        return tuple(getattr(self.model, "parameters", ()))

    def try_out(self, gradients: bool) -> None:
        """Try the model on public dummy rows, once; raise DpmcError if it must not be used."""
        if gradients not in self.tried:
            try_out(self.model, self.rows.shape, self.starts, gradients)
            self.tried.add(gradients)

    def check(self, source: str) -> None:
        """Raise DpmcError, naming `source`, if arrays do not fit the model or are not finite."""
        d = self.dimension
        shapes = {
            "rows": (self.rows, (None, None)),
            "starts": (self.starts, (None, d)),
            "reference": (self.reference, (None, d)),
            "baselines": (self.baselines, (None, None, d)),
            "true_theta": (self.true_theta, (d,)),
            "posterior_mean": (self.posterior_mean, (d,)),
            "posterior_covariance": (self.posterior_covariance, (d, d)),
            **self._optional_shapes(),
        }
        for name, (array, wanted) in shapes.items():
            fits = array.ndim == len(wanted) and all(
                w is None or w == s for w, s in zip(wanted, array.shape, strict=True)
            )
            if not fits:
                text = tuple("any" if w is None else w for w in wanted)
                raise DpmcError(f"{source}: {name}: shape {array.shape} must be {text}")
            unknown = name.startswith("posterior") and np.isnan(array).all()
            if not np.isfinite(_largest(array)) and not unknown:
                row = int(np.argwhere(~np.isfinite(array))[0][0])
                raise DpmcError(f"{source}: {name}: row {row} has a value that is NaN or infinite")
        if _largest(self.rows) > LARGEST_VALUE:
            raise DpmcError(f"{source}: rows: a value is beyond {LARGEST_VALUE:g}, sums would overflow")
        if not 0.0 < self.temperature <= 1.0:
            raise DpmcError(
                f"{source}: temperature: {self.temperature:g} must be greater than 0 and at most 1"
            )
        if self.n == 0:
            raise DpmcError(f"{source}: rows: there are none, at least 1 is needed")
        width = self._row_width()
        if width is not None and self.rows.shape[1] != width:
            raise DpmcError(
                f"{source}: rows: {self.rows.shape[1]} columns, the model {self.model_id} has {width}"
            )
        if hasattr(self.model, "check_rows"):
            with without_warnings():
                self.model.check_rows(self.rows)
        self._check_prior(source)

    def _check_prior(self, source: str) -> None:
        """Raise DpmcError if a user model's log prior at a start point is not a number or −∞."""
        for index, start in enumerate(self.starts if ":" in self.model_id else ()):
            try:
                value: Any = float(self.model.log_prior(start.copy()))
            except (TypeError, ValueError) as error:  # it returned something else than a number
                value = error
            if not isinstance(value, float) or not value < np.inf:
                raise DpmcError(
                    f"{source}: model {self.model_id}: log_prior: {value} at start point {index}, "
                    "must be a number or -inf"
                )

    def _optional_shapes(self) -> dict[str, tuple[np.ndarray, tuple[int | None, ...]]]:
        """Return the optional arrays that are present, with their required shapes."""
        d, columns = self.dimension, self.rows.shape[-1] if self.rows.ndim else 0
        bins = self.histogram_edges.shape[-1] - 1
        wanted: dict[str, tuple[int | None, ...]] = {
            "test_rows": (None, columns),
            "histogram_edges": (d, None),
            "histogram_counts": (bins,) * d,
        }
        return {name: (getattr(self, name), wanted[name]) for name in OPTIONAL if getattr(self, name).size}

    def _row_width(self) -> int | None:
        """Return the number of columns of the model's rows; None if the model does not fix it."""
        model: Any = self.model
        if ":" in self.model_id:
            return getattr(model, "columns", None)
        sample = self.model.simulate(np.random.default_rng(0), np.zeros(self.dimension), 1)
        return int(sample.shape[1])

    def write(self, path: Path) -> None:
        """Write the problem as NetCDF, rows uncompressed."""
        import xarray

        arrays = {
            "rows": (("row", "column"), self.rows),
            "starts": (("start", "parameter"), self.starts),
            "true_theta": (("parameter",), self.true_theta),
            "reference": (("draw", "parameter"), self.reference),
            "baselines": (("baseline", "baseline_draw", "parameter"), self.baselines),
            "posterior_mean": (("parameter",), self.posterior_mean),
            "posterior_covariance": (("parameter", "parameter_"), self.posterior_covariance),
        }
        optional = {
            "test_rows": ("test_row", "column"),
            "histogram_edges": ("parameter", "edge"),
            "histogram_counts": tuple(f"bin_{axis}" for axis in range(self.histogram_counts.ndim)),
        }
        arrays |= {k: (dims, getattr(self, k)) for k, dims in optional.items() if getattr(self, k).size}
        about = {
            "label": self.label,
            "model": self.model_id,
            "dataset": self.dataset,
            "temperature": self.temperature,
            "schema": chain_files.SCHEMA,
            "versions": json.dumps({"numpy": np.__version__}),
            **({"caveat": self.caveat} if self.caveat else {}),
        }
        content = xarray.Dataset(
            {name: (dims, array.astype(float, copy=False)) for name, (dims, array) in arrays.items()}
        )
        encoding = {name: {"_FillValue": None} for name in arrays}
        files.write_netcdf(path, content.assign_attrs(about), encoding)


def _largest(array: np.ndarray) -> float:
    """Return the largest absolute value, NaN if one is NaN, 0 of an empty array.

    Makes no array of absolute values, since rows can be large.
    """
    return float(np.maximum(array.max(initial=0.0), -array.min(initial=0.0)))


def read_problem(path: str | Path) -> Problem:
    """Read a problem written by `Problem.write`.

    Raises DpmcError for a file that is missing or truncated, has arrays of the wrong shape, or holds NaN.
    """
    names = (
        "rows",
        "starts",
        "true_theta",
        "reference",
        "baselines",
        "posterior_mean",
        "posterior_covariance",
    )
    with files.reading(path) as file:
        chain_files.check_schema(path, file.attrs)
        there = [*names, *(name for name in OPTIONAL if name in file.variables)]
        arrays = {name: files.values_of(file, name).astype(float, copy=False) for name in there}
        caveat = file.attrs.get("caveat", "")
        about = {name: file.attrs[name] for name in ("label", "model", "dataset")}
        temperature = file.attrs["temperature"]
    for name, text in {**about, "caveat": caveat}.items():
        if not isinstance(text, str) or (not text and name != "caveat"):
            raise DpmcError(f"{path}: {name}: {shown(text)} must be a text")
    try:
        temperature = real(temperature)
    except ValueError as error:
        raise DpmcError(f"{path}: temperature: {error}") from None
    problem = Problem(
        label=about["label"],
        model_id=about["model"],
        dataset=about["dataset"],
        model=models.definition(about["model"]).model,
        temperature=temperature,
        caveat=caveat,
        **arrays,
    )
    problem.check(str(path))
    return problem
