"""Hyperparameters of a study's cells: from config/hyperparameters to an algorithm."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import RootModel

from dpmc.algorithms import FREE, algorithm_class
from dpmc.algorithms.hyperparameters import checked, read
from dpmc.base import Algorithm
from dpmc.common.errors import DpmcError
from dpmc.studies.documents import beside, read_document
from dpmc.studies.keys import validated
from dpmc.studies.study import Study


class MissingSettings(DpmcError):
    """The hyperparameters of a cell are missing."""


class Hyperparameters(NamedTuple):
    """Hyperparameters of a method on a model, and their place for error messages."""

    values: dict[str, Any]
    source: str


def pinned_hyperparameters(study: Study, model: str, method: str) -> Hyperparameters:
    """Return the hyperparameters of a cell from config/hyperparameters.

    They are looked up under the method's label, else its `settings_of`; there under the model's label,
    else its `settings_of`. With `hyperparameters: tuned` they are those found by a search, except for
    algorithms that are never searched.

    Raises MissingSettings if there are none, DpmcError if the file is wrong.
    """
    spec = study.method(method)
    tuned = spec.hyperparameters == "tuned" and spec.algorithm in FREE
    file = beside(study.path, "hyperparameters", f"{study.settings_of}{'.tuned' if tuned else ''}.yaml")
    if not file.is_file():
        raise MissingSettings(f"{file}: no such file")
    document = read_document(file)
    validated(RootModel[dict[str, dict[str, dict[str, Any]]]], document)  # method -> model -> name -> value
    for key in (method, spec.settings_of):
        for label in (model, study.model(model).settings_of):
            if label in document.content.get(key, {}):
                return Hyperparameters(document.content[key][label], document.place(key, label))
    if ":" in model and not tuned:
        by = "dpmc.recommend" if algorithm_class(spec.algorithm).calibrates_run else "dpmc tune --search"
        how = f"give them by --hyperparameters, or let {by} find some"
        raise MissingSettings(f"{model}, {method}: hyperparameters are missing; {how}")
    hint = "no search found any" if tuned else "give them here, or to dpmc sample by --hyperparameters"
    raise MissingSettings(f"{file}: {spec.settings_of}: {model}: hyperparameters are missing; {hint}")


def build_algorithm(
    study: Study, method: str, given: Hyperparameters, dimension: int | None, epsilon: str = "inf", n: int = 0
) -> Algorithm:
    """Return the algorithm of a method label with its hyperparameters (d = `dimension`, None if unknown).

    `epsilon` and the number of rows `n` are used only if ε is per iteration: they set the noise.

    Raises DpmcError for wrong hyperparameters and options.
    """
    check_hyperparameters(study, method, given, dimension, epsilon)  # before `calibrate` computes with them
    values = calibrated_values(study, method, given.values, epsilon, n)
    return read(algorithm_class(study.method(method).algorithm), values, given.source, dimension)


def check_hyperparameters(
    study: Study, method: str, given: Hyperparameters | None, dimension: int | None, epsilon: str = "inf"
) -> None:
    """Raise DpmcError for wrong hyperparameters and options of a method, before calibration.

    `given` and `dimension` are None if not known yet. Errors in options name their line in the study.
    """
    spec, calibrated = study.method(method), _calibrate(study, method, epsilon) is not None
    values, source = given or ({}, "")
    elsewhere = dict.fromkeys(spec.options, study.document.place("methods", method, "options"))
    partial = calibrated or given is None  # others follow from calibration, or on the command line
    asked = {**values, **spec.options}
    checked(algorithm_class(spec.algorithm), asked, source, dimension, elsewhere, partial, calibrated)


def calibrated_values(
    study: Study, method: str, values: dict[str, Any], epsilon: str, n: int
) -> dict[str, Any]:
    """Return all hyperparameters of a cell: `values`, the method's options, and calibrated ones.

    Raises DpmcError for an ε per iteration to which the algorithm cannot be calibrated.
    """
    values = {**values, **study.method(method).options}
    calibrate = _calibrate(study, method, epsilon)
    if calibrate is None:
        return values
    of_a_person = (study.rows_per_person,) if study.rows_per_person > 1 else ()
    with study.document.blamed("methods", method):
        return calibrate(values, float(epsilon), study.delta_for(n), n, *of_a_person)


def _calibrate(study: Study, method: str, epsilon: str) -> Callable[..., dict[str, Any]] | None:
    """Return the algorithm's `calibrate`; None if ε is of another kind than that which it is for.

    Raises DpmcError for an ε per iteration and an algorithm without `calibrate` for it.
    """
    name = study.method(method).algorithm
    cls = algorithm_class(name)
    if epsilon == "inf" or (study.epsilon_kind == "total" and not cls.calibrates_run):
        return None
    calibrate: Callable[..., dict[str, Any]] | None = getattr(cls, "calibrate", None)
    if calibrate is None or (cls.calibrates_run and study.epsilon_kind != "total"):
        rule = f"{epsilon}: {name} cannot be calibrated to an epsilon per iteration, must be [inf]"
        study.document.refuse("methods", method, "epsilons", rule=rule)
    return calibrate
