"""Users' models, given in Python or as `module:Class`: checked, and adapted to the interface of `Model`."""

import copy
import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.base import has_diverged
from dpmc.common.errors import DpmcError
from dpmc.common.values import MOST_PARAMETERS, array, checked, count, positive_number, shown
from dpmc.evaluators.calls import name_of, real_array
from dpmc.models.codebook import Codebook
from dpmc.models.columns import Coding
from dpmc.models.definition import Definition
from dpmc.models.functions import Model

ATTRIBUTES = "dimension parameters n columns codebook tempering true_theta start".split()
REGRESSIONS = ("dpmc.models.regression", "dpmc.models.families")  #: modules of models that keep nothing
OURS = (*REGRESSIONS, "dpmc.models.design", "dpmc.models.formula")  #: and those of their parts
METHODS = (
    *("log_likelihood", "log_prior", "log_likelihood_gradient", "log_prior_gradient"),
    *("simulate", "posterior", "row_bounds", "check_rows"),
)

#: Methods that take rows -> the place of the rows among the arguments; other arrays are positions θ.
ROWS_AT = {
    **dict.fromkeys(("log_likelihood", "log_likelihood_gradient"), 1),
    **dict.fromkeys(("statistics", "summaries", "row_bounds", "check_rows", "posterior"), 0),
}


def given_model(model: Any) -> tuple[str, Definition]:
    """Return name and definition of a model given in Python: an instance, or a class without arguments.

    The name is `module:Class`; for a `dpmc.Model` it is the module and name of its log-likelihood, for a
    `dpmc.Regression` with a user's family that of the family.

    Raises DpmcError if it is not a valid model.
    """
    of = _of_user(model)
    of = of if hasattr(of, "__qualname__") else type(of)
    name = f"{of.__module__}:{of.__qualname__}"
    with _one_line(f"model: {shown(name)} cannot be made", name):
        own = model() if isinstance(model, type) else model
    return name, _checked(own, name)


def _of_user(model: Any) -> Any:
    """Return what of a model is the user's: a log-likelihood, the family of a regression; else the model."""
    if isinstance(model, Model):
        return vars(model)["log_likelihood"]
    family = getattr(model, "family", None) if type(model).__module__ in REGRESSIONS else None
    return model if type(family).__module__ in (*REGRESSIONS, "builtins") else family


def is_regression_of_ours(model: Any) -> bool:
    """Return whether a model is a regression of this package, with nothing else put in a part's place."""
    parts = (model, getattr(model, "design", None), getattr(model, "family", None))
    replaced = [vars(model)[name] for name in METHODS if name in vars(model)]
    own = all(getattr(value, "__self__", None) is model for value in replaced)  # `posterior` of a linear one
    return own and all(type(part).__module__ in OURS for part in parts)


def own_model(name: str) -> Definition:
    """Import `module:Class` (the current folder first) and check it; return its definition.

    `Class` is a class without arguments or an instance, for example a `dpmc.Model`.

    Raises DpmcError if it does not exist or is not a valid model.
    """
    module, _, attribute = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    with _one_line(f"model: {shown(name)} cannot be loaded", name):
        own = getattr(importlib.import_module(module), attribute)
        own = own if hasattr(own, "log_likelihood") and not isinstance(own, type) else own()
    return _checked(own, name)


def _checked(own: object, name: str) -> Definition:
    """Return the definition of a user's model; raise DpmcError for a missing or wrong attribute."""
    where = f"model: {shown(name)}"
    with _one_line(f"{where}: its attributes cannot be read", name):
        # Read once: an attribute may be a property, which is the user's code.
        given = {key: getattr(own, key) for key in (*ATTRIBUTES, *METHODS) if hasattr(own, key)}
    for needed in ("dimension", "log_likelihood"):
        if needed not in given:
            raise DpmcError(f"{where} has no {needed}, which every model needs")

    d = checked(f"{where}: dimension", count, given["dimension"], 1, MOST_PARAMETERS)
    n = 0 if given.get("n") is None else checked(f"{where}: n", count, given["n"])
    columns, parameters = given.get("columns"), given.get("parameters", ())
    if not isinstance(columns, list | tuple | None):
        checked(f"{where}: columns", count, columns)
    elif columns is not None and not (columns and _are_names(columns)):
        raise DpmcError(f"{where}: columns: {shown(columns)} must be different names, or their number")
    if "parameters" in given and not (_are_names(parameters) and len(parameters) == d):
        names = shown(parameters)
        raise DpmcError(f"{where}: parameters: {names} must be {d} different names, in a tuple or list")
    if given.get("codebook") is not None:
        if not isinstance(columns, list | tuple):
            raise DpmcError(f"{where}: codebook: needs columns: the names of the fields that a row has")
        Codebook.given(given["codebook"]).coding(columns)
    for key in METHODS:
        if key in given and not callable(given[key]):
            raise DpmcError(f"{where}: {key}: {shown(given[key])} must be a method")
    if "log_prior_gradient" in given and "log_prior" not in given:
        raise DpmcError(f"{where}: log_prior_gradient: without log_prior the prior is flat; give both")
    for key in ("true_theta", "start"):
        if key in given:
            given[key] = array(given[key], (d,), f"{where}: {key}")
    tempering = given.get("tempering")
    if tempering is not None:
        tempering = positive_number(tempering, f"{where}: tempering")
    return Definition(OwnModel(own, name), n, tempering, tuple(given.get("true_theta", np.zeros(d))))


def _are_names(value: object) -> bool:
    """Return whether a value is a tuple or list of different printable texts."""
    if not isinstance(value, tuple | list) or not all(isinstance(name, str) for name in value):
        return False
    return len(set(value)) == len(value) and all(name and name.isprintable() for name in value)


@contextmanager
def _one_line(failure: str, name: str) -> Iterator[None]:
    """Turn any exception of the code of `module:Class`, also `sys.exit`, into a DpmcError of one line.

    It names the error, and the last line of the user's module in the traceback, if any.
    """
    try:
        yield
    except (DpmcError, KeyboardInterrupt):
        raise
    except BaseException as error:
        module = name.partition(":")[0]
        file = getattr(sys.modules.get(module), "__file__", None) or f"{module.replace('.', '/')}.py"
        lines = [
            entry.lineno
            for entry in traceback.extract_tb(error.__traceback__)
            if os.path.abspath(entry.filename) == os.path.abspath(file)
        ]
        place = f", {Path(file).name} line {lines[-1]}" if lines else ""
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        raise DpmcError(f"{failure} ({text}{place})") from None


class _Reported:
    """A user's object whose methods' exceptions become a DpmcError naming model, method and error.

    Its methods cannot change positions, rows, or arrays that they have returned: they get copies of positions
    and read-only rows, and returned arrays are copied. A method that takes rows is called on a copy of the
    object, which is then thrown away: so nothing that it keeps of some rows in the object reaches others.
    """

    def __init__(self, own: object, name: str) -> None:
        self._own, self._name = own, name
        # Those of dpmc keep nothing; a `Model` or a family of a regression has functions of the user.
        self._copied = type(_of_user(own)).__module__ not in REGRESSIONS

    def __getattr__(self, key: str) -> Any:
        # `_own` among them: while a copy is made it is missing, and looking it up would come back here.
        if key.startswith("_"):
            raise AttributeError(key)
        value = getattr(self._own, key)
        if not callable(value):
            return value

        def method(*arguments: Any) -> Any:
            where = f"model: {shown(self._name)}: {key}"
            guarded = list(arguments)
            for i, argument in enumerate(arguments):
                if isinstance(argument, np.ndarray):
                    is_rows = ROWS_AT.get(key) == i
                    guarded[i] = argument.view() if is_rows else argument.copy()
                    guarded[i].flags.writeable = not is_rows
            called = value
            if key in ROWS_AT and self._copied:
                try:
                    called = getattr(copy.deepcopy(self._own), key)
                except Exception as error:  # a lock, an open file, an object of another language
                    why = f"cannot be copied ({type(error).__name__}: {error})"
                    rule = "keep open files and the like outside of it"
                    raise DpmcError(f"model: {shown(self._name)}: {why}; {rule}") from None
            with _one_line(f"{where} failed", self._name):
                result = called(*guarded)
            if isinstance(result, np.ndarray):
                return result.copy()
            if key != "posterior":
                return result
            if not all(callable(getattr(result, needed, None)) for needed in ("draws", "mean", "covariance")):
                raise DpmcError(f"{where}: {shown(result)} must have methods draws, mean and covariance")
            return _Reported(result, self._name)

        return method


class OwnModel(_Reported):
    """A user's model with defaults: a flat prior, and a clear error for a missing gradient.

    A user's prior takes one θ (d,); here it takes many (..., d).
    """

    @property
    def given(self) -> Any:
        """Return the user's object."""
        return self._own

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Return the names of a row's columns; None if the model has none."""
        columns = getattr(self._own, "columns", None)
        return tuple(columns) if isinstance(columns, list | tuple) else None

    @property
    def columns(self) -> int | None:
        """Return the number of a row's columns; None if the model does not fix it."""
        names = self.column_names
        return getattr(self._own, "columns", None) if names is None else len(names)

    @property
    def coding(self) -> Coding | None:
        """Return how tables of rows are read: the model's `coding`, or what its codebook says."""
        book, names = getattr(self._own, "codebook", None), self.column_names
        if book is None or names is None or hasattr(self._own, "coding"):
            return getattr(self._own, "coding", None)
        return Codebook.given(book).coding(names)

    def offers(self, method: str) -> bool:
        """Return whether the user's class has this method itself."""
        return hasattr(self._own, method)

    def log_prior(self, theta: np.ndarray) -> np.ndarray:
        """Return ln p(θ) (...) of θ (..., d); 0 if the model has no prior, else −∞ where θ has diverged."""
        if not self.offers("log_prior"):
            return np.zeros(theta.shape[:-1])
        return self._at_each("log_prior", theta, np.full(theta.shape[:-1], -np.inf))

    def log_prior_gradient(self, theta: np.ndarray) -> np.ndarray:
        """Return ∇ ln p(θ) (..., d); 0 if the model has no prior, else NaN where θ has diverged."""
        if not self.offers("log_prior"):
            return np.zeros(theta.shape)
        return self._at_each("log_prior_gradient", theta, np.full(theta.shape, np.nan))

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return ∇ ln p(x_j|θ), (n, d); raise DpmcError if the model has no gradient."""
        return self.needed("log_likelihood_gradient")(theta, rows)

    def _at_each(self, key: str, theta: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Put the results of a method of one position into `values`, where θ (..., d) has not diverged."""
        method, where = self.needed(key), f"model: {name_of(self)}: {key}"
        for index in np.ndindex(theta.shape[:-1]):
            if not has_diverged(theta[index]):
                values[index] = real_array(method(theta[index]), np.shape(values[index]), where)
        return values

    def needed(self, key: str) -> Callable[..., np.ndarray]:
        """Return a method of the user's class; raise DpmcError if it has none."""
        if not self.offers(key):
            raise DpmcError(f"model: {name_of(self)} has no {key}; this algorithm needs it")
        return self.__getattr__(key)
