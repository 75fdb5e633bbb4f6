"""Differentially private Markov chain Monte Carlo: samplers, accounting, evaluation.

`sample`, `release`, `posterior`, `budget`, `tune`, … are the Python interface (docs/how-to/python.md).
Modules are imported on first use, since numba and xarray are slow to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# `dpmc.algorithms` is the function below. Python binds that name to the package when the package is first
# imported, so this import stands before the function; `from dpmc.algorithms import ...` finds the package.
import dpmc.algorithms  # noqa: F401
from dpmc.common.version import __version__ as __version__

if TYPE_CHECKING:
    from dpmc.algorithms.listing import Listing
    from dpmc.analysis.fit import Fit as Fit
    from dpmc.analysis.fitting import fit as fit
    from dpmc.analysis.planning import plan as plan
    from dpmc.api import budget as budget
    from dpmc.api import sample as sample
    from dpmc.api import tune as tune
    from dpmc.common.errors import DpmcError as DpmcError
    from dpmc.models.codebook import Codebook as Codebook
    from dpmc.models.exponential import ExponentialFamily as ExponentialFamily
    from dpmc.models.functions import Model as Model
    from dpmc.models.regression import LinearRegression as LinearRegression
    from dpmc.models.regression import LogisticRegression as LogisticRegression
    from dpmc.models.regression import NegativeBinomialRegression as NegativeBinomialRegression
    from dpmc.models.regression import PoissonRegression as PoissonRegression
    from dpmc.models.regression import Regression as Regression
    from dpmc.releasing import release as release
    from dpmc.results.answers import posterior as posterior
    from dpmc.results.joint import joint_epsilon as joint_epsilon
    from dpmc.results.parameters import summary as summary


_PUBLIC = {
    "sample": "dpmc.api",
    "budget": "dpmc.api",
    "tune": "dpmc.api",
    "plan": "dpmc.analysis.planning",
    "release": "dpmc.releasing",
    "posterior": "dpmc.results.answers",
    "joint_epsilon": "dpmc.results.joint",
    "summary": "dpmc.results.parameters",
    "DpmcError": "dpmc.common.errors",
    "fit": "dpmc.analysis.fitting",
    "Fit": "dpmc.analysis.fit",
    "Model": "dpmc.models.functions",
    "Codebook": "dpmc.models.codebook",
    "ExponentialFamily": "dpmc.models.exponential",
    "LinearRegression": "dpmc.models.regression",
    "LogisticRegression": "dpmc.models.regression",
    "NegativeBinomialRegression": "dpmc.models.regression",
    "PoissonRegression": "dpmc.models.regression",
    "Regression": "dpmc.models.regression",
}


def algorithms() -> "Listing":
    """Return the algorithms by name, each with its hyperparameters. Printed, it is a list for reading."""
    from dpmc.algorithms.listing import listing

    return listing()


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'dpmc' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
