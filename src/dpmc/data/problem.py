"""A problem: model, private rows, temperature, start points, and its exact posterior if known."""

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpmc import evaluators, models
from dpmc.base import Model, SimulatingModel
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.values import array, shown
from dpmc.data import chain_files
from dpmc.evaluators.calls import without_warnings
from dpmc.models.fingerprint import digest, fingerprint
from dpmc.models.trial import try_out

if TYPE_CHECKING:
    from dpmc.evaluators.generic import Evaluator

LARGEST_VALUE = 1e150  #: of a row, so that its square is finite

#: The dimensions of each array in a file. Equal names have equal sizes.
ARRAYS = {
    "rows": ("row", "column"),
    "starts": ("start", "parameter"),
    "true_theta": ("parameter",),
    "reference": ("draw", "parameter"),
    "baselines": ("baseline", "baseline_draw", "parameter"),
    "posterior_mean": ("parameter",),
    "posterior_covariance": ("parameter", "parameter_"),
}
#: Those that a problem may lack; `histogram_counts` has a dimension for each parameter.
OPTIONAL = {
    "test_rows": ("test_row", "column"),
    "histogram_edges": ("parameter", "edge"),
    "histogram_counts": (),
}


def _none() -> Any:
    return field(default_factory=lambda: np.empty((0, 0)))


@dataclass
class Problem:
    """Input of a sampler and its evaluation; n rows, d parameters, s start points."""

    label: str  # name of the model in the study
    model_id: str  # catalogue id, or module:Class
    dataset: str  # published, fresh-r, tuning, or a name given by the user
    model: Model
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
    histogram_edges: np.ndarray = _none()  # (d, e), of data/histogram.py
    histogram_counts: np.ndarray = _none()  # (e − 1, …, e − 1), of exact draws
    caveat: str = ""  # a limit of the privacy guarantee for these rows
    source: tuple[str, ...] = ()  # of a release: what was read, and as what; public
    tried: set[bool] = field(init=False, default_factory=set)  # gradients, of the trials that were passed

    @functools.cached_property
    def evaluator(self) -> "Evaluator":
        """Return the evaluator of the rows; it makes its layouts when they are first needed."""
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

    def _dimensions(self) -> dict[str, tuple[str, ...]]:
        """Return the dimensions of the arrays that the problem has."""
        optional = {name: dims for name, dims in OPTIONAL.items() if getattr(self, name).size}
        if "histogram_counts" in optional:
            optional["histogram_counts"] = tuple(f"bin_{axis}" for axis in range(self.dimension))
        return ARRAYS | optional

    def check(self, source: str, rows_are_zeros: bool = False) -> None:
        """Raise DpmcError, naming `source`, if arrays do not fit the model or are not finite.

        `rows_are_zeros`: the rows are those of a release, which the model's `check_rows` does not get.
        """
        model, d, own_model = self.model, self.dimension, ":" in self.model_id
        sizes: dict[str, int | None] = {"parameter": d, "parameter_": d}
        sizes |= {f"bin_{axis}": self.histogram_edges.shape[-1] - 1 for axis in range(d)}
        for name, dims in self._dimensions().items():
            values = getattr(self, name)
            if name.startswith("posterior") and np.isnan(values).all():  # unknown
                values = np.zeros(values.shape)
            array(values, tuple(sizes.get(dim) for dim in dims), f"{source}: {name}")
            if name == "rows":
                sizes["column"] = values.shape[1]  # of test rows, too
        if own_model:
            columns = getattr(model, "columns", None)
        else:
            # One simulated row tells how many columns the model's rows have.
            columns = cast(SimulatingModel, model).simulate(np.random.default_rng(0), np.zeros(d), 1).shape[1]
        if columns not in (None, self.rows.shape[1]):
            raise DpmcError(
                f"{source}: rows: {self.rows.shape[1]} columns, the model {self.model_id} has {columns}"
            )
        if max(self.rows.max(initial=0.0), -self.rows.min(initial=0.0)) > LARGEST_VALUE:
            raise DpmcError(f"{source}: rows: a value is beyond {LARGEST_VALUE:g}, sums would overflow")
        if not 0.0 < self.temperature <= 1.0:
            raise DpmcError(
                f"{source}: temperature: {self.temperature:g} must be greater than 0 and at most 1"
            )
        if self.n == 0:
            raise DpmcError(f"{source}: rows: there are none, at least 1 is needed")
        if hasattr(model, "check_rows") and not rows_are_zeros:
            with without_warnings():
                model.check_rows(self.rows)
        for index, start in enumerate(self.starts if own_model else ()):
            try:
                value: object = float(model.log_prior(start.copy()))
            except (TypeError, ValueError) as error:  # it returned something else than a number
                value = error
            if not isinstance(value, float) or not value < np.inf:
                raise DpmcError(
                    f"{source}: model {self.model_id}: log_prior: {value} at start point {index}, "
                    "must be a number or -inf"
                )

    def write(self, path: Path) -> None:
        """Write the problem as NetCDF, rows uncompressed."""
        import xarray

        arrays = {
            name: (dims, getattr(self, name).astype(float, copy=False))
            for name, dims in self._dimensions().items()
        }
        about = {
            "label": self.label,
            "model": self.model_id,
            "dataset": self.dataset,
            "temperature": self.temperature,
            "schema": chain_files.SCHEMA,
            "versions": json.dumps({"numpy": np.__version__}),
            **({"caveat": self.caveat} if self.caveat else {}),
        }
        encoding = {name: {"_FillValue": None} for name in arrays}
        files.write_netcdf(path, xarray.Dataset(arrays, attrs=about), encoding)


def read_problem(path: str | Path) -> Problem:
    """Read a problem written by `Problem.write`.

    Raises DpmcError for a file that is missing or truncated, has arrays of the wrong shape, or holds NaN.
    """
    with files.reading(path) as file:
        chain_files.check_schema(path, file.attrs)
        names = [*ARRAYS, *(name for name in OPTIONAL if name in file.variables)]
        arrays: dict[str, Any] = {
            name: files.values_of(file, name).astype(float, copy=False) for name in names
        }
        label, model_id, dataset = (file.attrs[name] for name in ("label", "model", "dataset"))
        temperature = float(array(file.attrs["temperature"], (), f"{path}: temperature"))
        caveat = file.attrs.get("caveat", "")
    named = {"label": label, "model": model_id, "dataset": dataset, "caveat": caveat}
    for name, text in named.items():
        if not isinstance(text, str) or (not text and name != "caveat"):
            raise DpmcError(f"{path}: {name}: {shown(text)} must be a text")
    model = models.definition(model_id).model
    problem = Problem(label, model_id, dataset, model, temperature=temperature, caveat=caveat, **arrays)
    problem.check(str(path))
    return problem
