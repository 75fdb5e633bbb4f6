"""What a run is about: a public setting, private rows, and the exact posterior where it is known.

Three types. `Setting` has what is public: what a release publishes, prices, refuses or says takes it alone.
`Problem` is a setting with its rows. `Exact` is what chains are compared with; of private rows it is as
private as they are.
"""

import functools
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpmc import evaluators, models
from dpmc.base import Model, SimulatingModel
from dpmc.common import checks, files
from dpmc.common.errors import DpmcError
from dpmc.common.roles import Role, declared, derived, fact, working
from dpmc.common.values import MOST_PARAMETERS, array, shown
from dpmc.data import chain_files
from dpmc.evaluators.calls import LARGEST_VALUE, without_warnings
from dpmc.models.fingerprint import digest, fingerprint, public_values
from dpmc.models.trial import try_out

if TYPE_CHECKING:
    from dpmc.evaluators.generic import Evaluator

#: The dimensions of each array in a file, of a problem and of its exact posterior. Equal names, equal sizes.
ARRAYS = {"rows": ("row", "column"), "starts": ("start", "parameter"), "true_theta": ("parameter",)}
EXACT_ARRAYS = {
    "reference": ("draw", "parameter"),
    "baselines": ("baseline", "baseline_draw", "parameter"),
    "posterior_mean": ("parameter",),
    "posterior_covariance": ("parameter", "parameter_"),
}
#: Those that may be missing; `histogram_counts` has a dimension for each parameter.
OPTIONAL_ARRAYS = {
    "test_rows": ("test_row", "column"),
    "histogram_edges": ("parameter", "edge"),
    "histogram_counts": (),
}


def _none() -> Any:
    return field(default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True)
class Exact:
    """The exact posterior of a problem in d dimensions."""

    reference: np.ndarray  # (draws, d) exact draws; (0, d) if there are none
    baselines: np.ndarray  # (samples, draws, d) further exact draws
    posterior_mean: np.ndarray  # (d,); NaN where unknown
    posterior_covariance: np.ndarray  # (d, d); NaN where unknown
    # Only some models have these; empty arrays otherwise.
    histogram_edges: np.ndarray = _none()  # (d, e), of data/histogram.py
    histogram_counts: np.ndarray = _none()  # (e − 1, …, e − 1), of exact draws

    @classmethod
    def unknown(cls, d: int) -> "Exact":
        """Return that of which nothing is known."""
        return cls(np.empty((0, d)), np.empty((0, 0, d)), np.full(d, np.nan), np.full((d, d), np.nan))


@declared
@dataclass(kw_only=True)
class Setting:
    """What is public about a run's data and model: n rows of some columns, d parameters."""

    label: str = fact(
        Role.FILE | Role.RELEASE, name="model", check=checks.name
    )  # the model's name in the study
    model_id: str = fact(Role.FILE | Role.ENTRY, check=checks.name)  # catalogue id, or module:Class
    dataset: str = fact(Role.FILE)  # published, fresh-r, tuning, or a name given by the user
    model: Model = working()
    n: int = fact(Role.FILE | Role.RELEASE | Role.ENTRY, check=checks.whole(1))
    columns: int = fact(Role.ENTRY, check=checks.whole(1))  # of a row
    temperature: float = fact(Role.FILE | Role.RELEASE | Role.ENTRY, check=checks.double(1.0))  # T
    starts: np.ndarray = working()  # (s, d), of the chains of seed 0, 1, …; (1, d): of all chains
    same_starts: bool = working(default=False)  # whether the chains of all seeds have the first ones
    true_theta: np.ndarray = working()  # (d,)
    source: tuple[str, ...] = fact(Role.ASKED, default=())  # of a release: what was read, and as what
    tried: set[bool] = working(init=False, default_factory=set)  # gradients, of trials that were passed

    # The number of parameters d, and their names, () if the model does not name them.
    dimension = derived(
        Role.FILE | Role.RELEASE,
        lambda setting: int(setting.model.dimension),
        check=checks.whole(1, MOST_PARAMETERS),
    )
    parameters = derived(Role.ASKED, lambda setting: tuple(getattr(setting.model, "parameters", ())))
    # The call that makes a regression, which has its centres, scales, levels and prior.
    description = derived(
        Role.FILE | Role.RELEASE,
        lambda setting: next(
            filter(checks.is_description, [getattr(setting.model, "description", None)]), None
        ),
        check=checks.description,
    )
    # A digest of the model's values on public rows.
    model_values = derived(
        Role.ENTRY, lambda setting: public_values(setting.model, setting.columns), check=checks.digits(64)
    )

    def start_of(self, seed: int, chains: int) -> np.ndarray:
        """Return the start points (chains, d) of a seed; raise DpmcError if there are not so many."""
        if len(self.starts) == 1:
            return np.repeat(self.starts, chains, axis=0)
        first, available = 0 if self.same_starts else seed * chains, len(self.starts)
        if first + chains > available:
            raise DpmcError(
                f"seed: {seed} needs start points {first} to {first + chains - 1}, "
                f"the data set {self.dataset} has {available}"
            )
        return self.starts[first : first + chains].copy()

    def try_out(self, gradients: bool) -> None:
        """Try the model on public dummy rows, once; raise DpmcError if it must not be used."""
        if gradients not in self.tried:
            try_out(self.model, (self.n, self.columns), self.starts, gradients)
            self.tried.add(gradients)

    def check(self, source: str) -> None:
        """Raise DpmcError, naming `source`, if numbers and arrays do not fit the model or are not finite."""
        model, d, own_model = self.model, self.dimension, ":" in self.model_id
        array(self.starts, (None, d), f"{source}: starts")
        array(self.true_theta, (d,), f"{source}: true_theta")
        columns = getattr(model, "columns", None) if own_model else columns_of(model)
        if columns not in (None, self.columns):
            raise DpmcError(
                f"{source}: rows: {self.columns} columns, the model {self.model_id} has {columns}"
            )
        if not 0.0 < self.temperature <= 1.0:
            raise DpmcError(
                f"{source}: temperature: {self.temperature:g} must be greater than 0 and at most 1"
            )
        if self.n == 0:
            raise DpmcError(f"{source}: rows: there are none, at least 1 is needed")
        for index, start in enumerate(self.starts if own_model else ()):
            try:
                value: object = float(model.log_prior(start.copy()))
            except DpmcError:
                raise
            except (TypeError, ValueError) as error:  # it returned something else than a number
                value = error
            if not isinstance(value, float) or not value < np.inf:
                raise DpmcError(
                    f"{source}: model {self.model_id}: log_prior: {value} at start point {index}, "
                    "must be a number or -inf"
                )


def columns_of(model: Model) -> int:
    """Return how many columns the rows of a model have that can simulate them."""
    rows = cast(SimulatingModel, model).simulate(np.random.default_rng(0), np.zeros(int(model.dimension)), 1)
    return int(rows.shape[1])


@declared
@dataclass(kw_only=True)
class Problem(Setting):
    """A setting with its private rows (n, columns), and their exact posterior if it is known."""

    rows: np.ndarray = working()
    exact: Exact = working()
    test_rows: np.ndarray = working(default_factory=lambda: np.empty((0, 0)))  # (m, columns), public

    @functools.cached_property
    def evaluator(self) -> "Evaluator":
        """Return the evaluator of the rows; it makes its layouts when they are first needed."""
        return evaluators.evaluator_of(self.model, self.rows)

    @functools.cached_property
    def _digest(self) -> str:
        """A SHA-256 hash of rows, temperature and model, in hexadecimal (`models.fingerprint`)."""
        rows = np.ascontiguousarray(self.rows)
        return digest(fingerprint(self.model, rows), self.temperature, rows)

    digest = derived(Role.DRAWS | Role.PRIVATE, lambda problem: problem._digest)

    def _arrays(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Return dimensions and values of the arrays that the problem has."""
        held = {name: getattr(self, name) for name in (*ARRAYS, "test_rows")}
        held |= {each.name: getattr(self.exact, each.name) for each in fields(Exact)}
        dims = ARRAYS | EXACT_ARRAYS | OPTIONAL_ARRAYS
        dims["histogram_counts"] = tuple(f"bin_{axis}" for axis in range(self.dimension))
        return {
            name: (dims[name], held[name]) for name in held if name not in OPTIONAL_ARRAYS or held[name].size
        }

    def check(self, source: str) -> None:
        """Raise DpmcError, naming `source`, if arrays do not fit the model or are not finite."""
        sizes: dict[str, int | None] = {"parameter": self.dimension, "parameter_": self.dimension}
        sizes |= {f"bin_{axis}": self.exact.histogram_edges.shape[-1] - 1 for axis in range(self.dimension)}
        for name, (dims, values) in self._arrays().items():
            if name.startswith("posterior") and np.isnan(values).all():  # unknown
                values = np.zeros(values.shape)
            array(values, tuple(sizes.get(dim) for dim in dims), f"{source}: {name}")
            if name == "rows":
                sizes["column"] = values.shape[1]  # of test rows, too
        super().check(source)
        if max(self.rows.max(initial=0.0), -self.rows.min(initial=0.0)) > LARGEST_VALUE:
            raise DpmcError(f"{source}: rows: a value is beyond {LARGEST_VALUE:g}, sums would overflow")
        if hasattr(self.model, "check_rows"):
            with without_warnings():
                self.model.check_rows(self.rows)

    def write(self, path: Path) -> None:
        """Write the problem as NetCDF, rows uncompressed."""
        import xarray

        arrays = {
            name: (dims, values.astype(float, copy=False)) for name, (dims, values) in self._arrays().items()
        }
        about = {
            "label": self.label,
            "model": self.model_id,
            "dataset": self.dataset,
            "temperature": self.temperature,
            "schema": chain_files.SCHEMA,
            "versions": json.dumps({"numpy": np.__version__}),
        }
        encoding = {name: {"_FillValue": None} for name in arrays}
        files.write_netcdf(path, xarray.Dataset(arrays, attrs=about), encoding)


def read_problem(path: str | Path) -> Problem:
    """Read a problem written by `Problem.write`; raise DpmcError for a file that is missing or wrong."""
    with files.reading(path) as file:
        chain_files.check_schema(path, file.attrs)
        names = [*ARRAYS, *EXACT_ARRAYS, *(name for name in OPTIONAL_ARRAYS if name in file.variables)]
        arrays: dict[str, Any] = {
            name: files.values_of(file, name).astype(float, copy=False) for name in names
        }
        label, model_id, dataset = (file.attrs[name] for name in ("label", "model", "dataset"))
        temperature = float(array(file.attrs["temperature"], (), f"{path}: temperature"))
    for name, text in {"label": label, "model": model_id, "dataset": dataset}.items():
        if not isinstance(text, str) or not text:
            raise DpmcError(f"{path}: {name}: {shown(text)} must be a text")
    model = models.definition(model_id).model
    exact = Exact(**{each.name: arrays.pop(each.name) for each in fields(Exact) if each.name in arrays})
    n, columns = arrays["rows"].shape if arrays["rows"].ndim == 2 else (0, 0)  # `check` names the shape
    problem = Problem(
        label=label,
        model_id=model_id,
        dataset=dataset,
        model=model,
        n=n,
        columns=columns,
        temperature=temperature,
        exact=exact,
        **arrays,
    )
    problem.check(str(path))
    return problem
