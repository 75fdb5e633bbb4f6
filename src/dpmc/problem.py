"""A problem: model, private rows, tempering, start points, and what its exact posterior is known to be."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmc import models, storage
from dpmc.errors import DpmcError

LARGEST_VALUE = 1e150  #: of a row, so that its square is finite


@dataclass
class Problem:
    """All that a sampler and its evaluation need; n rows, d parameters, s start points."""

    label: str  # name of the model in the study
    model_id: str  # catalogue id, or module:Class
    dataset: str  # published, fresh-r, tuning, or a name of one's own
    model: Any
    rows: np.ndarray  # (n, d_x), private
    temperature: float  # T
    starts: np.ndarray  # (s, d)
    true_theta: np.ndarray  # (d,)
    reference: np.ndarray  # (draws, d) exact posterior draws; (0, d) where there are none
    baselines: np.ndarray  # (samples, draws, d) further exact draws
    posterior_mean: np.ndarray  # (d,); NaN where unknown
    posterior_covariance: np.ndarray  # (d, d); NaN where unknown

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def dimension(self) -> int:
        """Number of parameters d."""
        return int(self.model.dimension)

    def check(self, source: str) -> None:
        """Raise DpmcError, naming `source`, where arrays do not fit the model or are not finite."""
        d = self.dimension
        shapes = {
            "rows": (self.rows, (None, None)),
            "starts": (self.starts, (None, d)),
            "reference": (self.reference, (None, d)),
            "baselines": (self.baselines, (None, None, d)),
        }
        for name, (array, wanted) in shapes.items():
            fits = array.ndim == len(wanted) and all(
                w is None or w == s for w, s in zip(wanted, array.shape, strict=True)
            )
            if not fits:
                text = tuple("any" if w is None else w for w in wanted)
                raise DpmcError(f"{source}: {name}: shape {array.shape} must be {text}")
            if not np.isfinite(array).all():
                row = int(np.argwhere(~np.isfinite(array))[0][0])
                raise DpmcError(f"{source}: {name}: row {row} has a value that is NaN or infinite")
        if np.abs(self.rows).max(initial=0.0) > LARGEST_VALUE:
            raise DpmcError(f"{source}: rows: a value is beyond {LARGEST_VALUE:g}, sums would overflow")
        if self.n == 0:
            raise DpmcError(f"{source}: rows: there are none, at least 1 is needed")
        width = self._row_width()
        if width is not None and self.rows.shape[1] != width:
            raise DpmcError(
                f"{source}: rows: {self.rows.shape[1]} columns, the model {self.model_id} has {width}"
            )

    def _row_width(self) -> int | None:
        """Columns of the model's rows; None if the model does not say."""
        model: Any = self.model
        if not isinstance(model, tuple):
            return getattr(model, "columns", None)
        sample = self.model.simulate(np.random.default_rng(0), np.zeros(self.dimension), 1)
        return int(sample.shape[1])

    def write(self, path: Path) -> None:
        """Write the problem as NetCDF, rows uncompressed."""
        from netCDF4 import Dataset

        arrays = {
            "rows": (("row", "column"), self.rows),
            "starts": (("start", "parameter"), self.starts),
            "true_theta": (("parameter",), self.true_theta),
            "reference": (("draw", "parameter"), self.reference),
            "baselines": (("baseline", "baseline_draw", "parameter"), self.baselines),
            "posterior_mean": (("parameter",), self.posterior_mean),
            "posterior_covariance": (("parameter", "parameter_"), self.posterior_covariance),
        }
        with storage.replacing(path) as temporary, Dataset(temporary, "w") as file:
            file.setncatts(
                {
                    "label": self.label,
                    "model": self.model_id,
                    "dataset": self.dataset,
                    "temperature": self.temperature,
                    "schema": storage.SCHEMA,
                    "versions": json.dumps({"numpy": np.__version__}),
                }
            )
            for name, (dims, values) in arrays.items():
                for dim, size in zip(dims, values.shape, strict=True):
                    if dim not in file.dimensions:
                        file.createDimension(dim, size)
                file.createVariable(name, "f8", dims)[:] = values


def read_problem(path: str | Path) -> Problem:
    """Read a problem written by `Problem.write`.

    Raises DpmcError for a file that is missing, cut off, of the wrong shape, or holds NaN.
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
    with storage.reading(path) as file:
        arrays = {name: np.ma.getdata(file[name][:]).astype(float) for name in names}
        about = {name: file.getncattr(name) for name in ("label", "model", "dataset", "temperature")}
    problem = Problem(
        label=about["label"],
        model_id=about["model"],
        dataset=about["dataset"],
        model=models.definition(about["model"]).model,
        temperature=float(about["temperature"]),
        **arrays,
    )
    problem.check(str(path))
    return problem
